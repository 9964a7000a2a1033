"""Arrays as ONNX stores them: by elements, by their bytes, or in files of their own."""

from __future__ import annotations

import math
import os
from typing import Any

import ml_dtypes
import numpy

from heterosis.io.files import opened
from heterosis.models.onnx.wire import Message
from heterosis.runtime.errors import FormatError, UnsupportedError

# How files number element types.
NAMES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64",
    9: "bool", 10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16",
}  # fmt: skip
NUMBERS = {name: number for number, name in NAMES.items()}
_UNREAD = {
    8: "strings", 14: "complex numbers", 15: "complex numbers", 17: "8-bit floats",
    18: "8-bit floats", 19: "8-bit floats", 20: "8-bit floats", 21: "4-bit integers",
    22: "4-bit integers", 23: "4-bit floats", 24: "8-bit floats", 25: "2-bit integers",
    26: "2-bit integers",
}  # fmt: skip
_MOST_DIMENSIONS = 64
_ADDRESSES = 1 << 62
# Where elements stand if they are listed one by one, and as what: some are listed as their bits.
_LISTED = {
    "float32": "float_data", "float64": "double_data", "int64": "int64_data",
    "uint32": "uint64_data", "uint64": "uint64_data",
}  # fmt: skip


def dtype_of(number: int | None) -> str:
    """The element type with this number in a file."""
    if number not in NAMES:
        what = _UNREAD.get(number or 0)
        if what:
            raise UnsupportedError(f"arrays of {what} are not read; convert the model to others.")
        raise FormatError(f"there is no element type {number}.")
    return NAMES[number]


def numpy_dtype(name: str) -> numpy.dtype[Any]:
    """NumPy's type of this name."""
    return numpy.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def array(message: Message, folder: str | None) -> numpy.ndarray:
    """The array that a message describes. `folder` is where files of their own are."""
    name, shape = message.name or "an array", tuple(message.dims)
    if any(n < 0 for n in shape) or len(shape) > _MOST_DIMENSIONS:
        raise FormatError(f"{name} has shape {shape}.")
    dtype = numpy_dtype(dtype_of(message.data_type))
    if math.prod(max(n, 1) for n in shape) * dtype.itemsize >= _ADDRESSES:
        raise FormatError(f"{name} has shape {shape}, for which no machine has room.")
    count = math.prod(shape)
    if message.data_location == 1:
        data = _from_file(name, message, folder, count * dtype.itemsize)
    elif message.raw_data is not None:
        data = message.raw_data
    else:
        return _listed(name, message, dtype, count).reshape(shape)
    if len(data) != count * dtype.itemsize:
        raise FormatError(
            f"{name} of shape {shape} and type {dtype} takes {count * dtype.itemsize} bytes, and "
            f"has {len(data)}."
        )
    return numpy.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def _listed(name: str, message: Message, dtype: numpy.dtype[Any], count: int) -> numpy.ndarray:
    values = getattr(message, _LISTED.get(dtype.name, "int32_data"))
    if len(values) != count:
        raise FormatError(f"{name} has {count} elements by its shape, and {len(values)} are there.")
    if dtype.name in ("float16", "bfloat16"):
        return numpy.array(values, numpy.int64).astype(numpy.uint16).view(dtype)
    if dtype.name == "uint64":
        return numpy.array(values, numpy.int64).view(dtype)
    return numpy.array(values, numpy.int64 if dtype.kind in "iub" else dtype).astype(dtype)


def _from_file(name: str, message: Message, folder: str | None, size: int) -> bytes:
    entries = {e.key: e.value for e in message.external_data}
    where = entries.get("location")
    if not where:
        raise FormatError(f"{name} is in another file, and the model does not say in which.")
    if folder is None:
        raise FormatError(f"{name} is in the file {where!r}: give the name of the model's file.")
    path = os.path.realpath(os.path.join(folder, where))
    inside = os.path.realpath(folder)
    if os.path.commonpath([path, inside]) != inside:
        raise FormatError(f"{name} is in {where!r}, outside of the model's folder: not read.")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", size))
    except ValueError:
        raise FormatError(f"{name}: no numbers say where it is in {where}.") from None
    with opened(path, "the arrays of an ONNX model") as file:
        if offset < 0 or length != size or offset + size > (file.size or 0):
            raise FormatError(f"{name}: {path} has no {size} bytes at {offset}.")
        file.stream.seek(offset)
        found: bytes = file.stream.read(size)
    return found


def described(name: str, host: numpy.ndarray) -> dict[str, Any]:
    """The message for an array, with its bytes."""
    own = host.dtype.newbyteorder("<")
    data = numpy.ascontiguousarray(host, own).reshape(-1).view(numpy.uint8)
    return {
        "name": name,
        "dims": list(host.shape),
        "data_type": NUMBERS[host.dtype.name],
        "raw_data": data.data,
    }
