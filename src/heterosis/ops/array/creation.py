"""Arrays from nothing but a shape and numbers: programs without operands to load."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant, extent
from heterosis.ir.traced_sizes import index
from heterosis.ir.types import DEFAULT_FLOAT, ITEMSIZE, is_float, is_integer
from heterosis.ops.math import elementwise, real
from heterosis.ops.math.elementwise import select
from heterosis.ops.record import default, operation
from heterosis.ops.rules import broadcast_all, cast, floating, iota, result_type
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.context import Context, check_context
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedError,
    check_axis,
)

Shape = int | tuple[int, ...]
_MOST_BYTES = 2**62  # beyond this, sizes no longer fit the core's arithmetic
_ONE_TYPE = ("float32",)


def check_shape(name: str, given: Any, itemsize: int = 8) -> tuple[int, ...]:
    """`given`, a number or a sequence of them, as a shape that an array can have."""
    items = given if isinstance(given, tuple | list) else (given,)
    try:
        shape = tuple(map(index, items))
    except TypeError:
        raise ArgumentTypeError(f"{name}: a shape consists of integers; got {given!r}.") from None
    if any(n < 0 for n in shape):
        raise ShapeError(f"{name}: a shape has no negative extents; got {shape}.")
    if math.prod(shape) * itemsize > _MOST_BYTES:
        raise OutOfMemoryError(f"{name}: no machine has room for an array of shape {shape}.")
    return shape


def check_layout(name: str, order: str | None, ctx: Context | None) -> None:
    """Arrays are made row by row in main memory; other wishes are refused."""
    check_context(ctx)
    if order not in ("C", "K", "A", None):
        raise UnsupportedError(
            f"{name}: order={order!r} is not supported; new arrays are in row-major order ('C')."
        )


def filled(name: str, number: Value, shape: Any, dtype: str | None) -> Value:
    """An array of `shape` that repeats `number`."""
    dtype = dtype or DEFAULT_FLOAT
    number = cast(number, dtype)
    shape = check_shape(name, shape, ITEMSIZE[dtype])
    return views.broadcast(number, shape)


def cases_of(*cases: dict[str, Any], shapes: tuple[Any, ...] = (), **more: Any) -> Samples:
    return Samples([Case(shapes, case) for case in cases], dtypes=_ONE_TYPE, **more)


_SHAPES = [{"shape": shape} for shape in ((), 3, (0, 2), (2, 3), (2, 0), (1, 70))]
_TYPED = [{"shape": (2, 3), "dtype": d} for d in ("bool", "int8", "int64", "float16", "float64")]


@operation(numpy=numpy.zeros, names={"mxnet": "_npi_zeros"}, samples=cases_of(*_SHAPES, *_TYPED))
def zeros(
    shape: Shape, dtype: str | None = None, order: str = "C", ctx: Context | None = None
) -> Value:
    """A new array of zeros."""
    check_layout("zeros", order, ctx)
    return filled("zeros", constant(0, "int64"), shape, dtype)


@operation(numpy=numpy.ones, names={"mxnet": "_npi_ones"}, samples=cases_of(*_SHAPES, *_TYPED))
def ones(
    shape: Shape, dtype: str | None = None, order: str = "C", ctx: Context | None = None
) -> Value:
    """A new array of ones."""
    check_layout("ones", order, ctx)
    return filled("ones", constant(1, "int64"), shape, dtype)


@operation(
    numpy=lambda fill_value, **facts: numpy.full(fill_value=fill_value, **facts),
    names={"mxnet": "_npi_full"},
    samples=cases_of(*_SHAPES, *_TYPED, shapes=(None,), domain=(0, 4)),
)
def full(
    shape: Shape,
    fill_value: Value,
    dtype: str | None = None,
    order: str = "C",
    ctx: Context | None = None,
) -> Value:
    """A new array that repeats a number, or an array that broadcasts to `shape`."""
    check_layout("full", order, ctx)
    dtype = dtype or _type_of_fill(fill_value)
    shape = check_shape("full", shape, ITEMSIZE[dtype])
    _check_repeats("full", fill_value.shape, shape)
    return views.broadcast(cast(fill_value, dtype), shape)


def _check_repeats(name: str, shape: tuple[int, ...], to: tuple[int, ...]) -> None:
    pairs = zip(reversed(shape), reversed(to), strict=False)
    if len(shape) > len(to) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(f"{name}: an array of shape {shape} cannot be repeated to {to}.")


def _type_of_fill(fill_value: Value) -> str:
    if not fill_value.type.weak or fill_value.dtype == "bool":
        return fill_value.dtype
    return DEFAULT_FLOAT


# -- like another array ---------------------------------------------------------------------------

_LIKE = Samples(
    [Case(((2, 3),)), Case(((),)), Case(((0, 2),)), Case(((4,),), {"dtype": "int32"})],
    dtypes=("bool", "int32", "float32"),
)


_constant_like = partial(
    operation,
    public=("np", "ndarray"),
    samples=_LIKE,
    piecewise_constant="made of the shape alone",
)


def _like(name: str, a: Value, number: Value, dtype: str | None, shape: Shape | None) -> Value:
    return filled(name, number, a.shape if shape is None else shape, dtype or a.dtype)


@_constant_like(numpy=numpy.zeros_like)
def zeros_like(
    a: Value,
    dtype: str | None = None,
    order: str = "C",
    ctx: Context | None = None,
    shape: Shape | None = None,
) -> Value:
    """Zeros with the shape and element type of `a`."""
    check_layout("zeros_like", order, ctx)
    return _like("zeros_like", a, constant(0, "int64"), dtype, shape)


@_constant_like(numpy=numpy.ones_like)
def ones_like(
    a: Value,
    dtype: str | None = None,
    order: str = "C",
    ctx: Context | None = None,
    shape: Shape | None = None,
) -> Value:
    """Ones with the shape and element type of `a`."""
    check_layout("ones_like", order, ctx)
    return _like("ones_like", a, constant(1, "int64"), dtype, shape)


@operation(
    numpy=lambda a, fill_value, **facts: numpy.full_like(a, fill_value, **facts),
    names={"mxnet": "_npi_full_like"},
    samples=Samples(
        [Case(((2, 3), None)), Case(((0,), None)), Case(((4,), None), {"dtype": "int32"})],
        domain=(0, 1),
        dtypes=("bool", "int32", "float32"),
    ),
)
def full_like(
    a: Value,
    fill_value: Value,
    dtype: str | None = None,
    order: str = "C",
    ctx: Context | None = None,
    shape: Shape | None = None,
) -> Value:
    """An array with the shape and element type of `a` that repeats a number."""
    check_layout("full_like", order, ctx)
    shape = check_shape("full_like", a.shape if shape is None else shape)
    _check_repeats("full_like", fill_value.shape, shape)
    return views.broadcast(cast(fill_value, dtype or a.dtype), shape)


# -- sequences ------------------------------------------------------------------------------------


def _progression(start: Value, step: Value, count: int) -> Value:
    return elementwise.add(elementwise.multiply(iota(count), step), start)


def _progression_reference(start: float, step: float, num: int, dtype: str) -> numpy.ndarray:
    kind = float if is_float(dtype) else int  # integers are made of whole steps
    return (kind(start) + kind(step) * numpy.arange(num)).astype(dtype)


@operation(
    name="arange",
    public=(),
    numpy=_progression_reference,
    names={"mxnet": "_npi_arange"},
    samples=cases_of(
        {"num": 5, "dtype": "float32"},
        {"num": 0, "dtype": "float32"},
        {"num": 70, "dtype": "float64"},
        {"num": 3, "dtype": "int32"},
        shapes=(None, None),
    ),
)
def progression(start: Value, step: Value, num: int, dtype: str) -> Value:
    """`num` numbers from `start` on, `step` apart."""
    wide = "float64" if is_float(dtype) else "int64"
    return cast(_progression(cast(start, wide), cast(step, wide), num), dtype)


def _spaced(start: Value, stop: Value, num: int, endpoint: bool) -> Value:
    """`num` numbers from `start` to `stop` along the first axis, as float64."""
    start, stop = broadcast_all("linspace", (cast(start, "float64"), cast(stop, "float64")))
    parts = num - 1 if endpoint else num
    if parts < 1:
        return views.broadcast(start, (num, *start.shape))
    column = (num,) + (1,) * start.ndim
    at = views.reshape(iota(num), column)
    step = elementwise.true_divide(elementwise.subtract(stop, start), extent(parts))
    points = elementwise.add(elementwise.multiply(at, step), start)
    # The last point is `stop` itself, whatever the rounding of the step.
    return select(elementwise.equal(at, extent(parts)), stop, points)


def _along_axis(name: str, x: Value, axis: int) -> Value:
    axis = check_axis(name, axis, x.ndim)
    order = (*range(1, axis + 1), 0, *range(axis + 1, x.ndim))
    return views.transpose(x, order)


def _check_count(name: str, num: Any) -> int:
    try:
        count = operator.index(num)
    except TypeError:
        raise ArgumentTypeError(f"{name}: num is the number of points; got {num!r}.") from None
    if count < 0:
        raise ArgumentError(f"{name}: num={num} points; expected none or more.")
    return count


_SPACED: tuple[dict[str, Any], ...] = (
    {},
    {"num": 5},
    {"num": 5, "endpoint": False},
    {"num": 1},
    {"num": 0},
    {"num": 7, "dtype": "float64"},
)


@operation(
    name="linspace",
    public=(),
    numpy=numpy.linspace,
    names={"mxnet": "_npi_linspace"},
    samples=Samples(
        [Case((None, None), c) for c in (*_SPACED, {"num": 5, "dtype": "int32"})]
        + [Case(((3,), (2, 1)), {"num": 4, "axis": -1})],
        dtypes=_ONE_TYPE,
    ),
)
def spaced(
    start: Value,
    stop: Value,
    num: int = 50,
    endpoint: bool = True,
    dtype: str | None = None,
    axis: int = 0,
) -> Value:
    """`num` evenly spaced numbers from `start` to `stop`."""
    points = _spaced(start, stop, _check_count("linspace", num), endpoint)
    dtype = dtype or floating(result_type(start, stop))
    if is_integer(dtype):
        points = real.floor(points)
    return cast(_along_axis("linspace", points, axis), dtype)


@operation(
    numpy=lambda start, stop, **facts: numpy.logspace(start, stop, **facts),
    names={"mxnet": "_npi_logspace"},
    samples=Samples(
        [Case((None, None), c) for c in _SPACED], domain=(-2, 2), dtypes=_ONE_TYPE, ulps=8
    ),
)
def logspace(
    start: Value,
    stop: Value,
    num: int = 50,
    endpoint: bool = True,
    base: Value = default(10.0),
    dtype: str | None = None,
    axis: int = 0,
    ctx: Context | None = None,
) -> Value:
    """`num` numbers from `base ** start` to `base ** stop`, evenly spaced in their logarithm."""
    check_layout("logspace", "C", ctx)
    points = _spaced(start, stop, _check_count("logspace", num), endpoint)
    powers = elementwise.power(cast(base, "float64"), points)
    dtype = dtype or floating(result_type(start, stop))
    return cast(_along_axis("logspace", powers, axis), dtype)
