"""Pooling: the largest element, the mean or the norm of every window."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.models.onnx.operators.windows import (
    Windows,
    in_space,
    numbers,
    padded,
    pairs,
    windows,
)
from heterosis.runtime.errors import UnsupportedError

Numbers = list[int] | None


def _taps(x: Any, at: Windows) -> list[Any]:
    """For each tap of the kernel, what all windows of padded data have there."""
    found = []
    for tap in itertools.product(*map(range, at.kernel)):
        cut = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, at.dilations, at.out, at.strides, strict=True)
        )
        found.append(x[in_space(cut)])
    return found


def _plain(at: Windows) -> bool:
    """Whether ours take these windows as they are."""
    small = all(low < k for (low, _), k in zip(at.pads, at.kernel, strict=True))
    return at.symmetric is not None and small and all(d == 1 for d in at.dilations)


def _pooled(x: Any, at: Windows, kind: str, **more: Any) -> Any:
    return npx.pooling(
        x, kernel=at.kernel, pool_type=kind, stride=at.strides, pad=at.symmetric, **more
    )


# -- maxima ---------------------------------------------------------------------------------------


def _least(dtype: str) -> float:
    return -math.inf if "float" in dtype else int(numpy.iinfo(dtype).min)


@operator("MaxPool")
def _max_pool(
    x: Any,
    *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Numbers = None, pads: Numbers = None, storage_order: int = 0,
    strides: Numbers = None, _outputs: int = 1,
) -> Any:  # fmt: skip
    at = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    dtype = str(x.dtype)
    if _outputs == 1 and "float" in dtype and all(d == 1 for d in at.dilations):
        if _plain(at):
            return _pooled(x, at, "max")
        reach = padded(x, at.reach, -math.inf)
        return npx.pooling(reach, kernel=at.kernel, pool_type="max", stride=at.strides)
    taps = _taps(padded(x, at.reach, _least(dtype)), at)
    if _outputs == 1:
        found = taps[0]
        for tap in taps[1:]:
            found = np.maximum(found, tap)
        return found
    places = _taps(_numbered(x, at, storage_order), at)
    found, place = taps[0], places[0]
    for tap, number in zip(taps[1:], places[1:], strict=True):
        # The first of equal ones; what is padding never comes before an element.
        better = ((tap > found) | (place < 0)) & (number >= 0)
        found, place = np.where(better, tap, found), np.where(better, number, place)
    return found, np.broadcast_to(place, found.shape) + _planes(x)


def _numbered(x: Any, at: Windows, storage_order: int) -> Any:
    """(1, 1, *space): where each element stands in its plane, padding being -1."""
    space = x.shape[2:]
    count = np.arange(math.prod(space), dtype="int64")
    if storage_order:
        turned = np.reshape(count, tuple(reversed(space)))
        plane = np.transpose(turned, tuple(reversed(range(len(space)))))
    else:
        plane = np.reshape(count, tuple(space))
    return padded(np.reshape(plane, (1, 1, *space)), at.reach, -1)


def _planes(x: Any) -> Any:
    """Where the plane of each image and channel begins among all elements."""
    images, channels, *space = x.shape
    start = np.arange(images * channels, dtype="int64") * math.prod(space)
    return np.reshape(start, (images, channels) + (1,) * len(space))


@operator("MaxUnpool", since=9)
def _max_unpool(
    x: Any, indices: Any, output_shape: Host | None = None,
    *, kernel_shape: list[int], pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    axes = len(kernel_shape)
    step, around = numbers("strides", strides, axes, 1), pairs(pads, axes)
    each = zip(x.shape[2:], step, kernel_shape, around, strict=True)
    least = [(n - 1) * s - low - high + k for n, s, k, (low, high) in each]
    lead = tuple(x.shape[:2])
    size = math.prod(lead) * math.prod(least)
    flat = npx.scatter_nd(np.reshape(x, (-1,)), np.reshape(indices, (1, -1)), (size,))
    found = np.reshape(flat, (*lead, *least))
    if output_shape is None:
        return found
    wanted = output_shape.tolist()[2:]
    return padded(found, tuple((0, w - n) for w, n in zip(wanted, least, strict=True)))


# -- means and norms ------------------------------------------------------------------------------


def _summed(x: Any, at: Windows) -> Any:
    """The sums of all windows."""
    reach = padded(x, at.reach)
    if all(d == 1 for d in at.dilations):
        return npx.pooling(reach, kernel=at.kernel, pool_type="sum", stride=at.strides)
    found = None
    for tap in _taps(reach, at):
        found = tap if found is None else found + tap
    return found


def _counts(space: Sequence[int], at: Windows, *, include_pad: bool) -> list[Any]:
    """How many elements windows have along each axis, padding among them or not; never what
    `ceil_mode` lets them reach for."""
    found = []
    for axis, n in enumerate(space):
        low, high = at.pads[axis]
        first = np.arange(at.out[axis], dtype="int32") * at.strides[axis] - low
        begin, end = (-low, n + high) if include_pad else (0, n)
        count: Any = 0
        for tap in range(at.kernel[axis]):
            place = first + tap * at.dilations[axis]
            count = count + ((place >= begin) & (place < end)).astype("int32")
        found.append(count)
    return found


@operator("AveragePool")
def _average_pool(
    x: Any,
    *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    count_include_pad: int = 0, dilations: Numbers = None, pads: Numbers = None,
    strides: Numbers = None,
) -> Any:  # fmt: skip
    at = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    if _plain(at):
        return _pooled(x, at, "avg", count_include_pad=bool(count_include_pad))
    total = _summed(x, at)
    counts = _counts(x.shape[2:], at, include_pad=bool(count_include_pad))
    for axis, count in enumerate(counts):
        shape = [1] * x.ndim
        shape[2 + axis] = -1
        total = total / np.reshape(count.astype(str(x.dtype)), tuple(shape))
    return total


def _power(x: Any, p: float) -> Any:
    x = np.abs(x)
    return x if p == 1 else np.square(x) if p == 2 else x**p


def _root(x: Any, p: float) -> Any:
    return x if p == 1 else np.sqrt(x) if p == 2 else x ** (1.0 / p)


@operator("LpPool", since=2)
def _lp_pool(
    x: Any,
    *, kernel_shape: list[int], auto_pad: str = "NOTSET", ceil_mode: int = 0,
    dilations: Numbers = None, p: int = 2, pads: Numbers = None, strides: Numbers = None,
) -> Any:  # fmt: skip
    at = windows(x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode)
    return _root(_summed(_power(x, p), at), p)


# -- of everything --------------------------------------------------------------------------------


def _space(x: Any) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@operator("GlobalAveragePool")
def _global_average_pool(x: Any) -> Any:
    return np.mean(x, _space(x), keepdims=True)


@operator("GlobalMaxPool")
def _global_max_pool(x: Any) -> Any:
    return np.max(x, _space(x), keepdims=True)


@operator("GlobalLpPool")
def _global_lp_pool(x: Any, *, p: float = 2) -> Any:
    return _root(np.sum(_power(x, p), _space(x), keepdims=True), p)


@operator("MaxRoiPool")
def _max_roi_pool(x: Any, rois: Any, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Any:
    if x.ndim != 4:
        raise UnsupportedError(f"MaxRoiPool: data of shape {x.shape}; images alone are done here.")
    return npx.roi_pooling(x, rois, tuple(pooled_shape), spatial_scale)
