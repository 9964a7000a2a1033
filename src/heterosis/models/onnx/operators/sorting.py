"""The greatest elements in their order, and those that differ."""

from __future__ import annotations

from typing import Any

from heterosis import np
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.values import kind, number, part, place
from heterosis.runtime.errors import ArgumentError


def _top(x: Any, k: Any, axis: int, largest: int) -> tuple[Any, Any]:
    """The first of them, of equal ones those with the lower index first."""
    axis = place(axis, len(x.shape))
    extent = x.shape[axis]
    if k < 0 or k > extent:
        raise ArgumentError(f"TopK: the first {k} of {extent}.")
    # Sorting keeps the order of equal elements; what is greatest is first in these.
    descending = -x if kind(x) == "f" else np.invert(x)
    order = np.argsort(descending if largest else x, axis=axis).astype("int64")
    order = part(order, axis, 0, k)
    return np.take_along_axis(x, order, axis=axis), order


@operator("TopK")
def _top_by_attribute(x: Any, *, axis: int = -1, k: int) -> Any:
    return _top(x, k, axis, 1)


@operator("TopK", since=10)
def _top_10(x: Any, k: Host, *, axis: int = -1) -> Any:
    return _top(x, number(k), axis, 1)


@operator("TopK", since=11)
def _top_11(x: Any, k: Host, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    # Where any order will do, the sorted one does.
    return _top(x, number(k), axis, largest)


@operator("Unique", since=11)
def _unique(x: Any, *, axis: int | None = None, sorted: int = 1) -> Any:
    along = 0 if axis is None else place(axis, len(x.shape))
    x = np.reshape(x, (-1,)) if axis is None else x
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=along
    )
    first, counts = first.astype("int64"), counts.astype("int64")
    inverse = np.reshape(inverse, (-1,)).astype("int64")
    if not sorted:  # in the order in which they come
        order = np.argsort(first).astype("int64")
        values = np.take(values, order, axis=along)
        first, counts = np.take(first, order, axis=0), np.take(counts, order, axis=0)
        inverse = np.take(np.argsort(order).astype("int64"), inverse, axis=0)
    return values, first, inverse, counts
