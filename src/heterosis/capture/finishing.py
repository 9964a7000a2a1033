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
    outputs: dict[Value, int] = {}  # with their positions
    computed: dict[Cell, Computed] = {}
    tracked = _tracked(trace, result)
    shown = _shared(trace, result)

    def add(value: Value) -> int:
        return outputs.setdefault(value, len(outputs))

    def own(cell: Cell) -> Computed:
        if cell not in computed:
            value = _own(cell)
            if value in outputs:  # of another cell, an operation having handed on its operand
                value = copy.record.function(value)
            apart = cell not in tracked and any(value == c.value() for c in tracked)
            computed[cell] = Computed(add(stop_gradient(value) if apart else value))
        return computed[cell]

    def leaf(array: Any) -> Any:
        cell = trace.cell(array)
        if cell.source is not None and is_same_view(array, cell):
            return cell.source
        if cell.base in shown and cell not in tracked:
            base, alone = cell.base, own(cell) if trace.recorded else None
            whole = base.source or own(base)
            return Window(whole, base.value().type, cell.path, cell.value(), alone)
        return own(cell)

    settle_keys(result)
    again: dict[int, Any] = {}  # what stands for objects of Python's

    def other(one: Any) -> Any:
        if id(one) not in again:
            again[id(one)] = results.made_again(trace.guards, one)
        return again[id(one)]

    def result_of(one: Any) -> Any:
        return leaf(one) if isinstance(one, ndarray) else other(one)

    returned = trees.replaced(result, trace.cell)
    shared = trees.mapped(result, result_of, trace.known_container, {})
    result = trees.mapped(result, result_of)
    followed = tracked if trace.records else trace.followed
    writes = [
        Write(cell.source, add(cell.value()), cell in followed) for cell in trace.written_cells()
    ]
    checks = None if trace.checks is None else add(trace.cell(trace.checks).value())
    many = len(outputs)
    printed = Printed(trace.prints, [*map(add, trace.prints.values)], many)
    values = tuple(value for value, _ in trace.inputs)
    goals = {add(cell.value()): reached for cell, reached in tracked.items() if cell.source}
    goals |= {computed[c].position: tracked[c] for c in tracked if c in computed}
    drawn: int | Computed = trace.drawn or 0
    if trace.drawn is None:
        drawn = Computed(add(trace.cell(trace.random_state).value()))
    trace.guards.finish()
    program = Program(values, tuple(outputs), trace.name, needed(trace.calls, (*outputs,)))
    if trace.extents is not None:
        program = resized(program, trace.extents.untraced)
    return Captured(
        program,
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
        Recorded(goals) if trace.records else None,
        drawn,
        printed,
        checks,
        trace.extents.conditions() if trace.extents else None,
    )


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


def _own(cell: Cell) -> Value:
    """The value of a result: a copy, if it rearranges an input whose memory it does not share."""
    value = base = cell.value()
    while isinstance(base.node.primitive, View):
        (base,) = base.node.inputs
    shares = (cell.base or cell).source is not None
    return value if shares or base.node.primitive is not INPUT else copy.record.function(value)
