"""What the reductions of a loop nest have so far, as values that go from turn to turn."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from heterosis.backends.native.codegen.emit.access import COMPUTED
from heterosis.backends.native.codegen.emit.builder import (
    Function,
    Type,
    Value,
    constant,
    is_literal,
)
from heterosis.backends.native.codegen.emit.reducers import State, add_compensated
from heterosis.backends.native.codegen.nest import Nest, Reduce, Step
from heterosis.ir.types import is_float


def _reduction(step: Step) -> Reduce:
    assert isinstance(step, Reduce), f"{step} is no reduction"
    return step


class Accumulators:
    """The running states of a pass: a list of values a reduction, plus totals of closed blocks."""

    def __init__(
        self, f: Function, nest: Nest, reduces: Sequence[int], lanes: int, *, across: bool
    ) -> None:
        self.f, self.nest, self.reduces, self.lanes = f, nest, list(reduces), lanes
        self.across = across  # whether vectors run along the reduced dimension
        self.steps = [_reduction(nest.steps[r]) for r in reduces]
        self.states: list[State] = [self._identity(s) for s in self.steps]
        zero = [constant(state[0].type, 0) for state in self.states]
        self.totals = [[z, z] for z, s in zip(zero, self.steps, strict=True) if self._summed(s)]

    @property
    def compensated(self) -> bool:
        return bool(self.totals)

    @property
    def may_settle(self) -> bool:
        """Whether there is something that, once all reductions have it, they keep."""
        return self.across and all(step.reducer.settled for step in self.steps)

    def settled(self) -> Value:
        """Whether no further element changes a result."""
        f = self.f
        pairs = zip(self.steps, self.states, strict=True)
        each = [s.reducer.settled(f, state) for s, state in pairs if s.reducer.settled]
        return functools.reduce(lambda a, b: f.binary("and", a, b), each)

    def _dtype(self, step: Reduce) -> str:
        return self.nest.steps[step.arguments[0]].dtype

    def _summed(self, step: Reduce) -> bool:
        return step.reducer.compensated and is_float(self._dtype(step))

    def _identity(self, step: Reduce) -> State:
        types = [
            Type(COMPUTED[self.nest.steps[a].dtype].element, self.lanes) for a in step.arguments
        ]
        return step.reducer.identity(self._dtype(step), types)

    def flat(self) -> list[Value]:
        return [v for state in self.states + self.totals for v in state]

    def carried(self) -> list[Value]:
        """`flat`, as it goes from turn to turn: without masks, LLVM takes vectors of bits apart
        there, lane by lane."""
        return [self._carried(value) for value in self.flat()]

    def _carried(self, value: Value) -> Value:
        target = self.f.module.target
        if value.type.element != "i1" or not value.type.lanes or not target or target.has_masks(8):
            return value
        return self.f.convert("sext", value, value.type.of("i8"))

    def like_carried(self, carried: Sequence[Value]) -> Accumulators:
        """The same accumulators with other values, as `carried` gives them."""
        pairs = zip(self.flat(), carried, strict=True)
        return self.like([self._uncarried(own.type, value) for own, value in pairs])

    def _uncarried(self, type_: Type, value: Value) -> Value:
        if value.type == type_:
            return value
        return self.f.compare("slt", value, constant(value.type, 0))

    def like(self, flat: Sequence[Value]) -> Accumulators:
        """The same accumulators with other values, in the order of `flat`."""
        made = object.__new__(Accumulators)
        made.__dict__.update(self.__dict__)
        values = iter(flat)
        made.states = [[next(values) for _ in state] for state in self.states]
        made.totals = [[next(values) for _ in total] for total in self.totals]
        return made

    def take(self, value: Callable[[int], Value], lanes: int, mask: Value | None) -> Accumulators:
        """One more turn, on the values of so many lanes of the steps that are reduced. Narrower
        lanes than the state's go into its first lanes."""
        states = []
        for step, state in zip(self.steps, self.states, strict=True):
            new = [value(a) for a in step.arguments]
            states.append(self._merge_first(step, state, new, lanes, mask))
        made = self.like(self.flat())
        made.states = states
        return made

    def _merge_first(
        self, step: Reduce, state: State, new: State, lanes: int, mask: Value | None
    ) -> State:
        f, wide = self.f, self.lanes
        if lanes == wide:
            mine = state
        elif not lanes:
            mine = [f.extract(s, 0) for s in state]
        else:
            mine = [f.shuffle(s, s, range(lanes)) for s in state]
        merged = step.reducer.merge(f, self._dtype(step), mine, new)
        if self.across and mask:
            merged = [f.select(mask, m, s) for m, s in zip(merged, mine, strict=True)]
        if lanes == wide:
            return merged
        if not lanes:
            return [f.insert(s, m, 0) for s, m in zip(state, merged, strict=True)]
        spread = [f.shuffle(m, m, [*range(lanes), *[-1] * (wide - lanes)]) for m in merged]
        pick = [*range(lanes), *range(wide + lanes, 2 * wide)]
        return [f.shuffle(m, s, pick) for m, s in zip(spread, state, strict=True)]

    def current(self, step: int) -> Value:
        """The running value of reduction `step`, for a nest that stores every partial result."""
        at = self.reduces.index(step)
        return self.states[at][self.steps[at].part]

    def opened(self) -> Accumulators:
        """States to begin a block with: sums start from zero, the rest goes on."""
        made = self.like(self.flat())
        made.states = [
            self._identity(step) if self._summed(step) else state
            for step, state in zip(self.steps, self.states, strict=True)
        ]
        return made

    @property
    def is_empty(self) -> bool:
        """Whether the totals are plainly zero."""
        return all(is_literal(value) for total in self.totals for value in total)

    def closed(self, outer: Accumulators, begun: Value | None) -> Accumulators:
        """Add the block's sums to the totals; sums before the block are kept in `outer`. Where
        `begun` holds, totals are zero yet: few rows are longer than a block."""
        made, f = self.like(self.flat()), self.f
        summed = [self._summed(step) for step in self.steps]
        blocks = [state[0] for state, own in zip(self.states, summed, strict=True) if own]
        pairs = list(zip(self.totals, blocks, strict=True))

        def first() -> list[Value]:
            return [value for (_, lost), block in pairs for value in (block, lost)]

        def further() -> list[Value]:
            return [
                value
                for (total, lost), block in pairs
                for value in add_compensated(f, total, lost, block)
            ]

        values = f.if_else(begun, first, further) if begun else further()
        made.totals = [list(pair) for pair in zip(values[::2], values[1::2], strict=True)]
        choices = zip(summed, outer.states, self.states, strict=True)
        made.states = [before if own else state for own, before, state in choices]
        return made

    def results(self, *, to_scalar: bool) -> list[tuple[int, Value]]:
        """The value of every reduction, its lanes merged where vectors ran along the reduction."""
        found = []
        totals = iter(self.totals)
        for number, step, state in zip(self.reduces, self.steps, self.states, strict=True):
            if self._summed(step):
                total, lost = next(totals)
                state = [self.f.add(total, self.f.add(state[0], lost))]
            if to_scalar:
                state = self._across_lanes(step, state)
            found.append((number, state[step.part]))
        return found

    def _across_lanes(self, step: Reduce, state: State) -> State:
        f, lanes = self.f, self.lanes
        while lanes > 1:
            half = lanes // 2
            low = [f.shuffle(s, s, range(half)) for s in state]
            high = [f.shuffle(s, s, range(half, lanes)) for s in state]
            state = step.reducer.merge(f, self._dtype(step), low, high)
            lanes = half
        return [f.extract(s, 0) for s in state]
