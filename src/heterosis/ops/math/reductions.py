"""Operations that combine elements along axes."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.families import Reduction, Scan
from heterosis.ir.primitives.reductions import ALL, ANY, CUMPROD, CUMSUM, MAX, MIN, PROD, SUM
from heterosis.ir.primitives.sorting import EXTREME_PLACES
from heterosis.ir.program import Value, apply, constant, extent
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import FLOATS, TensorType, highest, is_float, lowest
from heterosis.ops.bounds import required
from heterosis.ops.math.elementwise import (
    METHOD,
    Binary,
    add,
    equal,
    isnan,
    logical_or,
    maximum,
    minimum,
    multiply,
    not_equal,
    select,
    square,
    subtract,
    true_divide,
)
from heterosis.ops.math.real import root
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, floating, iota, wide
from heterosis.ops.samples import Case, Samples, reduction_cases
from heterosis.runtime.errors import (
    ArgumentError,
    ShapeError,
    ZeroWeightError,
    check_axes,
    check_axis,
)
from heterosis.runtime.raising import told

Axes: TypeAlias = "int | tuple[int, ...] | None"

# The smallest set that meets every kind of loop; the sum runs through all.
_BRIEF = tuple(
    Case((shape,), {"axis": axis})
    for shape, axis in (((), None), ((300,), None), ((5, 7), 0), ((70, 3), 1), ((2, 3, 4), -2))
)
_KEPT = (*_BRIEF, Case(((2, 3, 4),), {"axis": (0, 2), "keepdims": True}))
_ARRAYS = (*_BRIEF, Case(((2, 3, 4),), {"axis": 1, "dtype": "float64"}))


def reduce(primitive: Reduction, x: Value, axis: Axes, keepdims: bool) -> Value:
    """`x` reduced along `axis`, which stays as an extent of 1 if `keepdims`."""
    axes = check_axes(primitive.name, axis, x.ndim)
    if not axes:
        return x
    if x.dtype == "bool":  # a sum that is a truth value does not wrap around: it is "or"
        primitive = {SUM: ANY, PROD: ALL}.get(primitive, primitive)
    result = apply(primitive, (x,), TensorType(without(x.shape, axes), x.dtype), axes=axes)
    return with_axes_back(result, x.shape, axes) if keepdims else result


def without(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of the other axes."""
    return tuple(n for a, n in enumerate(shape) if a not in axes)


def with_axes_back(x: Value, shape: tuple[int, ...], axes: tuple[int, ...]) -> Value:
    """A reduced value with the reduced axes back in their places, of extent 1."""
    return views.reshape(x, tuple(1 if a in axes else n for a, n in enumerate(shape)))


def summed_to(x: Value, shape: tuple[int, ...]) -> Value:
    """The sum over everything that repeating a value of `shape` to that of `x` has added."""
    new = x.ndim - len(shape)
    axes = [a for a in range(x.ndim) if a < new or (shape[a - new] == 1 and x.shape[a] != 1)]
    return views.reshape(sum(x, tuple(axes)) if axes else x, shape)


def count_along(operation_name: str, x: Value, axis: Axes) -> int:
    """How many elements become one."""
    return math.prod(x.shape[a] for a in check_axes(operation_name, axis, x.ndim))


def _check_not_empty(name: str, x: Value, axis: Axes) -> None:
    if not count_along(name, x, axis):
        raise ShapeError(
            f"{name}: no elements along axis {axis} of shape {x.shape}, and nothing is the {name} "
            "of no elements. Give an array that is not empty there, or a value for `initial`."
        )


def _all_taken(name: str, a: Value, where: Value | None) -> Value:
    """`a`, of which something must be left to be the extreme of: `where`, if there is one, must be
    the number True."""
    if where is None:
        return a
    failure = (
        f"{name}: `where` may take no element, and nothing is the {name} of none; give a value "
        "for `initial`, which counts as one more element."
    )
    if not where.type.weak:
        raise ArgumentError(failure)
    return required(a, cast(where, "bool"), failure)


def _only(x: Value, where: Value | None, otherwise: Any) -> Value:
    """`x`, with `otherwise` where `where` is false."""
    if where is None:
        return x
    return select(where, x, constant(otherwise, x.dtype))


# -- sums and products ----------------------------------------------------------------------------


def _accumulated(a: Value, dtype: str | None) -> Value:
    """`a` as sums and products take it: truth values count as int64."""
    return cast(a, dtype or ("int64" if a.dtype == "bool" else a.dtype))


@operation(
    numpy=numpy.sum,
    public=METHOD,
    names={"mxnet": "_np_sum"},
    samples=Samples(reduction_cases(dtype=("float64", "int64")), absolute=400),
)
def sum(
    a: Value,
    axis: Axes = None,
    dtype: str | None = None,
    keepdims: bool = False,
    initial: Value | None = None,
    where: Value | None = None,
) -> Value:
    """The sum of elements along `axis`; of all, without one."""
    if a.dtype == "bool" and dtype in (None, "int64"):
        total = _counted(_only(a, where, False), axis, keepdims)
    else:
        total = reduce(SUM, _only(_accumulated(a, dtype), where, 0), axis, keepdims)
    return total if initial is None else add(total, cast(initial, total.dtype))


def _counted(a: Value, axis: Axes, keepdims: bool) -> Value:
    """How many are true: in 32 bits where they suffice, of which a vector has twice as many."""
    fits = not is_traced(a.size) and a.size < 2**31
    narrow = cast(a, "int32" if fits else "int64")
    return cast(reduce(SUM, narrow, axis, keepdims), "int64")


@operation(
    numpy=numpy.prod,
    public=METHOD,
    aliases=("product",),
    names={"mxnet": "_np_prod"},
    samples=Samples(_KEPT, (0.5, 1.5), ulps=64),
)
def prod(
    a: Value,
    axis: Axes = None,
    dtype: str | None = None,
    keepdims: bool = False,
    initial: Value | None = None,
    where: Value | None = None,
) -> Value:
    """The product of elements along `axis`."""
    a = _accumulated(a, dtype)
    total = reduce(PROD, _only(a, where, 1), axis, keepdims)
    return total if initial is None else multiply(total, cast(initial, a.dtype))


@operation(
    numpy=numpy.nansum,
    public=METHOD,
    samples=Samples(_KEPT, dtypes=("int32", "float32", "float64"), absolute=400),
)
def nansum(a: Value, axis: Axes = None, dtype: str | None = None, keepdims: bool = False) -> Value:
    """The sum of elements that are not NaN."""
    return sum(_without_nan(a, 0.0), axis, dtype, keepdims)


@operation(
    numpy=numpy.nanprod,
    public=METHOD,
    samples=Samples(_KEPT, (0.5, 1.5), ulps=64, dtypes=("int32", "float32", "float64")),
)
def nanprod(a: Value, axis: Axes = None, dtype: str | None = None, keepdims: bool = False) -> Value:
    """The product of elements that are not NaN."""
    return prod(_without_nan(a, 1.0), axis, dtype, keepdims)


def _without_nan(a: Value, otherwise: float) -> Value:
    return select(isnan(a), constant(otherwise, a.dtype), a) if is_float(a.dtype) else a


@operation(numpy=numpy.count_nonzero, samples=Samples(_KEPT, dtypes=("bool", "int32", "float32")))
def count_nonzero(a: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """How many elements are not zero."""
    return _counted(cast(a, "bool"), axis, keepdims)


# -- extremes -------------------------------------------------------------------------------------


def _extreme(
    primitive: Reduction, pick: Binary, least: Callable[[str], float]
) -> Callable[[Value, Axes, bool, Value | None, Value | None], Value]:
    def function(
        a: Value, axis: Axes, keepdims: bool, initial: Value | None, where: Value | None
    ) -> Value:
        if initial is None:
            _check_not_empty(primitive.name, a, axis)
            a = _all_taken(primitive.name, a, where)
        result = reduce(primitive, _only(a, where, least(a.dtype)), axis, keepdims)
        return result if initial is None else pick(result, cast(initial, a.dtype))

    return function


_max = _extreme(MAX, maximum, lowest)
_min = _extreme(MIN, minimum, highest)


@operation(
    numpy=numpy.max,
    public=METHOD,
    aliases=("amax",),
    names={"mxnet": "_np_max"},
    samples=Samples(_KEPT),
)
def max(
    a: Value,
    axis: Axes = None,
    keepdims: bool = False,
    initial: Value | None = None,
    where: Value | None = None,
) -> Value:
    """The largest element along `axis`; NaN if any is."""
    return _max(a, axis, keepdims, initial, where)


@operation(
    numpy=numpy.min,
    public=METHOD,
    aliases=("amin",),
    names={"mxnet": "_np_min"},
    samples=Samples(_KEPT),
)
def min(
    a: Value,
    axis: Axes = None,
    keepdims: bool = False,
    initial: Value | None = None,
    where: Value | None = None,
) -> Value:
    """The smallest element along `axis`; NaN if any is."""
    return _min(a, axis, keepdims, initial, where)


@operation(numpy=numpy.ptp, samples=Samples(_KEPT, dtypes=("int32", "float32")))
def ptp(a: Value, axis: Axes = None, keepdims: bool = False) -> Value:
    """The distance from the smallest to the largest element."""
    return subtract(max(a, axis, keepdims), min(a, axis, keepdims))


def _place_of_extreme(
    name: str, primitive: Reduction, a: Value, axis: int | None, keepdims: bool
) -> Value:
    """The least position of an element that equals the extreme one, or of a NaN."""
    _check_not_empty(name, a, axis)
    if a.ndim and axis in (None, -1, a.ndim - 1):
        length = a.size if axis is None else a.shape[-1]
        if is_traced(length) or length >= _LONG:
            return _place_in_rows(a, length, axis, keepdims, smallest=primitive is MIN)
    along = check_axes(name, axis, a.ndim)
    if len(along) == 1 < a.ndim and _are_few_columns(a.shape, *along):
        turned = views.transpose(a, (*(d for d in range(a.ndim) if d not in along), *along))
        places = _place_in_rows(turned, turned.shape[-1], -1, False, smallest=primitive is MIN)
        return with_axes_back(places, a.shape, along) if keepdims else places
    found = equal(a, reduce(primitive, a, axis, True))
    if is_float(a.dtype):
        found = logical_or(found, isnan(a))
    # Places of 32 bits, where they suffice, are as wide as the elements of most arrays.
    width = "int32" if a.size < 2**31 else "int64"
    nowhere = constant(highest(width), width)
    places = select(found, cast(_numbered(a.shape, axis), width), nowhere)
    return cast(reduce(MIN, places, axis, keepdims), "int64")


# Rows of so many elements have a kernel of their own, which reads most of them once.
_LONG = 128


# Where fewer elements than a vector has lie side by side, such rows are made of long columns.
_FEW = 16


def _are_few_columns(shape: tuple[int, ...], axis: int) -> bool:
    beside, length = math.prod(shape[axis + 1 :]), shape[axis]
    known = not (is_traced(beside) or is_traced(length))
    return known and beside < _FEW and length >= _LONG


def _place_in_rows(
    a: Value, length: int, axis: int | None, keepdims: bool, *, smallest: bool
) -> Value:
    """The same along the last axis, or in all elements as one row."""
    rows = views.reshape(a, (a.size // length, length))
    type_ = TensorType(rows.shape[:1], "int64")
    places = apply(EXTREME_PLACES, (rows,), type_, smallest=smallest)
    axes = check_axes("argmax", axis, a.ndim)
    places = views.reshape(places, without(a.shape, axes))
    return with_axes_back(places, a.shape, axes) if keepdims else places


def _numbered(shape: tuple[int, ...], axis: int | None) -> Value:
    """Every element's position along `axis`; among all, without one."""
    if axis is None:
        return views.reshape(iota(math.prod(shape)), shape)
    axis %= len(shape)
    line = views.reshape(
        iota(shape[axis]), tuple(n if a == axis else 1 for a, n in enumerate(shape))
    )
    return views.broadcast(line, shape)


_ARGUMENT_CASES = (*_BRIEF, Case(((2, 3, 4),), {"axis": 1, "keepdims": True}))


@operation(
    numpy=numpy.argmax,
    public=METHOD,
    names={"mxnet": "_npi_argmax"},
    samples=Samples(_ARGUMENT_CASES),
)
def argmax(a: Value, axis: int | None = None, keepdims: bool = False) -> Value:
    """The position of the first largest element along `axis`; of the first NaN if there is one."""
    return _place_of_extreme("argmax", MAX, a, axis, keepdims)


@operation(
    numpy=numpy.argmin,
    public=METHOD,
    names={"mxnet": "_npi_argmin"},
    samples=Samples(_ARGUMENT_CASES),
)
def argmin(a: Value, axis: int | None = None, keepdims: bool = False) -> Value:
    """The position of the first smallest element along `axis`; of the first NaN if there is one."""
    return _place_of_extreme("argmin", MIN, a, axis, keepdims)


@operation(
    numpy=numpy.any,
    public=METHOD,
    aliases=("sometrue",),
    names={"mxnet": "_np_any"},
    samples=Samples(_KEPT, (-1, 1), dtypes=("bool", "uint8", "bfloat16", "float32")),
)
def any(a: Value, axis: Axes = None, keepdims: bool = False, where: Value | None = None) -> Value:
    """Whether an element along `axis` is true."""
    return reduce(ANY, _only(cast(a, "bool"), where, False), axis, keepdims)


@operation(
    numpy=numpy.all,
    public=METHOD,
    names={"mxnet": "_np_all"},
    samples=Samples(_KEPT, (-1, 1), dtypes=("bool", "uint8", "bfloat16", "float32")),
)
def all(a: Value, axis: Axes = None, keepdims: bool = False, where: Value | None = None) -> Value:
    """Whether all elements along `axis` are true."""
    return reduce(ALL, _only(cast(a, "bool"), where, True), axis, keepdims)


# -- averages and spread --------------------------------------------------------------------------


@operation(
    numpy=numpy.mean,
    public=METHOD,
    names={"mxnet": "_npi_mean"},
    samples=Samples(_ARRAYS, absolute=20),
)
def mean(
    a: Value,
    axis: Axes = None,
    dtype: str | None = None,
    keepdims: bool = False,
    where: Value | None = None,
) -> Value:
    """The arithmetic mean along `axis`."""
    dtype = dtype or floating(a.dtype)
    a = _to_sum(a, dtype)
    if where is not None:
        total = sum(a, axis, None, keepdims, None, where)
        return cast(true_divide(total, _count(a, axis, keepdims, where)), dtype)
    total = reduce(SUM, a, axis, keepdims)
    return cast(true_divide(total, extent(count_along("mean", a, axis))), dtype)


def _to_sum(a: Value, dtype: str) -> Value:
    """Elements of `dtype`, in the type that their sums are made in."""
    a = cast(a, dtype)
    return cast(a, wide(dtype)) if is_float(dtype) else a


def _count(a: Value, axis: Axes, keepdims: bool, where: Value) -> Value:
    """How many elements along `axis` `where` picks."""
    return sum(views.broadcast(cast(where, "bool"), a.shape), axis, None, keepdims)


_CORRECTED = (
    Case(((3, 70),), {"axis": 1, "ddof": 1}),
    Case(((3, 5),), {"axis": 1, "ddof": 1.5}),
)


@operation(
    numpy=numpy.var,
    public=METHOD,
    names={"mxnet": "_npi_var"},
    samples=Samples(
        (*_ARRAYS, *_CORRECTED),
        dtypes=("bool", "int32", "float16", "float32", "float64"),
        ulps=16,
        absolute=20,
    ),
)
def var(
    a: Value,
    axis: Axes = None,
    dtype: str | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Value:
    """The mean squared distance from the mean; `ddof` is subtracted from the number of elements."""
    dtype = dtype or floating(a.dtype)
    if dtype == "bool":  # as in NumPy: whether an element is not the mean, a truth value too
        return any(not_equal(a, mean(a, axis, dtype, True)), axis, keepdims)
    a = _to_sum(a, dtype)
    centred = subtract(a, mean(a, axis, None, True))
    total = reduce(SUM, square(centred), axis, keepdims)
    return cast(true_divide(total, _freedom(count_along("var", a, axis), ddof, total.dtype)), dtype)


def _freedom(count: int, ddof: float, dtype: str) -> Value:
    """The number of elements less `ddof`, and not below 0."""
    if float(ddof).is_integer():
        return extent(builtins.max(count - int(ddof), 0))
    return maximum(
        subtract(cast(extent(count), dtype), constant(ddof, dtype)), constant(0.0, dtype)
    )


@operation(
    numpy=numpy.std,
    public=METHOD,
    names={"mxnet": "_npi_std"},
    samples=Samples(
        (*_ARRAYS, *_CORRECTED),
        dtypes=("bool", "int32", "float16", "float32", "float64"),
        ulps=16,
        absolute=20,
    ),
)
def std(
    a: Value,
    axis: Axes = None,
    dtype: str | None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Value:
    """The standard deviation: the square root of the variance."""
    spread = var(a, axis, dtype, ddof, keepdims)
    return spread if spread.dtype == "bool" else root(spread)


@operation(
    numpy=lambda a, weights, **more: numpy.average(a, weights=weights, **more),
    names={"mxnet": "_npi_average"},
    samples=Samples(
        (
            Case(((3, 4), (3, 4))),
            Case(((3, 70), (70,)), {"axis": 1, "returned": True}),
        ),
        ((-4, 4), (1, 3)),
        dtypes=("int32", "float32", "float64"),
        ulps=16,
        absolute=20,
    ),
)
def average(
    a: Value,
    axis: Axes = None,
    weights: Value | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Value | tuple[Value, Value]:
    """The mean along `axis`, weighted if there are `weights`; with their sum if `returned`."""
    if weights is None:
        result = mean(a, axis, None, keepdims)
        total = cast(extent(count_along("average", a, axis)), result.dtype)
    else:
        weights = _along("average", weights, a, axis)
        product = true_divide(multiply(a, weights), constant(1, "int64", weak=True))
        weights = views.broadcast(cast(weights, product.dtype), a.shape)
        total = reduce(SUM, weights, axis, keepdims)
        total = required(total, not_equal(total, constant(0.0, total.dtype)), _NO_WEIGHT)
        result = true_divide(reduce(SUM, product, axis, keepdims), total)
    return (result, views.broadcast(total, result.shape)) if returned else result


_TOLD = "the weights of an average add up to 0; expected another sum. Give other weights."
_NO_WEIGHT = told(_TOLD, ZeroWeightError(_TOLD))


def _along(name: str, weights: Value, a: Value, axis: Axes) -> Value:
    """Weights of one axis, standing along it."""
    if weights.shape == a.shape:
        return weights
    if weights.ndim != 1 or not isinstance(axis, int):
        raise ShapeError(
            f"{name}: weights of shape {weights.shape} for an array of shape {a.shape} and axis "
            f"{axis}; give weights of the array's shape, or one-dimensional ones and their axis."
        )
    axis = check_axis(name, axis, a.ndim)
    if weights.shape[0] != a.shape[axis]:
        raise ShapeError(
            f"{name}: {weights.shape[0]} weights for axis {axis} of extent {a.shape[axis]}."
        )
    return views.reshape(weights, tuple(n if d == axis else 1 for d, n in enumerate(a.shape)))


# -- running results ------------------------------------------------------------------------------


def _scan(primitive: Scan, a: Value, axis: int | None, dtype: str | None) -> Value:
    a = _accumulated(a, dtype)
    if axis is None:
        a, axis = views.reshape(a, (a.size,)), 0
    axis = check_axis(primitive.name, axis, a.ndim)
    counted = cast(a, "int64") if a.dtype == "bool" else a  # which does not wrap around
    found = apply(primitive, (counted,), counted.type, axes=(axis,))
    return cast(found, a.dtype)


_SCAN_CASES = (
    *_BRIEF,
    Case(((0, 3),), {"axis": 0}),
    Case(((3, 4),), {"axis": 1, "dtype": "float64"}),
)


@operation(
    numpy=numpy.cumsum,
    public=METHOD,
    names={"mxnet": "_np_cumsum"},
    samples=Samples(_SCAN_CASES, absolute=400),
)
def cumsum(a: Value, axis: int | None = None, dtype: str | None = None) -> Value:
    """The sum of all elements so far along `axis`; of the flattened array, without one."""
    return _scan(CUMSUM, a, axis, dtype)


@operation(
    numpy=numpy.cumprod,
    samples=Samples(_SCAN_CASES, (0.5, 1.5), ulps=64, dtypes=("int32", *FLOATS)),
)
def cumprod(a: Value, axis: int | None = None, dtype: str | None = None) -> Value:
    """The product of all elements so far along `axis`."""
    return _scan(CUMPROD, a, axis, dtype)
