"""Filters on windows, and sums of products over windows: layers and their gradients are made of
these."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import prod

from heterosis.ir import views
from heterosis.ir.primitives.windows import CONVOLVE, CORRELATE, Extents, Windows
from heterosis.ir.program import ASSEMBLE, Value, apply, constant
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import TensorType
from heterosis.ops.math import reductions
from heterosis.ops.math.elementwise import add

# With fewer columns the images are cut into chunks, whose sums are then added. Their number does
# not depend on the number of threads, so neither does the result.
_FEW_COLUMNS, _CHUNKS = 512, 8
# With so few positions in an image, all images are one, so that the product is deep enough.
_FEW_POSITIONS = 16


# -- applying them --------------------------------------------------------------------------------


def convolve(x: Value, a: Value, bias: Value | None, out: Extents, windows: Windows) -> Value:
    """Filters `a` (groups, rows, channels, *taps) on windows of `x`, and their `bias` added."""
    shape = (*x.shape[:2], a.shape[1], *out)
    if 0 in shape or 0 in x.shape or 0 in a.shape:
        y = views.broadcast(constant(0, x.dtype), shape)
    else:
        y = apply(CONVOLVE, (x, a), TensorType(shape, x.dtype), **asdict(windows))
    if bias is None:
        return y
    return add(y, views.broadcast(views.reshape(bias, (*shape[1:3], 1, 1, 1)), shape))


def correlate(a: Value, x: Value, out: Extents, windows: Windows) -> Value:
    """Sums of `a` (images, groups, rows, positions) times the windows of `x` there: (groups,
    rows, channels * taps)."""
    images, groups, rows, positions = a.shape
    columns = x.shape[2] * prod(windows.kernel)
    if 0 in a.shape or 0 in x.shape or not columns:
        return views.broadcast(constant(0, x.dtype), (groups, rows, columns))
    flat = (
        x.shape[2] > 1 == x.shape[3] == out[0] == windows.kernel[0] == 1 and windows.origin[0] == 0
    )
    if flat and images > 1 and positions <= _FEW_POSITIONS and columns * groups >= _FEW_COLUMNS:
        return correlate(
            *_one_image(a, x), (images, *out[1:]), replace(windows, stride=(1, *windows.stride[1:]))
        )
    # As many for every number of images that is open: of a few images, some chunks have none.
    chunks = _CHUNKS if is_traced(images) else min(images, _CHUNKS)
    chunks = 1 if columns * groups >= _FEW_COLUMNS else chunks
    type_ = TensorType((chunks, groups, rows, columns), x.dtype)
    parts = apply(CORRELATE, (a, x), type_, out=out, **asdict(windows))
    return reductions.sum(parts, 0) if chunks > 1 else views.reshape(parts, type_.shape[1:])


def _one_image(a: Value, x: Value) -> tuple[Value, Value]:
    """Both with the images along the first axis of space."""
    images, groups, rows, positions = a.shape
    a = views.reshape(views.transpose(a, (1, 2, 0, 3)), (1, groups, rows, images * positions))
    x = views.transpose(x, (3, 1, 2, 0, 4, 5))
    return a, x


def transposed(
    dy: Value, a: Value, bias: Value | None, extents: Extents, windows: Windows
) -> Value:
    """What `convolve` does to an input of `extents`, turned round: each element of `dy` times
    its filters, added where their windows lie. This is the gradient with respect to the input.

    Every phase of the strides meets taps of its own, and is a convolution with stride 1.
    """
    shape = (dy.shape[0], a.shape[0], a.shape[2], *extents)
    if 0 in shape:
        return views.broadcast(constant(0, dy.dtype), shape)
    taps = views.transpose(a, (0, 2, 1, 3, 4, 5))
    axes = zip(extents, *asdict(windows).values(), strict=True)
    parts, places = [], []
    for some in itertools.product(*(phases(*axis) for axis in axes)):
        parts.append(_one_phase(dy, taps, bias, some))
        first = (0, 0, 0, *(p.first for p in some))
        places.append((first, (1, 1, 1, *(p.every for p in some))))
    if len(parts) == 1:
        return parts[0]
    return apply(ASSEMBLE, parts, TensorType(shape, dy.dtype), places=tuple(places), filled=False)


class Phase:
    """Input positions `first`, `first + every`, ... of one axis, and the taps that reach them."""

    def __init__(self, first: int, extent: int, kernel: int, stride: int, dilate: int, origin: int):
        common = math.gcd(stride, dilate)
        self.first, self.every, self.apart = first, stride, stride // common
        self.out = -(-(extent - first) // stride)
        reach = range(min(self.apart, kernel))
        meeting = (t for t in reach if (first - origin - t * dilate) % stride == 0)
        self.tap = next(meeting, kernel)
        self.kernel = len(range(self.tap, kernel, self.apart))
        self.dilate = -(dilate // common)
        self.origin = (first - origin - self.tap * dilate) // stride


def phases(extent: int, kernel: int, stride: int, dilate: int, origin: int) -> list[Phase]:
    """An axis of the input, cut into positions that meet the same taps."""
    count = min(stride, extent)
    return [Phase(first, extent, kernel, stride, dilate, origin) for first in range(count)]


def _one_phase(dy: Value, taps: Value, bias: Value | None, axes: Sequence[Phase]) -> Value:
    groups, channels, rows, *all_ = taps.shape
    kernel = tuple(p.kernel for p in axes)
    starts = tuple(min(p.tap, n - 1) for p, n in zip(axes, all_, strict=True))
    steps = tuple(p.apart for p in axes)
    some = taps
    if kernel != tuple(all_):
        shape = (groups, channels, rows, *kernel)
        some = views.slice_(taps, (0, 0, 0, *starts), (1, 1, 1, *steps), shape)
    dilate, origin = tuple(p.dilate for p in axes), tuple(p.origin for p in axes)
    windows = Windows(kernel, (1, 1, 1), dilate, origin)
    return convolve(dy, some, bias, tuple(p.out for p in axes), windows)
