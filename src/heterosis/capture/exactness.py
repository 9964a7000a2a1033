"""Whether a turn computes with numbers that Python knows as Python does.

In a loop of the program, the number of the turn is an array of one integer. Integers are the same,
and so is what is computed of one of them and of an array. But fractions that Python computes of
numbers alone have more digits than those of arrays; and what an index of Python's shows of an array
is a part of it, where one of an array gives a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from heterosis import _core
from heterosis.capture.inner import Inner
from heterosis.ir.primitives.control import COND
from heterosis.ir.primitives.families import Control, Leaf, View
from heterosis.ir.program import INPUT, NUMBER, Node, Program, Value, reached
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
    if writes:
        raise _refusal()
    _check(values, set(turn.inputs_for(known)))


def _refusal() -> CaptureError:
    return CaptureError("the numbers of a loop are to be computed with as Python does")


def _is_own(cell: Any) -> bool:
    """Whether an array has been made in the turn."""
    return (cell.base or cell).source is None


def _check(values: Sequence[Value], known: set[Value]) -> None:
    """Refuse what is computed of `known` numbers alone and is no integer; all that is computed of
    them is known too, and is put there."""
    for node in reached(values):
        if not known.isdisjoint(node.inputs):
            known |= set(_known(node, known))


def _known(node: Node, known: set[Value]) -> Iterator[Value]:
    """The results of a node that Python would know."""
    results = [Value(node, i) for i in range(len(node.types))]
    if node.primitive is COND:
        for name in ("then", "otherwise"):
            yield from _known_of_branch(node, node.attributes[name], known, results)
    elif isinstance(node.primitive, Control):
        raise _refusal()
    elif all(value in known or _is_constant(value.node) for value in node.inputs):
        is_converted = len(node.inputs) == 1 and not is_float(node.inputs[0].dtype)
        is_same = is_converted or isinstance(node.primitive, View)
        if is_float(node.types[0].dtype) and not is_same:
            raise _refusal()
        yield from results


def _known_of_branch(
    node: Node, branch: Program, known: set[Value], results: Sequence[Value]
) -> Iterator[Value]:
    pairs = zip(branch.inputs, node.inputs[1:], strict=True)
    inside = {given for given, value in pairs if value in known}
    _check(branch.outputs, inside)
    found = zip(branch.outputs, results, strict=True)
    yield from (result for value, result in found if value in inside)


def _is_constant(node: Node) -> bool:
    """Whether a value is a number, or made of numbers, that is written down."""
    primitive = node.primitive
    if isinstance(primitive, Leaf):
        return primitive not in (INPUT, NUMBER)
    return all(_is_constant(value.node) for value in node.inputs)
