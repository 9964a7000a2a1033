"""Matrices of a pattern, coordinate grids, windows: arrays computed from where elements stand."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, Value, apply, constant, extent
from heterosis.ir.types import DEFAULT_FLOAT, TensorType
from heterosis.ops.array.creation import Shape, cases_of, check_layout, check_shape, filled
from heterosis.ops.math import elementwise, real
from heterosis.ops.record import Operands, operation
from heterosis.ops.rules import broadcast_all, cast, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.context import Context
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError

# -- matrices -------------------------------------------------------------------------------------


def _diagonal_distance(rows: int, columns: int) -> Value:
    """Column number minus row number at each place of a matrix."""
    row = views.broadcast(views.reshape(iota(rows), (rows, 1)), (rows, columns))
    return elementwise.subtract(views.broadcast(iota(columns), (rows, columns)), row)


_MATRICES = ({"N": 3}, {"N": 3, "M": 5, "k": 1}, {"N": 0}, {"N": 4, "M": 2, "k": -1})


def _matrix_shape(name: str, rows: Any, columns: Any) -> tuple[int, int]:
    shape = check_shape(name, (rows, rows if columns is None else columns))
    return shape[0], shape[1]


@operation(
    numpy=numpy.eye,
    names={"mxnet": "_npi_eye"},
    samples=cases_of(*_MATRICES, {"N": 3, "dtype": "bool"}),
)
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: str | None = None,
    order: str = "C",
    ctx: Context | None = None,
) -> Value:
    """A matrix with ones on the `k`-th diagonal."""
    check_layout("eye", order, ctx)
    rows, columns = _matrix_shape("eye", N, M)
    width = "int32" if rows + columns + abs(k) < 2**31 else "int64"
    crossed = cast(elementwise.add(iota(rows), extent(k)), width)
    crossed = views.broadcast(views.reshape(crossed, (rows, 1)), (rows, columns))
    on = elementwise.equal(views.broadcast(cast(iota(columns), width), (rows, columns)), crossed)
    return cast(on, dtype or DEFAULT_FLOAT)


@operation(
    numpy=numpy.identity,
    names={"mxnet": "_npi_identity"},
    samples=cases_of({"n": 3}, {"n": 0}, {"n": 2, "dtype": "int64"}),
)
def identity(n: int, dtype: str | None = None, ctx: Context | None = None) -> Value:
    """A square matrix with ones on its diagonal."""
    return eye.record.function(n, dtype=dtype, ctx=ctx)


@operation(numpy=numpy.tri, samples=cases_of(*_MATRICES))
def tri(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: str | None = None,
    ctx: Context | None = None,
) -> Value:
    """A matrix with ones on and below the `k`-th diagonal."""
    check_layout("tri", "C", ctx)
    below = elementwise.less_equal(_diagonal_distance(*_matrix_shape("tri", N, M)), extent(k))
    return cast(below, dtype or DEFAULT_FLOAT)


# -- grids ----------------------------------------------------------------------------------------


@operation(
    numpy=numpy.indices,
    names={"mxnet": "_npi_indices"},
    samples=cases_of(
        {"dimensions": (2, 3)}, {"dimensions": (4,), "dtype": "float32"}, {"dimensions": (0, 2)}
    ),
)
def indices(dimensions: Shape, dtype: str = "int32", ctx: Context | None = None) -> Value:
    """The index along each dimension, at every place of a grid."""
    check_layout("indices", "C", ctx)
    if not isinstance(dimensions, tuple):
        raise ArgumentTypeError(
            f"indices: dimensions is a sequence of integers; got {dimensions!r}."
        )
    shape = check_shape("indices", dimensions)
    rank = len(shape)
    counters = [
        views.broadcast(_along(iota(n), axis, rank), (1, *shape)) for axis, n in enumerate(shape)
    ]
    if not counters:
        return filled("indices", constant(0, "int64"), (0,), dtype)
    places = tuple(((i,) + (0,) * rank, (1,) * (rank + 1)) for i in range(rank))
    type_ = TensorType((rank, *shape), dtype)
    parts = [cast(c, dtype) for c in counters]
    return apply(ASSEMBLE, parts, type_, places=places, filled=False)


def _along(x: Value, axis: int, rank: int) -> Value:
    """A one-dimensional value as dimension `axis` of `rank`."""
    return views.reshape(x, (1,) * axis + (x.size,) + (1,) * (rank - axis - 1))


@operation(
    name="meshgrid",
    public=(),
    numpy=lambda xi, **facts: numpy.meshgrid(*xi, **facts),
    samples=Samples(
        [
            Case(([(3,), (4,)],)),
            Case(([(3,), (2,), (4,)],), {"indexing": "ij"}),
            Case(([(3,), ()],), {"sparse": True}),
        ],
        dtypes=("int32", "float32"),
    ),
)
def grids(xi: Operands, indexing: str = "xy", sparse: bool = False) -> tuple[Value, ...]:
    """Coordinate grids from one-dimensional coordinates."""
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"meshgrid: indexing={indexing!r}; expected 'xy' or 'ij'.")
    flat = [views.reshape(x, (x.size,)) for x in xi]
    rank = len(flat)
    axes = list(range(rank))
    if indexing == "xy" and rank > 1:
        axes[:2] = 1, 0
    lines = [_along(x, axis, rank) for x, axis in zip(flat, axes, strict=True)]
    return tuple(lines if sparse else broadcast_all("meshgrid", lines))


# -- windows --------------------------------------------------------------------------------------


def _cosine(turns: Value, times: float, weight: float) -> Value:
    """`weight` times the cosine of `times` whole turns."""
    angle = elementwise.multiply(turns, 2 * math.pi * times)
    return elementwise.multiply(real.cos(angle), weight)


def _window(name: str, count: Any, dtype: str | None, terms: Sequence[float]) -> Value:
    """A sum of cosines over one period of `count` points; `terms[i]` weighs the i-th harmonic."""
    count = operator.index(count)
    dtype = dtype or DEFAULT_FLOAT
    if count <= 1:
        return filled(name, constant(1, "int64"), (max(count, 0),), dtype)
    turns = elementwise.true_divide(cast(iota(count), "float64"), extent(count - 1))
    total = constant(terms[0], "float64")
    for times, weight in enumerate(terms[1:], 1):
        total = elementwise.add(total, _cosine(turns, times, weight))
    return cast(total, dtype)


_WINDOWS = cases_of({"M": 12}, {"M": 1}, {"M": 0}, {"M": 5, "dtype": "float64"})


def _untyped(reference: Callable[..., Any]) -> Callable[..., Any]:
    return lambda M, dtype=None: reference(M)


@operation(numpy=_untyped(numpy.hanning), names={"mxnet": "_npi_hanning"}, samples=_WINDOWS)
def hanning(M: int, dtype: str | None = None, ctx: Context | None = None) -> Value:
    """The Hann window of `M` points."""
    check_layout("hanning", "C", ctx)
    return _window("hanning", M, dtype, (0.5, -0.5))


@operation(numpy=_untyped(numpy.hamming), names={"mxnet": "_npi_hamming"}, samples=_WINDOWS)
def hamming(M: int, dtype: str | None = None, ctx: Context | None = None) -> Value:
    """The Hamming window of `M` points."""
    check_layout("hamming", "C", ctx)
    return _window("hamming", M, dtype, (0.54, -0.46))


@operation(numpy=_untyped(numpy.blackman), names={"mxnet": "_npi_blackman"}, samples=_WINDOWS)
def blackman(M: int, dtype: str | None = None, ctx: Context | None = None) -> Value:
    """The Blackman window of `M` points."""
    check_layout("blackman", "C", ctx)
    return _window("blackman", M, dtype, (0.42, -0.5, 0.08))
