"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.program import Value, apply
from heterosis.ir.types import TensorType
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_shapes, cast, result_type
from heterosis.ops.samples import NUMBERS, Case, Samples
from heterosis.runtime.errors import ShapeError


def product(name: str, a: Value, b: Value) -> Value:
    """Batches of matrices `a @ b`, both at least two-dimensional, batch axes repeated as needed."""
    dtype = result_type(a, b)
    if a.shape[-1] != b.shape[-2]:
        raise _differing(name, a, b, a.shape[-1], b.shape[-2])
    lead = broadcast_shapes(name, (a.shape[:-2], b.shape[:-2]))
    a = views.broadcast(cast(a, dtype), lead + a.shape[-2:])
    b = views.broadcast(cast(b, dtype), lead + b.shape[-2:])
    return apply(MATMUL, (a, b), TensorType((*lead, a.shape[-2], b.shape[-1]), dtype))


def _differing(name: str, a: Value, b: Value, own: int, other: int) -> ShapeError:
    return ShapeError(
        f"{name}: the inner dimensions differ: {a.shape} @ {b.shape}, {own} != {other}. Transpose "
        "an operand or check which one was meant."
    )


def contracted(name: str, a: Value, b: Value, of_a: Sequence[int], of_b: Sequence[int]) -> Value:
    """The sum of products over pairs of axes; what is left of `a` comes before what is of `b`."""
    for i, j in zip(of_a, of_b, strict=True):
        if a.shape[i] != b.shape[j]:
            raise _differing(name, a, b, a.shape[i], b.shape[j])
    rest_a = [i for i in range(a.ndim) if i not in of_a]
    rest_b = [j for j in range(b.ndim) if j not in of_b]
    rows, columns = _extents(a, rest_a), _extents(b, rest_b)
    inner = math.prod(_extents(a, of_a))
    left = views.transpose(a, (*rest_a, *of_a))
    right = views.transpose(b, (*of_b, *rest_b))
    result = product(
        name,
        views.reshape(left, (math.prod(rows), inner)),
        views.reshape(right, (inner, math.prod(columns))),
    )
    return views.reshape(result, (*rows, *columns))


def _extents(x: Value, axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(x.shape[a] for a in axes)


_MATMUL_CASES = tuple(
    Case(pair)
    for pair in (
        ((3, 4), (4, 5)),
        ((1, 70), (70, 33)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (4,)),
        ((2, 0, 3, 4), (4, 1)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((0, 4), (4, 3)),
        ((3, 0), (0, 2)),
    )
)


@operation(
    numpy=numpy.matmul,
    names={"mxnet": "_npi_matmul", "onnx": "MatMul"},
    samples=Samples(_MATMUL_CASES, dtypes=NUMBERS, ulps=8, absolute=200),
)
def matmul(a: Value, b: Value) -> Value:
    """The matrix product; stacks of matrices broadcast."""
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"matmul: operands of shapes {a.shape} and {b.shape}; both need at least one "
            "dimension. Multiply by a number with '*'."
        )
    left = views.reshape(a, (1, *a.shape)) if a.ndim == 1 else a
    right = views.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
    if left.ndim > 2 and right.ndim == 2:  # one matrix of all rows
        return contracted("matmul", a, b, (a.ndim - 1,), (max(b.ndim - 2, 0),))
    result = product("matmul", left, right)
    rows = () if a.ndim == 1 else result.shape[-2:-1]
    columns = () if b.ndim == 1 else result.shape[-1:]
    return views.reshape(result, (*result.shape[:-2], *rows, *columns))
