"""Whether a turn computes with numbers that Python knows as Python does.

In a loop of the program, the number of the turn is an array of one integer. Integers are the same,
and so is what is computed of one of them and of an array. But fractions that Python computes of
numbers alone have more digits than those of arrays; and what an index of Python's shows of an array
is a part of it, where one of an array gives a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis import _core
from heterosis.capture.control import Inner
from heterosis.ir.primitives.control import COND
from heterosis.ir.primitives.families import Control, Leaf
from heterosis.ir.program import INPUT, NUMBER, Node, Value, reached
from heterosis.ir.types import is_float
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray


def check_numbers(
    turn: Inner, lines: Sequence[Any], numbers: Sequence[bool], results: Sequence[Any]
) -> None:
    """Refuse a turn that does not; `numbers` says which of the rows are Python's."""
    known = [line for line, flag in zip(lines, numbers, strict=True) if flag]
    if not known:
        return
    writes = any(step.in_place and _is_own(cell) for step in turn.steps for cell in step.made)
    written = [turn.cell(array).value() for array in turn.written()]
    values = [*map(turn.value_of, results), *written]
    if writes or _has_fractions(values, set(turn.inputs_for(known))):
        raise CaptureError("the numbers of a loop are to be computed with as Python does")


def _is_own(cell: Any) -> bool:
    """Whether an array has been made in the turn."""
    return (cell.base or cell).source is None


def _has_fractions(values: Sequence[Value], known: set[Value]) -> bool:
    """Whether something is computed of `known` numbers alone that is no integer."""
    known = set(known)
    for node in reached(values):
        among = [value for value in node.inputs if value in known]
        if not among:
            continue
        if isinstance(node.primitive, Control):
            if any(value in known for value in node.inputs[node.primitive is COND :]):
                return True
        elif all(value in known or _is_constant(value.node) for value in node.inputs):
            if is_float(node.types[0].dtype) and not is_float(among[0].dtype):
                if len(node.inputs) > 1:
                    return True
            elif is_float(node.types[0].dtype):
                return True
            known |= {Value(node, i) for i in range(len(node.types))}
    return False


def _is_constant(node: Node) -> bool:
    """Whether a value is a number, or made of numbers, that is written down."""
    primitive = node.primitive
    if isinstance(primitive, Leaf):
        return primitive not in (INPUT, NUMBER)
    return all(_is_constant(value.node) for value in node.inputs)
