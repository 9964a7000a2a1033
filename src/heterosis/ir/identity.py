"""What a program is, as a text: by it, a process finds what another one has made of the program."""

from __future__ import annotations

from functools import cache
from itertools import chain
from types import NoneType
from typing import Any

import numpy

from heterosis.ir.primitives import (
    conversions,
    elementwise,
    random_bits,
    random_loops,
    real,
    sort_keys,
)
from heterosis.ir.primitives.families import Elementwise, Opaque, Primitive, Reduction, View
from heterosis.ir.program import Node, Program

_PLAIN = (int, float, bool, str, NoneType, numpy.generic)  # their texts tell all of them
_FOLLOWED = tuple(f"heterosis.{part}." for part in ("codegen", "ir", "ops", "passes"))


class _Unknown(Exception):
    """Something of which no text tells all."""


def identity(program: Program) -> str | None:
    """A text that only programs of the same nodes in the same order have.

    None if there is none: a primitive from outside the package may change behind its name.
    """
    numbers: dict[Node, int] = {}
    try:
        lines = [
            _line(node, numbers)
            for node in chain((v.node for v in program.inputs), program.nodes())
            if node not in numbers
        ]
    except _Unknown:
        return None
    ends = [[(numbers[v.node], v.index) for v in vs] for vs in (program.inputs, program.outputs)]
    return repr((program.name, lines, ends))


def _line(node: Node, numbers: dict[Node, int]) -> tuple[Any, ...]:
    numbers[node] = len(numbers)
    attributes = [(name, _checked(value)) for name, value in node.attributes.items()]
    types = [(type_.shape, type_.dtype, type_.weak) for type_ in node.types]
    operands = [(numbers[v.node], v.index) for v in node.inputs]
    return _name(node.primitive), attributes, types, operands


def _checked(attribute: Any) -> Any:
    if isinstance(attribute, tuple | list):
        return [_checked(item) for item in attribute]
    if isinstance(attribute, dict):
        return [(_checked(name), _checked(value)) for name, value in attribute.items()]
    if isinstance(attribute, Primitive):
        return _name(attribute), "primitive"
    if not isinstance(attribute, _PLAIN):
        raise _Unknown
    return attribute


@cache
def _name(primitive: Primitive) -> tuple[str, str]:
    """Tells a primitive of the package from all others."""
    if isinstance(primitive, Elementwise) and primitive not in _elements():
        raise _Unknown
    if not getattr(_code(primitive), "__module__", "").startswith(_FOLLOWED):
        raise _Unknown
    return type(primitive).__name__, primitive.name


@cache
def _elements() -> frozenset[Elementwise]:
    """The elementwise primitives of the package."""
    modules = (elementwise, real, conversions, random_bits, random_loops, sort_keys)
    declared = (found for module in modules for found in vars(module).values())
    return frozenset(found for found in declared if isinstance(found, Elementwise))


def _code(primitive: Primitive) -> Any:
    match primitive:
        case View():
            return primitive.move
        case Reduction() | Opaque():
            return primitive.meaning
    return type(primitive)
