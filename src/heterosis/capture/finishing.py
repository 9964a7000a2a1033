"""The end of a capture: the program for what the function has returned and written to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heterosis import _core
from heterosis.autograd import tape
from heterosis.capture import results, trees
from heterosis.capture.captured import (
    Argument,
    Captured,
    Computed,
    Outside,
    Printed,
    Recorded,
    Source,
    Window,
    Write,
)
from heterosis.capture.memory import Cell
from heterosis.capture.reports import settle_keys
from heterosis.capture.same_views import is_same_view
from heterosis.capture.taping import rewritten_error
from heterosis.ir import views
from heterosis.ir.calls import needed
from heterosis.ir.overlap import are_apart
from heterosis.ir.primitives.families import View
from heterosis.ir.program import INPUT, Program, Value
from heterosis.ir.resizing import resized
from heterosis.ops.math.cast import copy, stop_gradient

if TYPE_CHECKING:
    from heterosis.capture.trace import Trace

ndarray = _core.ndarray


def finish(trace: Trace, result: Any) -> Captured:
    """The program for what the function has returned."""
    ends = _Ends(trace, result)
    settle_keys(result)
    returned = trees.replaced(result, trace.cell)
    shared = trees.mapped(result, ends.result_of, trace.known_container, {})
    result = trees.mapped(result, ends.result_of)
    writes = ends.writes()
    checks = None if trace.checks is None else ends.add(trace.cell(trace.checks).value())
    many = len(ends.outputs)
    printed = Printed(trace.prints, [*map(ends.add, trace.prints.values)], many)
    recorded = Recorded(ends.goals()) if trace.records else None
    drawn: int | Computed = trace.drawn or 0
    if trace.drawn is None:
        drawn = Computed(ends.add(trace.cell(trace.random_state).value()))
    trace.guards.finish()
    return Captured(
        ends.program(),
        [source for _, source in trace.inputs],
        result,
        shared,
        writes,
        trace.guards,
        trace.supply,
        trace.steps,
        trace.controls,
        frozenset(trace.entangled),
        returned,
        recorded,
        drawn,
        printed,
        checks,
        trace.extents.conditions() if trace.extents else None,
    )


class _Ends:
    """The outputs of a captured function's program, in the making, and what stands for its results
    in terms of them."""

    def __init__(self, trace: Trace, result: Any):
        self.trace = trace
        self.outputs: dict[Value, int] = {}  # with their positions
        self.tracked = _tracked(trace, result)
        self._shown = _shared(trace, result)
        self._computed: dict[Cell, Computed] = {}
        self._again: dict[int, Any] = {}  # what stands for objects of Python's

    def add(self, value: Value) -> int:
        """The position of an output."""
        return self.outputs.setdefault(value, len(self.outputs))

    def result_of(self, one: Any) -> Any:
        """What stands for a leaf of the result."""
        if isinstance(one, ndarray):
            return self._of_array(one)
        if id(one) not in self._again:
            self._again[id(one)] = results.made_again(self.trace.guards, one)
        return self._again[id(one)]

    def _of_array(self, array: Any) -> Any:
        cell = self.trace.cell(array)
        if cell.source is not None and is_same_view(array, cell):
            return cell.source
        if cell.base in self._shown and cell not in self.tracked:
            base, alone = cell.base, self._own(cell) if self.trace.recorded else None
            whole = base.source or self._own(base)
            return Window(whole, base.value().type, cell.path, cell.value(), alone)
        return self._own(cell)

    def _own(self, cell: Cell) -> Computed:
        """An output that no other array shares."""
        if cell not in self._computed:
            value = _value_of_own(cell)
            if value in self.outputs:  # of another cell, an operation having handed on its operand
                value = copy.record.function(value)
            tracked = self.tracked
            apart = cell not in tracked and any(value == c.value() for c in tracked)
            position = self.add(stop_gradient(value) if apart else value)
            self._computed[cell] = Computed(position)
        return self._computed[cell]

    def writes(self) -> list[Write]:
        """What the function has written to, with its values."""
        followed = self.tracked if self.trace.records else self.trace.followed
        return [
            Write(cell.source, self.add(cell.value()), cell in followed)
            for cell in self.trace.written_cells()
        ]

    def goals(self) -> dict[int, frozenset[int]]:
        """The outputs with a place in the tape, and the inputs that their gradients reach."""
        found = {
            self.add(cell.value()): reached for cell, reached in self.tracked.items() if cell.source
        }
        computed = self._computed
        return found | {
            computed[c].position: self.tracked[c] for c in self.tracked if c in computed
        }

    def program(self) -> Program:
        trace = self.trace
        inputs = tuple(value for value, _ in trace.inputs)
        calls = needed(trace.calls, (*self.outputs,))
        program = Program(inputs, tuple(self.outputs), trace.name, calls)
        return program if trace.extents is None else resized(program, trace.extents.untraced)


def _shared(trace: Trace, result: Any) -> set[Cell]:
    """The arrays whose memory several results share, and those from outside that were written
    to."""
    shown: dict[Cell, list[Cell]] = {}
    for cell in dict.fromkeys(map(trace.cell, trees.arrays_in(result))):
        shown.setdefault(cell.base or cell, []).append(cell)
    return {
        base
        for base, cells in shown.items()
        if _overlap_within(cells) or (base.source is not None and base.writes)
    }


def _tracked(trace: Trace, result: Any) -> dict[Cell, frozenset[int]]:
    """The arrays that the function leaves behind with a place in the tape, where it records by
    itself, and the positions of the inputs that their gradients reach."""
    if not trace.records:
        return {}
    sources = [(i, s.array) for i, (_, s) in enumerate(trace.inputs) if isinstance(s, Outside)]
    ends = {tape.key_of(p): i for i, a in sources if (p := trace.place_before(a)) is not None}
    arrays = [*trees.arrays_in(result), *(_target(trace, c.source) for c in trace.written_cells())]
    tracked = {}
    for array in arrays:
        place = tape.source_of(array)
        current = isinstance(place, tape.Entry) and place.version == array._version
        if current and (reached := tape.reached_from(place, ends)):
            for key in reached:
                known = trace.original(trace.inputs[ends[key]][1])
                if known._storage_id in trace.rewritten:
                    raise rewritten_error(known)
            tracked[trace.cell(array)] = frozenset(ends[key] for key in reached)
    return tracked


def _target(trace: Trace, source: Source) -> Any:
    """The array that the function writes to for a source."""
    if isinstance(source, Argument):
        return trace.arguments[source.position][1]
    assert isinstance(source, Outside), f"{source} is no array"
    return source.array


def _overlap_within(cells: Sequence[Cell]) -> bool:
    """Whether arrays that show one array, or are it, may have elements in common."""
    if len(cells) < 2:
        return False
    if not all(cell.path and cell.path[0].primitive is views.SLICE for cell in cells):
        return True
    parts = [cell.path[0] for cell in cells]
    places = [(node.attributes["starts"], node.attributes["steps"]) for node in parts]
    return not are_apart(places, [node.types[0].shape for node in parts])


def _value_of_own(cell: Cell) -> Value:
    """The value of a result: a copy, if it rearranges an input whose memory it does not share."""
    value = base = cell.value()
    while isinstance(base.node.primitive, View):
        (base,) = base.node.inputs
    shares = (cell.base or cell).source is not None
    return value if shares or base.node.primitive is not INPUT else copy.record.function(value)
