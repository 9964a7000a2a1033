"""Common sub-expressions: what is computed in the same way from the same operands is one node."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from heterosis.ir.program import INPUT, NUMBER, Node, Program, Value, with_inputs
from heterosis.ir.traced_sizes import TracedSize


def shared(program: Program) -> Program:
    """`program` with every distinct node once."""
    made: dict[Hashable, Node] = {}
    known: dict[Value, Value] = {}
    for node in program.nodes():
        here = with_inputs(node, tuple(known[value] for value in node.inputs))
        here = made.setdefault(_key(here), here)
        known.update(zip(node.outputs, here.outputs, strict=True))
    return Program(program.inputs, tuple(known[v] for v in program.outputs), program.name)


def _key(node: Node) -> Hashable:
    """Equal for nodes with equal results. Inputs are equal to nothing but themselves."""
    if node.primitive in (INPUT, NUMBER):
        return id(node)
    # By their texts, 1, 1.0 and True are three attributes, and so are 0.0 and -0.0.
    attributes = tuple((name, _told_apart(value)) for name, value in node.attributes.items())
    types = tuple((type_.shape, type_.dtype) for type_ in node.types)
    return node.primitive, node.inputs, attributes, types


def _told_apart(value: Any) -> Hashable:
    """Equal for attributes of one text; sizes, whose texts are those of one call, by themselves."""
    if type(value) is TracedSize:
        return value
    return tuple(map(_told_apart, value)) if type(value) is tuple else repr(value)
