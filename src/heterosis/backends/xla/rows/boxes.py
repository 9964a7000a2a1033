"""Boxes, where each decision depends on the last one: loops, for all images side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives.boxes import LEAST_OVERLAP, MATCH_BOXES, SUPPRESS_BOXES

if TYPE_CHECKING:
    from heterosis.ir.program import Node

_ZERO = numpy.float32(0)


def _matched(node: Node, overlaps: Any, counts: Any) -> Any:
    if not overlaps.size:
        return jnp.full(node.types[0].shape, -1, "int64")
    return jax.vmap(_matched_one)(overlaps, counts)


def _matched_one(overlaps: Any, count: Any) -> Any:
    """Of one image: pairs, as long as there is an overlap."""
    labels, anchors = overlaps.shape
    known = lax.broadcasted_iota(numpy.dtype("int64"), overlaps.shape, 0) < count
    start = jnp.where(known & (overlaps > numpy.float32(LEAST_OVERLAP)), overlaps, _ZERO)

    def turn(carried: tuple[Any, Any]) -> tuple[Any, Any]:
        free, matches = carried
        place = jnp.argmax(free.T)  # of equal ones the first anchor's, and there the first label
        anchor, label = place // labels, place % labels
        goes_on = jnp.any(free != 0)  # of other images that wait for this one, nothing changes
        matches = jnp.where(goes_on, matches.at[anchor].set(label), matches)
        return free.at[label].set(_ZERO).at[:, anchor].set(_ZERO), matches

    found = jnp.full((anchors,), -1, "int64")
    return lax.while_loop(lambda carried: jnp.any(carried[0] != 0), turn, (start, found))[1]


def _suppressed(node: Node, classes: Any, boxes: Any, threshold: Any) -> Any:
    if not classes.size:
        return classes
    any_class = node.attributes["any_class"]
    return jax.vmap(lambda kinds, planes: _suppressed_one(kinds, planes, threshold[0], any_class))(
        classes, boxes
    )


def _suppressed_one(kinds: Any, planes: Any, threshold: Any, any_class: bool) -> Any:
    """Of one image: what overlaps a better box that is still there goes."""
    places = lax.iota(numpy.dtype("int64"), kinds.size)
    valid = jnp.sum(kinds >= 0)

    def turn(better: Any, kinds: Any) -> Any:
        box = lax.dynamic_slice_in_dim(planes, better, 1, axis=1)
        double = (_overlaps(box, planes) >= threshold) & (places > better) & (places < valid)
        if not any_class:
            double &= kinds == kinds[better]
        return jnp.where(double & (kinds[better] >= 0), numpy.float32(-1), kinds)

    return lax.fori_loop(jnp.asarray(0, "int64"), valid, turn, kinds)


def _overlaps(a: Any, b: Any) -> Any:
    """What box `a` shares with every box of `b`, as a part of what both cover; 0 of nothing."""
    shared, area_a, area_b = numpy.float32(1), numpy.float32(1), numpy.float32(1)
    for low, high in ((0, 2), (1, 3)):
        end, start = jnp.fmin(a[high], b[high]), jnp.fmax(a[low], b[low])
        shared = shared * jnp.fmax(_ZERO, end - start)
        area_a, area_b = area_a * (a[high] - a[low]), area_b * (b[high] - b[low])
    covered = area_a + area_b - shared
    return jnp.where(covered <= 0, _ZERO, shared / covered)


ROWS[MATCH_BOXES] = _matched
ROWS[SUPPRESS_BOXES] = _suppressed
