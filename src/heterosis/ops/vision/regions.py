"""Pooling over regions of images."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import Value, constant, extent
from heterosis.ops.array.indexing import gathered
from heterosis.ops.array.split import part
from heterosis.ops.bounds import bounded
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.math import reductions as rd
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, floating, iota
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import ArgumentError, ShapeError

_TURNED = (0, 1, 3, 2)


def _pooled_reference(data: Any, rois: Any, pooled_size: Any, spatial_scale: Any) -> Any:
    data, rois = data.astype("float32"), rois.astype("float32")
    channels, *extents = data.shape[1:]
    found = numpy.zeros((len(rois), channels, *pooled_size))
    single = numpy.float32

    def halves_away(x: Any) -> int:
        return int(numpy.floor(abs(x) + single(0.5)) * numpy.sign(x))

    for number, (image, *corners) in enumerate(rois):
        if not 0 <= int(image) < len(data):
            continue
        left, top, right, bottom = (halves_away(single(c) * single(spatial_scale)) for c in corners)
        places = numpy.ndindex(*pooled_size)
        for place in places:
            window = []
            for axis, (low, high) in enumerate(((top, bottom), (left, right))):
                bin_size = single(max(high - low + 1, 1)) / single(pooled_size[axis])
                start = int(numpy.floor(single(place[axis]) * bin_size)) + low
                stop = int(numpy.ceil(single(place[axis] + 1) * bin_size)) + low
                window.append(slice(max(start, 0), max(min(stop, extents[axis]), 0)))
            cells = data[int(image), :, window[0], window[1]]
            if cells.size:
                here = (number, slice(None), *place)
                found[here] = cells.max((1, 2))
    return found


@operation(
    numpy=_pooled_reference,
    public=("npx",),
    names={"mxnet": "ROIPooling"},
    samples=Samples(
        (
            Case(((2, 3, 9, 11), (5, 5)), {"pooled_size": (2, 3), "spatial_scale": 1.0}),
            Case(((1, 1, 6, 8), (7, 5)), {"pooled_size": (2, 2), "spatial_scale": 0.7}),
            Case(((2, 1, 6, 8), (4, 5)), {"pooled_size": (3, 3), "spatial_scale": 9.0}),
        ),
        ((-4, 4), (0, 1)),
        dtypes=("float32",),
    ),
)
def roi_pooling(
    data: Value, rois: Value, pooled_size: tuple[int, ...], spatial_scale: float
) -> Value:
    """The largest element of each of `pooled_size` (rows, columns) parts of each region.

    `data` is (batch, channels, height, width); a row of `rois` is the number of an image and the
    region's left, top, right and bottom, which belong to it, times `spatial_scale`. A part without
    pixels gives 0, and so does the number of no image.
    """
    size = pooled_size if isinstance(pooled_size, tuple) else (pooled_size,) * 2
    _check(data, rois, size)
    x, rois = cast(data, floating(data.dtype)), cast(rois, "float32")
    image, left, top, right, bottom = (
        views.reshape(part(rois, 1, i, i + 1), rois.shape[:1]) for i in range(5)
    )
    scale = constant(float(spatial_scale), "float32")
    rows = _inside(e.multiply(top, scale), e.multiply(bottom, scale), size[0], x.shape[2])
    columns = _inside(e.multiply(left, scale), e.multiply(right, scale), size[1], x.shape[3])
    number = cast(image, "int64")
    known = e.logical_and(e.greater_equal(number, 0), e.less(number, extent(x.shape[0])))
    chosen = gathered(x, [bounded("roi_pooling", number, x.shape[0], "clip", 0, x.shape)])
    # First along rows of pixels, then down their largest elements.
    across = _largest(chosen, columns)
    pooled = views.transpose(_largest(views.transpose(across, _TURNED), rows), _TURNED)
    filled = e.logical_and(
        _stand(rd.any(rows, 2), (0, 2), 4), _stand(rd.any(columns, 2), (0, 3), 4)
    )
    return e.select(e.logical_and(filled, _stand(known, (0,), 4)), pooled, _single(0, x.dtype))


def _single(number: float, dtype: str = "float32") -> Value:
    return constant(float(number), dtype)


def _check(data: Value, rois: Value, size: tuple[int, ...]) -> None:
    if data.ndim != 4 or not data.size or rois.ndim != 2 or rois.shape[1] != 5:
        raise ShapeError(
            f"roi_pooling: data of shape {data.shape} and rois of shape {rois.shape}; expected "
            "(batch, channels, height, width) with elements, and (regions, 5)."
        )
    if len(size) != 2 or any(n < 1 for n in size):
        raise ArgumentError(f"roi_pooling: pooled_size={size}; expected two positive numbers.")


def _rounded(x: Value) -> Value:
    """To the nearest whole number, halves away from zero."""
    whole = r.floor(e.add(e.absolute(x), _single(0.5)))
    return e.multiply(whole, e.sign(x))


def _inside(low: Value, high: Value, parts: int, count: int) -> Value:
    """(regions, parts, count): which of `count` pixels belong to which part of a side."""
    start, end = (views.reshape(_rounded(v), (*v.shape, 1, 1)) for v in (low, high))
    width = e.maximum(e.add(e.subtract(end, start), _single(1)), _single(1))
    step = e.true_divide(width, _single(parts))
    number = cast(views.reshape(iota(parts), (parts, 1)), "float32")
    first = e.add(r.floor(e.multiply(number, step)), start)
    last = e.add(r.ceil(e.multiply(e.add(number, _single(1)), step)), start)
    place = cast(iota(count), "float32")
    return e.logical_and(e.greater_equal(place, first), e.less(place, last))


def _stand(x: Value, axes: tuple[int, ...], ndim: int) -> Value:
    """The dimensions of `x` at `axes` of `ndim`."""
    extents = dict(zip(axes, x.shape, strict=True))
    return views.reshape(x, tuple(extents.get(a, 1) for a in range(ndim)))


def _largest(x: Value, inside: Value) -> Value:
    """Of the last of the four dimensions of `x`, the largest element of each part."""
    apart = views.reshape(x, (*x.shape[:3], 1, x.shape[3]))
    least = _single(float("-inf"), x.dtype)
    return rd.max(e.select(_stand(inside, (0, 3, 4), 5), apart, least), -1)
