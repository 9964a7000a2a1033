"""Diagonals of matrices, and what lies on one side of them."""

from __future__ import annotations

import numpy

from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, Value, apply, constant, extent
from heterosis.ir.types import TensorType
from heterosis.ops.array.shape import samples
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import reductions
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, iota
from heterosis.runtime.errors import AxisError, ShapeError, check_axis


def diagonal_of(name: str, x: Value, offset: int, axis1: int, axis2: int) -> Value:
    """The diagonal of two axes, as the last dimension."""
    if x.ndim < 2:
        raise ShapeError(f"{name}: needs at least two dimensions, and got shape {x.shape}.")
    first, second = check_axis(name, axis1, x.ndim), check_axis(name, axis2, x.ndim)
    if first == second:
        raise AxisError(f"{name}: axis1={axis1} and axis2={axis2} name the same dimension.")
    down, right = max(-offset, 0), max(offset, 0)
    length = max(min(x.shape[first] - down, x.shape[second] - right), 0)
    start = (down, right) if length else (0, 0)
    return views.diagonal(x, (first, second), start, length)


_PLANES = [
    ((3, 4), {}),
    ((3, 4), {"offset": 2}),
    ((3, 4), {"offset": -1}),
    ((3, 4), {"offset": 9}),
    ((2, 3, 4), {"axis1": 2, "axis2": 0}),
]


@operation(
    numpy=numpy.diagonal,
    names={"mxnet": "_np_diagonal"},
    samples=samples(*_PLANES),
    views=True,
)
def diagonal(a: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Value:
    """The elements whose indices along two axes are `offset` apart, as the last dimension."""
    return diagonal_of("diagonal", a, offset, axis1, axis2)


@operation(
    numpy=numpy.trace,
    public=("np", "ndarray"),
    names={"mxnet": "_np_trace"},
    samples=samples(*_PLANES, dtypes=("bool", "int8", "float32", "float64"), absolute=20),
)
def trace(
    a: Value, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: str | None = None
) -> Value:
    """The sum along a diagonal."""
    along = diagonal_of("trace", a, offset, axis1, axis2)
    return reductions.sum(along, -1, dtype)


def on_diagonal(x: Value, k: int) -> Value:
    """A square matrix of zeros with the one-dimensional `x` on its `k`-th diagonal."""
    n = x.size + abs(k)
    start = k if k > 0 else -k * n
    flat = TensorType((n * n,), x.dtype)
    parts = (constant(0, x.dtype), cast(x, x.dtype))
    line = apply(ASSEMBLE, parts, flat, places=(((start,), (n + 1,)),), filled=True)
    return views.reshape(line, (n, n))


_VECTORS = [((3,), {}), ((3,), {"k": 1}), ((3,), {"k": -2}), ((0,), {})]


@operation(
    numpy=numpy.diag,
    public=("np", "ndarray"),
    names={"mxnet": "_np_diag"},
    samples=samples(*_VECTORS, ((3, 4), {}), ((3, 4), {"k": -1})),
)
def diag(v: Value, k: int = 0) -> Value:
    """The `k`-th diagonal of a matrix, or a matrix with `v` on its `k`-th diagonal."""
    if v.ndim == 1:
        return on_diagonal(v, k)
    if v.ndim == 2:
        return diagonal_of("diag", v, k, 0, 1)
    raise ShapeError(f"diag: needs one or two dimensions, and got shape {v.shape}.")


@operation(
    numpy=numpy.diagflat,
    names={"mxnet": "_np_diagflat"},
    samples=samples(*_VECTORS, ((2, 2), {"k": 1}), ((), {})),
)
def diagflat(v: Value, k: int = 0) -> Value:
    """A matrix with all elements of `v` on its `k`-th diagonal."""
    return on_diagonal(views.reshape(v, (v.size,)), k)


def _column_less_row(x: Value) -> Value:
    rows, columns = x.shape[-2:]
    row = views.broadcast(views.reshape(iota(rows), (rows, 1)), (rows, columns))
    return e.subtract(views.broadcast(iota(columns), (rows, columns)), row)


def _part_of_matrix(name: str, m: Value, k: int, inside: e.Binary) -> Value:
    if m.ndim == 0:
        raise ShapeError(f"{name}: needs at least one dimension, and got a single number.")
    if m.ndim == 1:
        m = views.broadcast(m, (m.size, m.size))
    keep = inside(_column_less_row(m), extent(k))
    return e.select(keep, m, constant(0, m.dtype))


_MATRICES = [((3, 4), {}), ((4, 3), {"k": 1}), ((2, 3, 3), {"k": -1}), ((3,), {})]


@operation(numpy=numpy.tril, names={"mxnet": "_npi_tril"}, samples=samples(*_MATRICES))
def tril(m: Value, k: int = 0) -> Value:
    """The elements on and below the `k`-th diagonal of matrices, the others zero."""
    return _part_of_matrix("tril", m, k, e.less_equal)


@operation(numpy=numpy.triu, samples=samples(*_MATRICES))
def triu(m: Value, k: int = 0) -> Value:
    """The elements on and above the `k`-th diagonal of matrices, the others zero."""
    return _part_of_matrix("triu", m, k, e.greater_equal)
