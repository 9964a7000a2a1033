"""Images in another size: every row and column a weighted sum of a few of the old ones.

Which ones, and with what weights, is worked out on the host and passed as small arrays: one
operation serves all interpolations and sizes. Bytes are weighed in whole numbers as OpenCV does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy

from heterosis.ir import views
from heterosis.ir.program import GATHER, Value, apply, constant
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.bounds import checked
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError

NEAREST, LINEAR, CUBIC, AREA, LANCZOS = range(5)
_BITS = 11  # of the fraction of a whole-number weight
_ONE = 1 << _BITS


class Taps(NamedTuple):
    """For each new place along an axis, `places` of old ones and their `weights`: both (new, k)."""

    places: numpy.ndarray
    weights: numpy.ndarray


@lru_cache(maxsize=256)
def taps(interpolation: int, old: int, new: int, shrinks: bool, whole: bool) -> Taps:
    """The taps along an axis of `old` places that gets `new` ones.

    `shrinks`: both axes of the image do; else "area" is a kind of linear interpolation. `whole`:
    weights are integers, in units of 1 / 2048.
    """
    if interpolation not in range(5):
        raise ArgumentError(
            f"resize: interpolation {interpolation}; expected 0 (nearest), 1 (linear), 2 (cubic), "
            "3 (area) or 4 (Lanczos)."
        )
    scale = 1 / (new / old)
    if interpolation == AREA and shrinks:
        return _area(old, new, scale)
    if interpolation == NEAREST:
        places, weights = numpy.floor(numpy.arange(new) * scale)[:, None], numpy.ones((new, 1))
    else:
        first, fraction = _position(interpolation, old, new, scale)
        offsets, weights = _WEIGHTS[interpolation](fraction)
        places = first[:, None] + offsets
    places = numpy.clip(places, 0, old - 1).astype("int64")
    weights = weights.astype("float32")
    return Taps(places, numpy.rint(weights * _ONE).astype("int32") if whole else weights)


def _position(
    interpolation: int, old: int, new: int, scale: float
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The old place at or before each new one, and how far the new one lies behind it."""
    index = numpy.arange(new)
    if interpolation != AREA:
        exact = ((index + 0.5) * scale - 0.5).astype("float32")
        first = numpy.floor(exact)
        return first, exact - first
    first = numpy.floor(index * scale)
    fraction = ((index + 1) - (first + 1) / scale).astype("float32")
    return first, numpy.where(fraction <= 0, 0, fraction - numpy.floor(fraction))


def _linear(fraction: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    return numpy.arange(2), numpy.stack([1 - fraction, fraction], 1)


def _cubic(fraction: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    a, x = numpy.float32(-0.75), fraction
    before = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    here = ((a + 2) * x - (a + 3)) * x * x + 1
    there = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) ** 2 + 1
    return numpy.arange(-1, 3), numpy.stack([before, here, there, 1 - before - here - there], 1)


def _lanczos(fraction: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    offsets = numpy.arange(-3, 5)
    distance = fraction[:, None].astype("float64") - offsets
    weights = numpy.sinc(distance) * numpy.sinc(distance / 4)
    return offsets, weights / weights.sum(1, keepdims=True)


_WEIGHTS = {LINEAR: _linear, CUBIC: _cubic, AREA: _linear, LANCZOS: _lanczos}


def _area(old: int, new: int, scale: float) -> Taps:
    """Each new place is the mean of the old ones that it covers, by the part that it covers."""
    starts = numpy.arange(new)[:, None] * scale
    ends = numpy.minimum(starts + scale, old)
    places = numpy.floor(starts + 1e-9) + numpy.arange(int(numpy.ceil(scale - 1e-9)) + 1)
    covered = numpy.minimum(places + 1, ends) - numpy.maximum(places, starts)
    weights = numpy.clip(covered, 0, 1)
    weights /= weights.sum(1, keepdims=True)
    return Taps(numpy.clip(places, 0, old - 1).astype("int64"), weights.astype("float32"))


def image_taps(
    shape: tuple[int, ...], dtype: str, height: int, width: int, interpolation: int
) -> tuple[Taps, Taps]:
    """The taps along rows and columns of an image, or of several, of shape (..., h, w, c)."""
    old_height, old_width = shape[-3:-1]
    if interpolation == AREA and (old_height, old_width) == (2 * height, 2 * width):
        interpolation = LINEAR  # the same mean of four, and rounded as OpenCV does
    shrinks = height <= old_height and width <= old_width
    whole = dtype == "uint8" and not (interpolation == AREA and shrinks)
    return (
        taps(interpolation, old_height, height, shrinks, whole),
        taps(interpolation, old_width, width, shrinks, whole),
    )


# -- on the host ----------------------------------------------------------------------------------


def resampled(
    data: numpy.ndarray,
    rows: numpy.ndarray,
    row_weights: numpy.ndarray,
    columns: numpy.ndarray,
    column_weights: numpy.ndarray,
) -> numpy.ndarray:
    """What the operation `resample` gives, of NumPy arrays."""
    if rows.size < data.shape[-3]:  # the others are not needed
        used, rows = numpy.unique(rows, return_inverse=True)
        data, rows = numpy.take(data, used, axis=-3), rows.reshape(row_weights.shape)
    whole = row_weights.dtype.kind == "i"
    work = row_weights.dtype if whole else _work_type(data.dtype.name)
    wide = _weighed(data, columns, column_weights.astype(work), -2, _exact)
    if not whole:
        return _rounded(_weighed(wide, rows, row_weights.astype(work), -3, _exact), data.dtype)
    halves = rows.shape[1] == 2
    sums = _weighed(wide, rows, row_weights, -3, _shifted if halves else _exact)
    drop = 2 if halves else 2 * _BITS
    found: numpy.ndarray = numpy.clip((sums + (1 << (drop - 1))) >> drop, 0, 255)
    return found.astype(data.dtype)


def _weighed(
    x: numpy.ndarray, places: numpy.ndarray, weights: numpy.ndarray, axis: int, product: Any
) -> Any:
    shape = (-1,) + (1,) * (-axis - 1)
    total: Any = None
    for place, weight in zip(places.T, weights.T, strict=True):
        term = product(numpy.take(x, place, axis=axis), weight.reshape(shape))
        total = term if total is None else numpy.add(total, term, out=total)
    return total


def _exact(x: numpy.ndarray, weight: numpy.ndarray) -> Any:
    return numpy.multiply(x, weight, dtype=weight.dtype)


def _shifted(x: numpy.ndarray, weight: numpy.ndarray) -> numpy.ndarray:
    """The product without its low bits: OpenCV's rounding of linear interpolation."""
    x >>= 4
    x *= weight
    x >>= 16
    return x


def _work_type(dtype: str) -> str:
    return "float64" if dtype in ("float64", "int32", "int64") else "float32"


def _rounded(x: numpy.ndarray, dtype: numpy.dtype) -> numpy.ndarray:
    if dtype.kind not in "iu":
        return x.astype(dtype)
    limits = numpy.iinfo(dtype)
    found: numpy.ndarray = numpy.clip(numpy.rint(x), limits.min, limits.max)
    return found.astype(dtype)


# -- as an operation ------------------------------------------------------------------------------


@operation(
    numpy=resampled,
    public=(),
    samples=Samples(
        [Case(((5, 4, 3), (7, 2), (7, 2), (3, 2), (3, 2))), Case(((2, 5, 4, 1), *((2, 3),) * 4))],
        domain=((0, 255), (0, 4), (-1, 1), (0, 4), (-1, 1)),
        dtypes=("float32", "float64"),
        integer_arrays=(1, 3),
        absolute=2048,
    ),
)
def resample(
    data: Value, rows: Value, row_weights: Value, columns: Value, column_weights: Value
) -> Value:
    """Images (..., height, width, channels) whose rows and columns are weighted sums of the old:
    `rows` and `columns` are the places of those, (new, taps), with a weight for each."""
    *batch, height, width, channels = data.shape
    whole = row_weights.dtype == "int32"
    work = "int32" if whole else _work_type(data.dtype)
    count = data.size // max(width * channels, 1)
    wide = _sum_of(views.reshape(data, (count, width, channels)), columns, column_weights, work)
    shape = (count // max(height, 1), height, columns.shape[0] * channels)
    halves = whole and rows.shape[1] == 2
    result = _sum_of(views.reshape(wide, shape), rows, row_weights, work, shifted=halves)
    result = _narrowed(result, data.dtype, (2 if halves else 2 * _BITS) if whole else 0)
    return views.reshape(result, (*batch, rows.shape[0], columns.shape[0], channels))


def _sum_of(x: Value, places: Value, weights: Value, work: str, *, shifted: bool = False) -> Value:
    """(a, old, b) to (a, new, b)."""
    new, count = places.shape
    places = checked("resample", places, x.shape[1], 1, x.shape)
    grid, shape = (x.shape[0], new), (x.shape[0], new, x.shape[2])
    line = views.broadcast(views.reshape(iota(x.shape[0]), (x.shape[0], 1)), grid)
    total = None
    for k in range(count):
        place = views.broadcast(_column(places, k), grid)
        found = apply(GATHER, (x, line, place), TensorType(shape, x.dtype))
        weight = views.broadcast(views.reshape(_column(weights, k), (new, 1)), shape)
        term = _product(cast(found, work), cast(weight, work), shifted)
        total = term if total is None else e.add(total, term)
    assert total is not None, "every place has a weight at least"
    return total


def _column(table: Value, k: int) -> Value:
    return views.reshape(views.slice_(table, (0, k), (1, 1), (table.shape[0], 1)), table.shape[:1])


def _product(x: Value, weight: Value, shifted: bool) -> Value:
    if not shifted:
        return e.multiply(x, weight)
    return e.right_shift(e.multiply(e.right_shift(x, 4), weight), 16)


def _narrowed(x: Value, dtype: str, drop: int) -> Value:
    if is_float(dtype):
        return cast(x, dtype)
    if drop:
        x = e.right_shift(e.add(x, 1 << (drop - 1)), drop)
    limits = numpy.iinfo(dtype)
    low, high = (constant(float(n), x.dtype) for n in (limits.min, limits.max))
    return cast(e.minimum(e.maximum(r.rint(x) if not drop else x, low), high), dtype)
