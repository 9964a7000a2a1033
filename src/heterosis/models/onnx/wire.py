"""Protocol buffers as they stand in a file, read and written by tables of fields.

A message is pairs of a key and a value. A key holds the number of a field and how its value is
stored: as a number of variable length, in 8 or 4 bytes, or as so many bytes. What a table does not
list is passed over, as the format wants it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from heterosis.runtime.errors import FormatError

_VARIABLE, _EIGHT, _COUNTED, _FOUR = 0, 1, 2, 5
_MOST_DEEP = 100  # messages in messages: a file that is made to exhaust the stack is refused
_FLOATS = {"float": ("f", _FOUR), "double": ("d", _EIGHT)}


@dataclass(frozen=True)
class Field:
    """What a table says of a field: its name, what it holds, and whether it may stand repeatedly.
    `kind` is `integer`, `float`, `double`, `text`, `bytes`, or the table of a message."""

    name: str
    kind: str | Table
    many: bool = False


Table = Mapping[int, Field]


class Message:
    """The fields of one message as attributes: lists where there may be many, and None for what the
    file does not have."""

    def __init__(self, table: Table):
        self.__dict__ = {f.name: [] if f.many else None for f in table.values()}

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


# -- reading --------------------------------------------------------------------------------------


def parsed(data: memoryview, table: Table, depth: int = 0) -> Message:
    """The message that fills `data`."""
    if depth > _MOST_DEEP:
        raise FormatError(f"messages are nested more than {_MOST_DEEP} deep.")
    message = Message(table)
    for number, stored, value in _pairs(data):
        field = table.get(number)
        if field is None:
            continue
        found = list(_values(field, stored, value, depth))
        if field.many:
            getattr(message, field.name).extend(found)
        elif found:
            setattr(message, field.name, found[-1])
    return message


def _pairs(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Number, storage and value of each field."""
    at, end = 0, len(data)
    while at < end:
        value: int | memoryview
        key, at = _number(data, at)
        stored = key & 7
        if stored == _VARIABLE:
            value, at = _number(data, at)
        elif stored in (_EIGHT, _FOUR):
            value, at = _bytes(data, at, 8 if stored == _EIGHT else 4)
        elif stored == _COUNTED:
            length, at = _number(data, at)
            value, at = _bytes(data, at, length)
        else:
            raise FormatError(f"byte {at}: no field is stored in way {stored}.")
        yield key >> 3, stored, value


def _number(data: memoryview, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the last of them below 128, and where it ends."""
    result = 0
    for i in range(10):
        if at + i >= len(data):
            break
        byte = data[at + i]
        result |= (byte & 127) << (7 * i)
        if byte < 128:
            return result & (1 << 64) - 1, at + i + 1
    raise FormatError(f"byte {at}: a number that does not end; was the file cut off?")


def _bytes(data: memoryview, at: int, length: int) -> tuple[memoryview, int]:
    if at + length > len(data):
        raise FormatError(
            f"byte {at}: {length} bytes are announced, and {len(data) - at} are left; was the file "
            "cut off?"
        )
    return data[at : at + length], at + length


def _values(field: Field, stored: int, value: Any, depth: int) -> Iterator[Any]:
    """What one pair gives: several numbers may be packed into one."""
    if not isinstance(field.kind, str):
        yield parsed(_counted(field, stored, value), field.kind, depth + 1)
    elif field.kind == "bytes":
        yield _counted(field, stored, value)
    elif field.kind == "text":
        yield _text(field, _counted(field, stored, value))
    elif field.kind == "integer":
        yield from _integers(field, stored, value)
    else:
        yield from _numbers(field, stored, value)


def _counted(field: Field, stored: int, value: Any) -> memoryview:
    if stored != _COUNTED:
        raise _wrong(field, stored)
    found: memoryview = value
    return found


def _text(field: Field, value: memoryview) -> str:
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"field {field.name}: {bytes(value[:20])!r} is no text.") from None


def _integers(field: Field, stored: int, value: Any) -> Iterator[int]:
    if stored == _VARIABLE:
        yield _signed(value)
    elif stored == _COUNTED and field.many:
        at = 0
        while at < len(value):
            number, at = _number(value, at)
            yield _signed(number)
    else:
        raise _wrong(field, stored)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _numbers(field: Field, stored: int, value: Any) -> Iterator[float]:
    assert isinstance(field.kind, str)
    letter, own = _FLOATS[field.kind]
    size = struct.calcsize(letter)
    packed = stored == _COUNTED and field.many and len(value) % size == 0
    if stored != own and not packed:
        raise _wrong(field, stored)
    yield from struct.unpack(f"<{len(value) // size}{letter}", value)


def _wrong(field: Field, stored: int) -> FormatError:
    kind = field.kind if isinstance(field.kind, str) else "message"
    return FormatError(f"field {field.name}: a {kind} is not stored in way {stored}.")


# -- writing --------------------------------------------------------------------------------------

# What stands one after another in a file. Arrays are not copied on their way there.
Pieces: TypeAlias = "list[bytes | memoryview]"


def pieces(values: Mapping[str, Any], table: Table) -> Pieces:
    """A message with these fields, by their names: lists where there may be many, messages as
    mappings. Fields that are None or empty lists are left out."""
    found: Pieces = []
    for number, field in table.items():
        given = values.get(field.name)
        if given is not None:
            for value in given if field.many else [given]:
                found += _field(number, field, value)
    return found


def size_of(parts: Pieces) -> int:
    """How many bytes they are."""
    return sum(map(len, parts))


def _field(number: int, field: Field, value: Any) -> Pieces:
    if not isinstance(field.kind, str):
        return _announced(number, pieces(value, field.kind))
    if field.kind == "integer":
        return [_written([number << 3 | _VARIABLE, value & (1 << 64) - 1])]
    if field.kind in _FLOATS:
        letter, stored = _FLOATS[field.kind]
        return [_written([number << 3 | stored]) + struct.pack(f"<{letter}", value)]
    return _announced(number, [value.encode() if field.kind == "text" else value])


def _announced(number: int, parts: Pieces) -> Pieces:
    return [_written([number << 3 | _COUNTED, size_of(parts)]), *parts]


def _written(numbers: Iterable[int]) -> bytes:
    found = bytearray()
    for number in numbers:
        while number > 127:
            found.append(number & 127 | 128)
            number >>= 7
        found.append(number)
    return bytes(found)
