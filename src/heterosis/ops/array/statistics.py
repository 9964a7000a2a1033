"""Order statistics and histograms."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant, extent
from heterosis.ops.array.indexing import gathered
from heterosis.ops.array.sorting import sorted_along
from heterosis.ops.bounds import required, rising, within
from heterosis.ops.math.elementwise import (
    add,
    equal,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    select,
    subtract,
    true_divide,
)
from heterosis.ops.math.real import ceil, floor, rint
from heterosis.ops.math.reductions import Axes, count_along, max, min, sum, without
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, floating, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError, check_axes

# -- quantiles ------------------------------------------------------------------------------------

_METHODS = ("linear", "lower", "higher", "nearest", "midpoint")
_MEAN = "mean"  # of the elements on both sides: NumPy rounds medians in another way than quantiles


def _quantile(
    name: str, a: Value, q: Value, axis: Axes, method: str, keepdims: bool, out_of: float = 1.0
) -> Value:
    """The value below which the fraction `q / out_of` of elements along `axis` lies."""
    if method not in (*_METHODS, _MEAN):
        raise ArgumentError(f"{name}: {method!r} is no way to interpolate; expected {_METHODS}.")
    axes = check_axes(name, axis, a.ndim)
    a = cast(a, floating(a.dtype))
    rows = _in_order(name, a, axes)
    position = true_divide(cast(q, "float64"), constant(out_of, "float64"))
    failure = f"the q of a {name} is NaN or out of its range; expected 0 <= q <= {out_of:g}."
    position = within(position, 0.0, 1.0, failure)
    position = multiply(position, extent(rows.shape[0] - 1))
    result = _between(rows, position, method)
    last = gathered(rows, [_place(rows, extent(rows.shape[0] - 1))])
    result = select(isnan(last), last, result)  # NaN sorts last, and spoils the whole row
    if not keepdims:
        return result
    kept = tuple(1 if d in axes else n for d, n in enumerate(a.shape))
    return views.reshape(result, (*q.shape, *kept))


def _in_order(name: str, a: Value, axes: tuple[int, ...]) -> Value:
    """The elements along `axes`, sorted, as the first dimension."""
    others = tuple(d for d in range(a.ndim) if d not in axes)
    kept = without(a.shape, axes)
    length = count_along(name, a, axes)
    if not length:
        raise ShapeError(
            f"{name}: no elements along axis {axes} of shape {a.shape}; give an array that is "
            "not empty there."
        )
    rows = views.reshape(views.transpose(a, (*others, *axes)), (*kept, length))
    rank = len(kept)
    return views.transpose(sorted_along(rows, rank), (rank, *range(rank)))


def _place(rows: Value, position: Value) -> Value:
    """A position as an index that stays inside the rows."""
    bounded = minimum(maximum(position, constant(0, "int64")), extent(rows.shape[0] - 1))
    return cast(bounded, "int64")


def _between(rows: Value, position: Value, method: str) -> Value:
    below, above = floor(position), ceil(position)
    if method in ("lower", "higher", "nearest"):
        chosen = {"lower": below, "higher": above, "nearest": rint(position)}[method]
        return gathered(rows, [_place(rows, chosen)])
    low, high = (gathered(rows, [_place(rows, p)]) for p in (below, above))
    if method == _MEAN:
        half, total = constant(0.5, rows.dtype), add(low, high)
        halves = add(multiply(low, half), multiply(high, half))
        return select(isinf(total), halves, multiply(total, half))
    if method == "midpoint":
        weight = select(equal(below, above), constant(0.0, "float64"), constant(0.5, "float64"))
    else:
        weight = subtract(position, below)
    weight = views.reshape(weight, (*position.shape, *(1 for _ in rows.shape[1:])))
    weight = cast(weight, rows.dtype)
    # From the nearer side, so that a weight of 1 gives the upper value exactly.
    step = subtract(high, low)
    up = add(low, multiply(step, weight))
    down = subtract(high, multiply(step, subtract(constant(1.0, rows.dtype), weight)))
    mixed = select(less(weight, constant(0.5, rows.dtype)), up, down)
    endless = logical_and(isinf(low), equal(low, high))  # between which there is no number
    return select(endless, low, mixed)


def _reference(function: Any) -> Any:
    def run(
        a: Any, q: Any, axis: Any = None, interpolation: str = "linear", keepdims: bool = False
    ) -> Any:
        return function(a, q, axis=axis, method=interpolation, keepdims=keepdims)

    return run


_CASES = (
    Case(((37,), ())),
    Case(((3, 70), (2,)), {"axis": 1}),
    Case(((4, 5, 3), (2, 2)), {"axis": (0, 2), "keepdims": True}),
)
_WAYS = tuple(Case(((40, 3), ()), {"axis": 0, "interpolation": m}) for m in _METHODS)
_FEW = ("int32", "float32", "float64")


@operation(
    numpy=_reference(numpy.quantile),
    names={"mxnet": "_npi_percentile"},
    samples=Samples((*_CASES, *_WAYS), ((-9, 9), (0, 1)), ("float32",), ulps=16, absolute=16),
)
def quantile(
    a: Value,
    q: Value,
    axis: Axes = None,
    interpolation: str = "linear",
    keepdims: bool = False,
    method: Any = None,
) -> Value:
    """The value below which the fraction `q` of elements along `axis` lies. Where that is an
    element, not a number between two, the slope with respect to `q` counts as 0."""
    return _quantile("quantile", a, q, axis, method or interpolation, keepdims)


@operation(
    numpy=_reference(numpy.percentile),
    names={"mxnet": "_npi_percentile"},
    samples=Samples(_CASES, ((-9, 9), (0, 100)), _FEW, ulps=64, absolute=64),
)
def percentile(
    a: Value,
    q: Value,
    axis: Axes = None,
    interpolation: str = "linear",
    keepdims: bool = False,
    method: Any = None,
) -> Value:
    """The value below which `q` percent of elements along `axis` lie."""
    return _quantile("percentile", a, q, axis, method or interpolation, keepdims, 100.0)


@operation(
    numpy=numpy.median,
    samples=Samples((Case(((37,),)), Case(((4, 6),), {"axis": 1, "keepdims": True})), dtypes=_FEW),
)
def median(a: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """The middle one of the sorted elements along `axis`; the mean of the middle two."""
    half = constant(0.5, "float64")
    return _quantile("median", a, half, axis, _MEAN, keepdims)


# -- histograms -----------------------------------------------------------------------------------


def _edges_reference(a: Any, bins: Any = 10, range: Any = None) -> Any:
    return numpy.histogram_bin_edges(a, bins, range)


@operation(
    numpy=_edges_reference,
    public=(),
    samples=Samples((Case(((37,),)), Case(((5, 7),), {"bins": 4, "range": (-2, 3)})), dtypes=_FEW),
)
def histogram_edges(a: Value, bins: int = 10, range: tuple[float, float] | None = None) -> Value:
    """The bounds of `bins` equal intervals, from the smallest element to the largest."""
    if bins < 1:
        raise ArgumentError(f"histogram: {bins} bins; expected at least one.")
    a = cast(a, floating(a.dtype))
    low, high = _range(a, range)
    width = subtract(high, low)
    failure = "a histogram of NaN or infinite elements needs the range to divide into bins."
    width = required(width, isfinite(width), failure)
    step = true_divide(width, extent(bins))
    edges = add(low, multiply(iota(bins + 1), step))
    return select(equal(iota(bins + 1), extent(bins)), high, edges)


def _range(a: Value, given: tuple[float, float] | None) -> tuple[Value, Value]:
    if given is not None and not -math.inf < given[0] <= given[1] < math.inf:
        raise ArgumentError(
            f"histogram: the range is {given}; expected two finite numbers, the smaller one first."
        )
    if given is None and a.size:
        low, high = min(a), max(a)
    else:
        low, high = (constant(float(n), a.dtype) for n in given or (0, 1))
    single = equal(low, high)
    half = constant(0.5, a.dtype)
    return select(single, subtract(low, half), low), select(single, add(high, half), high)


_NOT_RISING = "a histogram's edges decrease, or one is NaN; expected numbers that increase."


def check_edges(edges: numpy.ndarray) -> None:
    """Refuse edges that are known already, as the operation would when it runs."""
    _check_edges_shape(edges.shape)
    if not (edges[1:] >= edges[:-1]).all():
        raise ArgumentError(f"histogram: {_NOT_RISING}")


def _check_edges_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 1 or not shape[0]:
        raise ShapeError(
            f"histogram: edges of shape {shape}; expected one dimension and at least one edge."
        )


def _counts_reference(a: Any, edges: Any) -> Any:
    check_edges(edges)
    last = len(edges) - 2
    pairs = enumerate(itertools.pairwise(edges))
    inside = [(a >= x) & ((a < y) | (i == last) & (a <= y)) for i, (x, y) in pairs]
    return numpy.array([chosen.sum() for chosen in inside])


@operation(
    numpy=_counts_reference,
    public=(),
    samples=Samples((Case(((37,), (5,))), Case(((3, 70), (2,)))), dtypes=_FEW, rising_arrays=(1,)),
)
def histogram_counts(
    a: Value, edges: Value, weights: Value | None = None, density: bool = False
) -> Value:
    """How many elements, or how much weight, each interval between neighbouring `edges` has."""
    _check_edges_shape(edges.shape)
    edges = rising(edges, _NOT_RISING)
    bins = edges.shape[0] - 1
    flat = views.reshape(a, (1, a.size))
    low, high = (views.reshape(views.slice_(edges, (i,), (1,), (bins,)), (bins, 1)) for i in (0, 1))
    last = equal(views.reshape(iota(bins), (bins, 1)), extent(bins - 1))
    below = logical_or(less(flat, high), logical_and(last, less_equal(flat, high)))
    inside = logical_and(greater_equal(flat, low), below)
    if weights is None:
        counts = sum(inside, 1)
    else:
        if weights.shape != a.shape:
            raise ShapeError(
                f"histogram: weights of shape {weights.shape}; expected one for each of the "
                f"elements, of shape {a.shape}."
            )
        weights = views.reshape(weights, (1, a.size))
        counts = sum(select(inside, weights, constant(0, weights.dtype)), 1)
    if not density:
        return counts
    widths = views.reshape(subtract(high, low), (bins,))
    return true_divide(true_divide(counts, widths), sum(counts))
