"""The operations of `heterosis.np.linalg`."""

# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics

from collections.abc import Sequence
from heterosis._core import ndarray
from heterosis.typing import ArrayLike
from typing import Any

def cholesky(a: ArrayLike, upper: bool = False, *, out: ndarray | None = None) -> ndarray:
    """L, lower triangular, with `L @ L.T == a`; its transpose if `upper`. Needs `a` positive
    definite, and reads only its lower triangle.
    """

def cond(
    x: ArrayLike,
    p: int | float | str | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """How much a matrix magnifies relative errors: the norm of it times that of its inverse."""

def det(a: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The determinant of square matrices. Its gradient exists for singular ones, too."""

def eig(a: ArrayLike) -> tuple[ndarray, ndarray]:
    """Eigenvalues and eigenvectors, as columns, of square matrices whose eigenvalues are real."""

def eigh(a: ArrayLike, UPLO: str = "L") -> tuple[ndarray, ndarray]:
    """Eigenvalues of symmetric matrices, upwards, and their eigenvectors as columns.

    `UPLO` names the triangle that is read: "L" or "U".
    """

def eigvals(a: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """Eigenvalues of square matrices whose eigenvalues are real."""

def eigvalsh(a: ArrayLike, UPLO: str = "L", *, out: ndarray | None = None) -> ndarray:
    """Eigenvalues of symmetric matrices, upwards."""

def inv(a: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The inverse of square matrices."""

def matrix_power(a: ArrayLike, n: int, *, out: ndarray | None = None) -> ndarray:
    """The product of `n` copies of each square matrix; of its inverse where `n` is negative."""

def matrix_rank(
    A: ArrayLike,
    tol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """How many singular values exceed `tol`; by default, what rounding makes uncertain."""

def multi_dot(
    arrays: ndarray | Sequence[ArrayLike],
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The product of several matrices, in the order that takes the fewest multiplications."""

def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The size of vectors or matrices.

    Without `ord` and `axis`, the root of the sum of all squares. An `axis` means vectors along it:
    the root of squares, or `ord` = 0 (how many are not 0), 1, 2, inf, -inf or any power. Two axes,
    or a matrix without `axis`, mean matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf.
    """

def pinv(
    a: ArrayLike,
    rcond: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The inverse in the sense of least squares.

    Singular values up to `rcond` times the largest count as zero; by default, as many as rounding
    makes uncertain. Symmetric matrices (`hermitian`) need nothing else.
    """

def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """An orthogonal matrix and an upper triangular one whose product is `a`.

    `mode` is "reduced", "complete" (a square orthogonal matrix) or "r" (only the triangular one).
    """

def slogdet(a: ArrayLike) -> tuple[ndarray, ndarray]:
    """The sign of the determinant, and the logarithm of its size, which has no gradient where the
    matrix is singular: that is an error.
    """

def solve(a: ArrayLike, b: ArrayLike, *, out: ndarray | None = None) -> ndarray:
    """The x with `a @ x == b`. `b` is a vector if it has one dimension, else matrices."""

def svd(a: ArrayLike, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """U, S and V transposed, with `a == (U * S) @ Vt`; only S unless `compute_uv`.

    S holds min(M, N) numbers, the largest first. U has as many columns and Vt as many rows, unless
    `full_matrices` asks for square ones.
    """

def tensorinv(a: ArrayLike, ind: int = 2, *, out: ndarray | None = None) -> ndarray:
    """The inverse of `tensordot(a, ., ind)`: the first `ind` dimensions count as rows."""

def tensorsolve(
    a: ArrayLike,
    b: ArrayLike,
    axes: Sequence[int] | None = None,
    *,
    out: ndarray | None = None,
) -> ndarray:
    """The x with `tensordot(a, x, x.ndim) == b`; `axes` of `a` are moved to its end first."""
