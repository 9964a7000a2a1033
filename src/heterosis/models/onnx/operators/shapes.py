"""Shapes, and what moves elements without changing them."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx.operators.table import Host, operator


def sizes(numbers: Any) -> numpy.ndarray:
    """Extents as NumPy's array, of objects while they are not known."""
    numbers = list(numbers)
    return numpy.array(numbers, "int64" if all(type(n) is int for n in numbers) else object)


def _shape_on_host(x: Any, *, start: int = 0, end: int | None = None) -> numpy.ndarray:
    return sizes(x.shape[start:end])


@operator("Shape", on_host=_shape_on_host)
def _shape(x: Any, *, start: int = 0, end: int | None = None) -> numpy.ndarray:
    return sizes(x.shape[start:end])


@operator("Reshape", since=5)
def _reshape(x: Any, shape: Host, *, allowzero: int = 0) -> Any:
    wanted = [
        x.shape[i] if type(n) is int and n == 0 and not allowzero else n
        for i, n in enumerate(shape.tolist())
    ]
    return np.reshape(x, tuple(wanted))


@operator("Transpose")
def _transpose(x: Any, *, perm: list[int] | None = None) -> Any:
    return np.transpose(x, perm)
