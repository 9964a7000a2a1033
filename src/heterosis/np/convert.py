"""Between arrays and everything else: NumPy arrays, lists, numbers, text."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.types import DEFAULT_FLOAT, DTYPES, numpy_dtype
from heterosis.np.dtypes import default_dtype, dtype_name
from heterosis.runtime.errors import DTypeError


def from_numpy(source: numpy.ndarray, dtype: str | None = None) -> _core.ndarray:
    """A new array with the elements of `source`."""
    name = dtype or default_dtype(source)
    data = numpy.ascontiguousarray(source, dtype=numpy_dtype(name)).reshape(source.shape)
    if name == "bfloat16":  # which the buffer protocol cannot name
        data = data.view(numpy.float16)
    return _core.array_from_bytes(data, name, source.shape)


def to_numpy(x: _core.ndarray) -> numpy.ndarray:
    """A NumPy array with a copy of the elements; waits for them."""
    return shared(x).copy()


def shared(x: _core.ndarray) -> numpy.ndarray:
    """A NumPy view of the same memory; waits for queued work on it."""
    if x._dtype_name == "bfloat16":
        bits = numpy.asarray(memoryview(_core.reinterpret(x, "float16")))
        return bits.view(numpy_dtype("bfloat16"))
    return numpy.asarray(memoryview(x))


def array(object: Any, dtype: Any = None, ctx: Any = None) -> _core.ndarray:
    """A new array from numbers, sequences, NumPy arrays or arrays.

    Python numbers become float32 unless `dtype` says otherwise; arrays keep their type.
    """
    wanted = None if dtype is None else dtype_name(dtype)
    if isinstance(object, _core.ndarray):
        return object.astype(wanted or object._dtype_name)
    if isinstance(object, numpy.ndarray | numpy.generic):
        return from_numpy(numpy.asarray(object), wanted)
    return from_numpy(_from_python(object, wanted or DEFAULT_FLOAT), wanted or DEFAULT_FLOAT)


def _from_python(object: Any, dtype: str) -> numpy.ndarray:
    try:
        return numpy.array(_without_arrays(object), dtype=numpy_dtype(dtype))
    except (TypeError, ValueError) as error:
        raise DTypeError(
            f"array: cannot make {dtype} elements of {type(object).__name__}: {error}. "
            "Give numbers, or sequences of equal length."
        ) from None


def _without_arrays(object: Any) -> Any:
    if isinstance(object, _core.ndarray):
        return to_numpy(object)
    if isinstance(object, list | tuple):
        return [_without_arrays(item) for item in object]
    return object


def operand(given: Any) -> Any:
    """What an operation takes for `given`: an array, a number or None."""
    if given is None or isinstance(given, _core.ndarray | bool | int | float):
        return given if not isinstance(given, numpy.generic) else given.item()
    if isinstance(given, numpy.generic):
        return given.item()
    if isinstance(given, numpy.ndarray):
        return from_numpy(given)
    if isinstance(given, list | tuple):
        return array(given)
    if hasattr(given, "__dlpack__"):
        return _core.from_dlpack(given.__dlpack__())
    raise DTypeError(
        f"expected an array or a number, and got {type(given).__name__}; see np.array."
    )


__all__ = ["DTYPES", "array", "from_numpy", "operand", "shared", "to_numpy"]
