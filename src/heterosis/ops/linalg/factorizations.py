"""Linear algebra: factorisations through LAPACK, and what follows from them."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.primitives import factorizations
from heterosis.ir.primitives.control import COND
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.program import ASSEMBLE, INPUT, IOTA, Program, Value, apply, apply_many, constant
from heterosis.ir.types import TensorType
from heterosis.ops.linalg.matmul import matmul
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import reductions as rd
from heterosis.ops.math.real import log
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_shapes, cast, floating, result_type
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

# -- factorisations as primitives -----------------------------------------------------------------


def _factorize(primitive: Opaque, operands: tuple[Value, ...], *shapes: Any) -> tuple[Value, ...]:
    """Results of `shapes` for each matrix; a shape may be paired with an element type."""
    lead = operands[0].shape[:-2]
    ranks = (2, 1) if primitive is factorizations.REFLECTORS else (2,) * len(operands)
    flat = []
    for operand, rank in zip(operands, ranks, strict=True):
        flat.append(views.reshape(operand, (prod(lead), *operand.shape[operand.ndim - rank :])))
    types = []
    for shape in shapes:
        own, dtype = shape if shape and isinstance(shape[-1], str) else (shape, flat[0].dtype)
        types.append(TensorType((prod(lead), *own), dtype))
    found = apply_many(primitive, flat, types)
    return tuple(views.reshape(v, lead + v.shape[1:]) for v in found)


# -- operands -------------------------------------------------------------------------------------


def real_type(name: str, *values: Value) -> str:
    """The type to compute in: LAPACK's are float32 and float64."""
    dtype = floating(result_type(*values))
    if dtype not in ("float32", "float64"):
        raise DTypeError(
            f"{name}: needs float32 or float64, and got {dtype}; convert with .astype('float32')."
        )
    return dtype


def matrices(name: str, a: Value, *, square: bool = False) -> Value:
    """`a` checked to be a matrix or a stack of them, as floats."""
    if a.ndim < 2:
        raise ShapeError(
            f"{name}: needs a matrix or a stack of matrices, and got an array of shape {a.shape}; "
            "add dimensions with np.expand_dims or reshape."
        )
    if square and a.shape[-1] != a.shape[-2]:
        raise ShapeError(
            f"{name}: the last two dimensions must be equal, and the shape is {a.shape}; "
            "for matrices that are not square see np.linalg.lstsq, pinv and svd."
        )
    return cast(a, real_type(name, a))


def _transposed_inverse(a: Any) -> Any:
    return numpy.swapaxes(numpy.linalg.inv(a), -1, -2)


def transposed(x: Value) -> Value:
    return views.transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _rows_and_columns(rows: int, columns: int) -> tuple[Value, Value]:
    """The numbers of rows and of columns, ready to be compared at every element."""
    row = apply(IOTA, (), TensorType((rows,), "int64"))
    column = apply(IOTA, (), TensorType((columns,), "int64"))
    return views.reshape(row, (rows, 1)), views.reshape(column, (1, columns))


def identity(lead: tuple[int, ...], n: int, dtype: str) -> Value:
    row, column = _rows_and_columns(n, n)
    return views.broadcast(cast(e.equal(row, column), dtype), (*lead, n, n))


def _triangle(x: Value, compare: Any) -> Value:
    """Elements of `x` where `compare(row, column)` holds, zeros elsewhere."""
    return e.select(compare(*_rows_and_columns(*x.shape[-2:])), x, constant(0, "int64", weak=True))


def lower_triangle(x: Value) -> Value:
    return _triangle(x, e.greater_equal)


# -- samples --------------------------------------------------------------------------------------

REAL = ("float32", "float64")
_SQUARE = ((3, 3), (1, 1), (17, 17), (2, 4, 4), (0, 0), (0, 3, 3))


def matrix_samples(*cases: Case, shapes: Any = (), **facts: Any) -> Samples:
    every = (*(Case((shape,)) for shape in shapes), *cases)
    every_fact: dict[str, Any] = {"ulps": 3e3, "absolute": 3e3, "dtypes": REAL} | facts
    return Samples(every, **every_fact)


linear_algebra = partial(operation, public=("linalg",))


# -- factorisations -------------------------------------------------------------------------------


@linear_algebra(numpy=numpy.linalg.cholesky, names={"mxnet": "_npi_cholesky"})
def cholesky(a: Value, upper: bool = False) -> Value:
    """L, lower triangular, with `L @ L.T == a`; its transpose if `upper`. Needs `a` positive
    definite, and reads only its lower triangle."""
    a = matrices("cholesky", a, square=True)
    (found,) = _factorize(factorizations.CHOLESKY, (transposed(a) if upper else a,), a.shape[-2:])
    lower = lower_triangle(found)
    return transposed(lower) if upper else lower


@linear_algebra(numpy=numpy.linalg.qr)
def qr(a: Value, mode: str = "reduced") -> Value | tuple[Value, Value]:
    """An orthogonal matrix and an upper triangular one whose product is `a`.

    `mode` is "reduced", "complete" (a square orthogonal matrix) or "r" (only the triangular one).
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr: mode is {mode!r}; expected 'reduced', 'complete' or 'r'.")
    a = matrices("qr", a)
    m, n = a.shape[-2:]
    count = min(m, n)
    columns = m if mode == "complete" else count
    packed, tau = _factorize(factorizations.ORTHOGONAL, (a,), (m, n), (count,))
    upper = _triangle(_cropped(packed, columns, n), e.less_equal)
    if mode == "r":
        return upper
    if not count:
        return identity(a.shape[:-2], m, a.dtype) if columns else _cropped(a, m, 0), upper
    wide = _widened(packed, m) if columns > n else packed
    (orthogonal,) = _factorize(factorizations.REFLECTORS, (wide, tau), wide.shape[-2:])
    return _cropped(orthogonal, m, columns), upper


def _cropped(x: Value, rows: int, columns: int) -> Value:
    """The upper left part of each matrix."""
    shape = (*x.shape[:-2], rows, columns)
    return views.slice_(x, (0,) * x.ndim, (1,) * x.ndim, shape) if shape != x.shape else x


def _widened(x: Value, columns: int) -> Value:
    """Each matrix with columns of zeros behind it."""
    type_ = TensorType((*x.shape[:-1], columns), x.dtype)
    places = (((0,) * x.ndim, (1,) * x.ndim),)
    return apply(ASSEMBLE, (constant(0.0, x.dtype), x), type_, places=places, filled=True)


@linear_algebra(numpy=numpy.linalg.svd, names={"mxnet": "_npi_svd"})
def svd(a: Value, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """U, S and V transposed, with `a == (U * S) @ Vt`; only S unless `compute_uv`.

    S holds min(M, N) numbers, the largest first. U has as many columns and Vt as many rows, unless
    `full_matrices` asks for square ones.
    """
    a = matrices("svd", a)
    m, n = a.shape[-2:]
    k = min(m, n)
    if not compute_uv:
        return _factorize(factorizations.SINGULAR_VALUES, (a,), (k,))[0]
    if not full_matrices:
        return _factorize(factorizations.SINGULAR, (a,), (m, k), (k,), (k, n))
    if k == 0:
        lead = a.shape[:-2]
        values = views.reshape(a, (*lead, 0))
        return identity(lead, m, a.dtype), values, identity(lead, n, a.dtype)
    return _factorize(factorizations.SINGULAR_FULL, (a,), (m, m), (k,), (n, n))


@linear_algebra(numpy=numpy.linalg.eigh, names={"mxnet": "_npi_eigh"})
def eigh(a: Value, UPLO: str = "L") -> tuple[Value, Value]:
    """Eigenvalues of symmetric matrices, upwards, and their eigenvectors as columns.

    `UPLO` names the triangle that is read: "L" or "U".
    """
    a = matrices("eigh", a, square=True)
    n = a.shape[-1]
    values, rows = _factorize(
        factorizations.SYMMETRIC[_triangle_named("eigh", UPLO)], (a,), (n,), (n, n)
    )
    return values, transposed(rows)


@linear_algebra(numpy=numpy.linalg.eigvalsh, names={"mxnet": "_npi_eigvalsh"})
def eigvalsh(a: Value, UPLO: str = "L") -> Value:
    """Eigenvalues of symmetric matrices, upwards."""
    a = matrices("eigvalsh", a, square=True)
    what = factorizations.SYMMETRIC_VALUES[_triangle_named("eigvalsh", UPLO)]
    return _factorize(what, (a,), (a.shape[-1],))[0]


def _triangle_named(name: str, uplo: str) -> str:
    if str(uplo).upper() not in ("L", "U"):
        raise ArgumentError(f"{name}: UPLO is {uplo!r}; expected 'L' or 'U'.")
    return uplo.upper()


@linear_algebra(numpy=numpy.linalg.eig, names={"mxnet": "_npi_eig"})
def eig(a: Value) -> tuple[Value, Value]:
    """Eigenvalues and eigenvectors, as columns, of square matrices whose eigenvalues are real."""
    a = matrices("eig", a, square=True)
    n = a.shape[-1]
    values, rows = _factorize(factorizations.GENERAL, (a,), (n,), (n, n))
    return values, transposed(rows)


@linear_algebra(numpy=numpy.linalg.eigvals, names={"mxnet": "_npi_eigvals"})
def eigvals(a: Value) -> Value:
    """Eigenvalues of square matrices whose eigenvalues are real."""
    a = matrices("eigvals", a, square=True)
    return _factorize(factorizations.GENERAL_VALUES, (a,), (a.shape[-1],))[0]


# -- determinants and systems of equations --------------------------------------------------------


@linear_algebra(
    numpy=numpy.linalg.inv, names={"mxnet": "_npi_inv"}, samples=matrix_samples(shapes=_SQUARE)
)
def inv(a: Value) -> Value:
    """The inverse of square matrices."""
    a = matrices("inv", a, square=True)
    return _factorize(factorizations.INVERSE, (a,), a.shape[-2:])[0]


def lu(a: Value) -> tuple[Value, Value]:
    """The diagonal of U, and whether an odd number of rows changed places."""
    n = a.shape[-1]
    packed, pivots = _factorize(factorizations.LU, (a,), (n, n), ((n,), "int32"))
    place = apply(IOTA, (), TensorType((n,), "int64"))
    moved = e.not_equal(cast(pivots, "int64"), e.add(place, constant(1, "int64")))
    changes = rd.sum(cast(moved, "int64"), -1)
    odd = e.not_equal(e.bitwise_and(changes, constant(1, "int64")), constant(0, "int64"))
    return views.diagonal(packed, (packed.ndim - 2, packed.ndim - 1), (0, 0), n), odd


def _signed(odd: Value, x: Value) -> Value:
    return e.select(odd, e.negative(x), x)


@linear_algebra(
    numpy=numpy.linalg.det, names={"mxnet": "_npi_det"}, samples=matrix_samples(shapes=_SQUARE)
)
def det(a: Value) -> Value:
    """The determinant of square matrices. Its gradient exists for singular ones, too."""
    diagonal, odd = lu(matrices("det", a, square=True))
    return _signed(odd, rd.prod(diagonal, -1))


@linear_algebra(
    numpy=lambda a, determinant: determinant[..., None, None] * _transposed_inverse(a),
    public=(),
    samples=matrix_samples(Case(((3, 3), ())), Case(((2, 4, 4), (2,))), Case(((0, 2, 2), (0,)))),
)
def cofactors(a: Value, determinant: Value) -> Value:
    """The derivative of the determinant, which is given: that times the inverse, transposed. Where
    a determinant is 0, it is of the singular values, and exists too."""
    if not a.size:
        return a
    operands = [apply(INPUT, (), value.type) for value in (a, determinant)]
    ways = (_cofactors_of_singular(operands[0]), _cofactors_by_inverse(*operands))
    then, otherwise = (Program(tuple(operands), (way,), "cofactors") for way in ways)
    is_singular = rd.any(e.equal(determinant, constant(0.0, a.dtype)))
    given = (is_singular, a, determinant)
    return apply(COND, given, a.type, then=then, otherwise=otherwise)


def _cofactors_by_inverse(a: Value, determinant: Value) -> Value:
    return e.multiply(views.reshape(determinant, (*determinant.shape, 1, 1)), transposed(inv(a)))


def _cofactors_of_singular(a: Value) -> Value:
    """U, and Vt whose rows are multiplied by all singular values but their own."""
    u, values, vt = svd(a)
    n = a.shape[-1]
    row = views.reshape(values, (*values.shape[:-1], 1, n))
    own = cast(identity(values.shape[:-1], n, a.dtype), "bool")
    others = rd.prod(e.select(own, constant(1.0, a.dtype), row), -1)
    turned = e.sign(e.multiply(det(u), det(vt)))
    column = views.reshape(
        e.multiply(others, views.reshape(turned, (*turned.shape, 1))), (*others.shape, 1)
    )
    return matmul(u, e.multiply(column, vt))


@linear_algebra(
    numpy=numpy.linalg.slogdet,
    names={"mxnet": "_npi_slogdet"},
    samples=matrix_samples(shapes=_SQUARE),
)
def slogdet(a: Value) -> tuple[Value, Value]:
    """The sign of the determinant, and the logarithm of its size, which has no gradient where the
    matrix is singular: that is an error."""
    diagonal, odd = lu(matrices("slogdet", a, square=True))
    sign = _signed(odd, rd.prod(e.sign(diagonal), -1))
    return sign, rd.sum(log(e.absolute(diagonal)), -1)


_SYSTEMS = (((3, 3), (3,)), ((5, 5), (5, 2)), ((2, 4, 4), (4, 3)), ((3, 3), (2, 3, 1)))


@linear_algebra(
    numpy=numpy.linalg.solve,
    names={"mxnet": "_npi_solve"},
    samples=matrix_samples(
        *(Case(pair) for pair in (*_SYSTEMS, ((0, 0), (0, 2)), ((2, 2), (2, 0))))
    ),
)
def solve(a: Value, b: Value) -> Value:
    """The x with `a @ x == b`. `b` is a vector if it has one dimension, else matrices."""
    if b.ndim == 1:
        found = _solved(a, views.reshape(b, (*b.shape, 1)))
        return views.reshape(found, found.shape[:-1])
    return _solved(a, b)


def _solved(a: Value, b: Value) -> Value:
    dtype = real_type("solve", a, b)
    a, b = cast(matrices("solve", a, square=True), dtype), cast(b, dtype)
    if b.ndim < 2 or b.shape[-2] != a.shape[-1]:
        raise ShapeError(
            f"solve: {a.shape[-1]} equations and right-hand sides of shape {b.shape}; "
            f"expected (..., {a.shape[-1]}, K), or ({a.shape[-1]},)."
        )
    lead = broadcast_shapes("solve", (a.shape[:-2], b.shape[:-2]))
    a = views.broadcast(a, lead + a.shape[-2:])
    b = transposed(views.broadcast(b, lead + b.shape[-2:]))
    return transposed(_factorize(factorizations.SOLVE, (a, b), b.shape[-2:])[0])


@linear_algebra(
    numpy=numpy.linalg.tensorinv,
    names={"mxnet": "_npi_tensorinv"},
    samples=matrix_samples(Case(((2, 3, 3, 2),)), Case(((4, 2, 2),), {"ind": 1})),
)
def tensorinv(a: Value, ind: int = 2) -> Value:
    """The inverse of `tensordot(a, ., ind)`: the first `ind` dimensions count as rows."""
    if ind <= 0:
        raise ArgumentError(f"tensorinv: ind is {ind}; expected a positive number of dimensions.")
    rows, columns = a.shape[:ind], a.shape[ind:]
    matrix = views.reshape(a, (prod(rows), prod(columns)))
    return views.reshape(inv(matrix), columns + rows)


def _reference_tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    return numpy.linalg.tensorsolve(a, b, axes)


@linear_algebra(
    numpy=_reference_tensorsolve,
    names={"mxnet": "_npi_tensorsolve"},
    samples=matrix_samples(
        Case(((2, 3, 6), (2, 3))), Case(((2, 6, 3), (2, 3)), {"axes": (1,)}), Case(((4, 4), (4,)))
    ),
)
def tensorsolve(a: Value, b: Value, axes: tuple[int, ...] | None = None) -> Value:
    """The x with `tensordot(a, x, x.ndim) == b`; `axes` of `a` are moved to its end first."""
    if axes is not None:
        moved = tuple(axis % a.ndim for axis in axes)
        kept = [axis for axis in range(a.ndim) if axis not in moved]
        a = views.transpose(a, (*kept, *moved))
    unknowns = a.shape[b.ndim :]
    if prod(unknowns) != b.size or a.shape[: b.ndim] != b.shape:
        raise ShapeError(
            f"tensorsolve: {prod(unknowns)} unknowns for {b.size} equations; an array of shape "
            f"{a.shape} needs right-hand sides of shape {a.shape[: b.ndim]} and as many unknowns."
        )
    matrix = views.reshape(a, (b.size, b.size))
    return views.reshape(solve(matrix, views.reshape(b, (b.size,))), unknowns)
