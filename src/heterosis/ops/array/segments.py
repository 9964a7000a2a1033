"""Sums and extremes of rows that belong together, and rows combined with those of an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.elementwise import ADD, MAXIMUM, MINIMUM
from heterosis.ir.program import Value, constant
from heterosis.ir.types import FLOATS, highest, is_integer, lowest
from heterosis.ops.array.indexing import placed_rows, scattered
from heterosis.ops.bounds import within
from heterosis.ops.math.elementwise import maximum, true_divide
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, floating
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import DTypeError, ShapeError
from heterosis.runtime.kinds import Natural

_NETWORK = ("npx",)
_NUMBERS = ("int32", *FLOATS)


# -- rows of an array -----------------------------------------------------------------------------


def _changed(change: Callable[..., Any]) -> Callable[..., Any]:
    """A reference: a copy of an array after `change` of it, by coordinates, with values."""

    def reference(a: Any, ind: Any, val: Any) -> Any:
        found = a.copy()
        change(found, tuple(ind), val)
        return found

    return reference


_ROWS = Samples(
    (
        Case(((5, 4), (2, 3), (3,))),
        Case(((5, 4), (1, 9), (9, 4))),
        Case(((4, 4, 2), (2, 3, 2), (2,))),
        Case(((5, 4), (1, 0), (0, 4))),
        Case(((5,), (1, 3), ())),
    ),
    ((-4, 4), (-4, 4), (-4, 4)),
    ("bool", *_NUMBERS),
    integer_arrays=(1,),
    absolute=64,
)


@operation(numpy=_changed(numpy.add.at), public=_NETWORK, samples=replace(_ROWS, dtypes=_NUMBERS))
def index_add(a: Value, ind: Value, val: Value) -> Value:
    """`a` with `val` added at the places whose coordinates stand along the first axis of `ind`, as
    `gather_nd` has them; of equal places all count."""
    places, update = placed_rows("index_add", a, ind, val)
    return scattered(a, places, update, combine=ADD)


@operation(numpy=_changed(numpy.ndarray.__setitem__), public=_NETWORK, samples=_ROWS)
def index_update(a: Value, ind: Value, val: Value) -> Value:
    """`a` with `val` written at the places whose coordinates stand along the first axis of `ind`,
    as `gather_nd` has them; of equal places the last counts."""
    places, update = placed_rows("index_update", a, ind, val)
    return scattered(a, places, update)


# -- segments -------------------------------------------------------------------------------------


def _segments(apart: Callable[[Any], Any], empty: Callable[[Any], Any]) -> Callable[..., Any]:
    """A reference: `apart` of each segment's rows, `empty` of the type where there are none."""

    def reference(data: Any, segment_ids: Any, num_segments: int) -> Any:
        if not ((segment_ids >= 0) & (segment_ids < num_segments)).all():
            raise ValueError("a row is of no segment")
        rows = [data[segment_ids == i] for i in range(num_segments)]
        blank = numpy.full(data.shape[1:], empty(data.dtype))
        found = [apart(own) if len(own) else blank for own in rows]
        dtype = apart(data[:1]).dtype if len(data) else data.dtype
        return numpy.array(found, dtype).reshape((num_segments, *data.shape[1:]))

    return reference


_SHAPES = (((9,), (9,)), ((9, 3), (9,)), ((7, 2, 3), (7,)))
_FEW, _MANY = ({"num_segments": n} for n in (2, 6))  # rows belong to 2, so that _MANY leaves gaps
_SEGMENTS = Samples(
    (*(Case(s, _FEW) for s in _SHAPES), Case(((0, 3), (0,)), _FEW), Case(((9,), (9,)), _FEW),
     *(Case(s, _MANY) for s in _SHAPES)),
    ((-4, 4), (0, 2)),
    _NUMBERS,
    integer_arrays=(1,),
    ulps=16,
    absolute=64,
)  # fmt: skip


def _ready(name: str, data: Value, ids: Value, count: int) -> tuple[Value, Value]:
    """The rows and their segments, which are checked as the program runs."""
    if not data.ndim or ids.shape != data.shape[:1]:
        raise ShapeError(
            f"{name}: segment_ids of shape {ids.shape} for data of shape {data.shape}; expected "
            "one segment for each row of the data, which has a dimension at least."
        )
    if not is_integer(ids.dtype):
        raise DTypeError(
            f"{name}: segment_ids have elements of {ids.dtype}; expected integers: try "
            "segment_ids.astype('int64')."
        )
    return cast(data, "int64") if data.dtype == "bool" else data, numbered(name, ids, count)


def numbered(name: str, ids: Value, count: int) -> Value:
    """`ids`; the program fails where one is not a number below `count`."""
    failure = f"{name}: there is a number outside of the range from 0 to {count - 1}."
    return cast(within(ids, 0, count - 1, failure), "int64")


def _filled(number: float, data: Value, count: int) -> Value:
    return views.broadcast(constant(number, data.dtype), (count, *data.shape[1:]))


@operation(
    numpy=_segments(lambda rows: rows.sum(0, dtype=rows.dtype), lambda dtype: 0),
    public=_NETWORK,
    samples=_SEGMENTS,
)
def segment_sum(data: Value, segment_ids: Value, num_segments: Natural) -> Value:
    """The sums of the rows of each segment: row `i` belongs to segment `segment_ids[i]`, a number
    below `num_segments`. 0 where there are none."""
    data, ids = _ready("segment_sum", data, segment_ids, num_segments)
    return scattered(_filled(0.0, data, num_segments), [ids], data, combine=ADD)


@operation(
    numpy=_segments(
        lambda rows: rows.mean(0, dtype=None if rows.dtype.kind == "f" else "float32"),
        lambda dtype: 0,
    ),
    public=_NETWORK,
    samples=_SEGMENTS,
)
def segment_mean(data: Value, segment_ids: Value, num_segments: Natural) -> Value:
    """The means of the rows of each segment: row `i` belongs to segment `segment_ids[i]`, a number
    below `num_segments`. 0 where there are none."""
    data, ids = _ready("segment_mean", data, segment_ids, num_segments)
    data = cast(data, floating(data.dtype))
    total = scattered(_filled(0.0, data, num_segments), [ids], data, combine=ADD)
    counts = cast(maximum(_counts(ids, num_segments), constant(1, "int64")), data.dtype)
    return true_divide(total, views.reshape(counts, (num_segments,) + (1,) * (data.ndim - 1)))


@operation(
    numpy=_segments(lambda rows: rows.max(0), lambda dtype: lowest(dtype.name)),
    public=_NETWORK,
    samples=_SEGMENTS,
)
def segment_max(data: Value, segment_ids: Value, num_segments: Natural) -> Value:
    """The largest rows of each segment, element by element: row `i` belongs to segment
    `segment_ids[i]`, a number below `num_segments`. Where there are none, -inf, or the least
    integer."""
    data, ids = _ready("segment_max", data, segment_ids, num_segments)
    blank = _filled(lowest(data.dtype), data, num_segments)
    return scattered(blank, [ids], data, combine=MAXIMUM)


@operation(
    numpy=_segments(lambda rows: rows.min(0), lambda dtype: highest(dtype.name)),
    public=_NETWORK,
    samples=_SEGMENTS,
)
def segment_min(data: Value, segment_ids: Value, num_segments: Natural) -> Value:
    """The smallest rows of each segment, element by element: row `i` belongs to segment
    `segment_ids[i]`, a number below `num_segments`. Where there are none, inf, or the largest
    integer."""
    data, ids = _ready("segment_min", data, segment_ids, num_segments)
    blank = _filled(highest(data.dtype), data, num_segments)
    return scattered(blank, [ids], data, combine=MINIMUM)


# -- counts ---------------------------------------------------------------------------------------


def _counts(ids: Value, count: int) -> Value:
    """How often each number occurs in `ids`, which are below `count`."""
    ones = views.broadcast(constant(1, "int64"), ids.shape)
    return scattered(views.broadcast(constant(0, "int64"), (count,)), [ids], ones, combine=ADD)


@operation(
    public=(),
    numpy=lambda x, weights=None, length=0: numpy.bincount(x, weights, length).astype(
        "int64" if weights is None else weights.dtype
    ),
    samples=Samples(
        (
            Case(((9,),), {"length": 5}),
            Case(((9,), (9,)), {"length": 4}),
            Case(((0,),), {"length": 3}),
        ),
        ((0, 4), (-4, 4)),
        FLOATS,
        integer_arrays=(0,),
        absolute=64,
    ),
)
def counted(x: Value, weights: Value | None = None, length: Natural = 0) -> Value:
    """`bincount` with a length that is known: how often each number below it occurs in `x`, or with
    what weight."""
    if x.ndim != 1 or not is_integer(x.dtype):
        raise DTypeError(
            f"bincount: {x.dtype} of shape {x.shape}; expected integers of one dimension."
        )
    ids = numbered("bincount", x, length)
    if weights is None:
        return _counts(ids, length)
    if weights.shape != x.shape:
        raise ShapeError(
            f"bincount: weights of shape {weights.shape} for {x.shape}; expected one for each."
        )
    return scattered(_filled(0.0, weights, length), [ids], weights, combine=ADD)
