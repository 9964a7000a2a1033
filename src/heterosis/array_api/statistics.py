"""Sums, products and what else becomes of many elements. Small integers are summed as int64."""

from __future__ import annotations

from typing import Any

from heterosis import np
from heterosis.ir.types import INTEGERS, is_signed
from heterosis.runtime.errors import ArgumentError

ndarray = np.ndarray
Axes = int | tuple[int, ...] | None


def _sum_type(x: ndarray, dtype: Any) -> Any:
    """The type that sums and products have: of integers the largest there is."""
    name = x.dtype.name
    if dtype is not None or name not in INTEGERS:
        return dtype
    return "int64" if is_signed(name) else "uint64"


def cumulative_sum(
    x: ndarray,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> ndarray:
    """The sums of all elements up to each one; `include_initial` puts a 0 before them."""
    axis = _only_axis("cumulative_sum", x, axis)
    found = np.cumsum(x, axis, _sum_type(x, dtype))
    return _behind(0, found, axis) if include_initial else found


def cumulative_prod(
    x: ndarray,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> ndarray:
    """The products of all elements up to each one; `include_initial` puts a 1 before them."""
    axis = _only_axis("cumulative_prod", x, axis)
    found = np.cumprod(x, axis, _sum_type(x, dtype))
    return _behind(1, found, axis) if include_initial else found


def _only_axis(name: str, x: ndarray, axis: int | None) -> int:
    if axis is None and x.ndim != 1:
        raise ArgumentError(f"{name}: an array of {x.ndim} dimensions; say along which axis.")
    return 0 if axis is None else axis


def _behind(number: int, x: ndarray, axis: int) -> ndarray:
    shape = [*x.shape]
    shape[axis] = 1
    return np.concatenate((np.full(tuple(shape), number, x.dtype), x), axis)


def max(x: ndarray, /, *, axis: Axes = None, keepdims: bool = False) -> ndarray:
    """The largest elements."""
    return np.max(x, axis, keepdims=keepdims)


def mean(x: ndarray, /, *, axis: Axes = None, keepdims: bool = False) -> ndarray:
    """The arithmetic mean of elements."""
    return np.mean(x, axis, keepdims=keepdims)


def min(x: ndarray, /, *, axis: Axes = None, keepdims: bool = False) -> ndarray:
    """The smallest elements."""
    return np.min(x, axis, keepdims=keepdims)


def prod(x: ndarray, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> ndarray:
    """The product of elements."""
    return np.prod(x, axis, _sum_type(x, dtype), keepdims)


def std(
    x: ndarray, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> ndarray:
    """The standard deviation of elements; `correction` is taken from their number."""
    return np.std(x, axis, ddof=correction, keepdims=keepdims)


def sum(x: ndarray, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> ndarray:
    """The sum of elements."""
    return np.sum(x, axis, _sum_type(x, dtype), keepdims)


def var(
    x: ndarray, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> ndarray:
    """The variance of elements; `correction` is taken from their number."""
    return np.var(x, axis, ddof=correction, keepdims=keepdims)


def all(x: ndarray, /, *, axis: Axes = None, keepdims: bool = False) -> ndarray:
    """Whether all elements are true."""
    return np.all(x, axis, keepdims)


def any(x: ndarray, /, *, axis: Axes = None, keepdims: bool = False) -> ndarray:
    """Whether an element is true."""
    return np.any(x, axis, keepdims)


def diff(
    x: ndarray,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: ndarray | None = None,
    append: ndarray | None = None,
) -> ndarray:
    """The `n`-th differences of neighbours along `axis`, of what is put before and behind too."""
    return np.diff(x, n, axis, prepend, append)


__all__ = [
    "all",
    "any",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]
