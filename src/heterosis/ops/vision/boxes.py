"""Boxes, (left, top, right, bottom): what they share, their other form, kernels over them."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir import views
from heterosis.ir.primitives.boxes import MATCH_BOXES, SIDES, SUPPRESS_BOXES
from heterosis.ir.program import Value, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops.array.join import stack
from heterosis.ops.array.split import part
from heterosis.ops.math import elementwise as e


def single(number: float) -> Value:
    return constant(float(number), "float32")


def sides(boxes: Value) -> list[Value]:
    """The four numbers of boxes, each an array of one dimension less."""
    last = boxes.ndim - 1
    return [views.reshape(part(boxes, last, i, i + 1), boxes.shape[:-1]) for i in range(SIDES)]


def packed(sides: Sequence[Value]) -> Value:
    """Four arrays as the last dimension of one."""
    return stack.record.function(sides, -1)


def centred(boxes: Value) -> list[Value]:
    """Boxes as middle, middle, width, height."""
    left, top, right, bottom = sides(boxes)
    half = single(0.5)
    return [
        e.multiply(e.add(left, right), half),
        e.multiply(e.add(top, bottom), half),
        e.subtract(right, left),
        e.subtract(bottom, top),
    ]


def overlaps(a: Value, b: Value) -> Value:
    """What boxes `a` (..., 4) and `b` (..., 4) share, as a part of what they cover together."""
    left, right = sides(a), sides(b)
    both = [
        e.maximum(
            e.subtract(e.minimum(left[high], right[high]), e.maximum(left[low], right[low])),
            single(0),
        )
        for low, high in ((0, 2), (1, 3))
    ]
    shared = e.multiply(*both)
    areas = [e.multiply(e.subtract(s[2], s[0]), e.subtract(s[3], s[1])) for s in (left, right)]
    covered = e.subtract(e.add(*areas), shared)
    nothing = e.less_equal(covered, single(0))
    return e.select(nothing, single(0), e.true_divide(shared, covered))


def matched(overlap: Value, counts: Value) -> Value:
    """For `overlap` (batch, labels, anchors), of which the first `counts` labels are looked at:
    each anchor's label, or -1. The pair that overlaps most comes first, and so on."""
    batch, _, anchors = overlap.shape
    return apply(MATCH_BOXES, (overlap, counts), TensorType((batch, anchors), "int64"))


def suppressed(kind: Value, boxes: Value, threshold: float, any_class: bool) -> Value:
    """`kind` (batch, boxes), -1 where a box doubles a better one, which stands before it."""
    planes = views.transpose(boxes, (0, 2, 1))
    limit = views.reshape(single(threshold), (1,))
    operands = (kind, planes, limit)
    return apply(SUPPRESS_BOXES, operands, TensorType(kind.shape, "float32"), any_class=any_class)
