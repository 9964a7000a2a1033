"""Choices and loops, whose branches and bodies are closed programs.

What such a program uses from outside is handed to it as an operand. Operands of a loop are, in this
order, those that are carried from turn to turn; those that are shared, the same for each turn; and
those of which each turn is given a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from heterosis.ir.primitives.families import Control
from heterosis.ir.program import Node, Program
from heterosis.ir.types import TensorType, numpy_dtype
from heterosis.runtime.errors import ArgumentError, ShapeError

Types = tuple[TensorType, ...]

_TRUTH = (TensorType((), "bool"),)


def _types(values: Sequence[Any]) -> Types:
    """What must agree: whether a number adapts to its partners is no part of it."""
    return tuple(TensorType(value.shape, value.dtype) for value in values)


def _expect(node: Node, what: str, given: Types, expected: Types) -> None:
    if given != expected:
        raise ShapeError(
            f"{node.primitive}: {what} {_listed(given)}; expected {_listed(expected)}."
        )


def _listed(types: Types) -> str:
    return f"({', '.join(map(str, types))})"


def _run(program: Program, operands: Sequence[Any]) -> tuple[Any, ...]:
    from heterosis.ir.reference import evaluate

    return evaluate(program, operands)


# -- one of two programs --------------------------------------------------------------------------


def _cond_types(node: Node) -> Types:
    then, otherwise = node.attributes["then"], node.attributes["otherwise"]
    _expect(node, "the condition is", _types(node.inputs[:1]), _TRUTH)
    operands = _types(node.inputs[1:])
    for name, branch in (("then", then), ("otherwise", otherwise)):
        _expect(node, f"{name} takes", _types(branch.inputs), operands)
    _expect(node, "otherwise gives", _types(otherwise.outputs), _types(then.outputs))
    return _types(then.outputs)


def _chosen(node: Node, condition: Any, *operands: Any) -> Any:
    return _run(node.attributes["then" if condition else "otherwise"], operands)


COND = Control(
    "cond",
    types=_cond_types,
    meaning=_chosen,
    attributes={"then": Program, "otherwise": Program},
    about="What the program then makes of the operands behind the first, if that is true, and "
    "otherwise what the program otherwise makes of them.",
)


# -- as long as a condition holds -----------------------------------------------------------------


def _while_types(node: Node) -> Types:
    condition, body = node.attributes["condition"], node.attributes["body"]
    carried = node.attributes["carried"]
    if not 0 <= carried <= len(node.inputs):
        raise ArgumentError(
            f"while_loop: carried={carried} with {len(node.inputs)} operands; expected as many "
            "carried as there are operands at most."
        )
    given = _types(node.inputs)
    _expect(node, "the condition takes", _types(condition.inputs), given)
    _expect(node, "the condition gives", _types(condition.outputs), _TRUTH)
    _expect(node, "the body takes", _types(body.inputs), given)
    _expect(node, "the body gives", _types(body.outputs), given[:carried])
    return given[:carried]


def _repeated(node: Node, *operands: Any) -> Any:
    condition, body = node.attributes["condition"], node.attributes["body"]
    carried = node.attributes["carried"]
    state, shared = operands[:carried], operands[carried:]
    while _run(condition, (*state, *shared))[0]:
        state = _run(body, (*state, *shared))
    return state


WHILE_LOOP = Control(
    "while_loop",
    types=_while_types,
    meaning=_repeated,
    attributes={"condition": Program, "body": Program, "carried": int},
    about="The carried operands, replaced by what the program body makes of all operands as long "
    "as the program condition says true of them.",
)


def _while_back_types(node: Node) -> Types:
    body, back = node.attributes["body"], node.attributes["back"]
    carried, received = node.attributes["carried"], node.attributes["received"]
    if min(carried, received) < 0 or carried + received > len(node.inputs):
        raise ArgumentError(
            f"while_loop_back: carried={carried}, received={received} with {len(node.inputs)} "
            "operands; expected as many of both as there are operands at most."
        )
    operands = _types(node.inputs)
    end = len(operands) - received
    condition = node.attributes["condition"]
    _expect(node, "the condition takes", _types(condition.inputs), operands[:end])
    _expect(node, "the condition gives", _types(condition.outputs), _TRUTH)
    _expect(node, "the body takes", _types(body.inputs), operands[:end])
    _expect(node, "the body gives", _types(body.outputs), operands[:carried])
    _expect(node, "the turn back takes", _types(back.inputs), operands)
    _expect(node, "the turn back gives", _types(back.outputs), operands[end:])
    return operands[end:]


def _repeated_back(node: Node, *operands: Any) -> Any:
    condition, body, back = (node.attributes[name] for name in ("condition", "body", "back"))
    carried = node.attributes["carried"]
    end = len(operands) - node.attributes["received"]
    state, shared, received = operands[:carried], operands[carried:end], operands[end:]
    history = []
    while _run(condition, (*state, *shared))[0]:
        history.append(state)
        state = _run(body, (*state, *shared))
    for state in reversed(history):
        received = _run(back, (*state, *shared, *received))
    return received


WHILE_LOOP_BACK = Control(
    "while_loop_back",
    types=_while_back_types,
    meaning=_repeated_back,
    attributes={
        "condition": Program, "body": Program, "back": Program, "carried": int, "received": int,
    },
    about="The last operands, `received` of them, replaced by what the program back makes of them, "
    "once for each turn of a while_loop on the operands before, the last turn first: it is given "
    "what the loop carries into that turn, the shared operands and those received.",
)  # fmt: skip


# -- over rows ------------------------------------------------------------------------------------


def _scan_types(node: Node) -> Types:
    body, length = node.attributes["body"], node.attributes["length"]
    carried, shared = node.attributes["carried"], node.attributes["shared"]
    counted = min(carried, shared) >= 0 and carried + shared <= len(node.inputs)
    if not counted or (isinstance(length, int) and length < 0):
        raise ArgumentError(
            f"scan: carried={carried}, shared={shared}, length={length} with {len(node.inputs)} "
            "operands; expected as many carried and shared as there are operands at most, and a "
            "length from 0 on."
        )
    operands = _types(node.inputs)
    state, given = operands[:carried], operands[carried + shared :]
    for type_ in given:
        if type_.shape[:1] != (length,):
            raise ShapeError(f"scan: rows of {type_}; expected {length} of them.")
    rows = tuple(TensorType(type_.shape[1:], type_.dtype) for type_ in given)
    _expect(node, "the body takes", _types(body.inputs), operands[: carried + shared] + rows)
    found = _types(body.outputs)
    _expect(node, "the body carries on", found[:carried], state)
    made = (TensorType((length, *type_.shape), type_.dtype) for type_ in found[carried:])
    return (*state, *made)


def _scanned(node: Node, *operands: Any) -> Any:
    body, length = node.attributes["body"], node.attributes["length"]
    carried = node.attributes["carried"]
    first = carried + node.attributes["shared"]
    state, shared, rows = operands[:carried], operands[carried:first], operands[first:]
    made = [numpy.zeros(type_.shape, numpy_dtype(type_.dtype)) for type_ in node.types[carried:]]
    order = range(length)
    for i in reversed(order) if node.attributes["reverse"] else order:
        found = _run(body, (*state, *shared, *(row[i] for row in rows)))
        state = found[:carried]
        for line, row in zip(made, found[carried:], strict=True):
            line[i] = row
    return (*state, *made)


SCAN = Control(
    "scan",
    types=_scan_types,
    meaning=_scanned,
    attributes={"body": Program, "carried": int, "shared": int, "length": int, "reverse": bool},
    about="The program body, length times: on what is carried, the first operands at first, on the "
    "shared operands, and one row of each of the others, the last row first if reverse. The "
    "results are what was carried last, and all other results as rows.",
)
