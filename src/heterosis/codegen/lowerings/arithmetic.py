"""The elementwise primitives that programs are rewritten with."""

from __future__ import annotations

from importlib import import_module

from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import INPUT, apply
from heterosis.ir.types import TensorType


def _primitive(name: str) -> Primitive:
    number = apply(INPUT, (), TensorType((), "float32"))
    operation = getattr(import_module("heterosis.ops.elementwise"), name)
    primitive: Primitive = operation(*[number] * (1 + (name != "negative"))).node.primitive
    return primitive


ADD, SUBTRACT, MULTIPLY, NEGATIVE = (
    _primitive(name) for name in ("add", "subtract", "multiply", "negative")
)
