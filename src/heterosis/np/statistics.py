"""Statistics that take several kinds of arguments, or whose results' shapes depend on values."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from heterosis import _core
from heterosis.ir.program import Value
from heterosis.ir.types import is_integer
from heterosis.np import convert
from heterosis.np.dtypes import kept_dtype
from heterosis.np.fallback import on_host
from heterosis.ops.array.counting import occurrences, roomy
from heterosis.ops.array.segments import counted
from heterosis.ops.array.sorting import places_in_order, sorted_rows
from heterosis.ops.array.statistics import check_edges, histogram_counts, histogram_edges
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.placing import beside


def histogram(
    a: Any,
    bins: Any = 10,
    range: tuple[float, float] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[_core.ndarray, _core.ndarray]:
    """Counts of elements in intervals, and the intervals' edges.

    `bins` is the number of equal intervals or an array of edges, which must not decrease.
    """
    if isinstance(bins, str):
        raise ArgumentError(f"histogram: bins={bins!r}; expected a number or an array of edges.")
    if isinstance(bins, int | numpy.integer):
        edges = histogram_edges(a, int(bins), None if range is None else tuple(range))
    else:
        if isinstance(bins, list | tuple | numpy.ndarray):
            check_edges(numpy.asarray(bins))
        edges = convert.operand(bins)
    return histogram_counts(a, edges, weights, bool(density)), edges


# The shape of the first two results depends on values, so they wait for them and compute on the
# host, through NumPy; the third one does so in rare cases.
_unique, _bincount = on_host(numpy.unique, "unique"), on_host(numpy.bincount, "bincount")
_searchsorted = on_host(numpy.searchsorted, "searchsorted")


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """The different elements in ascending order; waits for `ar`.

    Asked for, also where each is first found, which one every element is, and how many there are.
    """
    further = return_index or return_inverse or return_counts or axis is not None
    if not further and _is_long(ar) and (ar._dtype_name == "bool" or is_integer(ar._dtype_name)):
        row = convert.shared(sorted_rows(ar.reshape(-1)))
        is_first = numpy.concatenate(([True], row[1:] != row[:-1]))
        with beside(ar):
            return convert.from_numpy(row[is_first])
    return _unique(ar, return_index, return_inverse, return_counts, axis)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> _core.ndarray:
    """How often each non-negative integer occurs in `x`, or with what weight; waits for `x`.

    In a hybridized function, the numbers are below `minlength`, which is the length of the result.
    """
    if minlength and modes.is_capturing():
        return counted(x, weights, minlength)
    if weights is None and _is_counted_here(x) and operator.index(minlength) >= 0:
        longest = max(x.max().item() + 1, operator.index(minlength))
        if x.min().item() >= 0 and longest <= _LONGEST * x.size:
            return occurrences(x, roomy(longest))[:longest]
    counts = _bincount(x, weights, minlength)
    return counts if weights is None else counts.astype(convert.operand(weights).dtype)


_FEW = 1024  # so many take no longer through NumPy
_LONGEST = 4  # counts a number: of more, most are zero


def _is_long(x: Any) -> bool:
    """Whether there are many elements, which are here, and read now."""
    return (
        isinstance(x, _core.ndarray)
        and x.size >= _FEW
        and x._device < _core.first_remote
        and not modes.is_capturing()
    )


def _is_counted_here(x: Any) -> bool:
    """Whether there is code of ours that counts such numbers."""
    is_row = _is_long(x) and x.ndim == 1
    return is_row and is_integer(x._dtype_name) and x._dtype_name != "uint64"


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where to insert each of the numbers `v` into `a`, whose elements do not decrease, so that
    they still do not: before equal ones, or with `side="right"` behind them.

    With a `sorter`, indices that put `a` into such an order, it waits for the arguments.
    """
    if side not in ("left", "right"):
        raise ArgumentError(f'searchsorted: side={side!r}; expected "left" or "right".')
    if sorter is None and any(isinstance(x, _core.ndarray | Value) for x in (a, v)):
        row, numbers = map(_elements, (a, v))
        if row is not None and numbers is not None:
            return places_in_order(row, numbers, side == "right")
    return _searchsorted(a, v, side, sorter)


def _elements(given: Any) -> Any:
    """An array of what is given, with the element type that NumPy gives it; None if that is none
    of ours."""
    if isinstance(given, _core.ndarray | Value):
        return given
    if type(given) not in (bool, int, float, list, tuple, numpy.ndarray):
        return None
    found = numpy.asarray(given)
    return None if kept_dtype(found.dtype) is None else convert.array(found)


__all__ = ["bincount", "histogram", "searchsorted", "unique"]
