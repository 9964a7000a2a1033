"""Between arrays and everything else: NumPy arrays, lists, numbers, other libraries' arrays."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.program import Value
from heterosis.ir.traced_sizes import fixed_number, is_traced
from heterosis.ir.types import DEFAULT_FLOAT, as_type, numpy_dtype
from heterosis.np.dtypes import default_dtype, dtype_name
from heterosis.ops.array.join import stack as _stacked
from heterosis.ops.math.cast import assign as _assign
from heterosis.ops.math.cast import copy as _copied
from heterosis.runtime import modes
from heterosis.runtime.context import Context, number_named
from heterosis.runtime.errors import DTypeError, ShapeError, UnsupportedError
from heterosis.runtime.placing import placed

_MAIN_MEMORY = (1, 3)  # DLPack's numbers for devices whose data lie there


def from_numpy(source: numpy.ndarray, dtype: str | None = None) -> _core.ndarray:
    """A new array with the elements of `source`."""
    name = dtype or default_dtype(source)
    data = numpy.ascontiguousarray(as_type(source, name)).reshape(source.shape)
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


@placed
def array(
    object: Any,
    dtype: Any = None,
    ctx: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    ndmin: int = 0,
) -> _core.ndarray:
    """A new array from numbers, sequences, NumPy arrays or arrays.

    Python numbers become float32 unless `dtype` says otherwise; arrays keep their type.
    """
    if order == "F":
        raise UnsupportedError("array: order='F' is not supported; arrays are made row by row.")
    made = _made(object, None if dtype is None else dtype_name(dtype), copy)
    if copy is False and made._device != number_named(ctx):
        raise UnsupportedError(f"array: copy=False, and the array is on {made.ctx}, not on {ctx}.")
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def _made(object: Any, dtype: str | None, copy: bool | None) -> _core.ndarray:
    if isinstance(object, _core.ndarray):
        if dtype not in (None, object._dtype_name):
            return object.astype(dtype)
        return _copied(object) if copy else object
    if (modes.is_recording() or modes.is_capturing()) and _has_arrays(object):
        # An operation, so that gradients flow, and a program can be captured, through the parts.
        parts = [_made(item, dtype or DEFAULT_FLOAT, None) for item in object]
        return _stacked(parts)
    if copy is False:
        raise ShapeError("array: copy=False, but only arrays can be taken over without a copy.")
    source = _as_numpy(object)
    if source is not None:
        return from_numpy(source, dtype)
    return from_numpy(_from_python(object, dtype or DEFAULT_FLOAT), dtype or DEFAULT_FLOAT)


def _has_arrays(object: Any) -> bool:
    return isinstance(object, list | tuple) and any(
        isinstance(item, _core.ndarray) or _has_arrays(item) for item in object
    )


def _as_numpy(object: Any) -> numpy.ndarray | None:
    """What has an element type of its own, as a NumPy array; `None` for Python's values."""
    if isinstance(object, numpy.ndarray | numpy.generic):
        return numpy.asarray(object)
    if is_traced(object):
        return None
    if isinstance(object, bytes | bytearray | memoryview) or hasattr(object, "__array__"):
        return numpy.asarray(memoryview(object) if not hasattr(object, "__array__") else object)
    if hasattr(object, "__dlpack__"):
        return shared(from_dlpack(object))
    return None


def _from_python(object: Any, dtype: str) -> numpy.ndarray:
    try:
        return _rounded_once(object, dtype)
    except OverflowError:  # numbers beyond the type's range wrap
        return as_type(numpy.array(object), dtype)
    except (TypeError, ValueError) as error:
        ragged = "inhomogeneous" in str(error)
        raise (ShapeError if ragged else DTypeError)(
            f"array: cannot make {dtype} elements of {type(object).__name__}: {error}. "
            "Give numbers, or sequences of equal length."
        ) from None


def _rounded_once(object: Any, dtype: str) -> numpy.ndarray:
    if dtype == "bfloat16":
        return as_type(numpy.array(object, dtype="float64"), dtype)
    return numpy.array(object, dtype=numpy_dtype(dtype))


def moved(x: _core.ndarray, ctx: Context) -> _core.ndarray:
    """A copy on another context; gradients flow back from there."""
    with ctx:
        made = _core.empty(x._dtype_name, x.shape)
    return _assign(x, out=made)


def asarray(object: Any, dtype: Any = None, ctx: Any = None, **more: Any) -> _core.ndarray:
    """`object` itself if it is an array of that type, else a new array; see `array`."""
    return array(object, dtype, ctx, **{"copy": None, **more})


def from_dlpack(source: Any) -> _core.ndarray:
    """An array that shares the memory of another library's array, or of a DLPack capsule."""
    device = getattr(source, "__dlpack_device__", None)
    if device is not None and device()[0] not in _MAIN_MEMORY:
        raise UnsupportedError("from_dlpack: the data are not in main memory; move them there.")
    capsule = source.__dlpack__() if hasattr(source, "__dlpack__") else source
    return _core.from_dlpack(capsule)


def operand(given: Any) -> Any:
    """What an operation takes for `given`: an array, a number or None."""
    if isinstance(given, numpy.generic):
        return given.item()
    if is_traced(given):
        return _of_sizes(given)
    if given is None or isinstance(given, _core.ndarray | bool | Value):
        return given
    for kind in (int, float):  # the core takes no classes derived from them, as an IntEnum
        if isinstance(given, kind):
            return given if type(given) is kind else kind.__new__(kind, given)
    if isinstance(given, list | tuple | range) or _is_array_like(given):
        return array(given)
    raise DTypeError(
        f"expected an array or a number, and got {type(given).__name__}; see np.array."
    )


def _of_sizes(number: Any) -> Any:
    """What follows from sizes, for an operation that is captured; of others it is a number."""
    if not modes.is_capturing():
        return fixed_number(number)
    return number.operand() if isinstance(number, float) else number


def _is_array_like(given: Any) -> bool:
    return hasattr(given, "__array__") or hasattr(given, "__dlpack__")


__all__ = ["array", "asarray", "from_dlpack", "from_numpy", "operand", "shared", "to_numpy"]
