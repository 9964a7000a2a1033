"""Sorting many rows at once: each lane of a vector has a row of its own, and rows are sorted by a
network of comparisons, the same for all. No branch and no shuffle, but for turning rows into lanes
and back.

The network (Batcher's bitonic one, with the first stage of each merge turned so that all
comparisons put the smaller key first) is taken several stages a pass: as many as fit in registers.
Behind a row stand keys that are as large as keys get, which every comparison leaves where they are:
they equal a row's own largest keys, and which of equal keys is which nobody can tell. With places,
which are the lower halves of numbers twice as wide, no two numbers are equal, and they are stable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.emit.builder import (
    I1,
    I64,
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
    f, v, begin, end, worker = frame.body(module, network.target, name)
    mine = f.offset(Type("i8"), v.scratch, f.mul(worker, v.room))
    with f.loop(begin, end) as loop:
        _Batch(f, network, v, f.mul_size(loop.index, network.lanes), mine).sort()
    f.ret()


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

    def sort(self) -> None:
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

        def whole() -> tuple[()]:
            for row, pointer in zip(found, to, strict=True):
                f.store(row, pointer)
            return ()

        def part() -> tuple[()]:
            for row, pointer in zip(found, to, strict=True):
                f.masked_store(row, pointer, mask)
            return ()

        f.if_else(self._is_whole(column), whole, part)

    def _is_whole(self, column: Size) -> Value:
        f = self.f
        end = f.add_size(column, self.network.lanes)
        return f.compare("sle", f.i64(end), f.i64(self.v.length))

    def _inside(self, column: Size) -> Value:
        """Which of the columns from this one on are there."""
        f, lanes = self.f, self.network.lanes
        left = f.splat(f.i64(f.sub_size(self.v.length, column)), lanes)
        items = ", ".join(f"i64 {i}" for i in range(lanes))
        return f.compare("slt", Value(Type("i64", lanes), f"<{items}>"), left)

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

        def merge() -> tuple[()]:
            self._fill()
            with f.repeat([f.i64(2 * self.network.block)]) as level:
                (run,) = level.carried
                self._merge_into(run)
                level.next = [f.add(run, run)]
                level.more = f.compare("slt", run, length)
            return ()

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

            def turned(count: int = count) -> tuple[()]:
                with f.loop(0, f.sub(length, half), run) as runs:
                    # Those before compare with nothing but what stands behind the rows.
                    behind = f.sub(f.add(f.add(runs.index, half), stride), length)
                    with f.loop(f.max_size(behind, 0), stride) as loop:
                        lower = f.add(runs.index, loop.index)
                        mirrored = f.sub(f.sub(stride, f.i64(1)), loop.index)
                        upper = f.add(f.add(runs.index, half), mirrored)
                        self._pass(count, True, lower, upper, stride)
                return ()

            f.if_else(f.compare("eq", f.i64(first), f.i64(count)), turned)
        pairs = f.binary("and", f.sub(f.add(length, half), f.i64(1)), f.neg(run))
        end = f.min_size(length, pairs)
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
