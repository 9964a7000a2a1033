"""The standard's extension for linear algebra."""

from __future__ import annotations

from typing import Any, NamedTuple

from heterosis import np
from heterosis.array_api.products import matmul, matrix_transpose, tensordot, vecdot
from heterosis.array_api.statistics import sum as _sum
from heterosis.np import linalg as _linalg
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.public import listing as _listing

ndarray = np.ndarray
Axes = int | tuple[int, ...] | None


class Eigenvalues(NamedTuple):
    """What `eigh` finds."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class QR(NamedTuple):
    """What `qr` finds."""

    Q: ndarray
    R: ndarray


class SLogDet(NamedTuple):
    """What `slogdet` finds."""

    sign: ndarray
    logabsdet: ndarray


class SVD(NamedTuple):
    """What `svd` finds."""

    U: ndarray
    S: ndarray
    Vh: ndarray


def cholesky(x: ndarray, /, *, upper: bool = False) -> ndarray:
    """L, lower triangular, with `L @ L.T == x`; its transpose if `upper`."""
    return _linalg.cholesky(x, upper)


def cross(x1: ndarray, x2: ndarray, /, *, axis: int = -1) -> ndarray:
    """The cross products of vectors of three elements along `axis`."""
    return np.cross(x1, x2, axis=axis)


def det(x: ndarray, /) -> ndarray:
    """The determinant of square matrices."""
    return _linalg.det(x)


def diagonal(x: ndarray, /, *, offset: int = 0) -> ndarray:
    """The diagonals of matrices."""
    return np.diagonal(x, offset, -2, -1)


def eigh(x: ndarray, /) -> Eigenvalues:
    """Eigenvalues of symmetric matrices, upwards, and their eigenvectors as columns."""
    return Eigenvalues(*_linalg.eigh(x))


def eigvalsh(x: ndarray, /) -> ndarray:
    """Eigenvalues of symmetric matrices, upwards."""
    return _linalg.eigvalsh(x)


def inv(x: ndarray, /) -> ndarray:
    """The inverse of square matrices."""
    return _linalg.inv(x)


def matrix_norm(x: ndarray, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:
    """The size of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    return _linalg.norm(x, ord, (-2, -1), keepdims)


def matrix_power(x: ndarray, n: int, /) -> ndarray:
    """The product of `n` copies of each square matrix; of its inverse where `n` is negative."""
    return _linalg.matrix_power(x, n)


def matrix_rank(x: ndarray, /, *, rtol: Any = None) -> ndarray:
    """How many singular values exceed `rtol` times the largest one of their matrix."""
    if rtol is None:
        return _linalg.matrix_rank(x)
    values = svdvals(x)
    limit = np.max(values, -1, keepdims=True) * _column(rtol)
    return np.count_nonzero(values > limit, -1)


def _column(rtol: Any) -> Any:
    """A number for each matrix, beside its singular values."""
    return np.expand_dims(rtol, -1) if isinstance(rtol, ndarray) else rtol


def outer(x1: ndarray, x2: ndarray, /) -> ndarray:
    """The products of all elements of one vector with all of another."""
    return np.outer(x1, x2)


def pinv(x: ndarray, /, *, rtol: Any = None) -> ndarray:
    """The inverse in the sense of least squares; singular values up to `rtol` times the largest
    count as zero."""
    return _linalg.pinv(x, rtol)


def qr(x: ndarray, /, *, mode: str = "reduced") -> QR:
    """An orthogonal matrix, a square one if `mode` is "complete", and an upper triangular one."""
    return QR(*_linalg.qr(x, mode))


def slogdet(x: ndarray, /) -> SLogDet:
    """The sign of the determinant, and the logarithm of its size."""
    return SLogDet(*_linalg.slogdet(x))


def solve(x1: ndarray, x2: ndarray, /) -> ndarray:
    """The x with `x1 @ x == x2`. `x2` is a vector if it has one dimension, else matrices."""
    return _linalg.solve(x1, x2)


def svd(x: ndarray, /, *, full_matrices: bool = True) -> SVD:
    """U, S and V transposed, with `x == (U * S) @ Vh`."""
    return SVD(*_linalg.svd(x, full_matrices))


def svdvals(x: ndarray, /) -> ndarray:
    """The singular values of matrices, the largest first."""
    return _linalg.svd(x, compute_uv=False)


def trace(x: ndarray, /, *, offset: int = 0, dtype: Any = None) -> ndarray:
    """The sums of diagonals."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: ndarray, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> ndarray:
    """The size of vectors along the axes: 0 (how many are not 0), 1, 2, inf, -inf, any power."""
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    axes = tuple(a % x.ndim for a in axes)
    flat = np.moveaxis(x, axes, tuple(range(len(axes))))
    flat = np.reshape(flat, (-1, *flat.shape[len(axes) :]))
    found = _linalg.norm(flat, ord, 0)
    if not keepdims:
        return found
    return np.reshape(found, tuple(1 if a in axes else n for a, n in enumerate(x.shape)))


__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]

_check_members(globals())
__dir__ = _listing({name: globals()[name] for name in __all__})
