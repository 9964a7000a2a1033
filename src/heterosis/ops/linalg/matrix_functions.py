"""Linear algebra that follows from factorisations: least squares, ranks, norms, powers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, TypeAlias

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant, extent
from heterosis.ir.types import numpy_dtype
from heterosis.ops.linalg.factorizations import (
    REAL,
    identity,
    inv,
    linear_algebra,
    lu,
    matrices,
    matrix_samples,
    real_type,
    svd,
    transposed,
)
from heterosis.ops.linalg.matmul import matmul, product
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.math import reductions as rd
from heterosis.ops.record import Operands
from heterosis.ops.rules import cast, floating, wide
from heterosis.ops.samples import Case
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axes

Order: TypeAlias = "int | float | str | None"

_ANY = ((3, 5), (5, 3), (2, 4, 3), (1, 1))


def _zero() -> Value:
    return constant(0, "int64", weak=True)


def _inserted(x: Value, axis: int) -> Value:
    """`x` with a dimension of one element before `axis`, which counts from the end if negative."""
    at = axis + x.ndim + 1 if axis < 0 else axis
    return views.reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


# -- what follows from singular values ------------------------------------------------------------


def _values(a: Value) -> Value:
    """Singular values; sizes of eigenvalues would do for symmetric matrices, and are no cheaper."""
    values: Value = svd(a, compute_uv=False)
    return values


def _cutoff(a: Value, values: Value, relative: Value | None) -> Value:
    """The size up to which singular values count as zero, for each matrix."""
    if relative is None:
        relative = e.multiply(
            extent(max(a.shape[-2:])),
            constant(float(numpy.finfo(numpy_dtype(a.dtype)).eps), a.dtype),
        )
    largest = rd.max(values, -1, keepdims=True)
    relative = cast(relative, a.dtype)
    return e.multiply(largest, _inserted(relative, -1) if relative.ndim else relative)


@linear_algebra(
    numpy=lambda a, rcond=None: numpy.linalg.pinv(a, **({} if rcond is None else {"rtol": rcond})),
    names={"mxnet": "_npi_pinv"},
    samples=matrix_samples(shapes=(*_ANY, (0, 3), (2, 3, 0))),
)
def pinv(a: Value, rcond: Value | None = None, hermitian: bool = False) -> Value:
    """The inverse in the sense of least squares.

    Singular values up to `rcond` times the largest count as zero; by default, as many as rounding
    makes uncertain. Symmetric matrices (`hermitian`) need nothing else.
    """
    a = matrices("pinv", a)
    if not a.size:
        return views.reshape(a, (*a.shape[:-2], a.shape[-1], a.shape[-2]))
    u, values, vt = svd(a)
    kept = e.greater(values, _cutoff(a, values, rcond))
    inverse = e.select(kept, r.reciprocal(values), _zero())
    return product("pinv", e.multiply(transposed(vt), _inserted(inverse, -2)), transposed(u))


@linear_algebra(
    numpy=numpy.linalg.matrix_rank,
    samples=matrix_samples(shapes=((3, 5), (4, 4), (2, 4, 3), (5,), ())),
)
def matrix_rank(A: Value, tol: Value | None = None, hermitian: bool = False) -> Value:
    """How many singular values exceed `tol`; by default, what rounding makes uncertain."""
    if A.ndim < 2:
        return cast(rd.max(e.not_equal(views.reshape(A, (A.size,)), _zero())), "int64")
    a = matrices("matrix_rank", A)
    if not a.size:
        return views.broadcast(constant(0, "int64"), a.shape[:-2])
    values = _values(a)
    limit = _cutoff(a, values, None) if tol is None else _inserted(cast(tol, a.dtype), -1)
    return rd.sum(cast(e.greater(values, limit), "int64"), -1)


@linear_algebra(name="least_squares", public=())
def least_squares(
    a: Value, b: Value, rcond: Value | None = None
) -> tuple[Value, Value, Value, Value]:
    """x of least size that makes `a @ x - b` smallest; squared distances, rank, singular values."""
    dtype = real_type("lstsq", a, b)
    a, b = cast(matrices("lstsq", a), dtype), cast(b, dtype)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ShapeError(
            f"lstsq: a matrix of shape {a.shape} and right-hand sides of shape {b.shape}; "
            "expected (M, N) and (M,) or (M, K)."
        )
    if rcond is not None and rcond.size != 1:
        raise ShapeError(f"lstsq: rcond is an array of shape {rcond.shape}; expected one number.")
    rcond = rcond if rcond is None else views.reshape(rcond, ())
    right = views.reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
    u, values, vt = svd(a)
    kept = e.greater(values, _cutoff(a, values, rcond)) if a.size else cast(values, "bool")
    inverse = e.select(kept, r.reciprocal(values), _zero())
    along = product("lstsq", transposed(u), right)
    x = product("lstsq", transposed(vt), e.multiply(along, _inserted(inverse, -1)))
    rest = e.square(e.subtract(right, product("lstsq", a, x)))
    rank = rd.sum(cast(kept, "int64"))
    shape = x.shape[:1] if b.ndim == 1 else x.shape
    return views.reshape(x, shape), rd.sum(rest, 0), rank, values


# -- norms ----------------------------------------------------------------------------------------

_NAMED: dict[Order, Order] = {"inf": inf, "-inf": -inf}


def _norm_cases() -> tuple[Case, ...]:
    vectors = [Case(((3, 7),), {"ord": o, "axis": 1}) for o in (None, 0, 1, 2, 3, inf, -inf, 0.5)]
    matrices = [Case(((4, 4),), {"ord": o}) for o in (None, "fro", "nuc", 1, -1, 2, -2, inf, -inf)]
    more = [Case(((2, 3, 4),), {"ord": o, "axis": (0, 2)}) for o in ("fro", 1, 2)]
    kept = [Case(((2, 3, 4),), {"axis": a, "keepdims": True}) for a in (None, 1, (2, 0))]
    return (
        *vectors,
        *matrices,
        *more,
        *kept,
        Case(((),)),
        Case(((0,),)),
        Case(((5,),), {"ord": 2}),
    )


@linear_algebra(
    numpy=numpy.linalg.norm,
    names={"mxnet": "_npi_norm"},
    public=("linalg", "ndarray"),
    samples=matrix_samples(
        *_norm_cases(), domain=(0.1, 4), dtypes=(*REAL, "int32", "float16"), ulps=40
    ),
)
def norm(
    x: Value, ord: Order = None, axis: int | tuple[int, ...] | None = None, keepdims: bool = False
) -> Value:
    """The size of vectors or matrices.

    Without `ord` and `axis`, the root of the sum of all squares. An `axis` means vectors along it:
    the root of squares, or `ord` = 0 (how many are not 0), 1, 2, inf, -inf or any power. Two axes,
    or a matrix without `axis`, mean matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf.
    """
    ord = _NAMED.get(ord, ord)
    dtype = floating(x.dtype)
    axes = _norm_axes(x, ord, axis)
    of_matrices = ord is not None and len(axes) == 2
    if ord is not None and len(axes) > 2:
        raise ArgumentError(
            f"norm: {len(axes)} axes and ord {ord!r}; "
            "name one axis for vectors or two for matrices."
        )
    size: Callable[..., Value] = _matrix_norm if of_matrices else _vector_norm
    found = size(cast(x, wide(dtype)), ord, axes)
    if keepdims:
        kept = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        found = views.reshape(found, kept)
    return cast(found, dtype)


def _norm_axes(x: Value, ord: Any, axis: Any) -> tuple[int, ...]:
    """The axes in the order given: rows come before columns."""
    if axis is None and ord is not None and x.ndim > 2:
        raise ArgumentError(
            f"norm: ord {ord!r} of an array of {x.ndim} dimensions; name the axis of the vectors "
            "or the two axes of the matrices."
        )
    checked = check_axes("norm", axis, x.ndim)
    if not isinstance(axis, tuple):
        return checked
    return tuple(a % x.ndim for a in axis)


def _vector_norm(x: Value, ord: Any, axes: tuple[int, ...]) -> Value:
    size = e.absolute(x)
    if ord in (None, 2):
        return r.root(rd.sum(e.square(x), axes))
    if isinstance(ord, str):
        raise ArgumentError(f"norm: ord {ord!r} of vectors; expected a number, np.inf or -np.inf.")
    if ord in (inf, -inf):
        return (rd.max if ord > 0 else rd.min)(size, axes)
    if ord == 0:
        return rd.sum(cast(e.not_equal(x, _zero()), x.dtype), axes)
    if ord == 1:
        return rd.sum(size, axes)
    power = constant(float(ord), "float64", weak=True)
    raised = e.power if ord < 0 else _power
    return raised(rd.sum(raised(size, power), axes), r.reciprocal(cast(power, x.dtype)))


def _power(x: Value, exponent: Value) -> Value:
    """`x ** exponent`, both positive; the slope at zero counts as zero, as in `real.root`."""
    zero = e.equal(x, _zero())
    return e.select(zero, x, e.power(e.select(zero, constant(1, "int64", weak=True), x), exponent))


def _matrix_norm(x: Value, ord: Any, axes: tuple[int, int]) -> Value:
    rows, columns = axes
    if ord == "fro":
        return r.root(rd.sum(e.square(x), axes))
    if ord in (1, -1, inf, -inf):
        along, other = (columns, rows) if ord in (inf, -inf) else (rows, columns)
        sums = rd.sum(e.absolute(x), along)
        return (rd.max if ord > 0 else rd.min)(sums, other - (other > along))
    if ord not in ("nuc", 2, -2):
        raise ArgumentError(
            f"norm: ord {ord!r} of matrices; "
            "expected 'fro', 'nuc', 1, -1, 2, -2, np.inf or -np.inf."
        )
    kept = tuple(a for a in range(x.ndim) if a not in axes)
    values = _values(views.transpose(x, (*kept, rows, columns)))
    over: dict[Order, Callable[..., Value]] = {"nuc": rd.sum, 2: rd.max, -2: rd.min}
    return over[ord](values, -1)


@linear_algebra(
    numpy=numpy.linalg.cond,
    samples=matrix_samples(*(Case(((4, 4),), {"p": p}) for p in (None, "fro", 1, 2, -2, inf))),
)
def cond(x: Value, p: Order = None) -> Value:
    """How much a matrix magnifies relative errors: the norm of it times that of its inverse."""
    x = matrices("cond", x)
    if p in (None, 2, -2):
        values = _values(x)
        largest, smallest = rd.max(values, -1), rd.min(values, -1)
        over, under = (smallest, largest) if p == -2 else (largest, smallest)
        none = e.equal(largest, constant(0.0, x.dtype))  # a matrix of zeros magnifies all of them
        return e.select(none, constant(inf, x.dtype), e.true_divide(over, under))
    axes = (x.ndim - 2, x.ndim - 1)
    p = _NAMED.get(p, p)
    x = matrices("cond", x, square=True)
    # What has no inverse magnifies them without a bound; the identity stands in for it.
    diagonal, _ = lu(x)
    singular = rd.any(e.equal(diagonal, _zero()), axes[0], True)
    inverse = inv(e.select(_inserted(singular, -1), identity((), x.shape[-1], x.dtype), x))
    magnified = e.multiply(_matrix_norm(x, p, axes), _matrix_norm(inverse, p, axes))
    return e.select(views.reshape(singular, x.shape[:-2]), constant(inf, x.dtype), magnified)


# -- products -------------------------------------------------------------------------------------


@linear_algebra(
    numpy=numpy.linalg.matrix_power,
    samples=matrix_samples(
        *(Case(((3, 3),), {"n": n}) for n in (-2, 0, 1, 2, 5)), Case(((2, 4, 4),), {"n": 3})
    ),
)
def matrix_power(a: Value, n: int) -> Value:
    """The product of `n` copies of each square matrix; of its inverse where `n` is negative."""
    if n < 0:
        a = matrices("matrix_power", a, square=True)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"matrix_power: needs square matrices, and got shape {a.shape}.")
    base, left = (inv(a), -n) if n < 0 else (a, n)
    result: Value | None = None
    while left:
        if left & 1:
            result = base if result is None else product("matrix_power", result, base)
        left >>= 1
        base = product("matrix_power", base, base) if left else base
    if result is None:
        return identity(a.shape[:-2], a.shape[-1], a.dtype)
    return result


@linear_algebra(
    numpy=numpy.linalg.multi_dot,
    samples=matrix_samples(Case(([(3, 4), (4, 5), (5, 2)],)), Case(([(4,), (4, 5), (5,)],))),
)
def multi_dot(arrays: Operands) -> Value:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    if len(arrays) < 2:
        raise ArgumentError(f"multi_dot: needs two arrays or more, and got {len(arrays)}.")
    shapes = [x.shape for x in arrays]
    if any(x.ndim != 2 for x in arrays[1:-1]) or any(x.ndim not in (1, 2) for x in arrays):
        raise ShapeError(f"multi_dot: shapes {shapes}; expected matrices, or vectors at the ends.")
    bounds = [1 if len(shapes[0]) == 1 else shapes[0][0], *(shape[0] for shape in shapes[1:])]
    bounds.append(1 if len(shapes[-1]) == 1 else shapes[-1][1])
    return _chain(arrays, _cheapest(tuple(bounds)), 0, len(arrays) - 1)


def _cheapest(bounds: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where to cut each run of factors, factor `i` having `bounds[i]` rows."""
    count = len(bounds) - 1
    price = {(i, i): 0 for i in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            prices = {
                cut: price[i, cut] + price[cut + 1, j] + bounds[i] * bounds[cut + 1] * bounds[j + 1]
                for cut in range(i, j)
            }
            cuts[i, j] = min(prices, key=prices.__getitem__)
            price[i, j] = prices[cuts[i, j]]
    return cuts


def _chain(arrays: Sequence[Value], cuts: dict[tuple[int, int], int], i: int, j: int) -> Value:
    if i == j:
        return arrays[i]
    cut = cuts[i, j]
    return matmul(_chain(arrays, cuts, i, cut), _chain(arrays, cuts, cut + 1, j))
