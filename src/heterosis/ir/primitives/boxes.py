"""Boxes (left, top, right, bottom), where each decision depends on the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.ir.program import Node

# Boxes that overlap less count as apart.
LEAST_OVERLAP = 1e-6
SIDES = 4

# -- matching -------------------------------------------------------------------------------------


def _matched_types(node: Node) -> tuple[TensorType, ...]:
    overlaps, _ = expected.operands(node, 2)
    expected.ranks(node, 3, 1)
    expected.element_type(node, 0, ("float32",))
    expected.element_type(node, 1, ("int64",))
    batch, _, anchors = overlaps.shape
    expected.shapes(node, overlaps.shape, (batch,))
    return (TensorType((batch, anchors), "int64"),)


def _matched(node: Node, overlaps: Any, counts: Any) -> Any:
    found = numpy.full(node.types[0].shape, -1, "int64")
    for one, count, matches in zip(overlaps, counts, found, strict=True):
        free = one[: max(count, 0)].copy()
        free[~(free > numpy.float32(LEAST_OVERLAP))] = 0.0  # NaN too
        while free.any():
            # Of equal overlaps the first anchor's, and of its labels the first.
            anchor, label = divmod(int(free.T.argmax()), len(free))
            matches[anchor] = label
            free[label], free[:, anchor] = 0.0, 0.0
    return found


# -- suppression ----------------------------------------------------------------------------------


def _suppressed_types(node: Node) -> tuple[TensorType, ...]:
    classes, _, _ = expected.operands(node, 3)
    expected.ranks(node, 2, 3, 1)
    expected.common_element_type(node, ("float32",))
    batch, count = classes.shape
    expected.shapes(node, (batch, count), (batch, SIDES, count), (1,))
    return (TensorType((batch, count), "float32"),)


def _suppressed(node: Node, classes: Any, boxes: Any, threshold: Any) -> Any:
    kept = classes.copy()
    for kinds, planes in zip(kept, boxes, strict=True):
        valid = int((kinds >= 0.0).sum())
        for better in range(valid):
            if not kinds[better] >= 0.0:
                continue
            others = slice(better + 1, valid)
            double = _overlaps(planes[:, better, None], planes[:, others]) >= threshold[0]
            if not node.attributes["any_class"]:
                double &= kinds[others] == kinds[better]
            kinds[others][double] = -1.0
    return kept


def _overlaps(a: Any, b: Any) -> Any:
    """What box `a` shares with every box of `b`, as a part of what both cover; 0 of nothing."""
    shared, area_a, area_b = numpy.float32(1), numpy.float32(1), numpy.float32(1)
    for low, high in ((0, 2), (1, 3)):
        end, start = numpy.fmin(a[high], b[high]), numpy.fmax(a[low], b[low])
        shared = shared * numpy.fmax(numpy.float32(0), end - start)
        area_a, area_b = area_a * (a[high] - a[low]), area_b * (b[high] - b[low])
    covered = area_a + area_b - shared
    return numpy.where(covered <= 0.0, numpy.float32(0), shared / covered)


MATCH_BOXES = Opaque(
    "match_boxes",
    types=_matched_types,
    meaning=_matched,
    about="Each anchor's label, or -1: of overlaps (batch, labels, anchors), of which the first "
    "so many labels count, the greatest makes a pair, then the greatest between what is left.",
)
SUPPRESS_BOXES = Opaque(
    "suppress_boxes",
    types=_suppressed_types,
    meaning=_suppressed,
    attributes={"any_class": bool},
    about="Classes (batch, count), the best box first and -1 behind the last, with -1 where a box "
    "(batch, 4, count) overlaps a better one of its class, or of any class, by the threshold.",
)
