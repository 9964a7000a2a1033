"""Derivatives of matrix products."""

from __future__ import annotations

from heterosis.autograd.rules.table import Cotangents, Step, adjoint
from heterosis.ir import views
from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.program import Value, apply
from heterosis.ir.types import TensorType
from heterosis.ops.linalg.factorizations import transposed


@adjoint(MATMUL)
def _matmul(step: Step) -> Cotangents:
    (a, b), g = step.inputs, step.cotangent
    return _received(a, g, transposed(b)), _received(b, transposed(a), g)


def _received(operand: Value, left: Value, right: Value) -> Value:
    """`left @ right`, which `operand` receives. Of a matrix whose rows were columns, the transposed
    product: it is written as that lies."""
    node, last = operand.node, operand.ndim - 1
    if node.primitive is views.TRANSPOSE and node.attributes["axes"][last - 1] == last:
        return transposed(_multiplied(transposed(right), transposed(left)))
    return _multiplied(left, right)


def _multiplied(a: Value, b: Value) -> Value:
    type_ = TensorType((*a.shape[:-1], b.shape[-1]), a.dtype)
    return apply(MATMUL, (a, b), type_)
