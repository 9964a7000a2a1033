"""Which way to convolve with packed filters is the cheapest, by the multiplications it takes, and
which way to sum up the gradient of filters."""

from __future__ import annotations

from math import prod

from heterosis.backends.native.codegen.kernels.convolution.tiles import FILTERS, TAPS, span
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.tile import Tile, tile
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.table_sizes import roughly
from heterosis.ir.types import ITEMSIZE

# What it takes to transform an element of a tile, and of a filter, in multiplications.
_TRANSFORM, _FILTER = 10, 8
# The same of the gradient of filters, which comes from memory, a sum for each place. To transform
# takes as long with wide vectors as with narrow ones, which multiply less in that time: a lane.
_TRANSFORM_BACK, _GRADIENT = 3.75, 40
# What it takes there to pack an element of a window. By the number of registers, what it takes to
# multiply one of a plane, and as how many more of them a line counts: few registers hold small
# tiles, which begin more often. There are tasks enough of them for many threads.
_PACKING, _MANY_TASKS = 30, 4
_PLANES = {32: (1.5, 0), 16: (1.75, 8)}
# Tiles need more memory and are less exact, and turning takes time: by how much they must be
# cheaper.
_TILES_WORTH, _TURNING_WORTH = 0.85, 0.93
# Sums of products of all places that may be in memory at a time.
_MOST_SUMS = 1 << 24


def choose(
    dtype: str, images: int, rows: int, channels: int, kernel: tuple[int, ...],
    out: tuple[int, ...], target: Target, *, small_steps: bool, each_call: bool,
) -> tuple[dict[str, int], float]:  # fmt: skip
    """The kind of a `Problem` with one group, and what that takes. `small_steps`: windows and their
    taps are one apart in a plane. `each_call`: the filters are packed at every call, not once and
    for all."""
    images, out = roughly(images), tuple(map(roughly, out))
    shape = tile(target, element(dtype, target))
    positions = prod(out)
    windows = _up(images * positions, shape.columns) * _in_tiles(rows, shape) / rows
    turned = images * _in_tiles(positions, shape) * _up(rows, shape.columns) / rows
    best: dict[str, int] = {"packed": True}
    least = windows * prod(kernel)
    if turned < _TURNING_WORTH * windows:
        best, least = {"turned": True}, turned * prod(kernel)
    if small_steps and _takes_tiles(dtype, kernel):
        own = _FILTER if each_call else 0
        planes, inputs = images * out[0], channels * kernel[0]
        cost, m = min((_tiles_cost(m, planes, rows, inputs, out, shape, own), m) for m in FILTERS)
        cost *= kernel[0]
        if cost < _TILES_WORTH * least:
            best, least = {"winograd": m}, cost
    return best, least * rows * channels


def choose_for_weights(
    dtype: str, images: int, rows: int, channels: int, kernel: tuple[int, ...],
    out: tuple[int, ...], target: Target, *, small_steps: bool, tasks: int,
) -> dict[str, int]:  # fmt: skip
    """The kind of a `Problem` that sums up the gradient of filters; otherwise as `choose`. `tasks`
    is how many sums do not depend on each other: chunks of the images, and groups."""
    images, out = roughly(images), tuple(map(roughly, out))
    columns, panel = channels * prod(kernel), tile(target, element(dtype, target)).columns
    windows = (1 + _PACKING / rows) * _up(columns, panel) / columns
    best: dict[str, int] = {}
    least = windows * images * prod(out) * prod(kernel)
    if prod(kernel) > 1 and tasks >= _MANY_TASKS:
        one, begun = _PLANES[target.vector_registers]
        line = _up(out[-1], target.lanes(ITEMSIZE[dtype])) + begun
        cost = one * images * prod(out[:-1]) * line * prod(kernel)
        if cost < least:
            best, least = {"planes": True}, cost
    flat = kernel[0] == out[0] == 1
    if not (_takes_tiles(dtype, kernel) and small_steps and flat and channels >= target.lanes(4)):
        return best
    transform = _TRANSFORM_BACK * target.lanes(4)
    for m in FILTERS:
        tiles = images * _tiles(m, out)
        cost = _tile_products(m, rows, channels, tiles, _GRADIENT, transform)
        if cost < _TILES_WORTH * least and span(m) ** 2 * rows * channels <= _MOST_SUMS:
            best, least = {"winograd": m}, cost / _TILES_WORTH
    return best


def _takes_tiles(dtype: str, kernel: tuple[int, ...]) -> bool:
    return dtype == "float32" and kernel[1:] == (TAPS, TAPS)


def _up(count: int, step: int) -> int:
    return -(-count // step) * step


def _in_tiles(count: int, shape: Tile) -> int:
    """Rows of tiles that hold `count`: whole ones and the smallest that covers the rest."""
    whole, rest = count // shape.rows * shape.rows, count % shape.rows
    return whole + min(n for n in (0, *shape.tails, shape.rows) if n >= rest)


def _tiles_cost(
    m: int, planes: int, rows: int, inputs: int, out: tuple[int, ...], shape: Tile, filters: int
) -> float:
    tiles = _up(planes * _tiles(m, out), shape.columns)
    return _tile_products(m, rows, inputs, tiles, filters)


def _tiles(m: int, out: tuple[int, ...]) -> int:
    """How many a plane has."""
    return prod(-(-n // m) for n in out[1:])


def _tile_products(
    m: int, rows: int, inputs: int, tiles: int, filters: int, transform: float = _TRANSFORM
) -> float:
    """What the tiles of all planes take, for each row and input."""
    transforms = transform / rows + transform / inputs
    return span(m) ** 2 * (filters + tiles * (1 + transforms))
