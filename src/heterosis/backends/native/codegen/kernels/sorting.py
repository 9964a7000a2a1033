"""Sorting rows of unsigned integers, alone or with the places they came from; stable.

Many rows of up to some thousand keys by a network of comparisons (`networks`); of few rows, each in
parts by such a network, where places are not asked for. Few short ones by counting: an element's
place is the number of elements before it. Long ones by radix, eight bits a pass from the lowest up,
leaving out passes in which all digits are equal. Nothing branches on a comparison, hence no branch
that a processor could mispredict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.networks import Network, emit_batches, sort_row
from heterosis.backends.native.codegen.target import Target

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.kernels.matmul.frame import Frame

_FEW = 4
_SHORT, _SHORT_BESIDE_LANES = 32, 16  # keys of a row that are sorted by counting
_LONGEST_ROW = 1 << 14  # in a network's lanes, which take a fifth to a half of the time by radix
_DIGITS = 256


@dataclass(frozen=True)
class RowSort:
    """What is compiled: the width of the keys, and whether their places are wanted."""

    bits: int
    places: bool

    @property
    def key(self) -> Type:
        return Type(f"i{self.bits}")

    @property
    def item_bytes(self) -> int:
        """Scratch bytes an element of a row."""
        return self.bits // 8 + 8 * self.places


def emit_sort(module: Module, target: Target, name: str, sort: RowSort) -> None:
    """Define `@name(call, keys, sorted[, places], scratch, rows, length, grain, room)`.

    Keys are rows without gaps; `room` is the scratch bytes of one worker.
    """
    from heterosis.backends.native.codegen.kernels.matmul.frame import (
        Frame,  # with its package: not by `import heterosis`
    )

    pointers = ["call", "keys", "sorted", *(["places"] if sort.places else []), "scratch"]
    numbers = ["rows", "length", "grain", "room"]
    f = module.function(name, [(p, PTR) for p in pointers] + [(n, I64) for n in numbers])
    values = dict(zip(pointers + numbers, f.parameters, strict=True))
    call, rows, grain = (values.pop(n) for n in ("call", "rows", "grain"))
    frame, memory = Frame(rows=rows, **values), Frame.allocate(f)
    frame.save(f, memory)

    def row_by_row() -> None:
        abi.parallel_for(f, call, f"{name}.rows", memory, rows, grain)

    def in_batches() -> None:
        assert network is not None
        lanes = network.lanes
        batches, shared = (f.div_size(f.add_size(n, lanes - 1), lanes) for n in (rows, grain))
        abi.parallel_for(f, call, f"{name}.batches", memory, f.i64(batches), f.i64(shared))

    network = network_for(target, sort)
    if network is None:
        row_by_row()
    else:
        # With fewer rows than half of the lanes, or rows of a few keys, most of it is in vain.
        many = f.compare("sge", rows, f.i64(network.lanes // 2))
        longer = f.compare("sge", values["length"], f.i64(_FEW))
        shorter = f.compare("sle", values["length"], f.i64(longest(network)))
        fits = f.binary("and", many, f.binary("and", longer, shorter))
        f.if_else(fits, in_batches, row_by_row)
        emit_batches(module, f"{name}.batches", network, frame)
    f.ret()
    _emit_rows(module, target, name, sort, frame)


def network_for(target: Target, sort: RowSort) -> Network | None:
    """What sorts many short rows of such keys at once, if the target does so well."""
    network = Network(target, sort.bits, sort.places)
    return network if network.bits <= 64 else None


def longest(network: Network) -> int:
    """So many keys a row take no longer than by radix: with AVX-512, 4,096 take a third to a half.
    SSE2 has two lanes of 64 bits, and no instruction that compares them."""
    return 8192 if network.lanes >= 4 else 128


def sorts_rows(target: Target, sort: RowSort) -> bool:
    """Whether the lanes of a network sort a row by itself, in parts."""
    network = network_for(target, sort)
    return network is not None and not sort.places and target.has_masks(sort.bits)


def _emit_rows(module: Module, target: Target, kernel: str, sort: RowSort, frame: Frame) -> None:
    name = f"{kernel}.rows"
    f = module.function(name, abi.LOOP_BODY_PARAMETERS, attributes=target.function_attributes)
    context, begin, end, worker = f.parameters
    histogram = f.allocate(I64, _DIGITS * sort.bits // 8)
    v = frame.load(f, context)
    mine = f.offset(Type("i8"), v.scratch, f.mul(worker, v.room))
    in_lanes = sorts_rows(target, sort)
    short = f.compare("sle", v.length, f.i64(_SHORT_BESIDE_LANES if in_lanes else _SHORT))
    with f.loop(begin, end) as loop:
        at = f.mul(loop.index, v.length)
        keys, result = (f.offset(sort.key, p, at) for p in (v.keys, v.sorted))
        places = f.offset(I64, v.places, at) if sort.places else None
        row = _Row(f, sort, v.length, keys, result, places)

        def by_counting(row: _Row = row) -> None:
            row.by_counting()

        def by_lanes(row: _Row = row) -> None:
            network = Network(target, sort.bits, sort.places)
            sort_row(f, f"{kernel}.batches", network, row.keys, row.result, v.length, mine)

        def by_radix(row: _Row = row) -> None:
            row.by_radix(histogram, mine)

        def longer() -> None:
            if not in_lanes:
                by_radix()
                return
            few = f.compare("sle", v.length, f.i64(_LONGEST_ROW))
            f.if_else(few, by_lanes, by_radix)

        f.if_else(short, by_counting, longer)
    f.ret()


@dataclass
class _Row:
    """One row: its length, its keys, and where they go, and their places."""

    f: Function
    sort: RowSort
    length: Value
    keys: Value
    result: Value
    places: Value | None

    def _key(self, base: Value, index: Value) -> Value:
        return self.f.load(self.sort.key, self.f.offset(self.sort.key, base, index))

    def _put(self, base: Value, index: Value, key: Value) -> None:
        self.f.store(key, self.f.offset(self.sort.key, base, index))

    def by_counting(self) -> None:
        """Elements before one: those below it, and those equal to it that come earlier."""
        f = self.f
        with f.loop(0, self.length) as loop:
            key = self._key(self.keys, loop.index)
            earlier = self._count(0, loop.index, "ule", key, f.i64(0))
            rank = self._count(f.add_size(loop.index, 1), self.length, "ult", key, earlier)
            self._put(self.result, rank, key)
            if self.places is not None:
                f.store(loop.index, f.offset(I64, self.places, rank))

    def _count(self, first: Size, last: Size, predicate: str, key: Value, so_far: Value) -> Value:
        f = self.f
        with f.loop(first, last, carried=[so_far]) as loop:
            holds = f.compare(predicate, self._key(self.keys, loop.index), key)
            loop.next = [f.add(loop.carried[0], f.convert("zext", holds, I64))]
        return loop.results[0]

    def by_radix(self, histogram: Value, scratch: Value) -> None:
        f, width = self.f, self.sort.bits // 8
        self._count_digits(histogram)
        # Places come first in the scratch memory: they want the stricter alignment.
        state = [self.result, scratch]
        if self.places is not None:
            state = [self.result, f.offset(I64, scratch, self.length), self.places, scratch]
        with f.loop(0, width, carried=state) as loop:
            shift = f.mul(loop.index, constant(I64, 8))
            counts = f.offset(I64, histogram, f.mul(loop.index, constant(I64, _DIGITS)))
            source, target, *places = loop.carried
            first = self._digit(self._key(source, f.i64(0)), shift)
            same = f.load(I64, f.offset(I64, counts, first))

            def move() -> list[Value]:
                self._move(counts, shift, source, target, places)
                return [target, source, *reversed(places)]

            useless = f.compare("eq", same, self.length)
            loop.next = f.if_else(useless, lambda: loop.carried, move)
        self._copy_back(loop.results)

    def _digit(self, key: Value, shift: Value) -> Value:
        f = self.f
        wide = f.convert("zext", key, I64)
        return f.binary("and", f.binary("lshr", wide, shift), constant(I64, _DIGITS - 1))

    def _count_digits(self, histogram: Value) -> None:
        """Copy the row to where the result belongs, and count every digit of every key."""
        f, width = self.f, self.sort.bits // 8
        zeros = Type("i64", 8)
        with f.loop(0, _DIGITS * width, 8) as loop:
            f.store(constant(zeros, 0), f.offset(I64, histogram, loop.index))
        with f.loop(0, self.length) as loop:
            key = self._key(self.keys, loop.index)
            self._put(self.result, loop.index, key)
            if self.places is not None:
                f.store(loop.index, f.offset(I64, self.places, loop.index))
            for d in range(width):
                digit = self._digit(key, constant(I64, 8 * d))
                place = f.offset(I64, f.offset(I64, histogram, d * _DIGITS), digit)
                f.store(f.add(f.load(I64, place), constant(I64, 1)), place)

    def _move(
        self, counts: Value, shift: Value, source: Value, target: Value, places: list[Value]
    ) -> None:
        """One pass: every key to the next place of its digit."""
        f = self.f
        with f.loop(0, _DIGITS, carried=[constant(I64, 0)]) as loop:
            place = f.offset(I64, counts, loop.index)
            count = f.load(I64, place)
            f.store(loop.carried[0], place)
            loop.next = [f.add(loop.carried[0], count)]
        with f.loop(0, self.length) as loop:
            key = self._key(source, loop.index)
            place = f.offset(I64, counts, self._digit(key, shift))
            to = f.load(I64, place)
            f.store(f.add(to, constant(I64, 1)), place)
            self._put(target, to, key)
            if places:
                origin = f.load(I64, f.offset(I64, places[0], loop.index))
                f.store(origin, f.offset(I64, places[1], to))

    def _copy_back(self, final: list[Value]) -> None:
        """After an odd number of passes the result stands in the scratch memory."""
        f = self.f
        source, _, *places = final

        def copy() -> None:
            with f.loop(0, self.length) as loop:
                self._put(self.result, loop.index, self._key(source, loop.index))
                if self.places is not None:
                    origin = f.load(I64, f.offset(I64, places[0], loop.index))
                    f.store(origin, f.offset(I64, self.places, loop.index))

        f.if_else(f.compare("ne", source, self.result), copy)


# -- between elements and keys --------------------------------------------------------------------


def encode(f: Function, x: Value) -> Value:
    """The unsigned integer that stands where the float does in the order: NaN last, zeros equal."""
    bits = f.bits(f.add(x, constant(x.type, 0.0)))
    top, ones = (constant(bits.type, n) for n in (-(1 << (bits.type.bits - 1)), -1))
    sign = f.binary("ashr", bits, constant(bits.type, bits.type.bits - 1))
    made = f.binary("xor", bits, f.binary("or", sign, top))
    return f.select(f.compare("uno", x, x), ones, made)


def decode(f: Function, key: Value) -> Value:
    """The float that `encode` made into `key`."""
    to = key.type.of({32: "float", 64: "double"}[key.type.bits])
    top, ones = (constant(key.type, n) for n in (-(1 << (key.type.bits - 1)), -1))
    positive = f.compare("slt", key, constant(key.type, 0))
    bits = f.binary("xor", key, f.select(positive, top, ones))
    nan = f.compare("eq", key, ones)
    return f.select(nan, constant(to, float("nan")), f.convert("bitcast", bits, to))
