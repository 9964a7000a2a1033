"""Pooling: the largest element, the sum, the mean or the norm of every window.

Windows of few elements are taken apart: one strided view for each tap, combined element by
element, which runs along the rows of the result. Larger ones are reduced as they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, TypeAlias, TypeVar

from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, Value, apply, constant, extent
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.array.pad import with_constant
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real, reductions
from heterosis.ops.math.elementwise import Binary
from heterosis.ops.nn import window_references as references
from heterosis.ops.nn.window_shapes import (
    Extents,
    axes_of_space,
    channels_last,
    per_axis,
    required_kernel,
    with_channels_first,
    with_layout,
)
from heterosis.ops.nn.windowed import Phase, phases
from heterosis.ops.record import gradient_of, operation
from heterosis.ops.rules import cast, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

T = TypeVar("T")

_MOST_TAPS = 32  # of windows that are taken apart
_KINDS = ("max", "avg", "sum", "lp")
_CONVENTIONS = ("valid", "full", "same")


@dataclass(frozen=True)
class _Axis:
    """Windows of `kernel` elements, `stride` apart, along `extent` elements: the first begins
    `before` elements early, and padding ends `after` elements late, `all_inside` of which windows
    are."""

    extent: int
    kernel: int
    stride: int
    before: int
    after: int
    out: int
    all_inside: bool = False

    @property
    def missing(self) -> int:
        """How many elements behind the last one windows reach for; as many as there may be, where
        an open extent would decide."""
        if self.all_inside and is_traced(self.extent):
            return self.after
        return max((self.out - 1) * self.stride + self.kernel - self.before - self.extent, 0)


def _axis(n: int, kernel: int, stride: int, pad: int, convention: str) -> _Axis:
    if convention == "same":
        out = -(-n // stride)
        total = max((out - 1) * stride + kernel - n, 0)
        return _Axis(n, kernel, stride, total // 2, total - total // 2, out)
    room = n + 2 * pad - kernel
    full = convention == "full"
    out = (-(-room // stride) if full else room // stride) + 1
    return _Axis(n, kernel, stride, pad, pad, out, not full)


def _axes(
    x: Value, kernel: Any, global_pool: bool, convention: str, stride: Any, pad: Any
) -> tuple[_Axis, ...]:
    """`x` with its channels second."""
    space = x.shape[2:]
    if global_pool:
        return tuple(_Axis(n, n, 1, 0, 0, 1) for n in space)
    kernel = required_kernel("pooling", kernel, len(space))
    strides = per_axis("pooling", "stride", stride, len(space), 1, 1)
    pads = per_axis("pooling", "pad", pad, len(space), 0, 0)
    if convention not in _CONVENTIONS:
        raise ArgumentError(
            f"pooling: pooling_convention={convention!r}; expected one of "
            f"{', '.join(_CONVENTIONS)}."
        )
    if convention == "same" and any(pads):
        raise ArgumentError(f"pooling: pad={pads} with pooling_convention='same'; leave it out.")
    if any(p >= k for p, k in zip(pads, kernel, strict=True)):
        raise ArgumentError(f"pooling: pad={pads} must be below kernel={kernel} on every axis.")
    if convention != "same" and any(
        k > n + 2 * p for n, k, p in zip(space, kernel, pads, strict=True)
    ):
        raise ShapeError(
            f"pooling: kernel={kernel} is larger than the data's {space} with padding {pads}; use "
            "a smaller kernel, or global_pool=True."
        )
    every = zip(space, kernel, strides, pads, strict=True)
    return tuple(_axis(*one, convention) for one in every)


# -- windows --------------------------------------------------------------------------------------


def _whole(axes: tuple[_Axis, ...]) -> bool:
    """Whether there is one window, which is everything."""
    return all(a.out == 1 and a.kernel == a.extent and not a.before for a in axes)


def _padded(x: Value, axes: tuple[_Axis, ...], number: float) -> Value:
    around = ((0, 0), (0, 0), *((a.before, a.missing) for a in axes))
    return with_constant(x, around, number) if any(map(any, around)) else x


def _at_tap(padded: Value, axes: tuple[_Axis, ...], tap: Extents) -> Value:
    """The elements that all windows have at `tap`."""
    shape = (*padded.shape[:2], *(a.out for a in axes))
    return views.slice_(padded, (0, 0, *tap), (1, 1, *(a.stride for a in axes)), shape)


def _taps(axes: tuple[_Axis, ...]) -> list[Extents]:
    return list(itertools.product(*(range(a.kernel) for a in axes)))


def _combined(
    x: Value, axes: tuple[_Axis, ...], number: float, pair: Binary, over: Callable[..., Value]
) -> Value:
    """All elements of every window, combined two at a time, or by a reduction `over` axes."""
    space = tuple(range(2, x.ndim))
    if _whole(axes):
        return over(x, space, keepdims=True)
    padded = _padded(x, axes, number)
    if prod(a.kernel for a in axes) <= _MOST_TAPS:
        return _paired(pair, [_at_tap(padded, axes, tap) for tap in _taps(axes)])
    every = _windows(padded, axes)
    return over(every, tuple(range(x.ndim, every.ndim)))


def _windows(padded: Value, axes: tuple[_Axis, ...]) -> Value:
    return views.windows(padded, tuple(a.kernel for a in axes), tuple(a.stride for a in axes))


def _paired(pair: Callable[[T, T], T], items: list[T]) -> T:
    """All items combined two at a time, neighbours first: a tree is not as deep as a chain."""
    while len(items) > 1:
        rest = items[len(items) // 2 * 2 :]
        twos = zip(items[::2], items[1::2], strict=False)
        items = [*itertools.starmap(pair, twos), *rest]
    return items[0]


def _sums(x: Value, axes: tuple[_Axis, ...]) -> Value:
    return _combined(x, axes, 0.0, e.add, reductions.sum)


def _maxima(x: Value, axes: tuple[_Axis, ...]) -> Value:
    return _combined(x, axes, float("-inf"), e.maximum, reductions.max)


def _counts(axes: tuple[_Axis, ...], include_pad: bool, dtype: str) -> Value:
    """How many elements the mean of each window is taken over."""
    total = constant(1, "int64", weak=True)
    for i, axis in enumerate(axes):
        column = (axis.out,) + (1,) * (len(axes) - i - 1)
        total = e.multiply(total, views.reshape(_counts_along(axis, include_pad), column))
    return cast(total, dtype)


def _counts_along(axis: _Axis, include_pad: bool) -> Value:
    first = e.subtract(e.multiply(iota(axis.out), axis.stride), axis.before)
    end = e.minimum(e.add(first, axis.kernel), extent(axis.extent + axis.after))
    if not include_pad:
        first, end = e.maximum(first, 0), e.minimum(end, extent(axis.extent))
    return e.maximum(e.subtract(end, first), 1)


def _norm(x: Value, p: int | None, axes: tuple[_Axis, ...]) -> Value:
    """Roots of sums of powers, signs kept as they come: of first powers, the plain sum."""
    if p == 1:
        return _sums(x, axes)
    if p == 2:
        return real.sqrt(_sums(e.square(x), axes))
    return real.cbrt(_sums(e.multiply(e.square(x), x), axes))


# -- gradients ------------------------------------------------------------------------------------

Wide: TypeAlias = tuple[Value, int]  # a value with a margin, and how wide that is
Seen: TypeAlias = Callable[[Wide], Value]  # the elements of it that a tap sees


def _spread(dy: Value, axes: tuple[_Axis, ...], at: Callable[[Extents, Seen], Value]) -> Value:
    """Each input element's sum over the windows it is in, of what `at(tap, seen)` says.

    `seen(v)` is `v`, of the windows' shape, as the elements at `tap` see it.
    """
    all_ = [phases(a.extent, a.kernel, a.stride, 1, -a.before) for a in axes]
    parts, places = [], []
    for some in itertools.product(*all_):
        shape = (*dy.shape[:2], *(p.out for p in some))
        terms = []
        for turn in itertools.product(*(range(p.kernel) for p in some)):
            tap = tuple(p.tap + m * p.apart for p, m in zip(some, turn, strict=True))
            window = tuple(p.origin - m for p, m in zip(some, turn, strict=True))
            terms.append(at(tap, partial(_shifted, first=window, shape=shape)))
        nothing = views.broadcast(constant(0, dy.dtype), shape)
        parts.append(_paired(e.add, terms) if terms else nothing)
        places.append(_place(some))
    type_ = TensorType((*dy.shape[:2], *(a.extent for a in axes)), dy.dtype)
    if len(parts) == 1:
        return parts[0]
    return apply(ASSEMBLE, parts, type_, places=tuple(places), filled=False)


def _place(some: tuple[Phase, ...]) -> tuple[Extents, Extents]:
    return (0, 0, *(p.first for p in some)), (1, 1, *(p.every for p in some))


def _shifted(v: Wide, first: Extents, shape: Extents) -> Value:
    """The elements of a value with a margin, from `first` on; `v` is the pair of both."""
    value, margin = v
    starts = (0, 0, *(f + margin for f in first))
    return views.slice_(value, starts, (1,) * value.ndim, shape)


def _with_margin(v: Value, axes: tuple[_Axis, ...], number: float) -> Wide:
    """`v` with so wide a margin that every element's windows are inside."""
    margin = 0
    for a in axes:
        for p in phases(a.extent, a.kernel, a.stride, 1, -a.before):
            margin = max(margin, p.kernel - 1 - p.origin, p.origin + p.out - a.out)
    around = ((0, 0), (0, 0)) + ((margin, margin),) * len(axes)
    return (with_constant(v, around, number) if margin else v), margin


def _sums_gradient(dy: Value, axes: tuple[_Axis, ...]) -> Value:
    if _whole(axes):
        return views.broadcast(dy, (*dy.shape[:2], *(a.extent for a in axes)))
    wide = _with_margin(dy, axes, 0.0)
    return _spread(dy, axes, lambda tap, seen: seen(wide))


def _maxima_gradient(dy: Value, x: Value, axes: tuple[_Axis, ...]) -> Value:
    """To the first of equal maxima."""
    if _whole(axes):
        here = e.equal(_numbered(axes), _first_in_windows(x, axes))
        return e.select(here, dy, constant(0.0, dy.dtype))
    place = _with_margin(_first_maxima(x, axes), axes, -1)
    wide = _with_margin(dy, axes, 0.0)
    number = {tap: i for i, tap in enumerate(_taps(axes))}

    def at(tap: Extents, seen: Seen) -> Value:
        here = e.equal(seen(place), constant(number[tap], "int32"))
        return e.select(here, seen(wide), constant(0.0, dy.dtype))

    return _spread(dy, axes, at)


def _first_maxima(x: Value, axes: tuple[_Axis, ...]) -> Value:
    """The number of the tap where each window has its maximum first; NaN is larger than all."""
    padded = _padded(x, axes, float("-inf"))
    taps = _taps(axes)
    if len(taps) > _MOST_TAPS:
        place = _first_in_windows(_windows(padded, axes), axes)
        return views.reshape(place, (*x.shape[:2], *(a.out for a in axes)))
    number = (views.broadcast(constant(i, "int32"), ()) for i in range(len(taps)))
    items = [(_at_tap(padded, axes, tap), i) for tap, i in zip(taps, number, strict=True)]
    if len(items) == 1:
        return views.broadcast(constant(0, "int32"), items[0][0].shape)
    return _paired(_larger, items)[1]


def _larger(a: tuple[Value, Value], b: tuple[Value, Value]) -> tuple[Value, Value]:
    """Of two elements and their numbers the larger one's; of equal ones, the first."""
    nan = e.logical_and(e.isnan(b[0]), e.logical_not(e.isnan(a[0])))
    better = e.logical_or(e.greater(b[0], a[0]), nan)
    return e.select(better, b[0], a[0]), e.select(better, b[1], a[1])


def _numbered(axes: tuple[_Axis, ...]) -> Value:
    """The taps' numbers, in the shape of the kernel."""
    kernel = tuple(a.kernel for a in axes)
    return cast(views.reshape(iota(prod(kernel)), kernel), "int32")


def _first_in_windows(every: Value, axes: tuple[_Axis, ...]) -> Value:
    """As `_first_maxima`, of windows that are the last dimensions, which are kept."""
    space = tuple(range(every.ndim - len(axes), every.ndim))
    largest = e.equal(every, reductions.max(every, space, keepdims=True))
    largest = e.logical_or(largest, e.isnan(every))
    numbers = views.broadcast(_numbered(axes), every.shape)
    beyond = constant(prod(a.kernel for a in axes), "int32")
    return reductions.min(e.select(largest, numbers, beyond), space, keepdims=True)


def together(every: Value, extents: Extents, steps: Extents) -> Value:
    """What `views.windows` has taken apart: for each of the elements that lie along `extents`, the
    sum of what `every` (batch, channels, *counts, *kernel) has in the windows that it is in."""
    dims = len(extents)
    counts, kernel = every.shape[2 : 2 + dims], every.shape[2 + dims :]
    each = zip(extents, kernel, steps, counts, strict=True)
    axes = tuple(_Axis(n, k, s, 0, 0, out) for n, k, s, out in each)
    shape = every.shape[: 2 + dims]

    def at(tap: Extents, seen: Seen) -> Value:
        start = (0,) * len(shape) + tap
        part = views.slice_(every, start, (1,) * every.ndim, shape + (1,) * len(tap))
        return seen(_with_margin(views.reshape(part, shape), axes, 0.0))

    return _spread(every, axes, at)


# -- what users call ------------------------------------------------------------------------------


def _checked(pool_type: str, p_value: int | None, x: Value) -> None:
    if pool_type not in _KINDS:
        raise ArgumentError(
            f"pooling: pool_type={pool_type!r}; expected one of {', '.join(_KINDS)}."
        )
    if pool_type == "lp" and p_value not in (1, 2, 3):
        raise ArgumentError(f"pooling: p_value={p_value} with pool_type='lp'; expected 1, 2 or 3.")
    if not is_float(x.dtype):
        raise DTypeError(
            f"pooling: elements of {x.dtype}; expected floats. Convert with .astype('float32')."
        )
    if 0 in x.shape[2:]:
        raise ShapeError(f"pooling: data of shape {x.shape} has no elements to pool.")


_IMAGE, _LINE = (2, 3, 9, 11), (2, 3, 10)
_CASES = (
    (_IMAGE, {"kernel": (2, 2), "stride": (2, 2)}),
    (_IMAGE, {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)}),
    (_IMAGE, {"kernel": (3, 2), "stride": (2, 3), "pad": (1, 0), "pooling_convention": "full"}),
    (_IMAGE, {"kernel": (3, 3), "pool_type": "avg", "pad": (1, 1), "stride": (2, 2)}),
    (_IMAGE, {"kernel": (3, 3), "pool_type": "avg", "pad": (1, 1), "count_include_pad": False}),
    (_IMAGE, {"kernel": (3, 2), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg",
              "pooling_convention": "full"}),
    (_IMAGE, {"kernel": (9, 8), "pool_type": "sum"}),
    (_IMAGE, {"kernel": (2, 2), "pool_type": "lp", "p_value": 2}),
    (_IMAGE, {"global_pool": True, "pool_type": "avg"}),
    (_LINE, {"kernel": (3,), "stride": (2,), "pooling_convention": "same"}),
    (_LINE, {"kernel": (3,), "stride": (1,), "layout": "NWC", "pool_type": "sum"}),
    ((1, 2, 4, 5, 6), {"kernel": (2, 2, 3), "stride": (2, 1, 2)}),
    ((0, 2, 4, 4), {"kernel": (2, 2)}),
)  # fmt: skip
_FLOATS = ("float16", "float32", "float64")


@operation(
    numpy=references.pooling,
    public=("npx",),
    names={"mxnet": "Pooling"},
    samples=Samples(
        [Case((shape,), attributes) for shape, attributes in _CASES],
        domain=(0.1, 2), dtypes=_FLOATS, ulps=16, absolute=16,
    ),
)  # fmt: skip
def pooling(
    data: Value,
    kernel: Any = None,
    pool_type: str = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: str = "valid",
    stride: Any = None,
    pad: Any = None,
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
) -> Value:
    """The max, avg, sum or lp norm of windows of `kernel` elements, `stride` apart.

    With `pooling_convention` "valid" windows lie inside the padded data, with "full" the last one
    may reach beyond, and with "same" there is one for every `stride` elements.
    """
    last = channels_last("pooling", layout, axes_of_space("pooling", data))
    x = with_channels_first(data, last)
    _checked(pool_type, p_value, x)
    axes = _axes(x, kernel, global_pool, pooling_convention, stride, pad)
    if pool_type == "max":
        y = _maxima(x, axes)
    elif pool_type == "lp":
        y = _norm(x, p_value, axes)
    else:
        y = _sums(x, axes)
        if pool_type == "avg":
            y = cast(
                e.true_divide(y, _counts(axes, count_include_pad is not False, x.dtype)), x.dtype
            )
    return with_layout(y, last)


@operation(
    numpy=references.pooling_gradient,
    public=(),
    samples=Samples(
        [
            Case((references.pooled_shape(shape, **attributes), shape), attributes)
            for shape, attributes in _CASES
        ],
        domain=(0.1, 2), dtypes=("float32", "float64"), ulps=32, absolute=32,
    ),
)  # fmt: skip
def pooling_gradient(
    dy: Value,
    data: Value,
    kernel: Any = None,
    pool_type: str = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: str = "valid",
    stride: Any = None,
    pad: Any = None,
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
) -> Value:
    """The gradient of pooled `data`, given the result's; a maximum's goes to its first place."""
    last = channels_last("pooling_gradient", layout, data.ndim - 2)
    x, dy = with_channels_first(data, last), with_channels_first(dy, last)
    axes = _axes(x, kernel, global_pool, pooling_convention, stride, pad)
    if pool_type == "max":
        dx = _maxima_gradient(dy, x, axes)
    elif pool_type == "lp":
        dx = _norm_gradient(dy, x, p_value, axes)
    else:
        if pool_type == "avg":
            counts = _counts(axes, count_include_pad is not False, x.dtype)
            dy = cast(e.true_divide(dy, counts), x.dtype)
        dx = _sums_gradient(dy, axes)
    return with_layout(dx, last)


@gradient_of(pooling)
def _pull_pooling(g: Value, y: Value, data: Value, *attributes: Any) -> Value:
    return pooling_gradient(g, data, *attributes)


def _norm_gradient(dy: Value, x: Value, p: int | None, axes: tuple[_Axis, ...]) -> Value:
    if p == 1:
        return _sums_gradient(dy, axes)
    y = _norm(x, p, axes)
    # Where all elements are zero, so are their shares: not zero by zero.
    y = e.select(e.equal(y, constant(0.0, y.dtype)), constant(1.0, y.dtype), y)
    if p == 2:
        return e.multiply(_sums_gradient(e.true_divide(dy, y), axes), x)
    return e.multiply(_sums_gradient(e.true_divide(dy, e.square(y)), axes), e.square(x))
