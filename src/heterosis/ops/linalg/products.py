"""Products that sum over axes: dot, tensordot and their kin, each by way of the matrix product."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant
from heterosis.ops.array.join import stack
from heterosis.ops.array.shape import as_tuple, move_axes
from heterosis.ops.array.split import part
from heterosis.ops.linalg.matmul import contracted, product
from heterosis.ops.math import elementwise as e
from heterosis.ops.record import operation
from heterosis.ops.rules import result_type
from heterosis.ops.samples import NUMBERS, Case, Samples
from heterosis.runtime.errors import AxisError, ShapeError, check_axis


def _pairs(*cases: Any, **facts: Any) -> Samples:
    made = [Case(c[:2], c[2] if len(c) > 2 else {}) for c in cases]
    return Samples(made, dtypes=facts.pop("dtypes", NUMBERS), ulps=8, absolute=200, **facts)


_DOTS = (
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((2, 3, 4), (5, 4, 2)),
    ((0, 4), (4, 3)),
)


@operation(
    numpy=numpy.dot,
    public=("np", "ndarray"),
    names={"mxnet": "_np_dot"},
    samples=_pairs(*_DOTS, ((), (3,)), ((2, 2), ()), dtypes=("int32", "bfloat16", "float32")),
)
def dot(a: Value, b: Value) -> Value:
    """The matrix product; for more dimensions, the sum over the last of `a` and the last but one of
    `b`. With a single number, the product."""
    if a.ndim == 0 or b.ndim == 0:
        return e.multiply(a, b)
    return contracted("dot", a, b, (a.ndim - 1,), (max(b.ndim - 2, 0),))


@operation(
    numpy=numpy.inner,
    samples=_pairs(((4,), (4,)), ((3, 4), (2, 5, 4)), ((), (3,)), dtypes=("int32", "float32")),
)
def inner(a: Value, b: Value) -> Value:
    """The sum of products over the last dimensions."""
    if a.ndim == 0 or b.ndim == 0:
        return e.multiply(a, b)
    return contracted("inner", a, b, (a.ndim - 1,), (b.ndim - 1,))


@operation(
    numpy=numpy.outer,
    samples=_pairs(((3,), (4,)), ((2, 2), (3,)), ((), (2,)), dtypes=("int32", "float32")),
)
def outer(a: Value, b: Value) -> Value:
    """Every element of `a` times every element of `b`."""
    return e.multiply(views.reshape(a, (a.size, 1)), views.reshape(b, (1, b.size)))


@operation(
    numpy=numpy.vdot,
    samples=_pairs(((4,), (4,)), ((2, 3), (3, 2)), dtypes=("int32", "float32")),
)
def vdot(a: Value, b: Value) -> Value:
    """The sum of the products of all elements."""
    if a.size != b.size:
        raise ShapeError(
            f"vdot: shapes {a.shape} and {b.shape} have different numbers of elements."
        )
    left, right = (views.reshape(x, (x.size,)) for x in (a, b))
    return contracted("vdot", left, right, (0,), (0,))


def _axes_of_both(axes: Any, a: Value, b: Value) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, tuple | list):
        of_a, of_b = (as_tuple(one) for one in axes)
    else:
        (count,) = as_tuple(axes)
        of_a, of_b = tuple(range(-count, 0)), tuple(range(count))
    if len(of_a) != len(of_b):
        raise AxisError(f"tensordot: {of_a} and {of_b} must name as many axes of either operand.")
    return (
        tuple(check_axis("tensordot", i, a.ndim) for i in of_a),
        tuple(check_axis("tensordot", j, b.ndim) for j in of_b),
    )


@operation(
    numpy=numpy.tensordot,
    names={"mxnet": "_npi_tensordot"},
    samples=_pairs(
        ((2, 3, 4), (3, 4, 5)),
        ((2, 3), (4, 5), {"axes": 0}),
        ((2, 3, 4), (4, 3), {"axes": ((1, 2), (1, 0))}),
        ((2, 3, 4), (5, 3), {"axes": (1, 1)}),
        dtypes=("int32", "float32", "float64"),
    ),
)
def tensordot(a: Value, b: Value, axes: Any = 2) -> Value:
    """The sum of products over the last `axes` of `a` and first of `b`, or over pairs of axes."""
    return contracted("tensordot", a, b, *_axes_of_both(axes, a, b))


def _batch_reference(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    left = numpy.swapaxes(a, -1, -2) if transpose_a else a
    return numpy.matmul(left, numpy.swapaxes(b, -1, -2) if transpose_b else b)


@operation(
    numpy=_batch_reference,
    public=("npx",),
    names={"mxnet": "batch_dot"},
    samples=_pairs(
        ((2, 3, 4), (2, 4, 5)),
        ((2, 4, 3), (2, 4, 5), {"transpose_a": True}),
        ((2, 3, 4), (2, 5, 4), {"transpose_b": True}),
        ((0, 3, 4), (0, 4, 5)),
        dtypes=("float16", "float32", "float64"),
    ),
)
def batch_dot(
    lhs: Value, rhs: Value, transpose_a: bool = False, transpose_b: bool = False
) -> Value:
    """The matrix products of the matrices in two stacks."""
    if lhs.ndim < 3 or rhs.ndim != lhs.ndim or lhs.shape[:-2] != rhs.shape[:-2]:
        raise ShapeError(
            f"batch_dot: shapes {lhs.shape} and {rhs.shape}; needs two stacks of as many matrices, "
            "such as (batch, m, k) and (batch, k, n). See np.matmul for stacks that broadcast."
        )
    return product("batch_dot", _turned(lhs, transpose_a), _turned(rhs, transpose_b))


def _turned(x: Value, turn: bool) -> Value:
    order = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return views.transpose(x, order) if turn else x


@operation(
    numpy=numpy.kron,
    samples=_pairs(((2, 3), (3, 2)), ((2,), (2, 3)), ((), (2,)), dtypes=("int32", "float32")),
)
def kron(a: Value, b: Value) -> Value:
    """Every element of `a` replaced by its product with all of `b`."""
    rank = max(a.ndim, b.ndim)
    left, right = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    apart_a = views.reshape(a, tuple(k for n in left for k in (n, 1)))
    apart_b = views.reshape(b, tuple(k for n in right for k in (1, n)))
    shape = tuple(n * m for n, m in zip(left, right, strict=True))
    return views.reshape(e.multiply(apart_a, apart_b), shape)


def _component(x: Value, i: int) -> Value:
    return views.reshape(part(x, x.ndim - 1, i, i + 1), x.shape[:-1])


def _by_two(a: Value, b: Value, i: int, j: int) -> Value:
    first = e.multiply(_component(a, i), _component(b, j))
    return e.subtract(first, e.multiply(_component(a, j), _component(b, i)))


@operation(
    numpy=numpy.cross,
    samples=_pairs(
        ((3,), (3,)), ((4, 3), (3,)), ((3, 2), (3, 2), {"axis": 0}), dtypes=("int32", "float32")
    ),
)
def cross(
    a: Value, b: Value, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Value:
    """The vector product of vectors of three elements along an axis."""
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = move_axes("cross", a, (axisa,), (-1,)), move_axes("cross", b, (axisb,), (-1,))
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ShapeError(
            f"cross: vectors of {a.shape[-1]} and {b.shape[-1]} elements; both need three."
        )
    parts = [_by_two(a, b, i, j) for i, j in ((1, 2), (2, 0), (0, 1))]
    return move_axes("cross", stack.record.function(parts, -1), (-1,), (axisc,))


@operation(
    numpy=numpy.polyval,
    names={"mxnet": "_npi_polyval"},
    samples=_pairs(((4,), (3, 2)), ((1,), (3,)), ((0,), (3,)), dtypes=("int32", "float32")),
)
def polyval(p: Value, x: Value) -> Value:
    """The polynomial with coefficients `p`, the highest power first, at the places `x`."""
    if p.ndim != 1:
        raise ShapeError(f"polyval: coefficients have one dimension, and these have {p.shape}.")
    dtype = result_type(p, x)
    total = views.broadcast(constant(0, dtype), x.shape)
    for i in range(p.size):
        coefficient = views.reshape(part(p, 0, i, i + 1), ())
        total = e.add(e.multiply(total, x), coefficient)
    return total
