"""Filters on windows of an input, and sums of products over windows.

Inputs have six dimensions: images, groups, channels, and three of space. Along each of those,
output position p and tap t meet at input position p * stride + t * dilate + origin; `dilate` may
be negative, and what lies outside the input is zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import prod
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.numbers import precise
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Extents = tuple[int, ...]

_FLOATS = ("float32", "float64")  # halves are converted first: sums of them are long


@dataclass(frozen=True)
class Windows:
    """How windows lie in an input; three numbers each."""

    kernel: Extents
    stride: Extents
    dilate: Extents
    origin: Extents


def windows_of(node: Any) -> Windows:
    """The windows that the attributes of `node`, or of a step of differentiation, describe."""
    return Windows(*(node.attributes[field.name] for field in fields(Windows)))


def _checked_windows(node: Node, taps: Extents | None) -> Windows:
    """The attributes of a node, whose filters have these taps, if there are filters."""
    windows = windows_of(node)
    three = all(len(getattr(windows, field.name)) == 3 for field in fields(Windows))
    expected.holds(node, three, "three numbers each")
    expected.holds(node, min(windows.stride) >= 1, "strides from 1 on")
    expected.holds(node, taps in (None, windows.kernel), f"as many taps as filters have: {taps}")
    return windows


def _convolved(node: Node) -> tuple[TensorType, ...]:
    x, a = expected.operands(node, 2)
    expected.ranks(node, 6, 6)
    dtype = expected.common_element_type(node, _FLOATS)
    images, groups, channels, *_ = x.shape
    rows = a.shape[1]
    expected.shapes(node, x.shape, (groups, rows, channels, *a.shape[3:]))
    _checked_windows(node, a.shape[3:])
    return (TensorType(expected.result_shape(node, images, groups, rows, *(None,) * 3), dtype),)


def _correlated(node: Node) -> tuple[TensorType, ...]:
    _, x = expected.operands(node, 2)
    expected.ranks(node, 4, 6)
    dtype = expected.common_element_type(node, _FLOATS)
    images, groups, channels, *_ = x.shape
    rows = node.inputs[0].shape[2]
    out = node.attributes["out"]
    expected.holds(node, len(out) == 3, "three numbers of positions")
    expected.shapes(node, (images, groups, rows, prod(out)), x.shape)
    columns = channels * prod(_checked_windows(node, None).kernel)
    return (TensorType(expected.result_shape(node, None, groups, rows, columns), dtype),)


def _by_taps(x: Any, windows: Windows, out: Extents) -> Iterator[tuple[Any, Any]]:
    """The index of each tap, and what of `x` it meets: (images, groups, channels, positions)."""
    padded = numpy.pad(x, ((0, 0),) * 3 + ((0, 1),) * 3)
    for tap in numpy.ndindex(windows.kernel):
        places = []
        for axis, (positions, extent) in enumerate(zip(out, x.shape[3:], strict=True)):
            start = tap[axis] * windows.dilate[axis] + windows.origin[axis]
            at = numpy.arange(positions) * windows.stride[axis] + start
            places.append(numpy.where((at >= 0) & (at < extent), at, extent))
        window = (..., *numpy.ix_(*places))
        yield (..., *tap), padded[window].reshape(*x.shape[:3], prod(out))


def _filtered(node: Node, x: Any, a: Any) -> Any:
    shape = node.types[0].shape
    a, total = precise(a), numpy.zeros((*shape[:3], prod(shape[3:])))
    for tap, seen in _by_taps(precise(x), windows_of(node), shape[3:]):
        total += a[tap] @ seen
    return total.reshape(shape)


def _summed(node: Node, a: Any, x: Any) -> Any:
    chunks, groups, rows, _ = shape = node.types[0].shape
    windows, a = windows_of(node), precise(a)
    found = numpy.empty((chunks, groups, rows, x.shape[2], *windows.kernel))
    for tap, seen in _by_taps(precise(x), windows, node.attributes["out"]):
        products = a @ seen.swapaxes(2, 3)
        for chunk, (first, last) in enumerate(chunks_of(len(a), chunks)):
            found[chunk][tap] = products[first:last].sum(0)
    return found.reshape(shape)


def chunks_of(images: int, chunks: int) -> Iterator[tuple[int, int]]:
    """Where each chunk of images begins, and where it ends."""
    return itertools.pairwise(images * chunk // chunks for chunk in range(chunks + 1))


_WINDOWS = {field.name: tuple for field in fields(Windows)}

CONVOLVE = Opaque(
    "convolve",
    types=_convolved,
    meaning=_filtered,
    attributes=_WINDOWS,
    about="Filters (groups, rows, channels, *taps) on the windows of an input, which come first.",
)
CORRELATE = Opaque(
    "correlate",
    types=_correlated,
    meaning=_summed,
    attributes={"out": tuple, **_WINDOWS},
    about="Sums of left operands (images, groups, rows, positions) times the windows of an input "
    "there, over the positions of as many chunks of images as the result has: (chunks, groups, "
    "rows, channels * taps).",
)
