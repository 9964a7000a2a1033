"""What differs between processor families in a shared library: relocations, stubs, pages.

`core/relocations.cpp` has the same relocations for objects that are loaded into this process.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Write = Callable[[bytearray, int, int], None]  # into an image, at a place, the address of a target

ADDRESS, DISTANCE, CALL, SLOT = range(4)  # of a symbol, or of the slot where its address stands


@dataclass(frozen=True)
class Family:
    """A processor family, as ELF sees it."""

    name: str
    number: int
    page: int  # the largest that its systems have
    relative: int  # types of relocations that the loader does: add where the library is,
    of_symbol: int  # or write the address of a symbol
    relocations: Mapping[int, tuple[int, Write]]
    stub: Write  # code that jumps to the address in a slot
    stub_bytes: int


def _address(image: bytearray, at: int, target: int) -> None:
    struct.pack_into("<Q", image, at, target)


# -- x86-64 ---------------------------------------------------------------------------------------


def _distance(image: bytearray, at: int, target: int) -> None:
    struct.pack_into("<i", image, at, target - at)


def _jump(image: bytearray, at: int, slot: int) -> None:
    struct.pack_into("<BBi", image, at, 0xFF, 0x25, slot - at - 6)  # jmp *slot(%rip)


X86_64 = Family(
    "x86-64", 62, 0x1000, 8, 6,
    {
        1: (ADDRESS, _address),
        2: (DISTANCE, _distance),
        4: (CALL, _distance),
        **dict.fromkeys((9, 41, 42), (SLOT, _distance)),
    },
    _jump, 6,
)  # fmt: skip


# -- AArch64 --------------------------------------------------------------------------------------


def _bits(image: bytearray, at: int, value: int, count: int, low: int) -> None:
    """Put bits of a value into an instruction, from bit `low` on."""
    (word,) = struct.unpack_from("<I", image, at)
    mask = (1 << count) - 1
    struct.pack_into("<I", image, at, word & ~(mask << low) | (value & mask) << low)


def _pages(image: bytearray, at: int, target: int) -> None:
    """Into ADRP: how many pages of 4096 bytes the target's is away."""
    away = (target >> 12) - (at >> 12)
    _bits(image, at, away, 2, 29)
    _bits(image, at, away >> 2, 19, 5)


def _near(image: bytearray, at: int, target: int) -> None:
    """Into ADR."""
    _bits(image, at, target - at, 2, 29)
    _bits(image, at, (target - at) >> 2, 19, 5)


def _low(shift: int) -> Write:
    """Where in its page the target is, in units of what is loaded or stored."""

    def write(image: bytearray, at: int, target: int) -> None:
        _bits(image, at, (target & 0xFFF) >> shift, 12, 10)

    return write


def _branch(count: int, low: int) -> Write:
    def write(image: bytearray, at: int, target: int) -> None:
        _bits(image, at, (target - at) >> 2, count, low)

    return write


def _relative64(image: bytearray, at: int, target: int) -> None:
    struct.pack_into("<q", image, at, target - at)


def _jump_by_register(image: bytearray, at: int, slot: int) -> None:
    # adrp x16, slot; ldr x17, [x16, slot]; br x17
    struct.pack_into("<III", image, at, 0x90000010, 0xF9400211, 0xD61F0220)
    _pages(image, at, slot)
    _low(3)(image, at + 4, slot)


AARCH64 = Family(
    "AArch64", 183, 0x10000, 1027, 1025,
    {
        257: (ADDRESS, _address),
        260: (DISTANCE, _relative64),
        261: (DISTANCE, _distance),
        273: (DISTANCE, _branch(19, 5)),
        274: (DISTANCE, _near),
        275: (DISTANCE, _pages),
        277: (DISTANCE, _low(0)),
        278: (DISTANCE, _low(0)),
        279: (DISTANCE, _branch(14, 5)),
        280: (DISTANCE, _branch(19, 5)),
        282: (CALL, _branch(26, 0)),
        283: (CALL, _branch(26, 0)),
        284: (DISTANCE, _low(1)),
        285: (DISTANCE, _low(2)),
        286: (DISTANCE, _low(3)),
        299: (DISTANCE, _low(4)),
        311: (SLOT, _pages),
        312: (SLOT, _low(3)),
    },
    _jump_by_register, 12,
)  # fmt: skip

FAMILIES = {family.number: family for family in (X86_64, AARCH64)}
