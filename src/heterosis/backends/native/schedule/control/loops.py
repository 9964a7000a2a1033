"""The kernels of loops, which call the function of a turn until they end.

What a loop carries goes back and forth between two places: a turn reads one and writes the other.
What a turn only writes parts of stays where the result is to stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from heterosis.backends.native.codegen.emit.builder import I8, I64, Function, Value
from heterosis.backends.native.codegen.kernel import KernelCode, Machine
from heterosis.backends.native.codegen.tables import KERNELS, KernelLowering
from heterosis.backends.native.schedule.arena import rounded
from heterosis.backends.native.schedule.control.parts import Call, Places, is_true, kernel, part
from heterosis.ir.primitives.control import SCAN, WHILE_LOOP
from heterosis.ir.program import Node
from heterosis.ir.types import TensorType

TURNS = 10  # of a loop that nobody knows them of, for a price


class State:
    """Where a loop's carried values stand: at first in the operands, which are left alone; then, in
    turns, where the results are to stand and in rooms of the workspace. Those that turns update
    stand where the results are to stand from the beginning on."""

    def __init__(self, types: Sequence[TensorType], updated: frozenset[int] = frozenset()):
        self.types, self.updated = types, updated
        self._sizes = [
            0 if i in updated else rounded(type_.nbytes) for i, type_ in enumerate(types)
        ]
        self.bytes = sum(self._sizes)

    def rooms(self, f: Function, start: Value) -> list[Value]:
        """The rooms, one behind the other from `start` on."""
        return [f.offset(I8, start, sum(self._sizes[:i])) for i in range(len(self.types))]

    def begun(
        self, f: Function, operands: Sequence[Value], results: Sequence[Value]
    ) -> list[Value]:
        """Where the first turn finds what is carried."""
        found = [*operands]
        for i in sorted(self.updated):
            _copy(f, operands[i], results[i], self.types[i].nbytes)
            found[i] = results[i]
        return found

    def settled(self, places: Sequence[Value], results: Sequence[Value]) -> list[Value]:
        """Places to write to; for what is updated, the one where it stands."""
        return [results[i] if i in self.updated else at for i, at in enumerate(places)]

    def copy(self, f: Function, sources: Sequence[Value], targets: Sequence[Value]) -> None:
        """Copy all, from place to place."""
        for type_, source, target in zip(self.types, sources, targets, strict=True):
            _copy(f, source, target, type_.nbytes)


_COPIED = I64.of("i64")._replace(lanes=4)  # at a time


def _copy(f: Function, source: Value, target: Value, nbytes: int) -> None:
    whole = nbytes // 32
    for element, first, last in ((_COPIED, 0, whole), (I8, whole * 32, nbytes)):
        with f.loop(first, last) as turn:
            at = f.mul_size(turn.index, 32) if element is _COPIED else turn.index
            elements = f.load(element, f.offset(I8, source, at), align=1)
            f.store(elements, f.offset(I8, target, at), align=1)


def _while_loop(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    many, carried = len(node.inputs), node.attributes["carried"]
    parts = {
        "condition": part(node.attributes["condition"], machine),
        "body": part(node.attributes["body"], machine, carried),
    }
    state = State(node.types, parts["body"].updated)
    shift = len(parts["condition"].failures)

    def emit(f: Function, addresses: list[Value], calls: dict[str, Call]) -> None:
        operands, results, scratch = addresses[:many], addresses[many:-1], addresses[-1]
        truth, rooms = scratch, state.rooms(f, f.offset(I8, scratch, rounded(1)))
        condition, body = calls["condition"], calls["body"]
        for call in calls.values():
            call.give(carried, operands[carried:])
        condition.give(many, [truth])

        def goes_on(at: Sequence[Value]) -> Value:
            condition.give(0, at)
            condition.run(0)
            return is_true(f, truth)

        def turns() -> Sequence[Value]:
            begun = state.begun(f, operands[:carried], results)
            with f.repeat([*begun, *results, *state.settled(rooms, results)]) as turn:
                before, after, spare = thirds(turn.carried)
                body.give(0, before)
                body.give(many, after)
                body.run(shift)
                turn.more = goes_on(after)
                turn.next = [*after, *spare, *after]
            return turn.results[:carried]

        last = f.if_else(goes_on(operands[:carried]), turns, lambda: operands[:carried])
        settled_at(f, state.types, last, results)

    scratch = rounded(1) + state.bytes
    types = [v.type for v in node.inputs] + [*node.types]
    return kernel("while_loop", parts, scratch, TURNS, types, emit)


def thirds(values: Sequence[Value]) -> tuple[list[Value], list[Value], list[Value]]:
    third = len(values) // 3
    return [*values[:third]], [*values[third : 2 * third]], [*values[2 * third :]]


def settled_at(
    f: Function, types: Sequence[TensorType], found: Sequence[Value], results: Sequence[Value]
) -> None:
    """Copy what a loop has carried last to where the results are to stand, unless it is there."""
    for type_, last, result in zip(types, found, results, strict=True):
        copied = partial(_copy, f, last, result, type_.nbytes)
        f.if_else(f.compare("ne", last, result), copied)


def _scan(node: Node, inputs: Places, outputs: Places, machine: Machine) -> KernelCode:
    length, reverse = node.attributes["length"], node.attributes["reverse"]
    carried, many = node.attributes["carried"], len(node.inputs)
    first = carried + node.attributes["shared"]
    parts = {"body": part(node.attributes["body"], machine, carried)}
    state = State(node.types[:carried], parts["body"].updated)
    types = [*(v.type for v in node.inputs), *node.types]

    def emit(f: Function, addresses: list[Value], calls: dict[str, Call]) -> None:
        operands, results, scratch = addresses[:many], addresses[many:-1], addresses[-1]
        body, rooms = calls["body"], state.rooms(f, scratch)
        if not length:
            state.copy(f, operands[:carried], results[:carried])
            return
        body.give(carried, operands[carried:first])
        begun = state.begun(f, operands[:carried], results)
        places = [results[:carried], state.settled(rooms, results)]
        after, spare = places if length % 2 else reversed(places)
        with f.loop(0, length, 1, [*begun, *after, *spare]) as turn:
            before, after, spare = thirds(turn.carried)
            row = f.sub_size(length - 1, turn.index) if reverse else turn.index
            body.give(0, before)
            body.give(first, _rows(f, operands[first:], types[first:many], row))
            body.give(many, after)
            body.give(many + carried, _rows(f, results[carried:], node.types[carried:], row))
            body.run()
            turn.next = [*after, *spare, *after]

    key = f"scan {length} {reverse}"
    return kernel(key, parts, state.bytes, length, types, emit)


def _rows(
    f: Function, starts: Sequence[Value], types: Sequence[TensorType], row: int | Value
) -> list[Value]:
    """Where row number `row` of each begins."""
    found = []
    for start, type_ in zip(starts, types, strict=True):
        nbytes = type_.nbytes // max(type_.shape[0], 1)
        found.append(f.offset(I8, start, f.mul_size(row, nbytes)))
    return found


KERNELS[WHILE_LOOP] = KernelLowering(_while_loop, gapless=True)
KERNELS[SCAN] = KernelLowering(_scan, gapless=True)
