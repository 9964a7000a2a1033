"""What programs compute, by the meaning of their primitives: with NumPy, node by node.

An element of 16 bits is what its type holds wherever it stands in memory: in what a program is
given and gives, and in all but elementwise work, sums and views. In between, these go on in
float32, and what they make is rounded once, where the program says so or it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from heterosis.ir.checking import check
from heterosis.ir.primitives.conversions import NEAREST
from heterosis.ir.primitives.families import Elementwise, Reduction, View
from heterosis.ir.primitives.leaves import CONSTANT, INPUT, NUMBER
from heterosis.ir.program import Node, Program, Value, apply
from heterosis.ir.sizes import Size
from heterosis.ir.types import TensorType, as_type, is_half, numpy_dtype
from heterosis.runtime.errors import (
    ArgumentError,
    DTypeError,
    ProgramError,
    ShapeError,
)

_WIDE = "float32"


def evaluate(program: Program, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """The results of `program` for these NumPy arrays, one for each of its inputs.

    Sizes that its inputs name are those of the arrays. The program must be well formed, as `check`
    says; that is looked at only where it depends on sizes.
    """
    given = [numpy.asarray(array) for array in arrays]
    if len(given) != len(program.inputs):
        raise ArgumentError(f"{program.name}: {len(given)} arrays; expected {len(program.inputs)}.")
    sizes = _sizes(program, given)
    program = specialized(program, sizes)
    if sizes:
        check(program)
    for i, (value, array) in enumerate(zip(program.inputs, given, strict=True)):
        _check_fits(program, i, value.type, array)
    elements = _Elements(zip(program.inputs, given, strict=True))
    for node in program.nodes():
        if node.primitive is not INPUT and node.primitive is not NUMBER:
            elements.compute(node)
    return tuple(map(elements.held, program.outputs))


def _check_fits(program: Program, position: int, type_: TensorType, array: Any) -> None:
    if array.shape != type_.shape:
        raise ShapeError(
            f"{program.name}: input {position} of shape {array.shape}; expected {type_.shape}."
        )
    if array.dtype != numpy_dtype(type_.dtype):
        raise DTypeError(
            f"{program.name}: input {position} of {array.dtype}; expected {type_.dtype}."
        )


class _Elements(dict[Value, Any]):
    """The elements of values: those of 16 bits in float32 as long as they are not rounded."""

    def held(self, value: Value) -> Any:
        """The elements as the type holds them."""
        with numpy.errstate(over="ignore"):
            return as_type(self[value], value.dtype)

    def compute(self, node: Node) -> None:
        """Add the results of `node`."""
        if computes_wide(node) and _has_halves(node):
            wide = _widened(node)
            operands = [as_type(self[v], w.dtype) for v, w in _pairs(node, wide)]
            found = node.primitive.evaluate(wide, *operands)
        else:
            found = node.primitive.evaluate(node, *map(self.held, node.inputs))
        self.update(zip(node.outputs, found, strict=True))


def _pairs(node: Node, other: Node) -> zip[tuple[Value, Value]]:
    return zip(node.inputs, other.inputs, strict=True)


def _has_halves(node: Node) -> bool:
    values = (*node.inputs, *node.outputs)
    return any(is_half(value.dtype) for value in values)


def computes_wide(node: Node) -> bool:
    """Whether a node sees and makes elements of 16 bits as float32."""
    primitive = node.primitive
    if isinstance(primitive, Elementwise):
        return not primitive.by_type and primitive is not NEAREST
    return primitive is CONSTANT or isinstance(primitive, View) or type(primitive) is Reduction


def _widened(node: Node) -> Node:
    """`node` in float32 where it is in 16 bits."""
    inputs = tuple(apply(INPUT, (), _widest(value.type)) for value in node.inputs)
    return Node(node.primitive, inputs, node.attributes, tuple(map(_widest, node.types)))


def _widest(type_: TensorType) -> TensorType:
    return TensorType(type_.shape, _WIDE, type_.weak) if is_half(type_.dtype) else type_


# -- sizes ----------------------------------------------------------------------------------------


def _sizes(program: Program, arrays: Sequence[Any]) -> dict[str, int]:
    """The sizes in the shapes of inputs, from the arrays that stand for them."""
    found: dict[str, int] = {}
    for value, array in zip(program.inputs, arrays, strict=True):
        for extent, known in zip(value.shape, array.shape, strict=False):
            left = extent.at(found) if isinstance(extent, Size) else extent
            if isinstance(left, Size):
                found |= left.solved(known)
    return found


def specialized(program: Program, sizes: Mapping[str, int]) -> Program:
    """`program` for these values of all sizes that it names."""
    known: dict[Value, Value] = {}

    def visit(node: Node) -> None:
        inputs = tuple(known[value] for value in node.inputs)
        attributes = {name: _at(value, sizes) for name, value in node.attributes.items()}
        types = tuple(TensorType(_at(t.shape, sizes), t.dtype, t.weak) for t in node.types)
        made = Node(node.primitive, inputs, attributes, types)
        known.update(zip(node.outputs, made.outputs, strict=True))

    for value in program.inputs:
        visit(value.node)
    for node in program.nodes():
        if node.outputs[0] not in known:
            visit(node)
    inputs, outputs = (tuple(known[v] for v in vs) for vs in (program.inputs, program.outputs))
    return Program(inputs, outputs, program.name)


def _at(attribute: Any, sizes: Mapping[str, int]) -> Any:
    """A shape or an attribute with these sizes in it."""
    match attribute:
        case Size():
            return _known(attribute, sizes)
        case Program():
            return specialized(attribute, sizes)
        case tuple() | list():
            return type(attribute)(_at(item, sizes) for item in attribute)
        case dict():
            return {key: _at(value, sizes) for key, value in attribute.items()}
    return attribute


def _known(size: Size, sizes: Mapping[str, int]) -> int:
    found = size.at(sizes)
    if isinstance(found, Size):
        raise ProgramError(f"the size {found}: the shapes of the inputs do not tell what it is.")
    return found
