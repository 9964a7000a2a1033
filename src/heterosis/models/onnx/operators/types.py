"""Element types, and arrays that are there from the start."""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx import tensors
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.values import (
    Following,
    by_numpy,
    converted,
    hosted,
    is_small,
    kind,
    listed,
    number,
    of_sizes,
)
from heterosis.runtime.errors import ArgumentError, FormatError, UnsupportedError

# -- conversions -----------------------------------------------------------------------------------

_NAMED = {  # how the first versions wrote types
    "FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7,
    "STRING": 8, "BOOL": 9, "FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13,
}  # fmt: skip


def _on_host(x: numpy.ndarray, dtype: str) -> Any:
    if x.dtype != object:
        return x.astype(tensors.numpy_dtype(dtype))
    if dtype == "int64":
        return x

    # Other types have no elements that are not known yet, but an array that is computed with can
    # hold any. Where they decide about shapes, sizes stay sizes as int32; for others, they are
    # taken as what they are now.
    def numbers() -> numpy.ndarray:
        if dtype == "int32":
            return x
        fixed = numpy.array([int(n) for n in x.flat], "int64").reshape(x.shape)
        return fixed.astype(tensors.numpy_dtype(dtype))

    return Following(numbers, lambda: converted(of_sizes(x), dtype))


def _cast_on_host(x: Any, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Any:
    return _on_host(x, _target(to))


def _target(to: int | str) -> str:
    return tensors.dtype_of(_NAMED.get(to) if isinstance(to, str) else to)


@operator("Cast", on_host=by_numpy(_cast_on_host))
def _cast(x: Any, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Any:
    # `saturate` and `round_mode` are about 8-bit floats alone, which are refused.
    return converted(x, _target(to))


def _cast_like_on_host(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return _on_host(x, "int64" if like.dtype == object else str(like.dtype))


@operator("CastLike", since=15, on_host=by_numpy(_cast_like_on_host))
def _cast_like(x: Any, like: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return converted(x, str(like.dtype))


def _bits_on_host(x: Any, *, to: int) -> Any:
    dtype = tensors.numpy_dtype(tensors.dtype_of(to))
    given = numpy.dtype("int64") if x.dtype == object else x.dtype
    if given.itemsize != dtype.itemsize or (x.dtype == object and dtype != given):
        raise UnsupportedError(f"BitCast of {given} to {dtype}.")
    return x if x.dtype == object else x.reshape(*x.shape, 1).view(dtype).reshape(x.shape)


@operator("BitCast", since=26, on_host=by_numpy(_bits_on_host))
def _bits(x: Any, *, to: int) -> Any:
    dtype, given = tensors.dtype_of(to), str(x.dtype)
    of_integers = kind(x) in "iu" and dtype.removeprefix("u") == given.removeprefix("u")
    if dtype != given and not of_integers:  # whose conversion keeps their bits
        raise UnsupportedError(
            f"BitCast of {given} to {dtype}; between integers of one width it is done here."
        )
    return converted(x, dtype)


@operator("Identity", on_host=lambda x: x)
def _identity(x: Any) -> Any:
    return x


# -- arrays from the start -------------------------------------------------------------------------


@operator("Constant")
def _constant(
    *,
    value: numpy.ndarray | None = None,
    value_float: float | None = None,
    value_floats: list[float] | None = None,
    value_int: int | None = None,
    value_ints: list[int] | None = None,
    value_string: str | None = None,
    value_strings: list[str] | None = None,
) -> numpy.ndarray:
    if value is not None:
        return value
    for given, dtype in (
        (value_float, "float32"), (value_floats, "float32"),
        (value_int, "int64"), (value_ints, "int64"),
    ):  # fmt: skip
        if given is not None:
            return numpy.array(given, dtype)
    if value_string is not None or value_strings is not None:
        raise UnsupportedError("arrays of strings are not read; convert the model to others.")
    raise FormatError("a Constant has no value.")


@operator("ConstantOfShape", since=9)
def _constant_of_shape(shape: Host, *, value: numpy.ndarray | None = None) -> Any:
    extents = listed(shape)
    value = numpy.zeros(1, "float32") if value is None else value
    if is_small(extents):
        return numpy.full(extents, value.reshape(-1)[0], value.dtype)
    return np.full(tuple(extents), value.reshape(-1)[0].item(), dtype=str(value.dtype))


@operator("EyeLike", since=9)
def _eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    name = str(x.dtype) if dtype is None else tensors.dtype_of(dtype)
    rows, columns = x.shape
    return np.eye(rows, columns, k, dtype=name)


@operator("Range", since=11)
def _range(start: Host, limit: Host, delta: Host, *, stash_type: int = 1) -> Any:
    given = {str(x.dtype) for x in (start, limit, delta)}
    if "object" in given:  # sizes: they are of the type that the others have
        if len(given) != 2:
            raise UnsupportedError("Range whose start, limit and delta all follow from sizes.")
        (dtype,) = given - {"object"}
        return np.arange(number(start), number(limit), number(delta), dtype=dtype)
    first, last, step = (x.reshape(-1)[0] for x in (start, limit, delta))
    if step == 0:
        raise ArgumentError("Range with steps of 0.")
    if start.dtype.kind in "iu":
        found = np if abs(int(last) - int(first)) > 64 * abs(int(step)) else numpy
        return found.arange(int(first), int(last), int(step), dtype=str(start.dtype))
    wide = numpy.float64 if start.dtype == numpy.float64 else numpy.float32
    steps = max(0, math.ceil((float(last) - float(first)) / float(step)))
    return hosted((wide(first) + numpy.arange(steps, dtype=wide) * wide(step)).astype(start.dtype))
