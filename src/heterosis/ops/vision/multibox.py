"""Detection of objects by default boxes (anchors): making them, matching them to labels, and
turning predictions into boxes. Boxes are (left, top, right, bottom) as parts of the image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.boxes import SIDES
from heterosis.ir.program import ASSEMBLE, Value, apply, constant, extent
from heterosis.ir.types import TensorType
from heterosis.ops.array.indexing import gathered
from heterosis.ops.array.join import concatenate
from heterosis.ops.array.sorting import argsort
from heterosis.ops.array.split import part
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.math import reductions as rd
from heterosis.ops.nn.softmax import softmax
from heterosis.ops.record import operation
from heterosis.ops.rules import cast, iota
from heterosis.ops.samples import Case, Samples
from heterosis.ops.vision.boxes import (
    centred,
    matched,
    overlaps,
    packed,
    sides,
    single,
    suppressed,
)
from heterosis.runtime.errors import ArgumentError, ShapeError

_VARIANCES = (0.1, 0.1, 0.2, 0.2)
Numbers: TypeAlias = "tuple[float, ...]"


# -- anchors --------------------------------------------------------------------------------------


def _prior_reference(
    data: Any,
    sizes: Any = (1.0,),
    ratios: Any = (1.0,),
    clip: Any = False,
    steps: Any = (-1, -1),
    offsets: Any = (0.5, 0.5),
) -> Any:
    height, width = data.shape[2:]
    step_y, step_x = (1 / n if s <= 0 else s for s, n in zip(steps, (height, width), strict=True))
    kinds = [(s, ratios[0]) for s in sizes] + [(sizes[0], q) for q in ratios[1:]]
    found = []
    for i in range(height):
        for j in range(width):
            x, y = (j + offsets[1]) * step_x, (i + offsets[0]) * step_y
            for size, ratio in kinds:
                w, h = size * height / width * ratio**0.5 / 2, size / ratio**0.5 / 2
                found.append((x - w, y - h, x + w, y + h))
    boxes = numpy.array([found])
    return numpy.clip(boxes, 0, 1) if clip else boxes


@operation(
    numpy=_prior_reference,
    public=("npx",),
    names={"mxnet": "_contrib_MultiBoxPrior"},
    samples=Samples(
        (
            Case(((2, 3, 2, 3),), {"sizes": (0.5, 0.25), "ratios": (1.0, 2.0, 0.5)}),
            Case(((1, 3, 5, 4),), {"sizes": (0.8,), "ratios": (2.0,), "clip": True}),
            Case(((1, 1, 2, 2),), {"steps": (0.4, 0.3), "offsets": (0.1, 0.2)}),
        ),
        dtypes=("float32",),
    ),
    piecewise_constant="made of the extents of `data`",
)
def multibox_prior(
    data: Value,
    sizes: Numbers = (1.0,),
    ratios: Numbers = (1.0,),
    clip: bool = False,
    steps: Numbers = (-1.0, -1.0),
    offsets: Numbers = (0.5, 0.5),
) -> Value:
    """Anchors around each pixel of `data` (batch, channels, height, width): (1, anchors, 4).

    Every pixel has one of each of `sizes`, with the first of `ratios` (width to height), and one of
    the first size with each further ratio. `steps` and `offsets`, (y, x), place the middles: by
    default in the middle of the pixel. `clip` keeps boxes within the image.
    """
    sizes, ratios, steps, offsets = (
        g if isinstance(g, tuple) else (g,) for g in (sizes, ratios, steps, offsets)
    )
    if data.ndim != SIDES or not sizes or not ratios or len(steps) != 2 or len(offsets) != 2:
        raise ArgumentError(
            f"multibox_prior: data of shape {data.shape}, sizes={sizes}, ratios={ratios}, "
            f"steps={steps}, offsets={offsets}; expected (batch, channels, height, width), one "
            "size and one ratio at least, and (y, x) for steps and offsets."
        )
    height, width = data.shape[2:]
    kinds = [(s, ratios[0]) for s in sizes] + [(sizes[0], q) for q in ratios[1:]]
    shape = (height, width, len(kinds))
    y, x = (
        views.broadcast(views.reshape(_middles(n, step, offset), stand), shape)
        for n, step, offset, stand in zip(
            (height, width), steps, offsets, ((height, 1, 1), (1, width, 1)), strict=True
        )
    )
    aspect = e.true_divide(cast(extent(height), "float32"), cast(extent(width), "float32"))
    half_width = e.multiply(_table([s * math.sqrt(q) / 2 for s, q in kinds]), aspect)
    half_height = _table([s / math.sqrt(q) / 2 for s, q in kinds])
    ends = _around((x, y), (half_width, half_height))
    boxes = views.reshape(ends, (1, math.prod(shape), SIDES))
    return e.minimum(e.maximum(boxes, single(0)), single(1)) if clip else boxes


def _around(middles: Sequence[Value], halves: Sequence[Value]) -> Value:
    """Boxes from where their middles are and half their widths and heights."""
    pairs = list(zip(middles, halves, strict=True))
    return packed([step(m, half) for step in (e.subtract, e.add) for m, half in pairs])


def _middles(count: int, step: float, offset: float) -> Value:
    places = e.add(cast(iota(count), "float32"), single(offset))
    if step > 0:
        return e.multiply(places, single(step))
    return e.true_divide(places, cast(extent(count), "float32"))


def _table(numbers: Sequence[float]) -> Value:
    parts = [views.reshape(single(n), (1,)) for n in numbers]
    places = tuple(((i,), (1,)) for i in range(len(parts)))
    return apply(ASSEMBLE, parts, TensorType((len(parts),), "float32"), places=places, filled=False)


# -- training targets -----------------------------------------------------------------------------


def _check_target(anchor: Value, label: Value, cls_pred: Value) -> int:
    """The number of anchors."""
    anchors = anchor.shape[1] if anchor.ndim == 3 else -1
    fits = anchor.shape == (1, anchors, SIDES) and label.ndim == 3 and label.shape[2] > SIDES
    if not fits or cls_pred.ndim != 3 or cls_pred.shape[::2] != (label.shape[0], anchors):
        raise ShapeError(
            f"multibox_target: anchor {anchor.shape}, label {label.shape}, cls_pred "
            f"{cls_pred.shape}; expected (1, anchors, 4), (batch, labels, 5 or more) and "
            "(batch, classes, anchors)."
        )
    return anchors


@operation(public=("npx",), names={"mxnet": "_contrib_MultiBoxTarget"})
def multibox_target(
    anchor: Value,
    label: Value,
    cls_pred: Value,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: Numbers = _VARIANCES,
) -> tuple[Value, Value, Value]:
    """What a detector should predict for each anchor: offsets, which of them count, and classes.

    `label` (batch, labels, 5) has rows of a class and a box; a class of -1 ends them. First every
    box takes the anchor that it overlaps most, then every anchor the box that it overlaps by more
    than `overlap_threshold`. Classes are 1 + the label's, 0 for background. With a
    `negative_mining_ratio`, background are just so many anchors for one that has a box: those that
    `cls_pred` (batch, classes, anchors) takes for it least, of those that overlap no box by
    `negative_mining_thresh`; the others get `ignore_label`.
    """
    anchors = _check_target(anchor, label, cls_pred)
    batch, labels = label.shape[:2]
    anchor, label, cls_pred = (cast(v, "float32") for v in (anchor, label, cls_pred))
    if not labels:
        nothing = views.broadcast(single(0), (batch, SIDES * anchors))
        return nothing, nothing, views.broadcast(single(ignore_label), (batch, anchors))
    valid = _valid_labels(label)
    boxes = views.reshape(part(label, 2, 1, 5), (batch, labels, 1, SIDES))
    shared = overlaps(views.reshape(anchor, (1, 1, anchors, SIDES)), boxes)
    shared = e.select(views.reshape(valid, (batch, labels, 1)), shared, single(-1))
    matches, positive, best = _assigned(shared, valid, overlap_threshold)
    if negative_mining_ratio > 0:
        candidate = e.logical_and(
            e.logical_not(positive), e.less(best, single(negative_mining_thresh))
        )
        negative = _mined(cls_pred, positive, candidate, negative_mining_ratio)
    else:
        negative = e.logical_not(positive)
    negative = e.logical_and(negative, part(valid, 1, 0, 1))  # nothing is learnt without a label
    example = views.broadcast(views.reshape(iota(batch), (batch, 1)), (batch, anchors))
    row = gathered(label, [example, matches])
    kind = views.reshape(part(row, 2, 0, 1), (batch, anchors))
    other = e.select(negative, single(0), single(ignore_label))
    classes = e.select(positive, e.add(kind, single(1)), other)
    counts = views.broadcast(views.reshape(positive, (batch, anchors, 1)), (batch, anchors, SIDES))
    offsets = _encoded(anchor, part(row, 2, 1, 5), variances)
    flat = (batch, SIDES * anchors)
    return (
        views.reshape(e.select(counts, offsets, single(0)), flat),
        views.reshape(cast(counts, "float32"), flat),
        classes,
    )


def _valid_labels(label: Value) -> Value:
    """Which rows come before the first of class -1."""
    end = e.equal(views.reshape(part(label, 2, 0, 1), label.shape[:2]), single(-1))
    return e.equal(rd.cumsum(cast(end, "int32"), 1), constant(0, "int32"))


def _assigned(shared: Value, valid: Value, threshold: float) -> tuple[Value, Value, Value]:
    """Each anchor's label, whether it has one, and how much it overlaps the nearest."""
    best, nearest = rd.max(shared, 1), rd.argmax(shared, 1)
    pairs = matched(shared, rd.sum(cast(valid, "int64"), 1))
    paired = e.greater_equal(pairs, constant(0, "int64"))
    positive = paired
    if threshold > 0:
        positive = e.logical_or(paired, e.greater(best, single(threshold)))
    return e.select(paired, pairs, nearest), positive, best


def _mined(cls_pred: Value, positive: Value, candidate: Value, ratio: float) -> Value:
    """The candidates that look least like background, `ratio` for each positive anchor."""
    background = softmax(cls_pred, None, 1)
    likely = views.reshape(part(background, 1, 0, 1), candidate.shape)
    order = argsort(e.select(candidate, likely, single(2)), 1)  # candidates first
    rank = argsort(order, 1)
    found = rd.sum(cast(positive, "float32"), 1, None, True)
    wanted = r.floor(e.multiply(found, single(ratio)))
    return e.logical_and(candidate, e.less(cast(rank, "float32"), wanted))


def _encoded(anchor: Value, boxes: Value, variances: tuple[float, ...]) -> Value:
    """Boxes as seen from their anchors."""
    ax, ay, aw, ah = centred(anchor)
    x, y, w, h = centred(boxes)
    parts = [
        e.true_divide(e.subtract(x, ax), aw),
        e.true_divide(e.subtract(y, ay), ah),
        r.log(e.true_divide(w, aw)),
        r.log(e.true_divide(h, ah)),
    ]
    return packed([e.true_divide(p, single(v)) for p, v in zip(parts, variances, strict=True)])


# -- predictions ----------------------------------------------------------------------------------


@operation(public=("npx",), names={"mxnet": "_contrib_MultiBoxDetection"})
def multibox_detection(
    cls_prob: Value,
    loc_pred: Value,
    anchor: Value,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: int = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Numbers = _VARIANCES,
    nms_topk: int = -1,
) -> Value:
    """Boxes that a detector has found: (batch, anchors, 6) rows of class, score and box, the best
    first. The class of a row is -1 where there is nothing: no class but background (0) scores
    `threshold`, or the box overlaps a better one of its class (of any, if `force_suppress`) by
    `nms_threshold`, or it is not among the `nms_topk` best."""
    batch, anchors = _check_detection(cls_prob, loc_pred, anchor)
    if background_id != 0:
        raise ArgumentError(f"multibox_detection: background_id={background_id}; expected 0.")
    cls_prob, loc_pred, anchor = (cast(v, "float32") for v in (cls_prob, loc_pred, anchor))
    foreground = part(cls_prob, 1, 1, cls_prob.shape[1])
    score, kind = rd.max(foreground, 1), cast(rd.argmax(foreground, 1), "float32")
    found = e.greater_equal(score, single(threshold))
    boxes = _decoded(anchor, views.reshape(loc_pred, (batch, anchors, SIDES)), variances, clip)
    suppress = 0 < nms_threshold <= 1
    row = _joined([e.select(found, kind, single(-1)), score], boxes)
    row = e.select(views.reshape(found, (batch, anchors, 1)), row, single(-1))
    worst_first = e.negative(score) if suppress else views.broadcast(single(0), score.shape)
    order = argsort(e.select(found, worst_first, single(math.inf)), 1)
    example = views.broadcast(views.reshape(iota(batch), (batch, 1)), (batch, anchors))
    row = gathered(row, [example, order])
    return _without_doubles(row, nms_threshold, force_suppress, nms_topk) if suppress else row


def _joined(columns: Sequence[Value], rest: Value) -> Value:
    """Columns (batch, rows) in front of `rest` (batch, rows, more)."""
    parts = [views.reshape(c, (*c.shape, 1)) for c in columns]
    return concatenate.record.function([*parts, rest], -1)


def _check_detection(cls_prob: Value, loc_pred: Value, anchor: Value) -> tuple[int, int]:
    fits = cls_prob.ndim == 3 and cls_prob.shape[1] > 1
    if fits:
        batch, _, anchors = cls_prob.shape
        wanted = (batch, SIDES * anchors), (1, anchors, SIDES)
    if not fits or (loc_pred.shape, anchor.shape) != wanted:
        raise ShapeError(
            f"multibox_detection: cls_prob {cls_prob.shape}, loc_pred {loc_pred.shape}, anchor "
            f"{anchor.shape}; expected (batch, 2 or more classes, anchors), (batch, 4 * anchors) "
            "and (1, anchors, 4)."
        )
    return batch, anchors


def _decoded(anchor: Value, offsets: Value, variances: tuple[float, ...], clip: bool) -> Value:
    """Predicted offsets from anchors as boxes."""
    ax, ay, aw, ah = centred(anchor)
    x, y, w, h = (e.multiply(v, single(f)) for v, f in zip(sides(offsets), variances, strict=True))
    middles = e.add(e.multiply(x, aw), ax), e.add(e.multiply(y, ah), ay)
    halves = [e.multiply(e.multiply(r.exp(v), a), single(0.5)) for v, a in ((w, aw), (h, ah))]
    boxes = _around(middles, halves)
    return e.minimum(e.maximum(boxes, single(0)), single(1)) if clip else boxes


def _without_doubles(row: Value, threshold: float, any_class: bool, best: int) -> Value:
    """Rows with class -1 where they are too far down, or double a better one."""
    batch, anchors = row.shape[:2]
    kind = views.reshape(part(row, 2, 0, 1), (batch, anchors))
    if best > 0:
        kind = e.select(e.less(iota(anchors), constant(best, "int64")), kind, single(-1))
    kept = suppressed(kind, part(row, 2, 2, 6), threshold, any_class)
    return _joined([kept], part(row, 2, 1, 6))
