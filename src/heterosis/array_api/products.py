"""Products of arrays, which the namespace has beside those in `linalg`."""

from __future__ import annotations

from typing import Any

from heterosis import np
from heterosis.runtime.errors import ShapeError, check_axis

ndarray = np.ndarray


def matmul(x1: ndarray, x2: ndarray, /) -> ndarray:
    """The matrix product."""
    return np.matmul(x1, x2)


def matrix_transpose(x: ndarray, /) -> ndarray:
    """The last two dimensions swapped."""
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose: expected matrices; got an array of shape {x.shape}.")
    return np.swapaxes(x, -1, -2)


def tensordot(x1: ndarray, x2: ndarray, /, *, axes: Any = 2) -> ndarray:
    """Products summed over several axes: the last of `x1` and the first of `x2`, or those named."""
    return np.tensordot(x1, x2, axes)


def vecdot(x1: ndarray, x2: ndarray, /, *, axis: int = -1) -> ndarray:
    """The scalar products of vectors along `axis`, which counts from the end."""
    lengths = [x.shape[check_axis("vecdot", axis, x.ndim)] for x in (x1, x2)]
    if lengths[0] != lengths[1]:
        raise ShapeError(
            f"vecdot: vectors of {lengths[0]} and of {lengths[1]} elements along axis {axis} of "
            f"the shapes {x1.shape} and {x2.shape}; expected as many."
        )
    return np.sum(np.moveaxis(x1, axis, -1) * np.moveaxis(x2, axis, -1), -1)


__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]
