"""Images read at places that are computed, and boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import np
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.runtime import modes
from heterosis.runtime.errors import FormatError, UnsupportedError

_CUBIC = -0.75


# -- grids ----------------------------------------------------------------------------------------


@operator("AffineGrid", since=20)
def _affine_grid(theta: Any, size: Host, *, align_corners: int = 0) -> Any:
    dtype = str(theta.dtype)
    space = [int(n) for n in size.tolist()[2:]]
    axes = [_centres(n, bool(align_corners)) for n in space]
    every = numpy.meshgrid(*axes, indexing="ij")
    # Places count the last axis first, and end with a 1 for what is added.
    table = numpy.stack([*reversed(every), numpy.ones(space)], -1).reshape(-1, len(space) + 1)
    found = np.matmul(np.array(table, dtype=dtype), np.swapaxes(theta, 1, 2))
    return np.reshape(found, (theta.shape[0], *space, len(space)))


def _centres(count: int, align_corners: bool) -> numpy.ndarray:
    if align_corners:
        return numpy.linspace(-1, 1, count)
    return (numpy.arange(count) * 2 + 1) / count - 1


@operator("GridSample", since=16)
def _grid_sample(
    x: Any, grid: Any, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Any:  # fmt: skip
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    if mode not in _WEIGHTS or padding_mode not in ("zeros", "border", "reflection"):
        raise FormatError(f"GridSample: mode={mode!r}, padding_mode={padding_mode!r}.")
    images, _, *space = x.shape
    lead = tuple(grid.shape[1:-1])
    flat = np.reshape(grid, (images, -1, len(space)))
    axes = []
    for axis, n in enumerate(space):
        place = (flat[:, :, len(space) - 1 - axis] + 1) / 2  # 0 to 1
        place = place * (n - 1) if align_corners else place * n - 0.5
        axes.append(_read_along(place, n, mode, padding_mode, bool(align_corners)))
    y = _gathered(x, axes)
    return np.reshape(y, (images, x.shape[1], *lead))


def _linear(part: Any) -> list[Any]:
    return [1 - part, part]


def _cubic(part: Any) -> list[Any]:
    def near(d: Any) -> Any:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


_WEIGHTS = {"nearest": (0, None), "linear": (0, _linear), "cubic": (-1, _cubic)}


def _read_along(
    place: Any, n: Any, mode: str, padding: str, align_corners: bool
) -> list[tuple[Any, Any]]:
    """Which elements are read along an axis of `n`, and their weights; None for 1."""
    place = np.rint(place) if mode == "nearest" else place
    # Of a cubic curve the elements are brought back, not the place, as PyTorch has it.
    if mode != "cubic" or padding != "border":
        place = _inside(place, n, padding, align_corners)
    first, weigh = _WEIGHTS[mode]
    if weigh is None:
        below, weights = place, [None]
    else:
        below = np.floor(place)
        weights = weigh(place - below)
    found = []
    for k, weight in enumerate(weights):
        at = below + (first + k)
        if padding == "zeros":
            seen = ((at >= 0) & (at < n)).astype(str(place.dtype))
            weight = seen if weight is None else weight * seen
        elif padding == "reflection":
            at = _inside(at, n, padding, align_corners)
            # What rounding leaves between two elements counts as the one nearer to 0.
            at = np.trunc(at)
        found.append((np.clip(at, 0, n - 1).astype("int64"), weight))
    return found


def _inside(place: Any, n: Any, padding: str, align_corners: bool) -> Any:
    """Places brought back from beyond the borders, which are half an element outside unless
    corners are aligned."""
    if padding == "zeros":
        return place
    low, high = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
    if padding == "border":
        return np.where((place < low) | (place > high), np.clip(place, 0, n - 1), place)
    width = high - low
    if width == 0:
        return np.zeros_like(place)
    away = np.mod(place - low, 2 * width)
    return np.where((place < low) | (place > high), np.minimum(away, 2 * width - away) + low, place)


def _gathered(x: Any, axes: Sequence[Sequence[tuple[Any, Any]]]) -> Any:
    """(images, channels, places): weighted sums of what is read along all axes together."""
    images, channels, *space = x.shape
    flat = np.reshape(x, (images, channels, math.prod(space)))
    total = None
    for one in itertools.product(*axes):
        place: Any = 0
        weight = None
        for n, (at, share) in zip(space, one, strict=True):
            place = place * n + at
            if share is not None:
                weight = share if weight is None else weight * share
        index = np.expand_dims(place, 1)
        index = np.broadcast_to(index, (images, channels, index.shape[2]))
        term = np.take_along_axis(flat, index, 2)
        term = term if weight is None else term * np.expand_dims(weight, 1)
        total = term if total is None else total + term
    return total


# -- regions --------------------------------------------------------------------------------------


@operator("RoiAlign", since=16)
def _roi_align(
    x: Any, rois: Any, batch_indices: Any,
    *, coordinate_transformation_mode: str = "half_pixel", mode: str = "avg",
    output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:  # fmt: skip
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise FormatError(f"RoiAlign: {coordinate_transformation_mode!r}.")
    half = coordinate_transformation_mode == "half_pixel"
    return _aligned(x, rois, batch_indices, half, mode, (output_height, output_width),
                    sampling_ratio, spatial_scale)  # fmt: skip


@operator("RoiAlign", since=10)
def _roi_align_of_corners(
    x: Any, rois: Any, batch_indices: Any,
    *, mode: str = "avg", output_height: int = 1, output_width: int = 1, sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Any:  # fmt: skip
    return _aligned(x, rois, batch_indices, False, mode, (output_height, output_width),
                    sampling_ratio, spatial_scale)  # fmt: skip


def _aligned(
    x: Any, rois: Any, batch_indices: Any, half: bool, mode: str, out: tuple[int, int],
    sampling_ratio: int, scale: float,
) -> Any:  # fmt: skip
    if mode not in ("avg", "max"):
        raise FormatError(f"RoiAlign: mode={mode!r}; expected 'avg' or 'max'.")
    boxes = rois * scale - (0.5 if half else 0.0)
    images, channels, height, width = x.shape
    # Pixels as rows, which are taken with all their channels.
    pixels = np.reshape(np.transpose(x, (0, 2, 3, 1)), (images * height * width, channels))
    down = _samples(boxes, 1, out[0], sampling_ratio, half, height)
    across = _samples(boxes, 0, out[1], sampling_ratio, half, width)
    start = np.reshape(batch_indices.astype("int64"), (-1, 1, 1)) * (height * width)
    found: Any = None
    for (rows, row_counts), (columns, column_counts) in itertools.product(down, across):
        terms = []
        for (row, a), (column, b) in itertools.product(rows, columns):
            place = start + np.expand_dims(row, 2) * width + np.expand_dims(column, 1)
            weight = np.expand_dims(np.expand_dims(a, 2) * np.expand_dims(b, 1), 3)
            terms.append(np.take(pixels, place, 0, mode="clip") * weight)
        # The largest is that of the shares of single pixels, as the standard has it.
        one = _sum(terms) if mode == "avg" else _largest(terms)
        if found is None:
            found = one
        elif mode == "avg":
            found = found + one
        else:
            counts = np.reshape(row_counts & column_counts, (-1, 1, 1, 1))
            found = np.where(counts, np.maximum(found, one), found)
    if mode == "avg":
        count = np.maximum(_count(boxes, 1, out[0], sampling_ratio, half) *
                           _count(boxes, 0, out[1], sampling_ratio, half), 1)  # fmt: skip
        found = found / np.reshape(count, (-1, 1, 1, 1))
    return np.transpose(found, (0, 3, 1, 2)).astype(str(x.dtype))


def _sum(terms: Sequence[Any]) -> Any:
    return sum(terms[1:], terms[0])


def _largest(terms: Sequence[Any]) -> Any:
    found = terms[0]
    for term in terms[1:]:
        found = np.maximum(found, term)
    return found


def _size(boxes: Any, axis: int, half: bool) -> Any:
    size = boxes[:, axis + 2] - boxes[:, axis]
    return size if half else np.maximum(size, 1.0)


def _count(boxes: Any, axis: int, bins: int, ratio: int, half: bool) -> Any:
    """How many samples a bin of each box has along an axis."""
    if ratio > 0:
        return np.full_like(boxes[:, 0], ratio)
    return np.maximum(np.ceil(_size(boxes, axis, half) / bins), 0)


def _most(count: Any, ratio: int) -> int:
    if ratio > 0:
        return ratio
    if modes.is_capturing():
        raise UnsupportedError(
            "RoiAlign: with sampling_ratio=0 how many samples there are depends on the boxes, "
            "which a hybridized program cannot know; call the network without hybridize()."
        )
    return max(int(count.asnumpy().max(initial=0)), 1)


def _samples(
    boxes: Any, axis: int, bins: int, ratio: int, half: bool, n: int
) -> list[tuple[list[tuple[Any, Any]], Any]]:
    """For each sample of a bin, (boxes, bins): the two elements that it lies between along an axis
    of `n`, with their weights, which are 0 where it is too far outside; and which boxes have it."""
    step = np.expand_dims(_size(boxes, axis, half) / bins, 1)
    number = np.arange(bins, dtype=str(boxes.dtype))
    first = np.expand_dims(boxes[:, axis], 1) + step * np.expand_dims(number, 0)
    count = _count(boxes, axis, bins, ratio, half)
    apart = np.expand_dims(np.maximum(count, 1), 1)
    found = []
    for k in range(_most(count, ratio)):
        place = first + step * ((k + 0.5) / apart)
        seen = (place >= -1.0) & (place <= n) & np.expand_dims(k < count, 1)
        inside = np.minimum(np.maximum(place, 0), n - 1)
        below = np.floor(inside)
        part = np.where(seen, inside - below, np.zeros_like(inside))
        one = np.where(seen, 1 - part, np.zeros_like(part))
        at = below.astype("int64")
        found.append(([(at, one), (np.minimum(at + 1, n - 1), part)], k < count))
    return found


# -- boxes ----------------------------------------------------------------------------------------


@operator("NonMaxSuppression", since=10)
def _non_max_suppression(
    boxes: Any, scores: Any, max_output_boxes_per_class: Host | None = None,
    iou_threshold: Host | None = None, score_threshold: Host | None = None,
    *, center_point_box: int = 0,
) -> Any:  # fmt: skip
    if modes.is_capturing():
        raise UnsupportedError(
            "NonMaxSuppression: how many boxes it gives depends on their values, which a "
            "hybridized program cannot; call the network without hybridize()."
        )
    most = _number(max_output_boxes_per_class, 0)
    least = _number(score_threshold, -math.inf)
    overlap = _number(iou_threshold, 0.0)
    corners, ranks = _corners(boxes.asnumpy(), center_point_box), scores.asnumpy()
    found = []
    for image, of_classes in enumerate(ranks):
        for label, of_boxes in enumerate(of_classes):
            kept = _kept(corners[image], of_boxes, int(most), overlap, least)
            found += [(image, label, k) for k in kept]
    return numpy.array(found, "int64").reshape(-1, 3)


def _number(array: Host | None, missing: float) -> float:
    return missing if array is None or array.size == 0 else float(array.reshape(-1)[0])


def _corners(boxes: numpy.ndarray, by_centre: int) -> numpy.ndarray:
    """The lower and the higher corner of each box."""
    if by_centre:
        centre, half = boxes[..., :2], boxes[..., 2:] / 2
        return numpy.concatenate([centre - half, centre + half], -1)
    a, b = boxes[..., :2], boxes[..., 2:]
    return numpy.concatenate([numpy.minimum(a, b), numpy.maximum(a, b)], -1)


def _kept(
    corners: numpy.ndarray, scores: numpy.ndarray, most: int, overlap: float, least: float
) -> list[int]:
    """The best boxes of those that do not overlap a better one too much."""
    order = [int(i) for i in numpy.argsort(-scores, kind="stable") if scores[i] > least]
    kept: list[int] = []
    for i in order:
        if len(kept) >= most:
            break
        if not kept or (_overlaps(corners[i], corners[kept]) <= overlap).all():
            kept.append(i)
    return kept


def _overlaps(box: numpy.ndarray, others: numpy.ndarray) -> numpy.ndarray:
    """Of each pair, the common area as a share of what either covers."""
    low, high = numpy.maximum(box[:2], others[:, :2]), numpy.minimum(box[2:], others[:, 2:])
    common = numpy.prod(numpy.maximum(high - low, 0), -1)
    areas = numpy.prod(others[:, 2:] - others[:, :2], -1) + numpy.prod(box[2:] - box[:2])
    both = areas - common
    share: numpy.ndarray = numpy.divide(common, both, out=numpy.zeros_like(common), where=both > 0)
    return share
