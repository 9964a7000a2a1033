"""Padding: more elements before and behind, along every dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, GATHER, Value, apply, constant, extent
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.array.join import joined
from heterosis.ops.array.shape import flipped, samples
from heterosis.ops.array.split import part
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real, reductions
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, iota
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, ShapeError

Width = tuple[int, int]


def widths(name: str, given: Any, ndim: int) -> tuple[Width, ...]:
    """`pad_width` as a pair for each dimension: a number, a pair for all, or pairs."""
    try:
        table = numpy.broadcast_to(numpy.asarray(given), (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"{name}: pad_width={given} for an array of {ndim} dimensions; expected a number, a "
            "pair (before, after), or a pair for each dimension."
        ) from None
    if table.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name}: pad_width={given}; widths are integers.")
    if (table < 0).any():
        raise ArgumentError(f"{name}: pad_width={given}; widths are not negative.")
    return tuple((int(before), int(after)) for before, after in table)


# -- from elements that are there: the place along one axis that each new place repeats -----------


def _edge(at: Value, n: int) -> Value:
    return e.minimum(e.maximum(at, 0), extent(n - 1))


def _wrap(at: Value, n: int) -> Value:
    return e.mod(at, extent(n))


def _reflect(at: Value, n: int) -> Value:
    period = max(2 * n - 2, 1)
    folded = e.mod(at, extent(period))
    return e.minimum(folded, e.subtract(extent(period), folded)) if n > 1 else e.multiply(at, 0)


def _symmetric(at: Value, n: int) -> Value:
    folded = e.mod(at, extent(2 * n))
    return e.minimum(folded, e.subtract(extent(2 * n - 1), folded))


_SOURCES: dict[str, Callable[[Value, int], Value]] = {
    "edge": _edge,
    "wrap": _wrap,
    "reflect": _reflect,
    "symmetric": _symmetric,
}
# The same as parts of an axis of `n` elements, from where to where: one before and one behind it.
_PARTS: dict[str, Callable[[int, int, int], tuple[Width, Width]]] = {
    "edge": lambda n, before, after: ((0, 1), (n - 1, n)),
    "wrap": lambda n, before, after: ((n - before, n), (0, after)),
    "reflect": lambda n, before, after: ((1, before + 1), (n - 1 - after, n - 1)),
    "symmetric": lambda n, before, after: ((0, before), (n - after, n)),
}


def _from_elements(x: Value, around: tuple[Width, ...], mode: str) -> Value:
    """Side by side, one axis after the other, if all lengths are known and short enough."""
    least = 1 if mode == "reflect" else 0  # how many elements an axis has that are not repeated
    known = not any(map(is_traced, x.shape))
    short = known and all(max(w) <= n - least for n, w in zip(x.shape, around, strict=True))
    if not short and not (known and x.size and mode == "edge"):
        return _from_places(x, around, _SOURCES[mode])
    for axis, (before, after) in enumerate(around):
        if not before and not after:
            continue
        found = [part(x, axis, *ends) for ends in _PARTS[mode](x.shape[axis], before, after)]
        if mode == "edge":
            counts = zip(found, (before, after), strict=True)
            found = [_stretched(one, axis, count) for one, count in counts]
        elif mode != "wrap":
            found = [flipped(one, (axis,)) for one in found]
        x = joined("pad", [found[0], x, found[1]], axis)
    return x


def _from_places(
    x: Value, around: tuple[Width, ...], source: Callable[[Value, int], Value]
) -> Value:
    shape = tuple(n + b + a for n, (b, a) in zip(x.shape, around, strict=True))
    if not x.size:
        raise ShapeError(f"pad: an array of shape {x.shape} has no elements to repeat.")
    places = []
    for axis, (n, (before, _)) in enumerate(zip(x.shape, around, strict=True)):
        at = source(e.subtract(iota(shape[axis]), extent(before)), n)
        column = (shape[axis],) + (1,) * (len(shape) - axis - 1)
        places.append(views.broadcast(views.reshape(at, column), shape))
    return apply(GATHER, (x, *places), TensorType(shape, x.dtype))


# -- from numbers: one axis after the other -------------------------------------------------------


def _mean(x: Value, axis: int) -> Value:
    """The mean; of integers the nearest one, found in float64, as in NumPy."""
    if is_float(x.dtype) or x.dtype == "bool":
        return cast(reductions.mean(x, axis, None, True), x.dtype)
    return cast(real.rint(reductions.mean(x, axis, "float64", True)), x.dtype)


_STATISTICS: dict[str, Callable[[Value, int], Value]] = {
    "maximum": lambda x, axis: reductions.max(x, axis, True),
    "minimum": lambda x, axis: reductions.min(x, axis, True),
    "mean": _mean,
}


def _with_statistics(
    x: Value, around: tuple[Width, ...], of: Callable[[Value, int], Value]
) -> Value:
    for axis, (before, after) in enumerate(around):
        if not before and not after:
            continue
        if not x.shape[axis]:
            raise ShapeError(
                f"pad: axis {axis} of shape {x.shape} has no elements to find a number from; see "
                "mode='constant'."
            )
        found = of(x, axis)
        parts = [_stretched(found, axis, before), x, _stretched(found, axis, after)]
        x = joined("pad", parts, axis)
    return x


def _stretched(x: Value, axis: int, count: int) -> Value:
    return views.broadcast(x, (*x.shape[:axis], count, *x.shape[axis + 1 :]))


def with_constant(x: Value, around: tuple[Width, ...], number: Any) -> Value:
    """`x` with `number` around it: so many elements before and after along each axis."""
    shape = tuple(n + b + a for n, (b, a) in zip(x.shape, around, strict=True))
    place = (tuple(b for b, _ in around), (1,) * x.ndim)
    fill = cast(constant(number, "float64" if isinstance(number, float) else "int64"), x.dtype)
    type_ = TensorType(shape, x.dtype)
    return apply(ASSEMBLE, (fill, x), type_, places=(place,), filled=True)


def _with_ramps(
    x: Value, around: tuple[Width, ...], ends: tuple[tuple[float, float], ...]
) -> Value:
    for axis, ((before, after), (low, high)) in enumerate(zip(around, ends, strict=True)):
        n = x.shape[axis]
        rising = _ramp(part(x, axis, 0, 1), axis, before, low)
        falling = flipped(_ramp(part(x, axis, n - 1, n), axis, after, high), (axis,))
        x = joined("pad", [rising, x, falling], axis)
    return x


def _ramp(edge: Value, axis: int, count: int, end: float) -> Value:
    """`count` numbers from `end` on that would reach `edge` with the next step."""
    column = (count,) + (1,) * (edge.ndim - axis - 1)
    share = e.true_divide(
        cast(views.reshape(iota(count), column), "float64"), extent(max(count, 1))
    )
    way = e.subtract(cast(edge, "float64"), end)
    ramp = e.add(e.multiply(way, share), end)
    return cast(ramp if is_float(edge.dtype) else e.floor_divide(ramp, 1.0), edge.dtype)


_ALL = ("constant", *_SOURCES, *_STATISTICS, "linear_ramp")


@operation(
    numpy=numpy.pad,
    public=("np", "ndarray"),
    names={"mxnet": "_npi_pad"},
    samples=samples(
        ((2, 3), {"pad_width": 1}),
        ((2, 3), {"pad_width": ((0, 2), (1, 0)), "constant_values": 1}),
        ((0,), {"pad_width": (1, 2)}),
        *[((3, 4), {"pad_width": ((2, 1), (0, 3)), "mode": m}) for m in _ALL[1:5]],
        *[((2, 1), {"pad_width": (3, 4), "mode": m}) for m in _ALL[1:5]],
        *[((2, 3), {"pad_width": ((1, 0), (2, 1)), "mode": m}) for m in ("maximum", "minimum")],
        dtypes=("bool", "float32"),
    ),
)
def pad(
    x: Value,
    pad_width: Any,
    mode: str = "constant",
    constant_values: Any = 0,
    end_values: Any = 0,
    reflect_type: str = "even",
) -> Value:
    """More elements before and behind along every dimension, made as `mode` says: constant, edge,
    reflect, symmetric, wrap, maximum, minimum, mean or linear_ramp."""
    around = widths("pad", pad_width, x.ndim)
    if reflect_type != "even":
        raise ArgumentError(f"pad: reflect_type={reflect_type!r}; only 'even' is supported.")
    if mode in _SOURCES:
        return _from_elements(x, around, mode)
    if mode in _STATISTICS:
        return _with_statistics(x, around, _STATISTICS[mode])
    if mode == "constant":
        return _with_constants(x, around, constant_values)
    if mode == "linear_ramp":
        return _with_ramps(x, around, _ends(end_values, x.ndim))
    raise ArgumentError(f"pad: mode={mode!r}; expected one of {', '.join(_ALL)}.")


def _with_constants(x: Value, around: tuple[Width, ...], values: Any) -> Value:
    if not isinstance(values, tuple):
        return with_constant(x, around, values)
    for axis, (own, pair) in enumerate(zip(around, _ends(values, x.ndim), strict=True)):
        for side in (0, 1):
            only = tuple(
                (own[0] * (side == 0), own[1] * (side == 1)) if a == axis else (0, 0)
                for a in range(x.ndim)
            )
            x = with_constant(x, only, pair[side])
    return x


def _ends(given: Any, ndim: int) -> tuple[tuple[float, float], ...]:
    """A number, a pair for all, or pairs, as a pair for each dimension."""
    table = numpy.broadcast_to(numpy.asarray(given), (ndim, 2)).tolist()
    return tuple((low, high) for low, high in table)
