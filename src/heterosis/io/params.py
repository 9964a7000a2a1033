"""MXNet's `.params` files: a list of arrays, or arrays by name.

All numbers are little-endian: a magic number and a reserved one, how many arrays, the arrays, how
many names, the names. An array is its format's magic number, the kind of storage, the shape, the
device, the element type and the elements. Written is the format of MXNet 1.6 and later under
`npx.set_np()`, in which a shape may be () or hold zeros; older ones can be read too.

Behind the names, where MXNet stops reading, stands a checksum of all that is before it. Files
without one are MXNet's own, or older.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO

import numpy

from heterosis import _core
from heterosis.io.files import FileName, opened, translated, wrong
from heterosis.io.together import written_by_one
from heterosis.ir.types import ITEMSIZE
from heterosis.np import convert
from heterosis.runtime.errors import DTypeError, FormatError
from heterosis.runtime.placing import in_main_memory

_KIND = "a .params file"
_LIST_MAGIC = 0x112
_NUMPY_SHAPES, _STORAGE_KINDS, _LONG_SHAPES = 0xF993FACA, 0xF993FAC9, 0xF993FAC8
_DENSE, _MAIN_MEMORY = 0, 1
_MOST_DIMENSIONS = 32
_SEAL = struct.Struct("<8sI")  # ends a file: what it is known by, and the CRC-32 of the rest
_SEALED = b"HXSEALED"
_BLOCK = 1 << 20
# How MXNet's files number element types.
NUMBERS = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "uint8": 3,
    "int32": 4,
    "int8": 5,
    "int64": 6,
    "bool": 7,
    "int16": 8,
    "uint16": 9,
    "uint32": 10,
    "uint64": 11,
    "bfloat16": 12,
}
_DTYPES = {number: dtype for dtype, number in NUMBERS.items()}

Arrays = list[_core.ndarray] | dict[str, _core.ndarray]

# -- writing --------------------------------------------------------------------------------------


def save(file: FileName, arr: Any) -> None:
    """Write an array, a list of arrays or a dictionary of arrays by name; `load` reads it.

    The file is replaced whole: a crash while writing leaves what was there before.
    """
    names, arrays = _named(arr)
    with written_by_one(file, arrays) as to:
        _write(to, names, arrays)


def write(to: BinaryIO, arr: Any, mark: int = 0) -> None:
    """As `save`, to an open file; the number that the format reserves, which MXNet passes over,
    is `mark`."""
    _write(to, *_named(arr), mark)


def _write(
    to: BinaryIO, names: Sequence[bytes], arrays: Sequence[_core.ndarray], mark: int = 0
) -> None:
    checksum = 0
    for piece in _pieces(names, arrays, mark):
        to.write(piece)
        checksum = zlib.crc32(piece, checksum)
    to.write(_SEAL.pack(_SEALED, checksum))


def _pieces(
    names: Sequence[bytes], arrays: Sequence[_core.ndarray], mark: int
) -> Iterable[bytes | memoryview]:
    """What MXNet reads of a file."""
    yield struct.pack("<QQQ", _LIST_MAGIC, mark, len(arrays))
    for array in arrays:
        yield from _pieces_of(array)
    yield struct.pack("<Q", len(names))
    for name in names:
        yield struct.pack("<Q", len(name)) + name


def _named(given: Any) -> tuple[list[bytes], Sequence[_core.ndarray]]:
    if isinstance(given, _core.ndarray):
        given = [given]
    names: list[bytes] = []
    if isinstance(given, Mapping):
        names = [_encoded(name) for name in given]
        given = list(given.values())
    if not isinstance(given, list | tuple) or not all(isinstance(a, _core.ndarray) for a in given):
        raise DTypeError(
            "save: expected an array, a list of arrays or a dictionary of arrays by name; got "
            f"{type(given).__name__}. Convert what is no array with np.array."
        )
    return names, given


def _encoded(name: Any) -> bytes:
    if not isinstance(name, str):
        raise DTypeError(f"save: {name!r} is no name; the keys of the dictionary must be strings.")
    return name.encode()


def _pieces_of(array: _core.ndarray) -> Iterable[bytes | memoryview]:
    values = numpy.ascontiguousarray(convert.shared(array))
    rank = len(array.shape)
    yield struct.pack("<Iii", _NUMPY_SHAPES, _DENSE, rank)
    yield struct.pack(f"<{rank}q", *array.shape)
    yield struct.pack("<iii", _MAIN_MEMORY, 0, NUMBERS[array._dtype_name])
    yield values.reshape(-1).view("uint8").data


# -- reading --------------------------------------------------------------------------------------


def load(file: FileName) -> Any:
    """The arrays that `save`, or MXNet, wrote: a list, or a dictionary if they have names."""
    with opened(file, _KIND) as source:
        return _read(source.stream, source.name)


def loads(data: bytes) -> Arrays:
    """As `load`, from the bytes of a file."""
    with translated("the buffer", _KIND):
        return _read(BytesIO(data), "the buffer")


def mark_of(file: FileName) -> int:
    """The mark that `write` was given; 0 for files without one."""
    with opened(file, _KIND) as source:
        _, mark = struct.unpack("<QQ", source.exactly(16, "the head"))
    return mark


@dataclass(frozen=True)
class _Entry:
    """An array of a file: its type, and where its elements begin."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * ITEMSIZE[self.dtype]


class _Reader:
    """Takes numbers from a file; every error says where."""

    def __init__(self, source: BinaryIO, name: str):
        self.source, self.name = source, name
        self.size = source.seek(0, os.SEEK_END)
        self.at = source.seek(0)

    def wrong(self, what: str) -> FormatError:
        return wrong(self.name, _KIND, f"at byte {self.at} of {self.size}: {what}")

    def need(self, count: int, what: str) -> None:
        """Check that so many bytes follow."""
        if count > self.size - self.at:
            raise self.wrong(
                f"the file ends within {what}: {count:,} bytes expected, "
                f"{self.size - self.at:,} left"
            )

    def bytes(self, count: int, what: str) -> bytes:
        self.need(count, what)
        found = self.source.read(count)
        if len(found) != count:
            raise self.wrong(f"cannot read {what}")
        self.at += count
        return found

    def numbers(self, layout: str, what: str) -> tuple[int, ...]:
        return struct.unpack(f"<{layout}", self.bytes(struct.calcsize(f"<{layout}"), what))

    def number(self, layout: str, what: str) -> int:
        (found,) = self.numbers(layout, what)
        return found

    def skip(self, count: int, what: str) -> None:
        self.need(count, what)
        self.at = self.source.seek(self.at + count)


def _read(source: BinaryIO, name: str) -> Arrays:
    reader = _Reader(source, name)
    entries, names = _contents(reader)
    arrays = [_elements(reader, entry) for entry in entries]
    return dict(zip(names, arrays, strict=True)) if names else arrays


def _contents(reader: _Reader) -> tuple[list[_Entry], list[str]]:
    """What the file holds, all of it checked."""
    magic, _, count = reader.numbers("QQQ", "the head")
    if magic != _LIST_MAGIC:
        reader.at = 0
        raise reader.wrong(f"it begins with {magic:#x}, and .params files with {_LIST_MAGIC:#x}")
    entries = [_entry(reader, f"array {place} of {count}") for place in range(count)]
    names = _names(reader, count)
    if reader.at != reader.size:
        _check_seal(reader)
    return entries, names


def _check_seal(reader: _Reader) -> None:
    """Compare the checksum behind the names with the rest of the file."""
    end, left = reader.at, reader.size - reader.at
    known, said = _SEALED, 0
    if left == _SEAL.size:
        known, said = _SEAL.unpack(reader.bytes(left, "the checksum"))
    if left != _SEAL.size or known != _SEALED:
        raise reader.wrong("more bytes follow the last name, which are no checksum of ours")
    checksum = 0
    reader.at = reader.source.seek(0)
    while reader.at < end:
        piece = reader.bytes(min(end - reader.at, _BLOCK), "what the checksum is of")
        checksum = zlib.crc32(piece, checksum)
    if checksum != said:
        raise reader.wrong("its checksum is wrong: a part of it is not what was written")


def _entry(reader: _Reader, what: str) -> _Entry:
    shape = _shape(reader, what)
    reader.numbers("ii", f"the device of {what}")
    number = reader.number("i", f"the element type of {what}")
    if number not in _DTYPES:
        raise reader.wrong(f"{what} has the unknown element type {number}")
    entry = _Entry(_DTYPES[number], shape, reader.at)
    reader.skip(entry.nbytes, f"the elements of {what}, {entry.dtype}{list(shape)}")
    return entry


def _shape(reader: _Reader, what: str) -> tuple[int, ...]:
    magic = reader.number("I", what)
    if magic in (_NUMPY_SHAPES, _STORAGE_KINDS):
        kind = reader.number("i", f"the storage of {what}")
        if kind != _DENSE:
            raise reader.wrong(f"{what} is sparse (storage {kind}); only dense arrays can be read")
    rank, layout = magic, "I"  # the first format of all has no magic number
    if magic in (_NUMPY_SHAPES, _STORAGE_KINDS, _LONG_SHAPES):
        rank, layout = reader.number("i", f"the shape of {what}"), "q"
    if not 0 <= rank <= _MOST_DIMENSIONS:
        raise reader.wrong(
            f"{what} has {rank} dimensions, or is no array; expected 0 to {_MOST_DIMENSIONS}"
        )
    shape = reader.numbers(f"{rank}{layout}", f"the shape of {what}")
    if magic != _NUMPY_SHAPES and not (shape and min(shape) > 0):
        raise reader.wrong(f"{what} was saved before it had a shape: {shape}")
    if min(shape, default=0) < 0:
        raise reader.wrong(f"{what} has the shape {shape}, with a negative extent")
    return shape


def _names(reader: _Reader, arrays: int) -> list[str]:
    count = reader.number("Q", "the number of names")
    if count not in (0, arrays):
        raise reader.wrong(f"{count} names for {arrays} arrays; expected as many, or none")
    names: dict[str, None] = {}
    for place in range(count):
        length = reader.number("Q", f"name {place} of {count}")
        raw = reader.bytes(length, f"name {place} of {count}")
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            raise reader.wrong(f"name {place} of {count} is no UTF-8 text: {raw[:40]!r}") from None
        if name in names:
            raise reader.wrong(f"two arrays have the name {name!r}")
        names[name] = None
    return list(names)


def _elements(reader: _Reader, entry: _Entry) -> _core.ndarray:
    with in_main_memory():
        array = _core.empty(entry.dtype, entry.shape)
    room = convert.shared(array).reshape(-1).view("uint8")
    reader.at = reader.source.seek(entry.offset)
    if entry.nbytes and reader.source.readinto(room.data) != entry.nbytes:
        raise reader.wrong(f"cannot read {entry.nbytes:,} bytes of elements")
    if entry.dtype == "bool":
        numpy.not_equal(room, 0, out=room.view("bool"))  # whatever bytes the file holds
    return array
