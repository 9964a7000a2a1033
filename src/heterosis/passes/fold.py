"""Arithmetic on numbers that are known, done now, and arithmetic on repeated ones, done once."""

from __future__ import annotations

from typing import Any

from heterosis.ir import views
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import CONSTANT, Node, Value, apply, constant
from heterosis.ir.types import TensorType, numpy_dtype
from heterosis.passes.rewrite import Rule
from heterosis.passes.simplify import the_number, uniform

_HALVES = ("float16", "bfloat16")  # code computes with them in float32


def _computed(node: Node) -> Any:
    """The node's element, if all its operands are numbers and NumPy's bits are the code's."""
    primitive = node.primitive
    if not isinstance(primitive, Elementwise) or not primitive.exact:
        return None
    if any(v.node.primitive is not CONSTANT for v in node.inputs):
        return None
    if node.types[0].dtype in _HALVES and len(node.inputs) > 1:
        return None
    numbers = [numpy_dtype(v.dtype).type(v.node.attributes["value"]) for v in node.inputs]
    return primitive.evaluate(node, *numbers)[0].item()


def _folded(node: Node) -> Value:
    return constant(_computed(node), node.types[0].dtype)


def _once(node: Node) -> Value:
    numbers = [the_number(value) for value in node.inputs]
    one = apply(node.primitive, numbers, TensorType((), node.types[0].dtype), **node.attributes)
    return views.broadcast(one, node.types[0].shape)


FOLD = (
    Rule(
        "numbers",
        Elementwise,
        _folded,
        "add(1, 2) -> 3",
        lambda node: _computed(node) is not None,
    ),
    Rule(
        "repeated numbers",
        Elementwise,
        _once,
        "exp(broadcast(number)) -> broadcast(exp(number))",
        lambda node: node.types[0].ndim > 0 and all(uniform(v) is not None for v in node.inputs),
    ),
)
