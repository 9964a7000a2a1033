"""Named arrays and facts about them as bytes, in the safetensors format: data, and no code.

Among the facts is a checksum of all bytes but its own digits, and that there is to be one: damage
to either name is found by the other. Data of before has neither.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.types import numpy_dtype
from heterosis.np.convert import from_numpy, to_numpy
from heterosis.runtime.errors import FormatError, MissingPackageError

_PLAIN = (bool, int, float, str, type(None))
_CHECKED, _CHECKSUM = "checked", "checksum"
_NO_DIGITS = "0" * 8
# In text that JSON has escaped, no value can look like this.
_PLACE = re.compile(rb'"checksum":"([^"]*)"')
_DTYPES = {
    "BOOL": "bool",
    "I8": "int8",
    "U8": "uint8",
    "I16": "int16",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "I32": "int32",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
}


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ImportError:
        raise MissingPackageError(
            "files of programs, states and checkpoints need the package safetensors, which has no "
            "wheel for every Python: pip install safetensors builds it, with Rust. Parameters "
            "alone need none: save_parameters('net.params')."
        ) from None
    return safetensors


def pack(arrays: Mapping[str, _core.ndarray], facts: Mapping[str, Any]) -> bytes:
    """The arrays, and what JSON can say about them; waits for queued work."""
    # Not `ascontiguousarray`, which gives 0-d arrays a dimension.
    tensors = {name: numpy.asarray(to_numpy(a), order="C") for name, a in arrays.items()}
    metadata = {name: json.dumps(fact) for name, fact in facts.items()}
    metadata |= {_CHECKED: "true", _CHECKSUM: _NO_DIGITS}
    packed: bytes = _safetensors().numpy.save(tensors, metadata)
    begin, end = _digits_in(_header(packed))
    return b"".join((packed[:begin], _checksum(packed, begin, end).encode(), packed[end:]))


def unpack(data: bytes) -> tuple[dict[str, _core.ndarray], dict[str, Any]]:
    """What `pack` was given. Raises FormatError for bytes that are no such thing."""
    safetensors = _safetensors()
    try:
        header = _header(data)
        metadata = json.loads(header[8:]).get("__metadata__") or {}
        if _CHECKED in metadata or _CHECKSUM in metadata:
            _check(data, header)
            del metadata[_CHECKED], metadata[_CHECKSUM]
        tensors = dict(safetensors.deserialize(bytes(data)))
        facts = {name: json.loads(text) for name, text in metadata.items()}
        return {name: _array(entry) for name, entry in tensors.items()}, facts
    except (safetensors.SafetensorError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise FormatError(
            f"these {len(data)} bytes are no packed arrays: {error}. Expected what was written "
            "by this framework, in the safetensors format; is the file cut off?"
        ) from None


def _header(data: bytes) -> bytes:
    """What stands before the elements: a length, and JSON."""
    return data[: 8 + int.from_bytes(data[:8], "little")]


def _digits_in(header: bytes) -> tuple[int, int]:
    """From where to where the digits of the checksum stand."""
    found = _PLACE.search(header)
    if found is None:
        raise ValueError("they should have a checksum, and have none")
    return found.span(1)


def _checksum(data: bytes, begin: int, end: int) -> str:
    """The CRC-32 of all but these digits."""
    view = memoryview(data)
    return f"{zlib.crc32(view[end:], zlib.crc32(view[:begin])):08x}"


def _check(data: bytes, header: bytes) -> None:
    begin, end = _digits_in(header)
    if header[begin:end] != _checksum(data, begin, end).encode():
        raise ValueError("their checksum is wrong, so that a part of them is not what was written")


def fits(value: Any, now: Any, *, optional: bool = False) -> bool:
    """Whether what JSON gave can stand where `now` stands: something of its kind.

    Where nothing stands, anything can; nothing can stand where something is `optional`.
    """
    if value is None or now is None:
        return now is None or optional
    if isinstance(now, bool) or not isinstance(now, int | float):
        return type(value) is (list if isinstance(now, tuple) else type(now))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return _is_moderate(value) or not _is_moderate(now)


def is_plain(value: Any) -> bool:
    """Whether a value is a number, a text, nothing, or a list or dict of these."""
    if isinstance(value, dict):
        return all(isinstance(part, _PLAIN) for item in value.items() for part in item)
    if isinstance(value, list):
        return all(isinstance(part, _PLAIN) for part in value)
    return isinstance(value, _PLAIN)


def _is_moderate(number: float) -> bool:
    """Whether a number can be computed with: it is finite, and a whole one has 64 bits."""
    return math.isfinite(number) if isinstance(number, float) else abs(number) < 1 << 63


def _array(entry: Mapping[str, Any]) -> _core.ndarray:
    name = _DTYPES[entry["dtype"]]
    elements = numpy.frombuffer(entry["data"], numpy_dtype(name)).reshape(entry["shape"])
    return from_numpy(elements, name)
