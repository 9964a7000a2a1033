"""Making arrays. Python's integers become int64, its floats float32, unless `dtype` says more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy

from heterosis import np
from heterosis.array_api.data_types import result_type
from heterosis.ir.types import DEFAULT_FLOAT, dtype_name
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError
from heterosis.runtime.placing import placed

ndarray = np.ndarray

_FURTHEST = 2**62
# What Python's numbers become, by the kind of NumPy's array of them.
_DEFAULTS = {"b": "bool", "i": "int64", "f": DEFAULT_FLOAT}


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> ndarray:
    """An array from numbers, nested sequences, arrays, or what has a buffer or speaks DLPack.

    `copy=True` always makes a copy, `False` never does, and without either one is made if needed.
    """
    if copy is False:
        return _taken_over(obj, dtype, device)
    if isinstance(obj, bool | int | float | complex | list | tuple):
        dtype = _type_of(obj) if dtype is None else dtype
    return np.array(obj, dtype, device, copy=copy)


def _taken_over(obj: Any, dtype: Any, device: Any) -> ndarray:
    """`obj` as an array over the same memory."""
    if not isinstance(obj, ndarray):
        if not hasattr(obj, "__dlpack__"):
            raise ArgumentError(
                f"asarray: copy=False, and a {type(obj).__name__} cannot be taken over without a "
                "copy; expected an array, or what speaks DLPack."
            )
        obj = np.from_dlpack(obj)
    if dtype is not None and dtype_name(dtype) != obj.dtype:
        raise ArgumentError(
            f"asarray: copy=False, but elements of {obj.dtype} become {dtype_name(dtype)} only in "
            "a copy; leave copy away."
        )
    return np.asarray(obj, ctx=device, copy=False)


def _type_of(obj: Any) -> Any:
    """The element type that nested sequences of numbers, or of arrays, ask for."""
    arrays = [*_arrays_in(obj)]
    if arrays:
        return result_type(*arrays)
    try:
        found = numpy.asarray(obj).dtype
    except ValueError:
        raise ShapeError(
            "asarray: sequences of unequal length make no array; give each the same length."
        ) from None
    if found.kind not in _DEFAULTS:
        raise DTypeError(
            f"asarray: {found.name} numbers have no element type here; expected booleans, floats, "
            "or integers that int64 holds."
        )
    return _DEFAULTS[found.kind]


def _arrays_in(obj: Any) -> Iterator[Any]:
    if isinstance(obj, list | tuple):
        for item in obj:
            yield from _arrays_in(item)
    elif isinstance(obj, ndarray):
        yield obj


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> ndarray:
    """Numbers from `start` (0 if only one bound is given) up to, without, `stop`."""
    if dtype is None:
        floats = any(isinstance(number, float) for number in (start, stop, step))
        dtype = DEFAULT_FLOAT if floats else "int64"
    return np.arange(start, stop, step, dtype, device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """A new array whose elements are whatever the memory held."""
    return np.empty(shape, dtype, ctx=device)


def empty_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> ndarray:
    """An array like `x` whose elements are whatever the memory held."""
    return np.empty_like(x, dtype, ctx=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: Any = None,
) -> ndarray:
    """Ones on the `k`-th diagonal, zeros elsewhere."""
    return np.eye(n_rows, n_cols, _diagonal(k), dtype, ctx=device)


def _diagonal(k: int) -> int:
    """The number of a diagonal; those that 64 bits do not hold are outside of any array, as is the
    furthest that they do."""
    return max(-_FURTHEST, min(k, _FURTHEST))


@placed
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """An array that shares the memory of another library's array; with `copy=True`, a copy."""
    shared = np.from_dlpack(x)
    return shared.copy() if copy else shared


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """An array that repeats a number."""
    return np.full(shape, fill_value, dtype or _type_of(fill_value), ctx=device)


def full_like(x: ndarray, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """An array like `x` that repeats a number."""
    return np.full_like(x, fill_value, dtype, ctx=device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: Any = None,
    endpoint: bool = True,
) -> ndarray:
    """`num` evenly spaced numbers from `start` to `stop`, without it unless `endpoint`."""
    return np.linspace(start, stop, num, endpoint, False, dtype, 0, device)


def meshgrid(*arrays: ndarray, indexing: str = "xy") -> list[ndarray]:
    """Coordinate grids, one for each one-dimensional array of coordinates."""
    return np.meshgrid(*arrays, indexing=indexing)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """An array of ones."""
    return np.ones(shape, dtype, ctx=device)


def ones_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> ndarray:
    """An array of ones like `x`."""
    return np.ones_like(x, dtype, ctx=device)


def tril(x: ndarray, /, *, k: int = 0) -> ndarray:
    """The elements on and below the `k`-th diagonal of matrices, the others zero."""
    return np.tril(x, _diagonal(k))


def triu(x: ndarray, /, *, k: int = 0) -> ndarray:
    """The elements on and above the `k`-th diagonal of matrices, the others zero."""
    return np.triu(x, _diagonal(k))


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> ndarray:
    """An array of zeros."""
    return np.zeros(shape, dtype, ctx=device)


def zeros_like(x: ndarray, /, *, dtype: Any = None, device: Any = None) -> ndarray:
    """An array of zeros like `x`."""
    return np.zeros_like(x, dtype, ctx=device)


__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]
