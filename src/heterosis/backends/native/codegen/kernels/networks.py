"""Sorting many rows at once: each lane of a vector has a row of its own, and rows are sorted by a
network of comparisons, the same for all. No branch and no shuffle, but for turning rows into lanes
and back. A single row is cut into as many parts as there are lanes, which are merged in the end.

The network (Batcher's bitonic one, with the first stage of each merge turned so that all
comparisons put the smaller key first) is taken several stages a pass: as many as fit in registers.
Behind a row stand keys that are as large as keys get, which every comparison leaves where they are:
they equal a row's own largest keys, and which of equal keys is which nobody can tell. With places,
which are the lower halves of numbers twice as wide, no two numbers are equal, and they are stable.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import (
    I1,
    I64,
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.target import Target

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.kernels.matmul.frame import Frame


@dataclass(frozen=True)
class Network:
    """How rows of keys are sorted on a target; `bits` are those of what is compared."""

    target: Target
    key_bits: int
    places: bool

    @property
    def bits(self) -> int:
        return 2 * self.key_bits if self.places else self.key_bits

    @property
    def lanes(self) -> int:
        return self.target.lanes(self.bits // 8)

    @property
    def vector(self) -> Type:
        return Type(f"i{self.bits}", self.lanes)

    @property
    def stages(self) -> int:
        """How many are taken in one pass: their vectors stand in half of the registers."""
        return 4 if self.target.vector_registers >= 32 else 3

    @property
    def block(self) -> int:
        """Vectors in a pass's registers."""
        return 1 << self.stages


def emit_batches(module: Module, name: str, network: Network, frame: Frame) -> None:
    """Define `@name`, the body of a loop over batches of `network.lanes` rows."""
    _emit_batch(module, f"{name}.one", network)
    f, v, begin, end, worker = frame.body(module, network.target, name)
    mine = f.offset(Type("i8"), v.scratch, f.mul(worker, v.room))
    pointers = [v.keys, v.sorted, *([v.places] if network.places else []), mine]
    with f.loop(begin, end) as loop:
        first = f.i64(f.mul_size(loop.index, network.lanes))
        f.call(f"{name}.one", [*pointers, first, v.rows, v.length, constant(I64, 0)])
    f.ret()


def _emit_batch(module: Module, name: str, network: Network) -> None:
    """Define `@name(keys, sorted[, places], memory, first, rows, length, one)`: as many rows as a
    vector has lanes, from row `first` on. If they are parts of `one` row, a part has as many keys
    as a block, or that number doubled any number of times."""
    pointers = ["keys", "sorted", *(["places"] if network.places else []), "memory"]
    numbers = ["first", "rows", "length", "one"]
    labels = [(p, PTR) for p in pointers] + [(n, I64) for n in numbers]
    attributes = network.target.function_attributes
    f = module.function(name, labels, attributes=attributes)
    v = SimpleNamespace(**dict(zip(pointers + numbers, f.parameters, strict=True)))
    _Batch(f, network, v, v.first, v.memory).sort(v.one)
    f.ret()


def sort_row(
    f: Function, batches: str, network: Network, keys: Value, result: Value, length: Value,
    memory: Value,
) -> None:  # fmt: skip
    """Sort a row of keys by what `emit_batches` defined, in memory for four times as many keys."""
    key, lanes = network.vector, network.lanes
    each = f.max_size(network.block, f.div_size(f.add_size(length, lanes - 1), lanes))
    zeros = f.call("llvm.ctlz.i64", [f.i64(f.sub_size(each, 1)), constant(I1, 0)], I64)
    part = f.binary("shl", f.i64(1), f.sub(f.i64(64), zeros))
    whole = f.mul_size(part, lanes)
    padded = f.offset(key, memory, whole)
    with f.loop(0, whole, lanes) as loop:
        mask = _first_lanes(f, lanes, f.sub_size(length, loop.index))
        found = f.masked_load(key, f.offset(key, keys, loop.index), mask)
        found = f.select(mask, found, constant(key, -1))
        f.store(found, f.offset(key, padded, loop.index))
    one = constant(I64, 1)
    f.call(f"{batches}.one", [padded, padded, memory, f.i64(0), f.i64(lanes), part, one])
    with f.loop(0, length, lanes) as loop:
        mask = _first_lanes(f, lanes, f.sub_size(length, loop.index))
        found = f.load(key, f.offset(key, padded, loop.index))
        f.masked_store(found, f.offset(key, result, loop.index), mask)


def _first_lanes(f: Function, lanes: int, count: Size) -> Value:
    """A mask of so many, or all if there are fewer."""
    return f.compare("slt", lane_numbers(f, lanes, I64), f.splat(f.i64(count), lanes))


def merged_at_once(stages: int, *, turned: bool) -> Iterator[tuple[int, int]]:
    """The comparisons of so many stages of a merge, each of one place with a later one."""
    count = 1 << stages
    distance = count // 2
    if turned:
        yield from ((i, count - 1 - i) for i in range(distance))
        distance //= 2
    while distance:
        yield from ((i, i + distance) for i in range(count) if not i & distance)
        distance //= 2


def sorted_at_once(count: int) -> Iterator[tuple[int, int]]:
    """The comparisons that sort so many, a power of two: Batcher's odd-even merge sort."""
    run = 1
    while run < count:
        distance = run
        while distance:
            for first in range(distance % run, count - distance, 2 * distance):
                for i in range(first, min(first + distance, count - distance)):
                    if i // (2 * run) == (i + distance) // (2 * run):
                        yield i, i + distance
            distance //= 2
        run *= 2


@dataclass
class _Batch:
    """As many rows as a vector has lanes, from row `first` on; `v` has what the frame has, and
    `memory` room for twice as many vectors as a row has keys."""

    f: Function
    network: Network
    v: SimpleNamespace
    first: Size
    memory: Value

    @property
    def _key(self) -> Type:
        return Type(f"i{self.network.key_bits}", self.network.lanes)

    def sort(self, one: Value) -> None:
        """All rows, and if they are parts of `one`, all together."""
        f, network, length = self.f, self.network, self.v.length
        rows = self._rows()
        with f.loop(0, length, network.block) as loop:
            found: list[Value] = []
            for i in range(0, network.block, network.lanes):
                found += self._load_square(rows, f.add_size(loop.index, i))
            self._compare(found, sorted_at_once(network.block))
            for i, vector in enumerate(found):
                f.store(vector, self._at(f.add_size(loop.index, i)))
        self._merge()
        if not network.places:
            f.if_else(f.compare("ne", one, f.i64(0)), self._merge_lanes)
        with f.loop(0, length, network.lanes) as loop:
            self._store_square(rows, loop.index)

    # -- rows and lanes ---------------------------------------------------------------------------

    def _rows(self) -> list[Value]:
        """Where each lane's row begins, in keys. Lanes without a row have the last one as well."""
        f, v = self.f, self.v
        last = f.sub_size(v.rows, 1)
        numbers = [f.min_size(f.add_size(self.first, i), last) for i in range(self.network.lanes)]
        return [f.i64(f.mul_size(number, v.length)) for number in numbers]

    def _at(self, place: Size) -> Value:
        return self.f.offset(
            self.network.vector, self.memory, self.f.mul_size(place, self.network.lanes)
        )

    def _load_square(self, rows: list[Value], column: Size) -> list[Value]:
        """The keys of these rows from a column on, a vector a column, ready for signed comparison;
        the largest ones behind the rows."""
        f, key = self.f, self._key
        size = key.bits // 8
        keys = [f.offset(key, f.offset(key, self.v.keys, row), column) for row in rows]
        mask = self._inside(column)
        ones = constant(key, -1)
        found = f.if_else(
            self._is_whole(column),
            lambda: [f.load(key, pointer) for pointer in keys],
            lambda: [f.select(mask, f.masked_load(key, p, mask), ones) for p in keys],
        )
        columns = transpose(f, found, 16 // size)
        lowest = constant(key, -(1 << (key.bits - 1)))
        columns = [f.binary("xor", c, lowest) for c in columns]
        if not self.network.places:
            return columns
        return [self._placed(c, f.add_size(column, i)) for i, c in enumerate(columns)]

    def _placed(self, keys: Value, place: Size) -> Value:
        f, vector = self.f, self.network.vector
        half = constant(vector, self.network.key_bits)
        high = f.binary("shl", f.convert("zext", keys, vector), half)
        low = f.convert("trunc", f.i64(place), vector.scalar)
        return f.binary("or", high, f.splat(low, vector.lanes))

    def _store_square(self, rows: list[Value], column: Size) -> None:
        """The reverse: into `sorted`, and the places into `places`."""
        f, key, vector = self.f, self._key, self.network.vector
        columns = [f.load(vector, self._at(f.add_size(column, i))) for i in range(vector.lanes)]
        keys, parts = columns, list[tuple[Value, list[Value]]]()
        if self.network.places:
            half = constant(vector, self.network.key_bits)
            keys = [f.convert("trunc", f.binary("lshr", c, half), key) for c in columns]
            low = constant(vector, (1 << self.network.key_bits) - 1)
            wide = Type("i64", vector.lanes)
            places = [f.convert("zext", f.binary("and", c, low), wide) for c in columns]
            parts.append((self.v.places, places))
        lowest = constant(key, -(1 << (key.bits - 1)))
        parts.append((self.v.sorted, [f.binary("xor", k, lowest) for k in keys]))
        for base, turned in parts:
            type_ = turned[0].type
            found = transpose(f, turned, 128 // type_.bits)
            to = [f.offset(type_, f.offset(type_, base, row), column) for row in rows]

            self._store_rows(found, to, column)

    def _store_rows(self, found: list[Value], to: list[Value], column: Size) -> None:
        f, mask = self.f, self._inside(column)

        def whole() -> None:
            for row, pointer in zip(found, to, strict=True):
                f.store(row, pointer)

        def part() -> None:
            for row, pointer in zip(found, to, strict=True):
                f.masked_store(row, pointer, mask)

        f.if_else(self._is_whole(column), whole, part)

    def _is_whole(self, column: Size) -> Value:
        f = self.f
        end = f.add_size(column, self.network.lanes)
        return f.compare("sle", f.i64(end), f.i64(self.v.length))

    def _inside(self, column: Size) -> Value:
        """Which of the columns from this one on are there."""
        return _first_lanes(self.f, self.network.lanes, self.f.sub_size(self.v.length, column))

    # -- comparisons ------------------------------------------------------------------------------

    def _compare(self, vectors: list[Value], pairs: Iterable[tuple[int, int]]) -> None:
        f = self.f
        for i, j in pairs:
            low, high = (f.intrinsic(m, vectors[i], vectors[j]) for m in ("smin", "smax"))
            vectors[i], vectors[j] = low, high

    def _pass(self, stages: int, turned: bool, lower: Value, upper: Value, stride: Value) -> None:
        """So many stages of a merge on vectors `stride` apart: half of them from `lower` on, half
        from `upper`."""
        f, half = self.f, 1 << (stages - 1)
        steps = [f.mul_size(stride, i) for i in range(half)]
        at = [self._at(f.add_size(base, step)) for base in (lower, upper) for step in steps]
        vectors = [f.load(self.network.vector, pointer) for pointer in at]
        self._compare(vectors, merged_at_once(stages, turned=turned))
        for vector, pointer in zip(vectors, at, strict=True):
            f.store(vector, pointer)

    def _merge(self) -> None:
        """Merge sorted runs of a block's length into longer ones, until there is one."""
        f, length = self.f, self.v.length

        def merge() -> None:
            self._fill()
            with f.repeat([f.i64(2 * self.network.block)]) as level:
                (run,) = level.carried
                self._merge_into(run)
                level.next = [f.add(run, run)]
                level.more = f.compare("slt", run, length)

        f.if_else(f.compare("sgt", length, f.i64(self.network.block)), merge)

    def _fill(self) -> None:
        """The largest keys behind the rows, up to a power of two."""
        f, length, block = self.f, self.v.length, self.network.block
        filled = f.round_down(f.add_size(length, block - 1), block)
        zeros = f.call("llvm.ctlz.i64", [f.sub(length, f.i64(1)), constant(I1, 0)], I64)
        room = f.binary("shl", f.i64(1), f.sub(f.i64(64), zeros))
        with f.loop(filled, room) as loop:
            largest = constant(self.network.vector, (1 << (self.network.bits - 1)) - 1)
            f.store(largest, self._at(loop.index))

    def _merge_into(self, run: Value) -> None:
        """Merge pairs of runs into some of length `run`; a last one without a partner stays."""
        f, length, stages = self.f, self.v.length, self.network.stages
        half = f.binary("lshr", run, f.i64(1))
        level = f.call("llvm.cttz.i64", [run, constant(I1, 1)], I64)
        # The first pass takes what is left over when the others take as many stages as they can.
        first = f.add_size(f.rem_size(f.sub(level, f.i64(1)), stages), 1)
        stride = f.binary("lshr", run, f.i64(first))
        for count in range(1, stages + 1):

            def turned(count: int = count) -> None:
                with f.loop(0, f.sub(length, half), run) as runs:
                    # Those before compare with nothing but what stands behind the rows.
                    behind = f.sub(f.add(f.add(runs.index, half), stride), length)
                    with f.loop(f.max_size(behind, 0), stride) as loop:
                        lower = f.add(runs.index, loop.index)
                        mirrored = f.sub(f.sub(stride, f.i64(1)), loop.index)
                        upper = f.add(f.add(runs.index, half), mirrored)
                        self._pass(count, True, lower, upper, stride)

            f.if_else(f.compare("eq", f.i64(first), f.i64(count)), turned)
        pairs = f.binary("and", f.sub(f.add(length, half), f.i64(1)), f.neg(run))
        self._finish_merging(stride, f.min_size(length, pairs))

    def _finish_merging(self, stride: Value, end: Size) -> None:
        """The stages of a merge below a distance of `stride`, as many a pass as there can be."""
        f, length, stages = self.f, self.v.length, self.network.stages
        with f.repeat([f.binary("lshr", stride, f.i64(stages))]) as rest:
            (stride,) = rest.carried
            with (
                f.loop(0, end, f.mul_size(stride, self.network.block)) as blocks,
                f.loop(0, f.min_size(stride, f.sub(length, blocks.index))) as loop,
            ):
                lower = f.add(blocks.index, loop.index)
                upper = f.add_size(lower, f.mul_size(stride, self.network.block // 2))
                self._pass(stages, False, lower, f.i64(upper), stride)
            rest.next = [f.binary("lshr", stride, f.i64(stages))]
            rest.more = f.compare("sge", stride, f.i64(self.network.block))

    # -- parts of one row -------------------------------------------------------------------------

    def _merge_lanes(self) -> None:
        """Merge the rows in pairs of neighbouring lanes, then of pairs of lanes, and so on."""
        f, lanes = self.f, self.network.lanes
        with f.repeat([f.i64(2)]) as level:
            (width,) = level.carried
            for some in range(1, lanes.bit_length()):
                is_width = f.compare("eq", width, f.i64(1 << some))
                f.if_else(is_width, functools.partial(self._compare_lanes, 1 << some))
            self._merge_below()
            level.next = [f.add(width, width)]
            level.more = f.compare("slt", width, f.i64(lanes))

    def _compare_lanes(self, width: int) -> None:
        """The first stages of merging rows in `width` lanes: those of keys in different lanes. In
        the very first one a key meets the one as far from the end as it is from the beginning."""
        f, vector, lanes = self.f, self.network.vector, range(self.network.lanes)
        count, half = len(lanes), width // 2
        mirrored = [i ^ (width - 1) for i in lanes]
        with f.loop(0, f.div_size(self.v.length, 2)) as loop:
            behind = f.sub_size(f.sub_size(self.v.length, 1), loop.index)
            at = self._at(loop.index), self._at(behind)
            first, last = (f.load(vector, pointer) for pointer in at)
            turned = f.shuffle(last, last, mirrored)
            low, high = (f.intrinsic(m, first, turned) for m in ("smin", "smax"))
            upper = f.shuffle(low, high, [i + count * bool(i & half) for i in lanes])
            lower = f.shuffle(low, high, [mirrored[i] + count * bool(i & half) for i in lanes])
            for found, pointer in zip((upper, lower), at, strict=True):
                f.store(self._within_lanes(found, half // 2), pointer)

    def _within_lanes(self, keys: Value, distance: int) -> Value:
        """The stages of comparing lanes so far apart, and half as far, down to neighbours."""
        f, lanes = self.f, range(self.network.lanes)
        while distance:
            other = f.shuffle(keys, keys, [i ^ distance for i in lanes])
            low, high = (f.intrinsic(m, keys, other) for m in ("smin", "smax"))
            keys = f.shuffle(low, high, [i + len(lanes) * bool(i & distance) for i in lanes])
            distance //= 2
        return keys

    def _merge_below(self) -> None:
        """The last stages of a merge: those of keys in one lane."""
        f, length, stages = self.f, self.v.length, self.network.stages
        level = f.call("llvm.cttz.i64", [length, constant(I1, 1)], I64)
        first = f.add_size(f.rem_size(f.sub(level, f.i64(1)), stages), 1)
        stride = f.binary("lshr", length, f.i64(first))
        half = f.binary("lshr", length, f.i64(1))
        for count in range(1, stages + 1):

            def taken(count: int = count) -> None:
                with f.loop(0, stride) as loop:
                    upper = f.add(loop.index, half)
                    self._pass(count, False, loop.index, upper, stride)

            f.if_else(f.compare("eq", f.i64(first), f.i64(count)), taken)
        more = f.compare("sgt", length, f.i64(self.network.block))
        f.if_else(more, lambda: self._finish_merging(stride, length))
