"""What a function gives for other orders of its sums.

How many lanes a loop over a sum's elements has depends on what else the loop does: a hybridized
function and its operations one by one may add up in different orders. So they round differently,
and one overflows where the other does not. It tells as soon as there are more elements than lanes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from heterosis import np
from heterosis.capture import capture
from heterosis.capture.captured import Argument
from heterosis.ir import evaluate
from heterosis.ir.primitives.families import Reduction
from heterosis.ir.primitives.reductions import SUM
from heterosis.ir.program import Node, Program, apply
from heterosis.ir.types import is_float
from heterosis.passes.rewrite import Rule, rewritten
from tests.capture.special_values import equal_elements

_LANES = (1, 2, 4, 8)

Function = Callable[..., Any]


def differ_in_sums_alone(
    function: Function, arguments: tuple[Any, ...], found: Any, wanted: Any
) -> bool:
    """Whether results of `function` differ only in elements where both are, to the bit, what some
    order of its sums gives."""
    orders = _results_in_orders(function, arguments)
    arrays = [[array.asnumpy() for array in _arrays(tree)] for tree in (found, wanted)]
    for a, b, *others in zip(*arrays, *orders, strict=True):
        explained = _one_of(a, others) & _one_of(b, others) if others else False
        if not (equal_elements(a, b) | explained).all():
            return False
    return True


def _results_in_orders(function: Function, arguments: tuple[Any, ...]) -> list[list[numpy.ndarray]]:
    """The results of `function`, by the meaning of its primitives, for some orders of its sums;
    nothing if it sums no floats."""
    captured = capture(function, arguments, {})
    if not any(_is_float_sum(node) for node in captured.program.nodes()):
        return []
    arrays = list(_arrays(arguments))
    sources = [arrays[s.position] if isinstance(s, Argument) else s.array for s in captured.sources]
    given = [array.asnumpy() for array in sources]
    return [list(evaluate(_summing_in(captured.program, lanes), given)) for lanes in _LANES]


def _is_float_sum(node: Node) -> bool:
    return node.primitive is SUM and is_float(node.types[0].dtype)


def _arrays(tree: Any) -> Iterator[np.ndarray]:
    if isinstance(tree, list | tuple):
        for item in tree:
            yield from _arrays(item)
    elif isinstance(tree, np.ndarray):
        yield tree


def _summing_in(program: Program, lanes: int) -> Program:
    """`program` with every sum of floats added up in so many lanes."""
    primitive = Reduction(
        "sum",
        types=SUM.types,
        meaning=lambda node, x: _sum(x, node.attributes["axes"], lanes),
        attributes=SUM.attributes,
    )
    rule = Rule(
        "sum in lanes",
        SUM,
        lambda node: apply(primitive, node.inputs, node.types[0], **node.attributes),
        "sum(x) -> sum(x), in this order",
        _is_float_sum,
    )
    return rewritten(program, [rule])


def _sum(x: numpy.ndarray, axes: tuple[int, ...], lanes: int) -> numpy.ndarray:
    """Lane by lane, what is left over in the first one; then the lanes by halves."""
    count = math.prod(x.shape[axis] for axis in axes)
    kept = tuple(n for axis, n in enumerate(x.shape) if axis not in axes)
    rows = numpy.moveaxis(x, axes, range(len(axes))).reshape(count, *kept)
    total, rest = (numpy.zeros((lanes, *rows.shape[1:]), x.dtype) for _ in range(2))
    whole = len(rows) // lanes * lanes
    for i in range(0, whole, lanes):
        total += rows[i : i + lanes]
    for row in rows[whole:]:
        rest[0] += row
    total += rest
    while len(total) > 1:
        total = total[: len(total) // 2] + total[len(total) // 2 :]
    return total[0]


def _one_of(array: numpy.ndarray, orders: list[numpy.ndarray]) -> numpy.ndarray:
    """Where an element is what one of the orders gives."""
    return numpy.any([equal_elements(array, order) for order in orders], axis=0)
