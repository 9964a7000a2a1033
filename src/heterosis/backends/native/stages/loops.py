"""Branches and bodies go through the stages of their own; what each turn of a loop would compute
again, from what is the same for all of them, is computed ahead of the loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.stages.row_products import with_products_ahead
from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP_BACK
from heterosis.ir.primitives.families import Control
from heterosis.ir.program import (
    INPUT,
    Node,
    Program,
    Value,
    apply,
    may_fail,
    substituted,
    with_inputs,
)
from heterosis.ir.types import TensorType
from heterosis.passes.preparation import split

# A program as it is scheduled, where inputs at some positions are the same for many runs.
Staged = Callable[[Program, Collection[Value], Machine], Program]


def ahead_of_loops(program: Program, machine: Machine, staged: Staged) -> Program:
    """`program` with its branches and bodies `staged`, and what turns share taken out of them."""
    if not any(isinstance(node.primitive, Control) for node in program.nodes()):
        return program
    made: dict[Value, Value] = {}
    for node in program.nodes():
        here = with_inputs(node, tuple(made.get(v, v) for v in node.inputs))
        if isinstance(node.primitive, Control):
            here = _changed(here, machine, staged)
        made |= dict(zip(node.outputs, here.outputs, strict=True))
    return Program(program.inputs, tuple(made[v] for v in program.outputs), program.name)


def _changed(node: Node, machine: Machine, staged: Staged) -> Node:
    if node.primitive is COND:
        names = ("then", "otherwise")
        branches = {name: staged(node.attributes[name], (), machine) for name in names}
        return Node(node.primitive, node.inputs, node.attributes | branches, node.types)
    if node.primitive is SCAN:
        node = with_products_ahead(node)
    parts = [name for name in ("condition", "body", "back") if name in node.attributes]
    carried, end = node.attributes["carried"], _end_of_shared(node)
    turns = {name: _Turn(node, name, range(carried, end), machine, staged) for name in parts}
    further = [value for turn in turns.values() for value in turn.ahead]
    attributes = dict(node.attributes)
    at = 0
    for name, turn in turns.items():
        attributes[name] = turn.program(end, [v.type for v in further], at)
        at += len(turn.ahead)
    if node.primitive is SCAN:
        attributes["shared"] += len(further)
    inputs = (*node.inputs[:end], *further, *node.inputs[end:])
    return Node(node.primitive, inputs, attributes, node.types)


def _end_of_shared(node: Node) -> int:
    """Up to which operand of a loop they are the same for all turns, or carried."""
    if node.primitive is SCAN:
        return int(node.attributes["carried"] + node.attributes["shared"])
    received = node.attributes["received"] if node.primitive is WHILE_LOOP_BACK else 0
    return len(node.inputs) - received


class _Turn:
    """A program that a loop runs in each turn: `ahead` of it, what the inputs at the positions
    `shared` suffice for."""

    def __init__(
        self, node: Node, name: str, shared: range, machine: Machine, staged: Staged
    ) -> None:
        program: Program = node.attributes[name]
        program = staged(program, [program.inputs[i] for i in shared], machine)
        self._inputs, self._rest = program.inputs, program
        self.ahead: tuple[Value, ...] = ()
        self._found_ahead: tuple[Value, ...] = ()  # the same, as inputs of the rest
        if node.primitive is not SCAN and may_fail(program):
            return  # there may be no turn, and then no failure
        found = split(program, [program.inputs[i] for i in shared])
        if found is not None:
            outside = dict(zip(program.inputs, node.inputs, strict=False))
            self.ahead = substituted(found.preparation.outputs, outside)
            self._rest, self._found_ahead = found.rest, found.prepared

    def program(self, end: int, further: Sequence[TensorType], at: int) -> Program:
        """The rest, which is given what is computed ahead behind its first `end` inputs: its own
        from number `at` on, among that of others."""
        own = self._found_ahead
        given = [apply(INPUT, (), type_) for type_ in further]
        given[at : at + len(own)] = own
        inputs = (*self._inputs[:end], *given, *self._inputs[end:])
        return Program(inputs, self._rest.outputs, self._rest.name)
