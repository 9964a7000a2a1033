"""Ways to damage a file: functions of its bytes, a source of random numbers, and other files."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Sequence

Random = random.Random
Others = Sequence[bytes]
Damage = Callable[[bytes, Random, Others], bytes]

DAMAGES: dict[str, Damage] = {}

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null')
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_.]+")
_LAYOUTS = ("<I", ">I", "<Q", ">Q", "<H", "B")
_TYPES = (b"F32", b"F64", b"F16", b"I64", b"I32", b"U8", b"BOOL", b"U16", b"float32", b"float64",
          b"int64", b"float16", b"bool", b"bfloat16")  # fmt: skip


def _damage(function: Damage) -> Damage:
    DAMAGES[function.__name__] = function
    return function


def _piece(data: bytes, rng: Random, most: int = 64) -> tuple[int, int]:
    """Where a piece of the data begins and ends; heads are hit more often than what follows."""
    reach = len(data) if rng.random() < 0.5 else min(len(data), 256)
    start = rng.randrange(reach + 1)
    return start, min(len(data), start + rng.randint(1, most))


def _replaced(data: bytes, place: tuple[int, int], new: bytes) -> bytes:
    return data[: place[0]] + new + data[place[1] :]


def _chosen(pattern: re.Pattern[bytes], data: bytes, rng: Random) -> tuple[int, int] | None:
    """One match, if the data look like text there."""
    found = [m.span() for m in pattern.finditer(data)] if _is_text(data) else []
    return rng.choice(found) if found else None


def _is_text(data: bytes) -> bool:
    return all(byte >= 9 for byte in data[:256])


def _with_number(data: bytes, rng: Random, change: Callable[[int, int], int]) -> bytes:
    """A number of some width at some place, changed; `change` is given its bits."""
    layout = rng.choice(_LAYOUTS)
    width = struct.calcsize(layout)
    if len(data) < width:
        return data[:-1]
    start = min(_piece(data, rng)[0], len(data) - width) // 2 * 2
    start = min(start, len(data) - width)
    (number,) = struct.unpack_from(layout, data, start)
    changed = change(number, 8 * width) % (1 << 8 * width)
    return _replaced(data, (start, start + width), struct.pack(layout, changed))


# -- what happens to disks and transfers ----------------------------------------------------------


@_damage
def truncated(data: bytes, rng: Random, others: Others) -> bytes:
    return data[: rng.randrange(max(len(data), 1))]


@_damage
def bits_flipped(data: bytes, rng: Random, others: Others) -> bytes:
    found = bytearray(data)
    for _ in range(rng.randint(1, 8) if data else 0):
        found[_piece(data[:-1], rng)[0]] ^= 1 << rng.randrange(8)
    return bytes(found)


@_damage
def bytes_inserted(data: bytes, rng: Random, others: Others) -> bytes:
    at = _piece(data, rng)[0]
    return _replaced(data, (at, at), rng.randbytes(rng.choice((1, 2, 4, 8, 100))))


@_damage
def bytes_removed(data: bytes, rng: Random, others: Others) -> bytes:
    return _replaced(data, _piece(data, rng), b"")


@_damage
def zeroed(data: bytes, rng: Random, others: Others) -> bytes:
    start, end = _piece(data, rng, rng.choice((8, 512)))
    return _replaced(data, (start, end), bytes(end - start))


@_damage
def blocks_swapped(data: bytes, rng: Random, others: Others) -> bytes:
    size = rng.choice((4, 8, 64, 512))
    count = len(data) // size
    if count < 2:
        return data[::-1]
    one, other = sorted(rng.sample(range(count), 2))
    a, b = (data[i * size : (i + 1) * size] for i in (one, other))
    return b"".join(
        (
            data[: one * size],
            b,
            data[(one + 1) * size : other * size],
            a,
            data[(other + 1) * size :],
        )
    )


@_damage
def blocks_repeated(data: bytes, rng: Random, others: Others) -> bytes:
    start, end = _piece(data, rng, 512)
    return data[:end] + data[start:end] * rng.choice((1, 1, 50)) + data[end:]


@_damage
def garbage_at_the_end(data: bytes, rng: Random, others: Others) -> bytes:
    return data + rng.choice((b"\0", b"\n", rng.randbytes(16), data, bytes(1 << 16)))


# -- what other programs write --------------------------------------------------------------------


@_damage
def lengths_changed(data: bytes, rng: Random, others: Others) -> bytes:
    place = _chosen(_NUMBER, data, rng) if rng.random() < 0.7 else None
    if place:
        number = float(data[slice(*place)])
        whole = int(number) if abs(number) < 1e18 else 7
        return _replaced(data, place, b"%d" % (whole + rng.choice((-1, 1, 7, whole, 255))))
    amount = rng.choice((-8, -4, -1, 1, 4, 8, 256))
    return _with_number(data, rng, lambda n, bits: n * 2 if amount == 256 else n + amount)


@_damage
def numbers_huge(data: bytes, rng: Random, others: Others) -> bytes:
    place = _chosen(_NUMBER, data, rng)
    if place:
        huge = (b"2147483648", b"9223372036854775808", b"1" + b"0" * 400, b"1e308", b"4294967295")
        return _replaced(data, place, rng.choice(huge))
    return _with_number(data, rng, lambda n, bits: (1 << (bits - rng.choice((1, 2, 4)))) - 1)


@_damage
def numbers_negative(data: bytes, rng: Random, others: Others) -> bytes:
    place = _chosen(_NUMBER, data, rng)
    if place:
        return _replaced(data, place, b"-" + data[slice(*place)].lstrip(b"-"))
    return _with_number(data, rng, lambda n, bits: -rng.choice((1, 2, 1000, max(n, 1))))


@_damage
def numbers_nan(data: bytes, rng: Random, others: Others) -> bytes:
    place = _chosen(_NUMBER, data, rng)
    if place:
        return _replaced(data, place, rng.choice((b"NaN", b"Infinity", b"-Infinity", b"nan")))
    return _with_number(data, rng, lambda n, bits: 0x7FC00000 << (bits - 32) if bits > 16 else -1)


@_damage
def nested_deeply(data: bytes, rng: Random, others: Others) -> bytes:
    place = _chosen(_VALUE, data, rng) or _piece(data, rng)
    depth = rng.choice((10, 200, 3000, 200_000))
    start, end = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")")))
    return _replaced(data, place, start * depth + b"1" + end * rng.choice((0, depth)))


@_damage
def names_not_utf8(data: bytes, rng: Random, others: Others) -> bytes:
    strange = (
        b"\xff\xfe",
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\0",
        b"\\ud800",
        b"\xe2\x82",
        b"../../x",
    )
    found = [m.span() for m in _WORD.finditer(data)]
    return _replaced(data, rng.choice(found or [_piece(data, rng)]), rng.choice(strange))


@_damage
def types_swapped(data: bytes, rng: Random, others: Others) -> bytes:
    typed = [t for t in _TYPES if t in data]
    if typed and rng.random() < 0.4:
        return data.replace(rng.choice(typed), rng.choice(_TYPES), rng.randint(1, 3))
    place = _chosen(_VALUE, data, rng)
    if place:
        values = (b'"text"', b"7", b"null", b"true", b"[]", b"{}", b"[[1]]", b'{"a": 1}', b"1.5")
        return _replaced(data, place, rng.choice(values))
    return _with_number(data, rng, lambda n, bits: n ^ rng.choice((1, 3, 6, 12)))


@_damage
def headers_mixed(data: bytes, rng: Random, others: Others) -> bytes:
    other, size = rng.choice(others), rng.choice((2, 4, 8, 16, 64))
    return other[:size] + data[size:] if rng.random() < 0.5 else data[:size] + other[size:]


@_damage
def emptied(data: bytes, rng: Random, others: Others) -> bytes:
    return b""


@_damage
def another_format(data: bytes, rng: Random, others: Others) -> bytes:
    return rng.choice(others)
