"""Results of a run in which a check has failed: as the native back end gives them, which raise when
they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import _core, backends
from heterosis.backends.xla.evaluation import Failure
from heterosis.ir import views
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.program import ASSEMBLE, Node, Program, Value, apply, constant
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType


def results(
    program: Program, operands: Sequence[Any], failure: Failure, shown: int
) -> tuple[Any, ...]:
    """What `program` gives for these operands once `failure` has happened, with this number in the
    message.

    The primitive that has failed fails again, on few elements, in a program whose results all
    depend on it.
    """
    found = _again(failure, shown)
    outputs = tuple(_depending(found, value.type) for value in program.outputs)
    again = Program(program.inputs, outputs, program.name)
    layouts = [_layout(operand) for operand in operands]
    return backends.named(backends.NATIVE).compile(again, layouts).run(operands)


def _layout(operand: Any) -> Strided:
    if isinstance(operand, _core.ndarray):
        return Strided(operand.shape, operand._element_strides)
    return Strided((), ())


def _again(failure: Failure, shown: int) -> Value:
    """The first result of a node that fails in the same way."""
    operands = [*failure.operands]
    if failure.shows:
        operands[0] = numpy.full_like(operands[0], shown)
    inputs = tuple(map(_written, operands))
    primitive, attributes = failure.node.primitive, failure.node.attributes
    untyped = Node(primitive, inputs, attributes, ())
    return Node(primitive, inputs, attributes, primitive.types(untyped)).outputs[0]


def _written(array: Any) -> Value:
    """A few elements, as numbers in the program."""
    dtype = array.dtype.name
    parts = [views.reshape(constant(number, dtype), (1,)) for number in array.ravel().tolist()]
    places = tuple(((i,), (1,)) for i in range(len(parts)))
    type_ = TensorType((len(parts),), dtype)
    whole = apply(ASSEMBLE, parts, type_, places=places, filled=False)
    return views.reshape(whole, array.shape)


def _depending(value: Value, type_: TensorType) -> Value:
    """A value of a type that is made of the first element of `value`."""
    begin = (0,) * value.ndim
    first = views.reshape(views.slice_(value, begin, (1,) * value.ndim, (1,) * value.ndim), (1,))
    found = apply(conversion(type_.dtype), (first,), TensorType((1,), type_.dtype))
    return views.broadcast(views.reshape(found, (1,) * type_.ndim), type_.shape)
