"""16-bit floats: the type that each value of a program is computed in.

An element of float16 or bfloat16 is what that type holds wherever a user could see it: in the
results of every operation, whether they get memory or not. Inside an operation, elementwise work
and reductions go on in float32, as back ends load them anyway, and what they make is
rounded once, at the end. Written into the program, this holds for every way of making loops of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from heterosis.ir import views
from heterosis.ir.primitives.conversions import COPY, NEAREST, conversion
from heterosis.ir.primitives.families import Elementwise, Reduction, View
from heterosis.ir.program import CONSTANT, Node, Program, Value, apply, constant, with_inputs
from heterosis.ir.types import TensorType, is_half

_WIDE = "float32"


def widened(program: Program) -> Program:
    """`program`, saying where elements of 16 bits are rounded."""
    if not any(is_half(type_.dtype) for node in program.nodes() for type_ in node.types):
        return program
    widening = _Widening()
    for node in program.nodes():
        widening.visit(node)
    outputs = tuple(map(widening.held, program.outputs))
    return Program(program.inputs, outputs, program.name)


class _Widening:
    """What has become of each value: as its type holds it, as float32, or both."""

    def __init__(self) -> None:
        self._held: dict[Value, Value] = {}
        self._wide: dict[Value, Value] = {}

    def held(self, value: Value) -> Value:
        """The value as its element type holds it."""
        if value not in self._held:
            self._held[value] = _cast(self._wide[value], value.dtype)
        return self._held[value]

    def computed(self, value: Value) -> Value:
        """The value to compute with."""
        if not is_half(value.dtype):
            return self.held(value)
        if value not in self._wide:
            self._wide[value] = _cast(self._held[value], _WIDE)
        return self._wide[value]

    def visit(self, node: Node) -> None:
        """Find what becomes of a node whose operands are known."""
        primitive, first = node.primitive, node.outputs[0]
        if primitive is NEAREST:
            self._held[first] = self.held(node.inputs[0])
        elif primitive is CONSTANT and is_half(first.dtype):
            self._wide[first] = constant(node.attributes["value"], _WIDE)
        elif primitive is conversion(first.dtype) and is_half(first.dtype):
            self._held[first] = with_inputs(node, (self.computed(node.inputs[0]),)).outputs[0]
        elif isinstance(primitive, View) and node.inputs[0] not in self._held:
            self._wide[first] = views.again(node, self.computed(node.inputs[0]))
        elif _is_computed(node) and not self._is_copy(node):
            self._compute(node)
        else:
            made = with_inputs(node, tuple(map(self.held, node.inputs)))
            self._held.update(zip(node.outputs, made.outputs, strict=True))

    def _is_copy(self, node: Node) -> bool:
        return node.primitive is COPY and node.inputs[0] in self._held

    def _compute(self, node: Node) -> None:
        inputs = tuple(map(self.computed, node.inputs))
        made = Node(node.primitive, inputs, node.attributes, tuple(map(_widest, node.types)))
        for before, after in zip(node.outputs, made.outputs, strict=True):
            (self._wide if is_half(before.dtype) else self._held)[before] = after


def _is_computed(node: Node) -> bool:
    """Whether it computes elements, and in float32 whatever their type is."""
    if isinstance(node.primitive, Elementwise):
        return not node.primitive.by_type
    return type(node.primitive) is Reduction


def _widest(type_: TensorType) -> TensorType:
    return TensorType(type_.shape, _WIDE, type_.weak) if is_half(type_.dtype) else type_


def _cast(value: Value, dtype: str) -> Value:
    return apply(conversion(dtype), (value,), TensorType(value.shape, dtype))


def rounded(results: Iterable[Value], operands: Iterable[Value | None]) -> tuple[Value, ...]:
    """The results of an operation on `operands` as their element types hold them: marked for
    `widened` where they may be wider."""
    known = dict.fromkeys((operand for operand in operands if operand is not None), False)
    return tuple(nearest(v) if _may_be_wider(v, known) else v for v in results)


def nearest(value: Value) -> Value:
    """What the element type holds of `value`."""
    return apply(NEAREST, (value,), value.type) if is_half(value.dtype) else value


def _may_be_wider(value: Value, known: dict[Value, bool]) -> bool:
    """Whether `value` is computed, not read, moved or converted."""
    if value not in known:
        node, primitive = value.node, value.node.primitive
        passes_on = isinstance(primitive, View) or (
            isinstance(primitive, Elementwise) and primitive.keeps
        )
        if not is_half(value.dtype) or primitive in (NEAREST, conversion(value.dtype)):
            known[value] = False
        elif passes_on:
            known[value] = any(_may_be_wider(operand, known) for operand in node.inputs)
        else:
            known[value] = primitive is CONSTANT or _is_computed(node)
    return known[value]
