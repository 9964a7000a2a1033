"""Factorisations of matrices, one a row of their first dimension, and what solves with them.

LAPACK's conventions: factors share a matrix where each leaves the other's half, a reflector is
`1 - tau * outer(v, v)`, and v begins with a 1 that is not stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.numbers import precise
from heterosis.ir.sizes import Size
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import LinearAlgebraError, ShapeError, UnsupportedError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Shapes = tuple[tuple[int, ...], ...]
Triangle = Literal["L", "U"]  # the one that is read

_FLOATS = ("float32", "float64")

# What a kernel says when it fails, and so does the meaning.
NOT_POSITIVE = "the matrix is not positive definite"
SINGULAR_MATRIX = "the matrix is singular"
NO_EIGENVALUES = "the eigenvalues did not converge"
COMPLEX = (
    "the matrix has complex eigenvalues, and there are no arrays of complex numbers; "
    "for a symmetric matrix use eigh or eigvalsh"
)
NOT_FINITE = "the matrix has inf or NaN in it"
NO_SINGULAR_VALUES = "the singular values did not converge"


# -- rules ----------------------------------------------------------------------------------------


def _types(
    shapes: Callable[[int, int], Shapes], *, square: bool = False
) -> Callable[[Node], tuple[TensorType, ...]]:
    """The rule for matrices of which each has results of `shapes(rows, columns)`."""

    def types(node: Node) -> tuple[TensorType, ...]:
        count, m, n = _matrices(node, square)
        expected.operands(node, 1)
        dtype = expected.element_type(node, 0, _FLOATS)
        return tuple(TensorType((count, *shape), dtype) for shape in shapes(m, n))

    return types


def _matrices(node: Node, square: bool) -> tuple[int, int, int]:
    shape = node.inputs[0].shape if node.inputs else ()
    if len(shape) != 3 or (square and shape[1] != shape[2]):
        wanted = "(count, n, n)" if square else "(count, rows, columns)"
        raise ShapeError(f"{node.primitive}: matrices of shape {shape}; expected {wanted}.")
    return shape[0], shape[1], shape[2]


def _smaller(rows: int, columns: int) -> int:
    """The smaller extent of matrices, which has to be known to be one of a program's."""
    if isinstance(rows, Size) or isinstance(columns, Size):
        if rows == columns:
            return rows
        raise UnsupportedError(
            f"matrices of {rows} x {columns}, of which it has to be known which extent is the "
            "smaller one: leave neither open."
        )
    return min(rows, columns)


def _lu_types(node: Node) -> tuple[TensorType, ...]:
    expected.operands(node, 1)
    count, n, _ = _matrices(node, True)
    dtype = expected.element_type(node, 0, _FLOATS)
    return TensorType((count, n, n), dtype), TensorType((count, n), "int32")


def _solved_types(node: Node) -> tuple[TensorType, ...]:
    _, right = expected.operands(node, 2)
    count, n, _ = _matrices(node, True)
    dtype = expected.common_element_type(node, _FLOATS)
    expected.ranks(node, 3, 3)
    expected.shapes(node, (count, n, n), (count, right.shape[1], n))
    return (TensorType(right.shape, dtype),)


def _reflector_types(node: Node) -> tuple[TensorType, ...]:
    packed, tau = expected.operands(node, 2)
    count, m, n = _matrices(node, False)
    dtype = expected.common_element_type(node, _FLOATS)
    expected.ranks(node, 3, 2)
    if tau.shape[0] != count or tau.shape[1] > min(m, n):
        raise ShapeError(
            f"{node.primitive}: {tau.shape} factors for matrices of shape {packed.shape}; "
            f"expected ({count}, {min(m, n)}) or fewer for each."
        )
    return (TensorType(packed.shape, dtype),)


# -- meanings -------------------------------------------------------------------------------------


def _each(
    function: Callable[..., tuple[Any, ...]], failure: str | None = None
) -> Callable[..., Any]:
    """`function` of one matrix of each operand, for all of them; NumPy's error as `failure`."""

    def meaning(node: Node, *arrays: Any) -> Any:
        results = [numpy.empty(type_.shape) for type_ in node.types]
        for i, matrices in enumerate(zip(*map(precise, arrays), strict=True)):
            try:
                found = function(*matrices)
            except LinearAlgebraError:
                raise
            except numpy.linalg.LinAlgError:
                raise LinearAlgebraError(failure) from None
            for result, one in zip(results, found, strict=True):
                result[i] = one
        return tuple(results)

    return meaning


def _cholesky(a: Any) -> tuple[Any, ...]:
    return (numpy.tril(numpy.linalg.cholesky(a)) + numpy.triu(a, 1),)


def _lu(a: Any) -> tuple[Any, ...]:
    """Columns of `a` change places, as rows of its transpose do."""
    packed, n = a.T.copy(), len(a)
    pivots = numpy.empty(n, "int32")
    for i in range(n):
        best = i + int(abs(packed[i:, i]).argmax())
        pivots[i] = best + 1
        packed[[i, best]] = packed[[best, i]]
        if packed[i, i] != 0.0:
            packed[i + 1 :, i] /= packed[i, i]
        packed[i + 1 :, i + 1 :] -= numpy.outer(packed[i + 1 :, i], packed[i, i + 1 :])
    return packed.T, pivots


def _inverse(a: Any) -> tuple[Any, ...]:
    return (numpy.linalg.inv(a),)


def _solved(a: Any, right: Any) -> tuple[Any, ...]:
    return (numpy.linalg.solve(a, right.T).T,)


def _symmetric(uplo: Triangle) -> Callable[[Any], tuple[Any, ...]]:
    def function(a: Any) -> tuple[Any, ...]:
        values, vectors = numpy.linalg.eigh(a, uplo)
        return values, vectors.T

    return function


def _symmetric_values(uplo: Triangle) -> Callable[[Any], tuple[Any, ...]]:
    return lambda a: (numpy.linalg.eigvalsh(a, uplo),)


def _general(a: Any) -> tuple[Any, ...]:
    values, vectors = numpy.linalg.eig(_finite(a))
    return _real(values), vectors.T.real


def _general_values(a: Any) -> tuple[Any, ...]:
    return (_real(numpy.linalg.eigvals(_finite(a))),)


def _finite(a: Any) -> Any:
    if not numpy.isfinite(a).all():
        raise LinearAlgebraError(NOT_FINITE)
    return a


def _real(values: Any) -> Any:
    if numpy.any(values.imag != 0.0):
        raise LinearAlgebraError(COMPLEX)
    return values.real


def _singular(full: bool) -> Callable[[Any], tuple[Any, ...]]:
    return lambda a: tuple(numpy.linalg.svd(_without_infinities(a), full_matrices=full))


def _singular_values(a: Any) -> tuple[Any, ...]:
    return (numpy.linalg.svd(_without_infinities(a), compute_uv=False),)


def _without_infinities(a: Any) -> Any:
    """LAPACK looks for the vectors of infinities without end, and refuses NaN."""
    return numpy.where(numpy.isfinite(a), a, numpy.nan)


def _orthogonal(a: Any) -> tuple[Any, ...]:
    packed, tau = numpy.linalg.qr(a, mode="raw")
    return packed.T, tau


def _reflectors(packed: Any, tau: Any) -> tuple[Any, ...]:
    m, n = packed.shape
    columns = min(m, n)
    found = packed.copy()
    found[:, :columns] = numpy.eye(m, columns)
    for i in reversed(range(len(tau))):
        v = numpy.zeros(m)
        v[i], v[i + 1 :] = 1.0, packed[i + 1 :, i]
        found[:, :columns] -= tau[i] * numpy.outer(v, v @ found[:, :columns])
    return (found,)


# -- the primitives -------------------------------------------------------------------------------

CHOLESKY = Opaque(
    "cholesky",
    types=_types(lambda m, n: ((n, n),), square=True),
    meaning=_each(_cholesky, NOT_POSITIVE),
    about="L, lower triangular, with `L @ L.T == a`, of which the lower triangle is read; the "
    "upper one stays as it is.",
)
LU = Opaque(
    "lu",
    types=_lu_types,
    meaning=_each(_lu),
    about="L, and U with ones on its diagonal, in one matrix, with `L @ U` being `a` after column "
    "i has changed places with column `pivots[i] - 1`, for every i: that of the largest number in "
    "row i. Which of numbers that are nearly equal is up to rounding.",
)
INVERSE = Opaque(
    "inverse",
    types=_types(lambda m, n: ((n, n),), square=True),
    meaning=_each(_inverse, SINGULAR_MATRIX),
    about="The inverse of square matrices.",
)
SOLVE = Opaque(
    "solve",
    types=_solved_types,
    meaning=_each(_solved, SINGULAR_MATRIX),
    about="x with `a @ x == b`, for every row b of the second operand; one row for each.",
)


def _symmetric_primitive(uplo: Triangle) -> Opaque:
    side = {"L": "lower", "U": "upper"}[uplo]
    return Opaque(
        f"symmetric_{uplo}",
        types=_types(lambda m, n: ((n,), (n, n)), square=True),
        meaning=_each(_symmetric(uplo), NO_EIGENVALUES),
        about=f"Eigenvalues, upwards, of symmetric matrices of which the {side} triangle is read, "
        "and eigenvectors, one a row: their signs, and bases for equal values, are free.",
    )


def _symmetric_values_primitive(uplo: Triangle) -> Opaque:
    side = {"L": "lower", "U": "upper"}[uplo]
    return Opaque(
        f"symmetric_values_{uplo}",
        types=_types(lambda m, n: ((n,),), square=True),
        meaning=_each(_symmetric_values(uplo), NO_EIGENVALUES),
        about=f"Eigenvalues, upwards, of symmetric matrices of which the {side} triangle is read.",
    )


SYMMETRIC_L, SYMMETRIC_U = _symmetric_primitive("L"), _symmetric_primitive("U")
SYMMETRIC_VALUES_L = _symmetric_values_primitive("L")
SYMMETRIC_VALUES_U = _symmetric_values_primitive("U")
GENERAL = Opaque(
    "general",
    types=_types(lambda m, n: ((n,), (n, n)), square=True),
    meaning=_each(_general, NO_EIGENVALUES),
    about="Eigenvalues, which must be real, and eigenvectors, one a row: their order and signs, "
    "and bases for equal values, are free.",
)
GENERAL_VALUES = Opaque(
    "general_values",
    types=_types(lambda m, n: ((n,),), square=True),
    meaning=_each(_general_values, NO_EIGENVALUES),
    about="Eigenvalues, which must be real, in any order.",
)
SINGULAR_VALUES = Opaque(
    "singular_values",
    types=_types(lambda m, n: ((_smaller(m, n),),)),
    meaning=_each(_singular_values, NO_SINGULAR_VALUES),
    about="Singular values, the largest first.",
)
SINGULAR = Opaque(
    "singular",
    types=_types(lambda m, n: ((m, _smaller(m, n)), (_smaller(m, n),), (_smaller(m, n), n))),
    meaning=_each(_singular(False), NO_SINGULAR_VALUES),
    about="U, S and V transposed, with `(U * S) @ Vt == a` and the largest of S first: the signs "
    "of columns of U with rows of Vt, and bases for equal values, are free.",
)
SINGULAR_FULL = Opaque(
    "singular_full",
    types=_types(lambda m, n: ((m, m), (_smaller(m, n),), (n, n))),
    meaning=_each(_singular(True), NO_SINGULAR_VALUES),
    about="As `singular`, with U and Vt made square by rows and columns that are free but for "
    "being orthogonal.",
)
ORTHOGONAL = Opaque(
    "orthogonal",
    types=_types(lambda m, n: ((m, n), (_smaller(m, n),))),
    meaning=_each(_orthogonal),
    about="R on and above the diagonal, and below it the reflectors whose product, applied to R, "
    "is the matrix; and the factors of these.",
)
REFLECTORS = Opaque(
    "reflectors",
    types=_reflector_types,
    meaning=_each(_reflectors),
    about="The first columns, as many as there are rows or columns, of the orthogonal matrix that "
    "is the product of reflectors, which stand below the diagonal of the first operand; their "
    "factors are the second. Columns behind these stay as they are.",
)
SYMMETRIC = {"L": SYMMETRIC_L, "U": SYMMETRIC_U}
SYMMETRIC_VALUES = {"L": SYMMETRIC_VALUES_L, "U": SYMMETRIC_VALUES_U}
