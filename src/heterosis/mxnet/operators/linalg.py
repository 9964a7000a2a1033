"""Operators of linear algebra: products, and what is asked of stacks of matrices."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import np, npx
from heterosis.mxnet.operators.table import of_record, operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, plain, writes

# -- products -------------------------------------------------------------------------------------


@operator()
def dot(lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """The sum over the last axis of `lhs`, or its first one if `transpose_a`, and over the first
    axis of `rhs`, or its last one if `transpose_b`."""
    return np.tensordot(lhs, rhs, axes=(0 if transpose_a else -1, -1 if transpose_b else 0))


@operator()
def batch_dot(lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """Matrix products of two stacks of matrices."""
    return npx.batch_dot(lhs, rhs, transpose_a, transpose_b)


@stored("_npi_tensordot")
def _tensordot(a: Any, b: Any, a_axes_summed: Any, b_axes_summed: Any) -> Any:
    return np.tensordot(a, b, (a_axes_summed, b_axes_summed))


@stored("_npi_tensordot_int_axes")
def _tensordot_number(a: Any, b: Any, axes: int) -> Any:
    return np.tensordot(a, b, axes)


@writes("tensordot")
def _write_tensordot(writer: Writer, a: Arguments) -> Made:
    axes = a["axes"]
    if isinstance(axes, int):
        return writer.single("_npi_tensordot_int_axes", a, a["a"], a["b"], axes=axes)
    summed = [(ax,) if isinstance(ax, int) else tuple(ax) for ax in axes]
    return writer.single(
        "_npi_tensordot", a, a["a"], a["b"], a_axes_summed=summed[0], b_axes_summed=summed[1]
    )


@writes("outer")
def _write_outer(writer: Writer, a: Arguments) -> Made:
    if a["a"].ndim != 1 or a["b"].ndim != 1:
        return None
    return writer.single("_npi_tensordot_int_axes", a, a["a"], a["b"], axes=0)


@operator()
def khatri_rao(*args: Any) -> Any:
    """Of matrices with equally many columns, the products of columns' elements with each other."""
    product = args[0]
    for matrix in args[1:]:
        pairs = np.expand_dims(product, 1) * np.expand_dims(matrix, 0)
        product = pairs.reshape((-1, matrix.shape[1]))
    return product


# -- matrices -------------------------------------------------------------------------------------

of_record("_npi_svd", results=3)
of_record("_npi_eig", results=2)
of_record("_npi_eigh", results=2)
of_record("_npi_slogdet", results=2)
of_record("_npi_tensorsolve", renamed={"axes": "a_axes"})
stored("_npi_pinv_scalar_rcond")(np.linalg.pinv)


@writes("pinv")
def _write_pinv(writer: Writer, a: Arguments) -> Made:
    number = a.number("rcond")
    if number is None:
        return plain(writer, a)
    facts = {"rcond": number, "hermitian": a["hermitian"]}
    return writer.single("_npi_pinv_scalar_rcond", a, a["a"], **facts)


@operator()
def linalg_gemm2(
    A: Any, B: Any, transpose_a: bool = False, transpose_b: bool = False, alpha: float = 1.0
) -> Any:
    """`alpha` times the product of two stacks of matrices."""
    return alpha * np.matmul(_turned(A, transpose_a), _turned(B, transpose_b))


@operator()
def linalg_gemm(
    A: Any, B: Any, C: Any, transpose_a: bool = False, transpose_b: bool = False,
    alpha: float = 1.0, beta: float = 1.0,
) -> Any:  # fmt: skip
    """`alpha * A @ B + beta * C`."""
    return alpha * np.matmul(_turned(A, transpose_a), _turned(B, transpose_b)) + beta * C


@operator()
def linalg_syrk(A: Any, transpose: bool = False, alpha: float = 1.0) -> Any:
    """`alpha` times the product of a matrix with its own transpose."""
    return alpha * np.matmul(_turned(A, transpose), _turned(A, not transpose))


@operator()
def linalg_potrf(A: Any) -> Any:
    """The Cholesky factor, a lower triangle."""
    return np.linalg.cholesky(A)


@operator()
def linalg_inverse(A: Any) -> Any:
    """The inverses of matrices."""
    return np.linalg.inv(A)


@operator()
def linalg_det(A: Any) -> Any:
    """The determinants of matrices."""
    return np.linalg.det(A)


@operator(results=2)
def linalg_slogdet(A: Any) -> list[Any]:
    """Signs and logarithms of the absolute values of determinants."""
    return list(np.linalg.slogdet(A))


@operator()
def linalg_sumlogdiag(A: Any) -> Any:
    """The sum of the logarithms of the diagonal."""
    return np.sum(np.log(np.diagonal(A, 0, -2, -1)), axis=-1).reshape(A.shape[:-2] or (1,))


@operator()
def linalg_potri(A: Any) -> Any:
    """The inverse of a matrix whose Cholesky factor is `A`."""
    factor = np.tril(A)
    return np.linalg.inv(np.matmul(factor, _turned(factor, True)))


def _triangle(A: Any, transpose: bool, lower: bool) -> Any:
    if not lower:
        return _turned(np.tril(_turned(A, True)), not transpose)
    return _turned(np.tril(A), transpose)


@operator()
def linalg_trmm(
    A: Any, B: Any, transpose: bool = False, rightside: bool = False, lower: bool = True,
    alpha: float = 1.0,
) -> Any:  # fmt: skip
    """`alpha` times the product of a triangle and a matrix, in the other order if `rightside`."""
    triangle = _triangle(A, transpose, lower)
    return alpha * (np.matmul(B, triangle) if rightside else np.matmul(triangle, B))


@operator()
def linalg_trsm(
    A: Any, B: Any, transpose: bool = False, rightside: bool = False, lower: bool = True,
    alpha: float = 1.0,
) -> Any:  # fmt: skip
    """What a triangle must be multiplied by to give `alpha * B`."""
    triangle = _triangle(A, transpose, lower)
    if rightside:
        return _turned(np.linalg.solve(_turned(triangle, True), alpha * _turned(B, True)), True)
    return np.linalg.solve(triangle, alpha * B)


@operator(results=2)
def linalg_gelqf(A: Any) -> list[Any]:
    """Orthonormal rows, and the lower triangle to multiply them by to give `A`."""
    columns, triangle = np.linalg.qr(_turned(A, True))
    return [_turned(columns, True), _turned(triangle, True)]


@operator()
def linalg_extractdiag(A: Any, offset: int = 0) -> Any:
    """A diagonal."""
    return np.diagonal(A, offset, -2, -1)


def _placed(values: Any, size: int, rows: Any, columns: Any) -> Any:
    """Zeros with values at places of the last two axes."""
    made = np.zeros((*values.shape[:-1], size * size), values.dtype)
    made[..., np.array(rows * size + columns, dtype="int64")] = values
    return made.reshape((*values.shape[:-1], size, size))


@operator()
def linalg_makediag(A: Any, offset: int = 0) -> Any:
    """Matrices with the vectors of `A` on a diagonal."""
    place = numpy.arange(A.shape[-1])
    rows, columns = place + max(-offset, 0), place + max(offset, 0)
    return _placed(A, A.shape[-1] + abs(offset), rows, columns)


def _triangle_places(size: int, offset: int, lower: bool) -> tuple[Any, Any]:
    """Rows and columns of a triangle: by rows of a lower one, by columns of an upper one."""
    upper = offset > 0 or (offset == 0 and not lower)
    rows, columns = numpy.tril_indices(size, -abs(offset))
    return (columns, rows) if upper else (rows, columns)


@operator()
def linalg_extracttrian(A: Any, offset: int = 0, lower: bool = True) -> Any:
    """The elements of a triangle, in one dimension."""
    size = A.shape[-1]
    rows, columns = _triangle_places(size, offset, lower)
    flat = A.reshape((*A.shape[:-2], size * size))
    return np.take(flat, np.array(rows * size + columns, dtype="int64"), axis=-1)


@operator()
def linalg_maketrian(A: Any, offset: int = 0, lower: bool = True) -> Any:
    """Matrices with the elements of `A` in a triangle."""
    side = int(numpy.sqrt(2 * A.shape[-1]))
    rows, columns = _triangle_places(side + abs(offset), offset, lower)
    return _placed(A, side + abs(offset), rows, columns)


def _turned(matrix: Any, transpose: bool) -> Any:
    return np.swapaxes(matrix, -1, -2) if transpose else matrix
