"""Operators that combine elements along axes, products, and orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.operator import axes_of, operator
from heterosis.runtime.errors import ArgumentError


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
    if ord not in (1, 2):
        raise ArgumentError(f"norm: ord is {ord!r}; expected 1 or 2. Others: np.linalg.norm.")
    if ord == 1:
        found = np.sum(np.abs(data), axis=axes, keepdims=keepdims)
    else:
        found = np.sqrt(np.sum(np.square(data), axis=axes, keepdims=keepdims))
    return found if out_dtype is None else found.astype(out_dtype)


@operator()
def moments(data: Any, axes: Any = None, keepdims: bool = False) -> list[Any]:
    """Mean and variance along axes."""
    along = axes_of(axes, data.ndim)
    return [
        np.mean(data, axis=along, keepdims=keepdims),
        np.var(data, axis=along, keepdims=keepdims),
    ]


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
def all_finite(data: Any, init_output: bool = True) -> Any:
    """1 if no element is infinite or nan, else 0."""
    return np.all(np.isfinite(data)).astype("float32").reshape(1)


@operator()
def multi_all_finite(*data: Any, num_arrays: int = 1, init_output: bool = True) -> Any:
    """1 if no element of any array is infinite or nan, else 0."""
    return np.min(np.stack([all_finite(array) for array in data]), axis=0)


@operator()
def multi_sum_sq(*data: Any, num_arrays: int = 1) -> Any:
    """The sum of squares of each array."""
    return np.stack([np.sum(np.square(array)) for array in data])
