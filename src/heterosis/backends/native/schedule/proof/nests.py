"""One loop nest, run on terms as the code runs it on numbers.

All points of the kept dimensions are done at once, pass by pass. That is what the code does, in
other order and on several threads, if no point touches what another one writes: this is checked.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from heterosis.backends.native.codegen.nest import (
    Apply,
    Argument,
    Counter,
    Extent,
    Literal,
    Load,
    Nest,
    Operand,
    Reduce,
    Store,
    known,
    needed,
    passes_before,
)
from heterosis.backends.native.schedule.proof import terms
from heterosis.backends.native.schedule.proof.memory import Memory, Region
from heterosis.backends.native.schedule.proof.terms import Terms
from heterosis.ir.strided import Strided
from heterosis.runtime.errors import ScheduleError


class NestRun:
    """A run of `nest` on `memory`."""

    def __init__(self, nest: Nest, memory: Memory):
        self.nest, self.memory = nest, memory
        self.kept = tuple(map(known, nest.kept))
        self.extents = self.kept + tuple(map(known, nest.reduced))
        self.reduced_axes = tuple(range(len(self.kept), len(self.extents)))
        self.waits = passes_before(nest.steps)
        self.finished: dict[int, Terms] = {}  # reductions
        self.current: dict[int, Terms] = {}  # what the pass has computed

    def run(self) -> None:
        self._check_that_points_are_apart()
        for number in range(max([*self.waits, 0]) + 1):
            self.current = dict(self.finished)
            for step, what in enumerate(self.nest.steps):
                if isinstance(what, Reduce) and self.waits[step] == number + 1:
                    self._reduce(step, what)
            for store in self.nest.stores:
                if self._pass_of(store) == number and not store.running:
                    self._store(store, self.value(store.value))
        self.current = dict(self.finished)
        outer = [store for store in self.nest.stores if not self._is_inner(store)]
        for store, found in [(store, self.value(store.value)) for store in outer]:
            self._store(store, found)

    def _is_inner(self, store: Store) -> bool:
        """Whether it is stored within the loops over reduced dimensions."""
        moves = any(store.operand.strides[len(self.kept) :])
        return moves or bool(store.running or (store.indices and self.nest.reduced))

    def _pass_of(self, store: Store) -> int:
        """The pass that stores what is stored within one; no pass is as late as the others."""
        inner = self._is_inner(store)
        return self.waits[store.value] - bool(store.running) if inner else len(self.nest.steps)

    # -- steps --------------------------------------------------------------------------------

    def value(self, step: int) -> Terms:
        """What a step gives at every point, in as few elements as differ."""
        if step not in self.current:
            self.current[step] = numpy.asarray(self._computed(step))
        return self.current[step]

    def _computed(self, step: int) -> Any:
        match self.nest.steps[step]:
            case Literal(value, dtype):
                return terms.literal(value, dtype)
            case Extent(value):
                return terms.extent(known(value))
            case Argument(index, dtype):
                return terms.argument(known(index), dtype)
            case Counter(offset, strides):
                return terms.counted(self._count(known(offset), tuple(map(known, strides))))
            case Load() as load:
                return self._load(load)
            case Apply(primitive, arguments, operand_dtype, dtype):
                operands = [self.value(a) for a in arguments]
                return terms.applied(primitive, operand_dtype, dtype, operands)
        raise ScheduleError(f"step {step} of {self.nest} is used before its pass has run.")

    def _count(self, offset: int, strides: tuple[int, ...]) -> Any:
        moving = [n if s else 1 for n, s in zip(self.extents, strides, strict=True)]
        grids = numpy.ix_(*map(numpy.arange, moving))
        return offset + sum(grid * stride for grid, stride in zip(grids, strides, strict=True))

    def _reduce(self, step: int, what: Reduce) -> None:
        operands = [numpy.broadcast_to(self.value(a), self.extents) for a in what.arguments]
        running = [store for store in self.nest.stores if store.running and store.value == step]
        for store in running:
            (axis,) = self.reduced_axes
            self._store(store, terms.scanned(operands, what.part, axis))
        if not running:
            found = terms.reduced(operands, what.part, self.reduced_axes)
            ones = (1,) * len(self.reduced_axes)
            self.finished[step] = self.current[step] = found.reshape(self.kept + ones)

    # -- memory -------------------------------------------------------------------------------

    def region(self, operand: Operand, indices: Any = (), rows: tuple[int, ...] = ()) -> Region:
        """What an operand stands for: any of the `rows`, then the points that differ."""
        strides = tuple(known(s) for s in operand.strides)
        shape = tuple(n if s else 1 for n, s in zip(self.extents, strides, strict=True))
        further = tuple(known(stride) for _, stride in indices)
        strided = Strided(rows + shape, further + strides, known(operand.offset))
        return self.memory.region(operand.buffer, operand.dtype, strided)

    def _load(self, load: Load) -> Terms:
        if any(store.indices and _is_at(load, store) for store in self.nest.stores):
            return terms.OLD
        found = self.memory.read(self.region(load.operand, load.indices, load.rows))
        if not load.indices:
            return found
        indices = [self.value(step) for step, _ in load.indices]
        return terms.gathered(terms.rows_of(found, len(load.rows)), indices)

    def _store(self, store: Store, elements: Terms) -> None:
        if not store.indices:
            return self.memory.write(self._all_points(store.operand, store), elements)
        region = self.region(store.operand, store.indices, store.rows)
        given = [self.value(step) for step, _ in store.indices] + [elements]
        *indices, update = (numpy.broadcast_to(one, self.extents) for one in given)
        found = terms.scattered(self.memory.read(region), indices, update)
        return self.memory.write(region, found)

    def _all_points(self, operand: Operand, store: Store | None = None) -> Region:
        """Where each point stores, one after the other where they share a place."""
        shape = self.extents
        if store and not self._is_inner(store):
            shape = self.kept + (1,) * len(self.reduced_axes)
        strided = Strided(shape, tuple(map(known, operand.strides)), known(operand.offset))
        return self.memory.region(operand.buffer, operand.dtype, strided)

    # -- what points have to do with each other -------------------------------------------------

    def _check_that_points_are_apart(self) -> None:
        for step, load in enumerate(self.nest.steps):
            if isinstance(load, Load):
                for store in self.nest.stores:
                    self._check(step, load, store)

    def _check(self, step: int, load: Load, store: Store) -> None:
        """A point may read what is written at this very point alone."""
        if not self.memory.may_share(load.operand.buffer, store.operand.buffer):
            return
        read = self.region(load.operand, load.indices, load.rows)
        written = self.region(store.operand, store.indices, store.rows)
        if (_is_at(load, store) and store.indices) or not self.memory.meet(read, written):
            return
        apart = load.indices or store.indices
        late = self._last_pass(step) >= self._pass_of(store)
        if apart or not self._is_own(load, store, self.extents if late else self.kept):
            raise ScheduleError(f"{self.nest} reads with {load} what other points write: {store}.")

    def _last_pass(self, step: int) -> int:
        """The last pass that needs a step."""
        last = 0
        for at, what in enumerate(self.nest.steps):
            if isinstance(what, Reduce) and step in needed(self.nest.steps, what.arguments):
                last = max(last, self.waits[at] - 1)
        for store in self.nest.stores:
            if step in needed(self.nest.steps, [store.value]) and self._is_inner(store):
                last = max(last, self._pass_of(store))
        return last

    def _is_own(self, load: Load, store: Store, dims: tuple[int, ...]) -> bool:
        """Whether what is read of what the nest stores is stored at the same point of `dims`."""
        ones = (1,) * (len(self.extents) - len(dims))
        numbers = numpy.arange(1, prod(dims) + 1).reshape(dims + ones)
        points = numpy.broadcast_to(numbers, self.extents)[..., None]
        marks = self.memory.marked(self._all_points(store.operand), points)
        read = self._all_points(load.operand)
        found = terms.shown(marks, *read[1:])
        return bool(((found == 0) | (found == points)).all())


def _is_at(load: Load, store: Store) -> bool:
    return load.operand == store.operand and load.indices == store.indices


def cost(nest: Nest) -> int:
    """How many elements its steps compute."""
    return prod(map(known, nest.kept + nest.reduced)) * len(nest.steps)
