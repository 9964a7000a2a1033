"""Results of a run in which a check has failed: as the native back end gives them, which raise when
they are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from heterosis import _core, backends
from heterosis.backends.xla.evaluation import Failure
from heterosis.ir import views
from heterosis.ir.primitives.checks import CHECK_INDICES
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.program import Program, Value, apply, constant
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType


def results(
    program: Program, operands: Sequence[Any], failure: Failure, shown: int
) -> tuple[Any, ...]:
    """What `program` gives for these operands once `failure` has happened, with this number in the
    message.

    The node that has failed fails again, on one element, in a program whose results all depend on
    it.
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
    """The result of a node that fails in the same way: one integer."""
    primitive, attributes = failure.node.primitive, failure.node.attributes
    if primitive is not CHECK_INDICES:
        operands = [_one(False, "bool"), _one(0, "int64")]
    elif failure.shows:
        operands = [_one(shown, "int64")]
    else:
        operands = [_one(math.nan, "float64")]
    return apply(primitive, operands, TensorType((1,), "int64"), **attributes)


def _one(number: float, dtype: str) -> Value:
    return views.reshape(constant(number, dtype), (1,))


def _depending(value: Value, type_: TensorType) -> Value:
    """A value of a type that is made of `value`, of one element."""
    found = apply(conversion(type_.dtype), (value,), TensorType((1,), type_.dtype))
    return views.broadcast(views.reshape(found, (1,) * type_.ndim), type_.shape)
