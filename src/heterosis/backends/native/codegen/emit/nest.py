"""From the description of a loop nest to LLVM IR: one function a nest, a share of its loops a call.

The function is `void @name(ptr call, i64 begin, i64 end, i64 worker)`, an `hx_loop_body` whose
context is the `hx_call` itself. Shares run over the first kept dimension.

Unrolling is done by vectors wider than a register: LLVM splits them, which keeps independent
chains apart without writing the body several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from heterosis.backends.native.codegen import tables
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit import access as memory
from heterosis.backends.native.codegen.emit.accumulators import Accumulators
from heterosis.backends.native.codegen.emit.builder import (
    I1,
    I64,
    PTR,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.short_rows import Aside, Rows, bytes_aside, put_aside
from heterosis.backends.native.codegen.emit.squares import (
    Turned,
    side_of_squares,
    turned_loads,
)
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.nest import (
    Apply,
    Argument,
    Counter,
    Extent,
    Indices,
    Literal,
    Load,
    Nest,
    Number,
    Operand,
    Reduce,
    Slot,
    Store,
    known,
    needed,
    operands_of,
    passes_before,
)
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.primitives.elementwise import ADD, MULTIPLY, SUBTRACT
from heterosis.ir.types import ITEMSIZE, is_float

# Additions of one block run without compensation: few enough to keep the error below a few ulps.
_BLOCK_TURNS = 64
# A formula is a chain of operations: with several vectors at a time, the processor has as many of
# them to work on. Above the first cost of a body four would spill registers, above the second the
# code of two takes long to compile.
_HEAVY, _HUGE = 24.0, 160.0
# Each an instruction that LLVM has for vectors of any width.
_ARITHMETIC = (ADD, SUBTRACT, MULTIPLY)
_SINGLE_AND_DOUBLE = ("float32", "float64")


def emit_nest(module: Module, target: Target, name: str, nest: Nest) -> None:
    """Define `@name` in `module`."""
    _Emitter(module, target, name, nest).emit()


@dataclass
class _Scope:
    """Values and addresses that are known at one place of the loops, and around it."""

    parent: _Scope | None = None
    values: dict[tuple[int, int], Value] = field(default_factory=dict)
    places: dict[Operand | Counter, Size] = field(default_factory=dict)

    def value(self, step: int, lanes: int) -> Value | None:
        scope: _Scope | None = self
        while scope:
            if (step, lanes) in scope.values:
                return scope.values[step, lanes]
            scope = scope.parent
        return None

    def place(self, key: Operand | Counter) -> Size:
        scope = self
        while key not in scope.places:
            assert scope.parent is not None, f"no place for {key}"
            scope = scope.parent
        return scope.places[key]

    def address(self, operand: Operand) -> Value:
        place = self.place(operand)
        assert isinstance(place, Value), f"{operand} has no address"
        return place


@dataclass(frozen=True)
class _Rest:
    """The mask of a body that also runs on whole vectors: needed unless `full` holds."""

    full: Value
    mask: Callable[[], Value | None]


Mask: TypeAlias = "Value | _Rest | None"
Body: TypeAlias = "Callable[[_Scope, int, Mask], None]"  # of a loop, for so many lanes
Turn: TypeAlias = "Callable[[Value, Accumulators], Accumulators]"


class _Emitter:
    def __init__(self, module: Module, target: Target, name: str, nest: Nest):
        self.nest, self.target, self.rows = nest, target, Aside(nest)
        self.f = module.function(
            name,
            [("call", PTR), ("begin", I64), ("end", I64), ("worker", I64)],
            attributes=target.attributes_for_memory
            if self._waits_for_memory()
            else target.function_attributes,
        )
        self.call, self.begin, self.end, _ = self.f.parameters
        self.numbers = sorted(_slots(nest))
        self.slots: dict[int, Value] = {}
        self.depth = len(nest.kept) + len(nest.reduced)
        self.vector_level = nest.vector_level
        self.inner = self._mark(lambda strides: any(s != 0 for s in strides[len(nest.kept) :]))
        self.varying = self._mark(
            lambda strides: self.vector_level >= 0 and strides[self.vector_level] != 0
        )
        if nest.vector in ("kept", "rows"):
            for i, step in enumerate(nest.steps):
                if isinstance(step, Reduce):
                    self.varying[i] = True
            self._spread(self.varying)
        self.lanes, self.wide = self._widths()
        self.rows = put_aside(nest, self.lanes)
        self.nest = self.rows.nest
        self.passes = self._passes()
        self.rest = self.lanes if self._masks() else 0  # lanes at the end of a loop; 0: scalars

    # -- analysis -----------------------------------------------------------------------------

    def _mark(self, depends: Callable[[tuple[Number, ...]], bool]) -> list[bool]:
        """For every step, whether its value changes along the loops that `depends` looks at."""
        marks: list[bool] = []
        for step in self.nest.steps:
            match step:
                case Load(operand, indices):
                    own = depends(operand.strides) or any(marks[i] for i, _ in indices)
                case Counter(_, strides):
                    own = depends(strides)
                case Apply(_, arguments):
                    own = any(marks[a] for a in arguments)
                case _:
                    own = False
            marks.append(own)
        return marks

    def _waits_for_memory(self) -> bool:
        """Whether it does nothing but arithmetic on numbers that it reads and writes in their
        order. What follows from none of them is one number, computed ahead of the loops: to the
        bits of any other place, for which functions need the widest vectors."""
        steps, stores = self.nest.steps, self.nest.stores
        follow = self._mark(lambda strides: True)
        pairs = [(s, f) for s, f in zip(steps, follow, strict=True) if isinstance(s, Apply)]
        applied = (s for s, f in pairs if f)
        dear_ahead = any(tables.is_dear(s.primitive) for s, f in pairs if not f)
        indices = (s.indices for s in (*steps, *stores) if isinstance(s, Load | Store))
        return (
            not self.nest.reduced
            and not any(indices)
            and not dear_ahead
            and all(isinstance(s, Apply | Argument | Literal | Load) for s in steps)
            and all(s.primitive in _ARITHMETIC for s in applied)
            and all(o.dtype in _SINGLE_AND_DOUBLE for o in self._all_operands())
        )

    def _spread(self, marks: list[bool]) -> None:
        for i, step in enumerate(self.nest.steps):
            if isinstance(step, Apply):
                marks[i] = marks[i] or any(marks[a] for a in step.arguments)

    def _passes(self) -> list[tuple[list[int], list[Store]]]:
        """Reductions and inner stores, by the pass that can run them."""
        level = passes_before(self.nest.steps)
        count = max([*level, 0])
        passes: list[tuple[list[int], list[Store]]] = [([], []) for _ in range(count + 1)]
        for i, step in enumerate(self.nest.steps):
            if isinstance(step, Reduce):
                passes[level[i] - 1][0].append(i)
        for store in self.nest.stores:
            if self._is_inner(store):
                # What is stored while its reduction runs belongs to that very pass.
                passes[level[store.value] - bool(store.running)][1].append(store)
        return [p for p in passes if p[0] or p[1]]

    def _is_inner(self, store: Store) -> bool:
        return any(s != 0 for s in store.operand.strides[len(self.nest.kept) :]) or bool(
            store.running or (store.indices and self.nest.reduced)
        )

    def _widths(self) -> tuple[int, int]:
        """Lanes of one register, and of the wide vectors that fill several."""
        if self.vector_level < 0:
            return 0, 0
        steps = zip(self.nest.steps, self.varying, self._counted(), strict=True)
        sizes = {4 if counted else _width(s.dtype) for s, varies, counted in steps if varies}
        sizes |= {_width(s.operand.dtype) for s in self.nest.stores}
        lanes = self.target.lanes(max(sizes))
        cost = self._cost()
        unroll = 1 if cost > _HUGE or self._spread_out() else 2 if cost > _HEAVY else 4
        return lanes, lanes * unroll

    def _counted(self) -> list[bool]:
        """Which steps follow from places alone. Those of 64 bits take two registers, rather than
        leave half of every other register empty: few steps do more than compare places."""
        counted: list[bool] = []
        for step, varies in zip(self.nest.steps, self.varying, strict=True):
            if isinstance(step, Apply) and varies:
                moving = [a for a in step.arguments if self.varying[a]]
                counted.append(all(counted[a] for a in moving))
            else:
                counted.append(isinstance(step, Counter))
        return counted

    def _cost(self) -> float:
        return tables.cost(s.primitive for s in self.nest.steps if isinstance(s, Apply))

    def _spread_out(self) -> bool:
        """Whether an operand's elements are not neighbours: wide vectors would only cost code."""
        return any(o.strides[self.vector_level] not in (-1, 0, 1) for o in self._all_operands())

    def _masks(self) -> bool:
        """Whether the processor can load and store part of a vector of every operand's type."""
        return all(self.target.has_masks(8 * ITEMSIZE[o.dtype]) for o in self._all_operands())

    # -- the function -------------------------------------------------------------------------

    def emit(self) -> None:
        for slot in self.numbers:
            self.slots[slot] = abi.integer(self.f, self.call, slot)
        root = _Scope()
        for operand in self.rows.places:
            root.places[operand] = self.f.allocate(Type("i8"), bytes_aside(self.lanes))
        for operand in self._all_operands():
            base = self._buffer(operand)
            element = memory.STORED[operand.dtype]
            root.places[operand] = self.f.offset(element, base, self.size(operand.offset))
        for step in self.nest.steps:
            if isinstance(step, Counter):
                root.places[step] = self.size(step.offset)
        turned = turned_loads(self.nest)
        side = side_of_squares(self.lanes)
        if turned and side:
            self.aside = {
                step: self.f.allocate(Type(memory.STORED[operand.dtype].element, side), side)
                for step, operand in turned.loads.items()
            }
            others = set(range(self.depth)) - {turned.level, self.vector_level}
            self._in_squares(root, turned, side, sorted(others))
        else:
            self._kept_loops(root, 0)
        self.f.ret()

    def size(self, number: Number) -> Size:
        return self.slots[number.index] if isinstance(number, Slot) else number

    def _all_operands(self) -> list[Operand]:
        loads = [s.operand for s in self.nest.steps if isinstance(s, Load)]
        every = dict.fromkeys(loads + [s.operand for s in self.nest.stores])
        return [self.rows.places.get(operand, operand) for operand in every]

    def _buffer(self, operand: Operand) -> Value:
        if operand.buffer.kind == "temporary":
            start = self.size(operand.buffer.index)
            return self.f.offset(Type("i8"), abi.workspace(self.f, self.call), start)
        return abi.buffer(self.f, self.call, known(operand.buffer.index))

    def _kept_loops(self, scope: _Scope, level: int) -> None:
        """The loops over kept dimensions from `level` on; the innermost may run in vectors."""
        if level == len(self.nest.kept):
            self._point(scope, 0, None)
            return
        first, last = self._range(level)
        if level == self.vector_level:
            self._hoist(scope, [s.value for s in self.nest.stores], 0, None)
            if self.rows.places:
                self._rows(scope, level, first, last)
            else:
                self._span(scope, level, first, last, self._point)
            return
        with self.f.loop(first, last) as loop:
            self._kept_loops(self._advance(scope, level, loop.index), level + 1)

    def _rows(self, scope: _Scope, level: int, first: Size, last: Size) -> None:
        """Vectors of rows, whose elements stand aside in the meantime."""
        f, lanes = self.f, self.lanes
        with f.loop(first, last, lanes) as loop:
            inside, left = self._advance(scope, level, loop.index), f.sub_size(last, loop.index)
            full = f.compare("sge", f.i64(left), f.i64(lanes))
            for operand in self.rows.read:
                self._of_rows(inside, operand, left).read(scope.address(operand))
            self._point(inside, lanes, _Rest(full, lambda: self._mask(loop.index, last, lanes)))
            for operand in self.rows.written:
                self._of_rows(inside, operand, left).write(scope.address(operand))

    def _of_rows(self, scope: _Scope, columns: Operand, left: Size) -> Rows:
        """The rows that stand in such columns in the meantime."""
        operand = self.rows.places[columns]
        stride = self.size(operand.strides[self.vector_level])
        count = self.size(self.nest.reduced[-1])
        return Rows(self.f, operand.dtype, scope.address(operand), stride, count, left, self.lanes)

    def _in_squares(self, scope: _Scope, turned: Turned, side: int, around: Sequence[int]) -> None:
        """The loops `around`, and inside of them squares, and row by row what these leave."""
        if around:
            with self.f.loop(*self._range(around[0])) as loop:
                inside = self._advance(scope, around[0], loop.index)
                self._in_squares(inside, turned, side, around[1:])
            return
        f = self.f
        (top, bottom), (left, right) = self._range(turned.level), self._range(self.vector_level)
        height = f.round_down(f.sub_size(bottom, top), side)
        lower, width = f.add_size(top, height), f.round_down(right, side)
        with f.loop(top, lower, side) as rows:
            band = self._advance(scope, turned.level, rows.index)
            with f.loop(left, width, side) as columns:
                self._square(self._advance(band, self.vector_level, columns.index), turned, side)
        with f.loop(top, bottom) as rows:
            below = f.compare("sge", rows.index, f.i64(lower))
            start = f.select(below, f.i64(left), f.i64(width))
            row = self._advance(scope, turned.level, rows.index)
            self._hoist(row, [s.value for s in self.nest.stores], 0, None)
            self._span(row, self.vector_level, start, right, self._point)

    def _square(self, scope: _Scope, turned: Turned, side: int) -> None:
        """So many rows and columns: read, turned and put aside, then one row of them a turn."""
        f = self.f
        for step, operand in turned.loads.items():
            falls = turned.falls(operand)
            rows = [self._row(scope, operand, i, side, falls) for i in range(side)]
            for i, column in enumerate(transpose(f, rows, 16 // ITEMSIZE[operand.dtype])):
                place = side - 1 - i if falls else i
                f.store(column, f.offset(column.type, self.aside[step], place * side))
        with f.loop(0, side) as loop:
            inside = self._advance(scope, turned.level, loop.index)
            ahead = f.mul_size(loop.index, side)
            for step, operand in turned.loads.items():
                at = f.offset(memory.STORED[operand.dtype], self.aside[step], ahead)
                row = memory.load_vector(f, operand.dtype, at, 1, side, None)
                inside.values[step, side] = row
            self._point(inside, side, None)

    def _row(self, scope: _Scope, operand: Operand, index: int, lanes: int, falls: bool) -> Value:
        """So many neighbours as they are stored, for place `index` along the vectors; the last of
        them first if it `falls`."""
        distance = self.f.mul_size(index, self.size(operand.strides[self.vector_level]))
        element = memory.STORED[operand.dtype]
        begin = self.f.offset(element, scope.address(operand), distance)
        begin = self.f.offset(element, begin, 1 - lanes) if falls else begin
        return self.f.load(Type(element.element, lanes), begin)

    def _range(self, level: int) -> tuple[Size, Size]:
        if level == 0:
            return self.begin, self.end
        return 0, self.size((self.nest.kept + self.nest.reduced)[level])

    def _advance(self, scope: _Scope, level: int, index: Size) -> _Scope:
        """The scope inside a loop: every address moved to `index` of dimension `level`."""
        inside = _Scope(scope)
        moving: list[Operand | Counter] = [*self._all_operands(), *self._counters()]
        moving += self.rows.places if level == self.depth - 1 else []
        for key in moving:
            stride = self.size(key.strides[level])
            if stride == 0:
                continue
            moved = self.f.mul_size(index, stride)
            if isinstance(key, Operand):
                element = memory.STORED[key.dtype]
                inside.places[key] = self.f.offset(element, scope.address(key), moved)
            else:
                inside.places[key] = self.f.add_size(scope.place(key), moved)
        return inside

    def _counters(self) -> list[Counter]:
        return [s for s in self.nest.steps if isinstance(s, Counter)]

    def _span(
        self,
        scope: _Scope,
        level: int,
        first: Size,
        last: Size,
        body: Body,
    ) -> None:
        """Run `body(scope, lanes, mask)` along a dimension: wide, then in parts for the rest."""
        if self._is_long():
            self._span_in_one(scope, level, first, last, body)
            return
        length = self.f.sub_size(last, first)
        turn = self.f.add_size(first, self.f.round_down(length, self.wide))
        with self.f.loop(first, turn, self.wide) as loop:
            body(self._advance(scope, level, loop.index), self.wide, None)
        with self.f.loop(turn, last, max(self.rest, 1)) as loop:
            mask = self._mask(loop.index, last, self.rest)
            body(self._advance(scope, level, loop.index), self.rest, mask)

    def _is_long(self) -> bool:
        """Whether the body is so long that compiling it twice costs more than a branch a load."""
        return self.lanes > 1 and self._cost() > _HEAVY and not self.nest.reduced

    def _span_in_one(self, scope: _Scope, level: int, first: Size, last: Size, body: Body) -> None:
        """As `_span`, with the body once: loads and stores ask whether this is the rest."""
        with self.f.loop(first, last, self.wide) as loop:
            left = self.f.sub_size(last, loop.index)
            full = self.f.compare("sge", self.f.i64(left), self.f.i64(self.wide))
            rest = _Rest(full, lambda: self._mask(loop.index, last, self.wide))
            body(self._advance(scope, level, loop.index), self.wide, rest)

    def _mask(self, index: Value, last: Size, lanes: int) -> Value | None:
        if not lanes:
            return None
        return memory.first_lanes(self.f, self.f.sub_size(last, index), lanes)

    # -- one point of the kept dimensions -----------------------------------------------------

    def _point(self, scope: _Scope, lanes: int, mask: Mask) -> None:
        """All passes over the reduced dimensions, then what is stored once a point."""
        for reduces, stores in self.passes:
            roots = [a for r in reduces for a in operands_of(self.nest.steps[r])]
            self._hoist(scope, [*roots, *(s.value for s in stores)], lanes, mask)
            self._pass(scope, reduces, stores, lanes, mask)
        outer = [s for s in self.nest.stores if not self._is_inner(s) and not s.running]
        for store in outer:  # a result may stand where an operand of another does: read all first
            self.value(scope, store.value, lanes, mask)
        left = iter(outer)
        for store in left:
            self._store_together(scope, [store, *islice(left, store.together - 1)], lanes, mask)

    def _pass(
        self,
        scope: _Scope,
        reduces: list[int],
        stores: list[Store],
        lanes: int,
        mask: Mask,
    ) -> None:
        running = Accumulators(
            self.f, self.nest, reduces, self.wide if self._across else lanes, across=self._across
        )
        finished = self._reduced_loops(scope, len(self.nest.kept), running, stores, lanes, mask)
        for step, value in finished.results(to_scalar=self._across):
            scope.values[step, 0 if self._across else lanes] = value

    @property
    def _across(self) -> bool:
        """Whether vectors run along the reduced dimension, so that lanes must be merged."""
        return self.nest.vector == "reduced"

    def _reduced_loops(
        self,
        scope: _Scope,
        level: int,
        running: Accumulators,
        stores: list[Store],
        lanes: int,
        mask: Mask,
    ) -> Accumulators:
        extent = self.size((self.nest.kept + self.nest.reduced)[level])
        if level == self.vector_level:
            return self._reduced_span(scope, level, extent, running, stores)
        innermost = level == self.depth - 1

        def turn(index: Value, state: Accumulators) -> Accumulators:
            inside = self._advance(scope, level, index)
            if not innermost:
                return self._reduced_loops(inside, level + 1, state, stores, lanes, mask)
            state = self._taken(state, inside, lanes, mask)
            for store in stores:
                if store.running:
                    inside.values[store.value, lanes] = state.current(store.value)
                self._store(inside, store, lanes, mask)
            return state

        if innermost and not any(s.running for s in stores):
            return self._in_blocks(0, extent, 1, running, turn)
        return self._carry(0, extent, 1, running, turn)

    def _reduced_span(
        self, scope: _Scope, level: int, extent: Size, running: Accumulators, stores: list[Store]
    ) -> Accumulators:
        def wide(index: Value, state: Accumulators) -> Accumulators:
            inside = self._advance(scope, level, index)
            state = self._taken(state, inside, self.wide, None)
            for store in stores:
                self._store(inside, store, self.wide, None)
            return state

        def rest(index: Value, state: Accumulators) -> Accumulators:
            inside = self._advance(scope, level, index)
            mask = self._mask(index, extent, self.rest)
            state = self._taken(state, inside, self.rest, mask)
            for store in stores:
                self._store(inside, store, self.rest, mask)
            return state

        turn = self.f.round_down(extent, self.wide)
        if running.may_settle and not stores:
            running = self._until_settled(turn, running, wide)
        else:
            running = self._in_blocks(0, turn, self.wide, running, wide)
        return self._carry(turn, extent, max(self.rest, 1), running, rest)

    def _taken(self, state: Accumulators, scope: _Scope, lanes: int, mask: Mask) -> Accumulators:
        """One more turn. A `_Rest` is the mask of what reduces nothing."""
        whole = None if isinstance(mask, _Rest) else mask
        return state.take(lambda step: self.value(scope, step, lanes, mask), lanes, whole)

    def _in_blocks(
        self, first: Size, last: Size, step: int, state: Accumulators, turn: Turn
    ) -> Accumulators:
        """Turns in blocks, so that a compensated sum can put its rounding errors aside."""
        if not state.compensated:
            return self._carry(first, last, step, state, turn)
        block = step * _BLOCK_TURNS

        def one_block(index: Value, outer: Accumulators) -> Accumulators:
            stop = self.f.min_size(self.f.add_size(index, block), last)
            begun = self.f.compare("eq", index, self.f.i64(first)) if state.is_empty else None
            return self._carry(index, stop, step, outer.opened(), turn).closed(outer, begun)

        return self._carry(first, last, block, state, one_block)

    def _until_settled(self, last: Size, state: Accumulators, turn: Turn) -> Accumulators:
        """Turns in blocks, up to the first one after which no further turn changes anything."""
        f, block = self.f, self.wide * _BLOCK_TURNS
        with f.repeat([f.i64(0), *state.carried()]) as loop:
            index, *carried = loop.carried
            stop = f.i64(f.min_size(f.add_size(index, block), last))
            inside = self._carry(index, stop, self.wide, state.like_carried(carried), turn)
            more = f.compare("slt", stop, f.i64(last))
            loop.more = f.binary("and", more, f.compare("eq", inside.settled(), constant(I1, 0)))
            loop.next = [stop, *inside.carried()]
        return state.like_carried(loop.results[1:])

    def _carry(
        self, first: Size, last: Size, step: int, state: Accumulators, turn: Turn
    ) -> Accumulators:
        with self.f.loop(first, last, step, state.carried()) as loop:
            loop.next = turn(loop.index, state.like_carried(loop.carried)).carried()
        return state.like_carried(loop.results)

    def _store(self, scope: _Scope, store: Store, lanes: int, mask: Mask) -> None:
        value = self.value(scope, store.value, lanes, mask)
        self._hold(scope, store.operand, store.indices, lanes, mask, value)

    def _store_together(
        self, scope: _Scope, stores: Sequence[Store], lanes: int, mask: Mask
    ) -> None:
        """What one stores, and what the others store between that."""
        if not lanes or len(stores) == 1:
            for store in stores:
                self._store(scope, store, lanes, mask)
            return
        values = [self.value(scope, store.value, lanes, mask) for store in stores]
        bases = [self._address(scope, store.operand, (), 0, None)[0] for store in stores]

        def write(m: Value | None) -> list[Value]:
            memory.store_between(self.f, stores[0].operand.dtype, values, bases, m)
            return []

        self._masked(mask, write)

    # -- values -------------------------------------------------------------------------------

    def _hoist(self, scope: _Scope, roots: Iterable[int], lanes: int, mask: Mask) -> None:
        """Compute here what the coming loop needs but does not change."""
        for step in self._needed(roots):
            what = self.nest.steps[step]
            if self.inner[step] or isinstance(what, Reduce | Literal):
                continue
            if (self.varying[step] and not lanes) or not self._ready(scope, step, lanes):
                continue
            self.value(scope, step, lanes if self.varying[step] else 0, mask)

    def _ready(self, scope: _Scope, step: int, lanes: int) -> bool:
        """Whether every reduction that the step depends on has run."""
        reduces = [s for s in self._needed([step]) if isinstance(self.nest.steps[s], Reduce)]
        return all(scope.value(s, 0) or scope.value(s, lanes) for s in reduces)

    def _needed(self, roots: Iterable[int]) -> list[int]:
        return sorted(needed(self.nest.steps, roots, in_one_pass=False))

    def value(self, scope: _Scope, step: int, lanes: int, mask: Mask) -> Value:
        """The value of a step for the coming `lanes` elements (0: one element, a scalar)."""
        found = scope.value(step, lanes)
        if found is None:
            found = scope.values[step, lanes] = self._compute(scope, step, lanes, mask)
        return found

    def _compute(self, scope: _Scope, step: int, lanes: int, mask: Mask) -> Value:
        what = self.nest.steps[step]
        if isinstance(what, Literal):
            element = memory.COMPUTED[what.dtype].element
            return constant(Type(element, lanes), what.value)
        if lanes and not self.varying[step]:
            return self.f.splat(self.value(scope, step, 0, None), lanes)
        match what:
            case Load(operand, indices):
                return self._load(scope, operand, indices, lanes, mask)
            case Extent(value):
                return self.f.i64(self.size(value))
            case Argument(index, dtype):
                place = self.size(index)
                stored = abi.scalar(self.f, self.call, place, memory.STORED[dtype])
                return memory.computed(self.f, dtype, stored)
            case Counter():
                return self._count(scope, what, lanes)
            case Apply(primitive, arguments, dtype):
                values = [self.value(scope, a, lanes, mask) for a in arguments]
                return tables.element(primitive).emit(self.f, dtype, *values)
        raise AssertionError(f"step {step} of {what} is used before its pass has run")

    def _count(self, scope: _Scope, counter: Counter, lanes: int) -> Value:
        start = self.f.i64(scope.place(counter))
        if not lanes:
            return start
        stride = self.f.splat(self.f.i64(self.size(counter.strides[self.vector_level])), lanes)
        ahead = self.f.mul(memory.lane_numbers(self.f, lanes, I64), stride)
        return self.f.add(self.f.splat(start, lanes), ahead)

    def _load(
        self, scope: _Scope, operand: Operand, indices: Indices, lanes: int, mask: Mask
    ) -> Value:
        mask = None if operand in self.rows.places else mask
        base, at = self._address(scope, operand, indices, lanes, mask)
        if at is not None:
            return self._masked(
                mask, lambda m: [memory.load_at(self.f, operand.dtype, base, at, m)]
            )[0]
        if not lanes:
            element = self.f.load(memory.STORED[operand.dtype], base)
            return memory.computed(self.f, operand.dtype, element)
        step = self.size(operand.strides[self.vector_level])
        return self._masked(
            mask, lambda m: [memory.load_vector(self.f, operand.dtype, base, step, lanes, m)]
        )[0]

    def _masked(self, mask: Mask, access: Callable[[Value | None], list[Value]]) -> Sequence[Value]:
        """What `access` does to memory: with a mask, without, or the one or the other."""
        if not isinstance(mask, _Rest):
            return access(mask)
        return self.f.if_else(mask.full, lambda: access(None), lambda: access(mask.mask()))

    def _hold(
        self,
        scope: _Scope,
        operand: Operand,
        indices: Indices,
        lanes: int,
        mask: Mask,
        value: Value,
    ) -> None:
        base, _ = self._address(scope, operand, indices, 0, None)
        if not lanes:
            self.f.store(memory.stored(self.f, operand.dtype, value), base)
            return
        step = self.size(operand.strides[self.vector_level])

        def write(m: Value | None) -> list[Value]:
            memory.store_vector(self.f, operand.dtype, value, base, step, m)
            return []

        self._masked(None if operand in self.rows.places else mask, write)

    def _address(
        self, scope: _Scope, operand: Operand, indices: Indices, lanes: int, mask: Mask
    ) -> tuple[Value, Value | None]:
        """Where an element stands: an address, and a vector of positions if lanes differ."""
        base = scope.address(operand)
        element = memory.STORED[operand.dtype]
        apart: Value | None = None
        for step, stride in indices:
            spread = lanes if self.varying[step] else 0
            at = self.value(scope, step, spread, mask)
            distance = self.f.splat(self.f.i64(self.size(stride)), spread)
            moved = self.f.mul(at, distance)
            if spread:
                apart = moved if apart is None else self.f.add(apart, moved)
            else:
                base = self.f.offset(element, base, moved)
        if apart is not None:
            own = self.size(operand.strides[self.vector_level])
            if own != 0:
                ahead = memory.lane_numbers(self.f, lanes, I64)
                apart = self.f.add(apart, self.f.mul(ahead, self.f.splat(self.f.i64(own), lanes)))
        return base, apart


def _width(dtype: str) -> int:
    """Bytes of an element in a register: halves are computed with as float32."""
    return max(ITEMSIZE[dtype], 4 if is_float(dtype) else 1)


def _slots(nest: Nest) -> set[int]:
    """Every number that the nest's function reads from the call."""
    found: set[int] = set()

    def visit(item: object) -> None:
        if isinstance(item, Slot):
            found.add(item.index)
        elif isinstance(item, tuple):
            for member in item:
                visit(member)

    visit((nest.kept, nest.reduced))
    for operand in [s.operand for s in nest.stores]:
        visit((operand.buffer.index, operand.offset, operand.strides))
    for store in nest.stores:
        visit(store.indices)
    for step in nest.steps:
        match step:
            case Load(operand, indices):
                visit((operand.buffer.index, operand.offset, operand.strides, indices))
            case Counter(offset, strides):
                visit((offset, strides))
            case Extent(value) | Argument(value):
                visit(value)
    return found
