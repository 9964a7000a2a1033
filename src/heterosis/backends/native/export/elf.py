"""Relocatable objects made into a shared library, without a linker: ELF for 64 bits.

Three segments, each on pages of its own: what is only read (the tables of the dynamic loader,
constants, data that is handed in), code, and what the loader writes addresses into. In the file
they follow each other without gaps: there is a page of addresses between two, and the page of it
in which they meet is mapped twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from heterosis.backends.native.export.machines import ADDRESS, FAMILIES, SLOT, Family, Write
from heterosis.runtime.errors import UnsupportedError

_ALIGNMENT = 64  # of data that is handed in: vectors are loaded from it

# What LLVM calls where a processor has no instruction for it, and the C library has.
_ROUNDINGS = ("floor", "ceil", "trunc", "round", "rint", "nearbyint", "fma", "fmod")
_THREADS = ("pthread_create", "pthread_join", "pthread_sigmask", "sigfillset", "syscall")
_FILES = ("open", "lseek", "pread", "mmap", "mprotect", "munmap", "close")
_MEMORY = ("memcpy", "memmove", "memset", "memcmp")
_OF_C_LIBRARY = frozenset(
    [*_MEMORY, *_ROUNDINGS, *(f"{name}f" for name in _ROUNDINGS), *_THREADS, *_FILES]
)
_LIBRARIES = ("libm.so.6", "libc.so.6")

_READ, _WRITE, _EXECUTE = 4, 2, 1  # flags of a segment
_WRITABLE, _LOADED, _CODE = 1, 2, 4  # flags of a section
_BITS, _SYMBOLS, _RELOCATIONS, _ZEROS = 1, 2, 4, 8  # types of a section
_HOLDING = (_BITS, _ZEROS, 14, 15)  # and lists of what to run first and last
_SEGMENTS = 5

_Place = tuple[int, int]  # an object and a section, by number
_Row = tuple[int, int, int]  # what the loader has to write: where, of what type, and a number


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
        if data[:6] != b"\x7fELF\x02\x01" or machine not in FAMILIES:
            known = ", ".join(family.name for family in FAMILIES.values())
            raise UnsupportedError(
                f"export: native libraries are written for {known} so far, and this object is for "
                f"machine {machine} of ELF's list."
            )
        self.family = FAMILIES[machine]
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
    read = [_Object(one) for one in objects]
    return _Linker(read[0].family, read, exported, data, name).linked()


@dataclass
class _Linker:
    family: Family
    objects: list[_Object]
    exported: Sequence[str]
    data: Mapping[str, bytes]
    name: str
    image: bytearray = field(default_factory=bytearray)
    places: dict[_Place, int] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)  # where addresses of symbols stand
    stubs: dict[str, int] = field(default_factory=dict)  # code that jumps to imported functions
    gaps: list[int] = field(default_factory=list)  # where a page of addresses is not in the file

    def linked(self) -> bytes:
        """The bytes of the library: everything gets its place first, and then the addresses."""
        imported = self._imported()
        relocated = list(self._relocated())
        slots = [*imported]
        by_slot = [r.symbol.name for _, r in relocated if self._kind(r)[0] == SLOT]
        slots += [name for name in dict.fromkeys(by_slot) if name not in imported]
        rows = sum(self._kind(r)[0] == ADDRESS for _, r in relocated) + len(slots)
        shown = _Shown([*imported, *self.exported], len(imported), self.name, rows)
        tables = self._place(shown, imported, slots)
        filled = [row for one in relocated if (row := self._relocate(*one))]
        filled += [self._filled_slot(name, shown) for name in slots]
        for i, row in enumerate(filled):
            struct.pack_into("<QQq", self.image, tables.rows + 24 * i, *row)
        for name in imported:
            self.family.stub(self.image, self.stubs[name], self.slots[name])
        shown.write_symbols(self.image, tables.symbols, self.symbols)
        self._write_segments(tables)
        self._write_sections(tables, shown)
        return self._without_gaps()

    def _place(self, shown: _Shown, imported: Sequence[str], slots: Sequence[str]) -> _Tables:
        """Lay out the image, with room for what is not known yet."""
        self._append(bytes(64 + _SEGMENTS * 56))
        tables = _Tables(
            texts=self._append(shown.texts),
            symbols=self._append(bytes(24 * (1 + len(shown.names))), 8),
            hashes=self._append(shown.hashes(), 8),
            rows=self._append(bytes(24 * shown.rows), 8),
        )
        self._place_sections(0)
        for name, content in self.data.items():
            self.symbols[name] = self._append(content, _ALIGNMENT)
        tables.code = self._next_segment()
        self._place_sections(_CODE)
        size = self.family.stub_bytes
        self.stubs = {name: self._append(bytes(size), 8) for name in imported}
        tables.written = self._next_segment()
        self._place_sections(_WRITABLE)
        self.slots = {name: self._append(bytes(8), 8) for name in slots}
        for i, object_ in enumerate(self.objects):
            for symbol in object_.symbols:
                if symbol.is_global and (i, symbol.section) in self.places:
                    self.symbols[symbol.name] = self.places[i, symbol.section] + symbol.value
        tables.dynamic = self._append(shown.dynamic(tables), 8)
        tables.end = len(self.image)
        return tables

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
                "this package does not have. This is a fault of the framework; please report it "
                "with the program."
            )
        return sorted(needed)

    # -- places -------------------------------------------------------------------------------

    def _append(self, content: bytes | bytearray, alignment: int = 1) -> int:
        """Where the content stands, from now on, in the image."""
        self.image += bytes(-len(self.image) % alignment)
        at = len(self.image)
        self.image += content
        return at

    def _next_segment(self) -> int:
        """Where a segment begins: a page behind the last one, of which nothing is in the file."""
        self.gaps.append(self._append(b"", _ALIGNMENT))
        return self._append(bytes(self.family.page)) + self.family.page

    def _offset(self, address: int) -> int:
        """Where in the file an address is."""
        return address - self.family.page * sum(gap < address for gap in self.gaps)

    def _without_gaps(self) -> bytes:
        begins = [0, *(gap + self.family.page for gap in self.gaps)]
        ends = [*self.gaps, len(self.image)]
        parts = zip(begins, ends, strict=True)
        return b"".join(bytes(self.image[begin:end]) for begin, end in parts)

    def _place_sections(self, kind: int) -> None:
        for place, section in self._kept():
            if section.flags & (_WRITABLE | _CODE) == kind:
                self.places[place] = self._append(section.data, section.alignment)

    # -- addresses ----------------------------------------------------------------------------

    def _relocate(self, place: _Place, relocation: _Relocation) -> _Row | None:
        """Write a distance, or an address, for which it returns what the loader has to do."""
        at = self.places[place] + relocation.at
        via, write = self._kind(relocation)
        if via == SLOT:
            target = self.slots[relocation.symbol.name]
        else:
            target = self._target(place, relocation.symbol)
        target += relocation.addend
        write(self.image, at, target)
        return (at, self.family.relative, target) if via == ADDRESS else None

    def _kind(self, relocation: _Relocation) -> tuple[int, Write]:
        """What is written by a relocation, and how."""
        if found := self.family.relocations.get(relocation.type):
            return found
        raise UnsupportedError(
            f"export: the machine code has a relocation of type {relocation.type}. This is a "
            "fault of the framework; please report it with the program."
        )

    def _target(self, place: _Place, symbol: _Symbol) -> int:
        if symbol.section:
            return self.places[place[0], symbol.section] + symbol.value
        return self.stubs[symbol.name] if symbol.name in self.stubs else self.symbols[symbol.name]

    def _filled_slot(self, name: str, shown: _Shown) -> _Row:
        """What the loader writes into the slot of a symbol."""
        if name in self.stubs:
            number = 1 + shown.names.index(name)
            return self.slots[name], number << 32 | self.family.of_symbol, 0
        return self.slots[name], self.family.relative, self.symbols[name]

    # -- headers ------------------------------------------------------------------------------

    def _write_segments(self, tables: _Tables) -> None:
        """The header of the file, and those of the segments, which loaders read."""
        segments = (
            (1, _READ, 0, self.gaps[0]),
            (1, _READ | _EXECUTE, tables.code, self.gaps[1]),
            (1, _READ | _WRITE, tables.written, tables.end),
            (2, _READ | _WRITE, tables.dynamic, tables.end),
            (0x6474E551, _READ | _WRITE, 0, 0),  # the stack holds no code
        )
        identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        fields = (3, self.family.number, 1, 0, 64, 0, 0, 64, 56, _SEGMENTS, 64, 0, 0)
        struct.pack_into("<16sHHIQQQIHHHHHH", self.image, 0, identity, *fields)
        for i, (type_, flags, begin, end) in enumerate(segments):
            size, alignment = end - begin, self.family.page if type_ == 1 else 8
            row = (type_, flags, self._offset(begin), begin, begin, size, size, alignment)
            struct.pack_into("<IIQQQQQQ", self.image, 64 + 56 * i, *row)

    def _write_sections(self, tables: _Tables, shown: _Shown) -> None:
        """The headers of sections, for those who look into the file; no loader reads them."""
        texts_end, data = tables.texts + len(shown.texts), _LOADED | _WRITABLE
        sections = (
            ("", 0, 0, 0, 0, 0, 0, 0),
            (".text", 1, _LOADED | _CODE, tables.code, self.gaps[1], 0, 0, 0),
            (".dynstr", 3, _LOADED, tables.texts, texts_end, 0, 0, 0),
            (".dynsym", 11, _LOADED, tables.symbols, tables.hashes, 2, 1, 24),
            (".hash", 5, _LOADED, tables.hashes, tables.rows, 3, 0, 4),
            (".rodata", 1, _LOADED, tables.rows, self.gaps[0], 0, 0, 0),
            (".data", 1, data, tables.written, tables.dynamic, 0, 0, 0),
            (".dynamic", 6, data, tables.dynamic, tables.end, 2, 0, 16),
        )
        names, headers = bytearray(), b""
        for name, type_, flags, begin, end, link, info, entry in sections:
            place = begin, self._offset(begin), end - begin
            row = (len(names), type_, flags, *place, link, info, 1, entry)
            headers += struct.pack("<IIQQQQIIQQ", *row)
            names += name.encode() + b"\0"
        end = self._offset(len(self.image))
        own = (len(names), 3, 0, 0, end, len(names) + 10, 0, 0, 1, 0)
        self._append(names + b".shstrtab\0")
        at = self._append(headers + struct.pack("<IIQQQQIIQQ", *own), 8)
        struct.pack_into("<Q", self.image, 40, self._offset(at))
        struct.pack_into("<HH", self.image, 60, len(sections) + 1, len(sections))


@dataclass
class _Tables:
    """Where what the loader reads begins in the image, and where the segments do."""

    texts: int
    symbols: int
    hashes: int
    rows: int  # of what it has to write where
    code: int = 0
    written: int = 0
    dynamic: int = 0
    end: int = 0


class _Shown:
    """What the loader is told: the names of symbols, of which the first are `imported`."""

    def __init__(self, names: Sequence[str], imported: int, library: str, rows: int):
        self.names, self.imported, self.library, self.rows = names, imported, library, rows
        self.texts = bytearray(1)
        self._at: dict[str, int] = {}
        for text in (*names, *_LIBRARIES, library):
            self._at[text] = len(self.texts)
            self.texts += text.encode() + b"\0"

    def hashes(self) -> bytes:
        """A hash table with one chain, of all symbols: there are few."""
        count = len(self.names)
        chain = [0, *(i + 1 if i < count else 0 for i in range(1, count + 1))]
        return struct.pack(f"<{4 + count}I", 1, 1 + count, min(1, count), *chain)

    def write_symbols(self, image: bytearray, at: int, places: Mapping[str, int]) -> None:
        """Functions that the library shows, and those that it looks for elsewhere."""
        for i, name in enumerate(self.names):
            is_own = i >= self.imported
            row = (self._at[name], 0x12, 0, int(is_own), places[name] if is_own else 0, 0)
            struct.pack_into("<IBBHQQ", image, at + 24 * (i + 1), *row)

    def dynamic(self, tables: _Tables) -> bytes:
        """Where the loader finds all that, and what libraries it has to load."""
        needed = [(1, self._at[name]) for name in _LIBRARIES] if self.imported else []
        entries = (
            *needed, (14, self._at[self.library]), (4, tables.hashes), (5, tables.texts),
            (6, tables.symbols), (10, len(self.texts)), (11, 24), (7, tables.rows),
            (8, 24 * self.rows), (9, 24),
            (30, 8), (0x6FFFFFFB, 1),  # functions elsewhere are found when the library is loaded
            (0, 0),
        )  # fmt: skip
        return b"".join(struct.pack("<QQ", *entry) for entry in entries)
