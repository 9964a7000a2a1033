"""The array's older name, and functions on arrays that are no operators of symbol files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import np
from heterosis.io.params import load, loads, save
from heterosis.np.convert import from_numpy as _from_numpy
from heterosis.npx import waitall

NDArray = np.ndarray

load_frombuffer = loads
from_dlpack = np.from_dlpack
histogram, moveaxis, true_divide = np.histogram, np.moveaxis, np.true_divide


def concatenate(arrays: Sequence[Any], axis: int = 0, always_copy: bool = True) -> Any:
    """Arrays joined along an axis that exists."""
    return np.concatenate(arrays, axis)


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, ctx: Any = None,
    dtype: Any = "float32",
) -> Any:  # fmt: skip
    """Evenly spaced numbers from `start` to `stop`."""
    return np.linspace(start, stop, num, endpoint, dtype=dtype, ctx=ctx)


def from_numpy(ndarray: numpy.ndarray[Any, Any], zero_copy: bool = True) -> Any:
    """A new array with NumPy's elements; memory is never shared here."""
    return _from_numpy(ndarray, ndarray.dtype.name)


__all__ = [
    "NDArray",
    "concatenate",
    "from_dlpack",
    "from_numpy",
    "histogram",
    "linspace",
    "load",
    "load_frombuffer",
    "moveaxis",
    "save",
    "true_divide",
    "waitall",
]
