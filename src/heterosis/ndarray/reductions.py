"""Operators that combine elements along axes, products, and orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np, npx
from heterosis.ndarray.operator import axes_of, operator


def _reduction(run: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Any:
        return run(data, axis=axes_of(axis, data.ndim, exclude), keepdims=keepdims)

    return reduce


_ALIASES = {"sum": ("sum_axis",), "max": ("max_axis",), "min": ("min_axis",)}
for _name in ("sum", "mean", "prod", "nansum", "nanprod", "max", "min"):
    operator(_name, *_ALIASES.get(_name, ()))(_reduction(getattr(np, _name)))


@operator()
def norm(
    data: Any, ord: int = 2, axis: Any = None, keepdims: bool = False, out_dtype: Any = None
) -> Any:
    """The sum of absolute values (`ord=1`) or the root of the sum of squares (2) along axes."""
    axes = axes_of(axis, data.ndim)
    if ord == 1:
        found = np.sum(np.abs(data), axis=axes, keepdims=keepdims)
    else:
        found = np.sqrt(np.sum(np.square(data), axis=axes, keepdims=keepdims))
    return found if out_dtype is None else found.astype(out_dtype)


@operator()
def moments(data: Any, axes: Any = None, keepdims: bool = False) -> list[Any]:
    """Mean and variance along axes."""
    along = axes_of(axes, data.ndim)
    return [np.mean(data, axis=along, keepdims=keepdims), np.var(data, axis=along, keepdims=keepdims)]


def _place(run: Callable[..., Any]) -> Callable[..., Any]:
    """Indices as float32, which is what these operators give."""

    def find(data: Any, axis: int | None = None, keepdims: bool = False) -> Any:
        found = run(data, axis=axis).astype("float32")
        return np.expand_dims(found, axis) if keepdims and axis is not None else found

    return find


operator("argmax")(_place(np.argmax))
operator("argmin")(_place(np.argmin))


@operator()
def argmax_channel(data: Any) -> Any:
    """The index of the largest element along axis 1, as float32."""
    return data.argmax_channel()


@operator()
def argsort(data: Any, axis: int = -1, is_ascend: bool = True, dtype: Any = "float32") -> Any:
    """The indices that sort along `axis`, as `dtype`."""
    return np.argsort(data if is_ascend else -data, axis=axis).astype(dtype)


@operator()
def sort(data: Any, axis: int = -1, is_ascend: bool = True) -> Any:
    """Elements in order along `axis`."""
    ordered = np.sort(data, axis=axis)
    return ordered if is_ascend else np.flip(ordered, axis)


@operator()
def topk(data: Any, **options: Any) -> Any:
    """The `k` largest elements along an axis; see `npx.topk`."""
    return npx.topk(data, **options)


@operator()
def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    """Running sums along `axis`."""
    return np.cumsum(a, axis=axis, dtype=dtype)


@operator()
def dot(lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """The sum over the last axis of `lhs` and the first one of `rhs`; both can be reversed."""
    lhs = np.transpose(lhs) if transpose_a else lhs
    rhs = np.transpose(rhs) if transpose_b else rhs
    return np.tensordot(lhs, rhs, axes=1)


@operator()
def batch_dot(lhs: Any, rhs: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    """Matrix products of two stacks of matrices."""
    return npx.batch_dot(lhs, rhs, transpose_a, transpose_b)


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


def _turned(matrix: Any, transpose: bool) -> Any:
    return np.swapaxes(matrix, -1, -2) if transpose else matrix
