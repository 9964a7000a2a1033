"""Choices of what is there in any case, as selections of elements.

A result that both branches give of their operands, or of numbers, needs no branch: it is computed
like any other element, in one loop with what is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir import views
from heterosis.ir.primitives.control import COND
from heterosis.ir.primitives.elementwise import SELECT
from heterosis.ir.program import CONSTANT, Program, Value, apply, with_inputs
from heterosis.passes.simplify import uniform


def selected(program: Program) -> Program:
    """`program`, whose choices give what a branch computes; elements select the rest."""
    nodes = list(program.nodes())
    if not any(node.primitive is COND for node in nodes):
        return program
    made: dict[Value, Value] = {}
    for node in nodes:
        here = with_inputs(node, tuple(made.get(v, v) for v in node.inputs))
        found = map(_selection, here.outputs) if node.primitive is COND else here.outputs
        made |= dict(zip(node.outputs, found, strict=True))
    outputs = tuple(made[v] for v in program.outputs)
    if outputs == program.outputs:
        return program
    return Program(program.inputs, outputs, program.name)


def _selection(chosen: Value) -> Value:
    """A result of a choice, by elements if no branch computes it."""
    truth, *operands = chosen.node.inputs
    branches = [chosen.node.attributes[name] for name in ("then", "otherwise")]
    found = [_outside(branch, chosen.index, operands) for branch in branches]
    either = [value for value in found if value is not None]
    if len(either) < len(found):
        return chosen
    return apply(SELECT, (views.broadcast(truth, chosen.shape), *either), chosen.type)


def _outside(branch: Program, index: int, operands: Sequence[Value]) -> Value | None:
    """What a branch gives, where it is an operand or a number; None where it is computed."""
    value = branch.outputs[index]
    if value in branch.inputs:
        return operands[branch.inputs.index(value)]
    number = uniform(value)
    if number is None or number.node.primitive is not CONSTANT:
        return None
    return views.broadcast(number, value.shape)
