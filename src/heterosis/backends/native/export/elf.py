"""Relocatable objects made into a shared library, without a linker: ELF for x86-64.

Four segments, each on pages of its own: what is only read (the tables of the dynamic loader,
constants, data that is handed in), code, and what the loader writes addresses into. Offsets in the
file are addresses.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from heterosis.runtime.errors import UnsupportedError

_PAGE = 0x1000
_ALIGNMENT = 64  # of data that is handed in: vectors are loaded from it

# What LLVM calls where a processor has no instruction for it, and the C library has.
_ROUNDINGS = ("floor", "ceil", "trunc", "round", "rint", "nearbyint", "fma", "fmod")
_OF_C_LIBRARY = frozenset(
    ["memcpy", "memmove", "memset", "memcmp", *_ROUNDINGS, *(f"{name}f" for name in _ROUNDINGS)]
)
_LIBRARIES = ("libm.so.6", "libc.so.6")

_X86_64 = 62
_READ, _WRITE, _EXECUTE = 4, 2, 1  # flags of a segment
_WRITABLE, _LOADED, _CODE = 1, 2, 4  # flags of a section
_BITS, _SYMBOLS, _RELOCATIONS, _ZEROS = 1, 2, 4, 8  # types of a section
_HOLDING = (_BITS, _ZEROS, 14, 15)  # and lists of what to run first and last
# Types of relocations in objects: a symbol's address, the distance to it, or to its address.
_ADDRESS, _DISTANCES, _TO_SLOTS = 1, (2, 4), (9, 41, 42)
_RELATIVE, _OF_SYMBOL = 8, 6  # types of relocations for the loader

_Place = tuple[int, int]  # an object and a section, by number


@dataclass
class _Section:
    name: str
    type: int
    flags: int
    data: bytes
    link: int
    info: int
    alignment: int


@dataclass
class _Symbol:
    name: str
    section: int  # 0: in another object
    value: int
    is_global: bool


@dataclass
class _Relocation:
    at: int
    type: int
    symbol: _Symbol
    addend: int


class _Object:
    """A relocatable object as LLVM writes it."""

    def __init__(self, data: bytes):
        machine, headers, names = struct.unpack_from("<18xH20xQ14xH", data)
        if data[:6] != b"\x7fELF\x02\x01" or machine != _X86_64:
            raise UnsupportedError(
                "export: native libraries are written for x86-64 so far; this object is for "
                f"machine {machine}. Export on, and for, an x86-64 processor."
            )
        (count,) = struct.unpack_from("<H", data, 60)
        fields = [struct.unpack_from("<IIQQQQIIQQ", data, headers + 64 * i) for i in range(count)]
        texts = _content(data, fields[names])
        self.sections = [
            _Section(_text(texts, f[0]), f[1], f[2], _content(data, f), f[6], f[7], max(f[8], 1))
            for f in fields
        ]
        self.symbols = self._symbols()

    def _symbols(self) -> list[_Symbol]:
        table = next(s for s in self.sections if s.type == _SYMBOLS)
        texts = self.sections[table.link].data
        return [
            _Symbol(_text(texts, name), section, value, bool(info >> 4))
            for name, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", table.data)
        ]

    def relocations(self, section: int) -> Iterator[_Relocation]:
        """What is to be written into a section once addresses are known."""
        for table in self.sections:
            if table.type == _RELOCATIONS and table.info == section:
                for at, info, addend in struct.iter_unpack("<QQq", table.data):
                    symbol = self.symbols[info >> 32]
                    yield _Relocation(at, info & 0xFFFFFFFF, symbol, addend)


def _text(texts: bytes, at: int) -> str:
    return texts[at : texts.index(b"\0", at)].decode()


def _content(data: bytes, fields: Sequence[int]) -> bytes:
    type_, offset, size = fields[1], fields[4], fields[5]
    return bytes(size) if type_ == _ZEROS else data[offset : offset + size]


def shared_library(
    objects: Sequence[bytes], exported: Sequence[str], data: Mapping[str, bytes], name: str
) -> bytes:
    """The library `name` of these objects, which shows the `exported` symbols.

    Objects find `data` as symbols. What they need besides is taken from the C library, or refused.
    """
    return _Linker([_Object(one) for one in objects], exported, data, name).linked()


@dataclass
class _Linker:
    objects: list[_Object]
    exported: Sequence[str]
    data: Mapping[str, bytes]
    name: str
    image: bytearray = field(default_factory=bytearray)
    places: dict[_Place, int] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)  # where addresses of symbols stand
    stubs: dict[str, int] = field(default_factory=dict)  # code that jumps to imported functions
    texts: bytearray = field(default_factory=lambda: bytearray(1))

    def linked(self) -> bytes:
        imported = self._imported()
        names = [*imported, *self.exported]
        numbers = {name: i for i, name in enumerate(names, 1)}
        relocated = list(self._relocated())
        pointers = sum(r.type == _ADDRESS for _, r in relocated)
        wanted = dict.fromkeys(r.symbol.name for _, r in relocated if r.type in _TO_SLOTS)
        slots = [*imported, *(name for name in wanted if name not in numbers)]

        self._append(bytes(64 + 5 * 56))
        texts = {text: self._text(text) for text in (*names, *_LIBRARIES, self.name)}
        strings = self._append(self.texts)
        table = self._append(bytes(24 * (1 + len(names))), 8)
        chain = [1, 1 + len(names), min(1, len(names)), 0]
        chain += [i + 1 if i < len(names) else 0 for i in range(1, len(names) + 1)]
        hashes = self._append(struct.pack(f"<{len(chain)}I", *chain), 8)
        rows = self._append(bytes(24 * (pointers + len(slots))), 8)
        self._place_sections(0)
        for name, content in self.data.items():
            self.symbols[name] = self._append(content, _ALIGNMENT)
        code = self._next_page()
        self._place_sections(_CODE)
        self.stubs = {name: self._append(bytes(6), 8) for name in imported}
        written = self._next_page()
        self._place_sections(_WRITABLE)
        self.slots = {name: self._append(bytes(8), 8) for name in slots}
        self._define()
        dynamic = self._append(
            self._dynamic(texts, strings, table, hashes, rows, pointers + len(slots)), 8
        )
        end = len(self.image)

        found = [self._relocate(*one) for one in relocated]
        entries = [(at, _RELATIVE, value) for at, value in filter(None, found)]
        for name, at in self.slots.items():
            number = numbers.get(name) if name in imported else None
            entries.append(
                (at, number << 32 | _OF_SYMBOL, 0)
                if number
                else (at, _RELATIVE, self.symbols[name])
            )
        for name, at in self.stubs.items():
            distance = self.slots[name] - at - 6
            struct.pack_into("<BBi", self.image, at, 0xFF, 0x25, distance)  # jmp *slot(%rip)
        for i, (at, info, value) in enumerate(entries):
            struct.pack_into("<QQq", self.image, rows + 24 * i, at, info, value)
        for name, number in numbers.items():
            at = self.symbols.get(name, 0)
            section = 0 if name in imported else 1
            row = struct.pack("<IBBHQQ", texts[name], 0x12, 0, section, at, 0)
            self.image[table + 24 * number : table + 24 * (number + 1)] = row
        segments = [
            (1, _READ, 0, code),
            (1, _READ | _EXECUTE, code, written),
            (1, _READ | _WRITE, written, end),
            (2, _READ | _WRITE, dynamic, end),
            (0x6474E551, _READ | _WRITE, 0, 0),  # the stack holds no code
        ]
        self._head(segments)
        self._show_sections(strings, table, hashes, rows, code, written, dynamic, end)
        return bytes(self.image)

    # -- what there is ------------------------------------------------------------------------

    def _kept(self) -> Iterator[tuple[_Place, _Section]]:
        for i, object_ in enumerate(self.objects):
            for j, section in enumerate(object_.sections):
                holds = section.flags & _LOADED and section.type in _HOLDING
                if holds and section.name != ".eh_frame":  # nothing here is ever unwound
                    yield (i, j), section

    def _relocated(self) -> Iterator[tuple[_Place, _Relocation]]:
        for place, _ in self._kept():
            for relocation in self.objects[place[0]].relocations(place[1]):
                yield place, relocation

    def _imported(self) -> list[str]:
        defined = {s.name for o in self.objects for s in o.symbols if s.section and s.is_global}
        needed = {
            r.symbol.name
            for _, r in self._relocated()
            if not r.symbol.section and r.symbol.name not in defined | self.data.keys()
        }
        if missing := sorted(needed - _OF_C_LIBRARY):
            raise UnsupportedError(
                f"export: the machine code calls {', '.join(missing)}, which a library without "
                "this package does not have. Linear algebra (LAPACK) cannot be exported so far; "
                "export the part before and behind it."
            )
        return sorted(needed)

    def _define(self) -> None:
        for i, object_ in enumerate(self.objects):
            for symbol in object_.symbols:
                if symbol.is_global and (i, symbol.section) in self.places:
                    self.symbols[symbol.name] = self.places[i, symbol.section] + symbol.value

    # -- places -------------------------------------------------------------------------------

    def _append(self, content: bytes | bytearray, alignment: int = 1) -> int:
        """Where the content stands, from now on, in the image."""
        self.image += bytes(-len(self.image) % alignment)
        at = len(self.image)
        self.image += content
        return at

    def _next_page(self) -> int:
        return self._append(b"", _PAGE)

    def _place_sections(self, kind: int) -> None:
        for place, section in self._kept():
            if section.flags & (_WRITABLE | _CODE) == kind:
                self.places[place] = self._append(section.data, section.alignment)

    def _text(self, text: str) -> int:
        at = len(self.texts)
        self.texts += text.encode() + b"\0"
        return at

    # -- addresses ----------------------------------------------------------------------------

    def _relocate(self, place: _Place, relocation: _Relocation) -> tuple[int, int] | None:
        """Write a distance, or an address, for which it returns what the loader has to know."""
        at = self.places[place] + relocation.at
        if relocation.type == _ADDRESS:
            target = self._target(place, relocation.symbol) + relocation.addend
            struct.pack_into("<Q", self.image, at, target)
            return at, target
        if relocation.type in _DISTANCES:
            target = self._target(place, relocation.symbol)
        elif relocation.type in _TO_SLOTS:
            target = self.slots[relocation.symbol.name]
        else:
            raise UnsupportedError(
                f"export: the machine code has a relocation of type {relocation.type}. This is a "
                "fault of the framework; please report it with the program."
            )
        struct.pack_into("<i", self.image, at, target + relocation.addend - at)
        return None

    def _target(self, place: _Place, symbol: _Symbol) -> int:
        if symbol.section:
            return self.places[place[0], symbol.section] + symbol.value
        return self.stubs[symbol.name] if symbol.name in self.stubs else self.symbols[symbol.name]

    # -- what the dynamic loader reads --------------------------------------------------------

    def _dynamic(
        self, texts: Mapping[str, int], strings: int, table: int, hashes: int, rows: int, count: int
    ) -> bytes:
        needed = [(1, texts[name]) for name in _LIBRARIES] if self.stubs else []
        entries = [
            *needed, (14, texts[self.name]), (4, hashes), (5, strings), (6, table),
            (10, len(self.texts)), (11, 24), (7, rows), (8, 24 * count), (9, 24),
            (30, 8), (0x6FFFFFFB, 1),  # addresses of functions are found when it is loaded
            (0, 0),
        ]  # fmt: skip
        return b"".join(struct.pack("<QQ", *entry) for entry in entries)

    def _head(self, segments: Sequence[tuple[int, int, int, int]]) -> None:
        identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        fields = (3, _X86_64, 1, 0, 64, 0, 0, 64, 56, len(segments), 64, 0, 0)
        struct.pack_into("<16sHHIQQQIHHHHHH", self.image, 0, identity, *fields)
        for i, (type_, flags, begin, end) in enumerate(segments):
            size, alignment = end - begin, _PAGE if type_ == 1 else 8
            row = (type_, flags, begin, begin, begin, size, size, alignment)
            struct.pack_into("<IIQQQQQQ", self.image, 64 + 56 * i, *row)

    def _show_sections(
        self, strings: int, table: int, hashes: int, rows: int, code: int, written: int,
        dynamic: int, end: int,
    ) -> None:  # fmt: skip
        """Headers that no loader reads, for those who look into the file."""
        sections = [
            ("", 0, 0, 0, 0, 0, 0, 0),
            (".text", 1, _LOADED | _CODE, code, written, 0, 0, 0),
            (".dynstr", 3, _LOADED, strings, strings + len(self.texts), 0, 0, 0),
            (".dynsym", 11, _LOADED, table, hashes, 2, 1, 24),
            (".hash", 5, _LOADED, hashes, rows, 3, 0, 4),
            (".rodata", 1, _LOADED, rows, code, 0, 0, 0),
            (".data", 1, _LOADED | _WRITABLE, written, dynamic, 0, 0, 0),
            (".dynamic", 6, _LOADED | _WRITABLE, dynamic, end, 2, 0, 16),
        ]
        names = bytearray()
        headers = b""
        for name, type_, flags, begin, finish, link, info, entry in sections:
            address = begin if type_ else 0
            row = (len(names), type_, flags, address, address, finish - begin, link, info)
            headers += struct.pack("<IIQQQQIIQQ", *row, 1 if type_ else 0, entry)
            names += name.encode() + b"\0"
        own = (len(names), 3, 0, 0, len(self.image), len(names) + 10, 0, 0, 1, 0)
        names += b".shstrtab\0"
        self._append(names)
        headers += struct.pack("<IIQQQQIIQQ", *own)
        at = self._append(headers, 8)
        struct.pack_into("<Q", self.image, 40, at)
        struct.pack_into("<HH", self.image, 60, len(sections) + 1, len(sections))
