"""Which way to convolve is the cheapest, by the multiplications that each takes."""

from __future__ import annotations

from math import prod

from heterosis.codegen.convolution.tiles import FILTERS, TAPS, span
from heterosis.codegen.matmul.element import element
from heterosis.codegen.matmul.tile import tile
from heterosis.codegen.target import Target

# What it takes to transform an element of a tile, in multiplications.
_TRANSFORM = 10
# By how much tiles must be cheaper: they need more memory, and are less exact.
_WORTH = 0.85


def winograd_tile(
    images: int, rows: int, channels: int, out: tuple[int, ...], target: Target
) -> int:
    """The size of the tiles for float32 filters of 3 x 3 taps; 0 where windows are cheaper."""
    panel = tile(target, element("float32", target)).columns

    def padded(count: int) -> int:
        return -(-count // panel) * panel

    def cost(m: int) -> float:
        tiles = images * padded(prod(-(-n // m) for n in out))
        return span(m) ** 2 * tiles * (1 + _TRANSFORM / rows + _TRANSFORM / channels)

    windows = TAPS**2 * padded(images * prod(out))
    best = min(FILTERS, key=cost)
    return best if cost(best) < _WORTH * windows else 0
