"""Filters on windows of an input, and sums of products over windows, as XLA's convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from heterosis.backends.xla.rows.products import PRECISION
from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives.windows import (
    CONVOLVE,
    CORRELATE,
    Windows,
    chunks_of,
    windows_of,
)

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Pads = list[tuple[int, int]]


def _forwards(windows: Windows) -> tuple[list[int], list[int], list[int]]:
    """Steps between taps, all forwards, where the first tap of a window stands, and the axes along
    which taps then go the other way round."""
    back = [d for d in range(3) if windows.dilate[d] < 0]
    origin = list(windows.origin)
    for d in back:
        origin[d] += (windows.kernel[d] - 1) * windows.dilate[d]
    return [abs(step) for step in windows.dilate], origin, back


def _pads(extents: Sequence[int], out: Sequence[int], windows: Windows) -> Pads:
    """How many zeros lie before and behind what windows meet; below zero, what they leave out."""
    dilate, origin, _ = _forwards(windows)
    rows = zip(origin, out, windows.stride, windows.kernel, dilate, extents, strict=True)
    return [(-o, (n - 1) * s + (k - 1) * d + o + 1 - m) for o, n, s, k, d, m in rows]


def _flat(*conditions: bool) -> int:
    """The dimensions of space to leave out: XLA is fast for two, and slow for three."""
    return int(all(conditions))


def _filtered(node: Node, x: Any, a: Any) -> Any:
    shape = node.types[0].shape
    if not (node.types[0].size and x.size and a.size):
        return jnp.zeros(shape, x.dtype)
    images, groups, channels, *extents = x.shape
    rows, taps, out = a.shape[1], a.shape[3:], shape[3:]
    windows = windows_of(node)
    dilate, _, back = _forwards(windows)
    a = lax.rev(a, [3 + d for d in back]) if back else a
    pads = _pads(extents, out, windows)
    flat = _flat(extents[0] == out[0] == taps[0] == 1, pads[0] == (0, 0))
    found = lax.conv_general_dilated(
        lax.reshape(x, (images, groups * channels, *extents[flat:])),
        lax.reshape(a, (groups * rows, channels, *taps[flat:])),
        windows.stride[flat:], pads[flat:], rhs_dilation=dilate[flat:],
        feature_group_count=groups, precision=PRECISION,
    )  # fmt: skip
    return lax.reshape(found, shape)


def _summed(node: Node, a: Any, x: Any) -> Any:
    """The positions are the filter, and images the channels: a chunk of images for each result."""
    chunks, *_ = shape = node.types[0].shape
    if not (a.size and x.size):
        return jnp.zeros(shape, x.dtype)
    parts = [_summed_over(node, a[i:j], x[i:j]) for i, j in chunks_of(len(a), chunks)]
    return lax.reshape(jnp.stack(parts), shape)


def _summed_over(node: Node, a: Any, x: Any) -> Any:
    """For (images, groups, rows, positions): (groups, rows, channels, *taps)."""
    images, groups, rows, _ = a.shape
    channels, extents = x.shape[2], x.shape[3:]
    windows, out = windows_of(node), tuple(node.attributes["out"])
    kernel = tuple(windows.kernel)
    if not images:
        return jnp.zeros((groups, rows, channels, *kernel), x.dtype)
    dilate, _, back = _forwards(windows)
    pads = _pads(extents, out, windows)
    flat = _flat(extents[0] == out[0] == kernel[0] == 1, pads[0] == (0, 0))
    # Channels are the images of this convolution, which makes `rows` features for each group.
    left = lax.transpose(x, (2, 1, 0, 3, 4, 5))
    right = lax.transpose(lax.reshape(a, (images, groups, rows, *out)), (1, 2, 0, 3, 4, 5))
    found = lax.conv_general_dilated(
        lax.reshape(left, (channels, groups * images, *extents[flat:])),
        lax.reshape(right, (groups * rows, images, *out[flat:])),
        dilate[flat:], pads[flat:], rhs_dilation=windows.stride[flat:],
        feature_group_count=groups, precision=PRECISION,
    )  # fmt: skip
    found = lax.reshape(found, (channels, groups, rows, *kernel))
    found = lax.rev(found, [3 + d for d in back]) if back else found
    return lax.transpose(found, (1, 2, 0, 3, 4, 5))


ROWS[CONVOLVE] = _filtered
ROWS[CORRELATE] = _summed
