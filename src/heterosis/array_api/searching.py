"""Places of elements, elements at places, order, and sets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from heterosis import np
from heterosis.np.fallback import on_host

ndarray = np.ndarray
Axes = int | tuple[int, ...] | None


class AllUnique(NamedTuple):
    """What `unique_all` finds."""

    values: ndarray
    indices: ndarray
    inverse_indices: ndarray
    counts: ndarray


class CountedUnique(NamedTuple):
    """What `unique_counts` finds."""

    values: ndarray
    counts: ndarray


class InverseUnique(NamedTuple):
    """What `unique_inverse` finds."""

    values: ndarray
    inverse_indices: ndarray


# -- places ---------------------------------------------------------------------------------------


def argmax(x: ndarray, /, *, axis: int | None = None, keepdims: bool = False) -> ndarray:
    """The position of the first largest element along `axis`."""
    return np.argmax(x, axis, keepdims)


def argmin(x: ndarray, /, *, axis: int | None = None, keepdims: bool = False) -> ndarray:
    """The position of the first smallest element along `axis`."""
    return np.argmin(x, axis, keepdims)


def count_nonzero(x: ndarray, /, *, axis: Axes = None, keepdims: bool = False) -> ndarray:
    """How many elements are not zero."""
    return np.count_nonzero(x, axis, keepdims)


def nonzero(x: ndarray, /) -> tuple[ndarray, ...]:
    """The places of the elements that are not zero, one array of indices a dimension."""
    return np.nonzero(x)


def searchsorted(
    x1: ndarray, x2: ndarray, /, *, side: str = "left", sorter: ndarray | None = None
) -> ndarray:
    """Where in the sorted `x1` the elements of `x2` would be put in, before equals or behind."""
    return np.searchsorted(x1, x2, side, sorter)


def where(condition: ndarray, x1: Any, x2: Any, /) -> ndarray:
    """Elements of `x1` where `condition` is true, else of `x2`."""
    return np.where(condition, x1, x2)


def take(x: ndarray, indices: ndarray, /, *, axis: int | None = None) -> ndarray:
    """The parts of `x` along `axis` that `indices` name."""
    return np.take(x, indices, axis)


def take_along_axis(x: ndarray, indices: ndarray, /, *, axis: int = -1) -> ndarray:
    """For each position off `axis`, the elements that `indices` name along it."""
    return np.take_along_axis(x, indices, axis)


# -- order ----------------------------------------------------------------------------------------


def argsort(
    x: ndarray, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> ndarray:
    """The places of elements in order along `axis`; equal ones keep theirs."""
    if not descending:
        return np.argsort(x, axis)
    # Reversed twice: of equal elements the first comes first.
    last = x.shape[axis] - 1
    return last - np.flip(np.argsort(np.flip(x, axis), axis), axis)


def sort(
    x: ndarray, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> ndarray:
    """The elements in order along `axis`."""
    ascending = np.sort(x, axis)
    return np.flip(ascending, axis) if descending else ascending


# -- sets: how many elements there are depends on values, so these wait and compute on the host ---


def unique_all(x: ndarray, /) -> AllUnique:
    """The different elements, where each is first, which one every element is, and how often."""
    return AllUnique(*_unique_all(x))


def unique_counts(x: ndarray, /) -> CountedUnique:
    """The different elements, and how often each is there."""
    return CountedUnique(*_unique_counts(x))


def unique_inverse(x: ndarray, /) -> InverseUnique:
    """The different elements, and which one every element is."""
    return InverseUnique(*_unique_inverse(x))


def unique_values(x: ndarray, /) -> ndarray:
    """The different elements; each NaN is one of its own."""
    return _unique_values(x)


_unique_all = on_host(numpy.unique_all, "unique_all")
_unique_counts = on_host(numpy.unique_counts, "unique_counts")
_unique_inverse = on_host(numpy.unique_inverse, "unique_inverse")
_unique_values = on_host(numpy.unique_values, "unique_values")

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "count_nonzero",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]
