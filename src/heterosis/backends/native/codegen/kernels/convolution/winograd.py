"""Winograd's convolutions: 3 x 3 taps, one apart, with stride 1, as products of transformed tiles.

The tiles of a group of bands are transformed for all channels, then a block of filters at a time
is multiplied and transformed back. A band is some rows of tiles of one plane of results; a group of
bands is as many as give the product enough columns and stay in the cache. In depth, taps lie as
they may: a channel counts once for each, with the plane of the input that the tap meets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.convolution.forward import (
    POINTERS,
    begun,
    known,
    product,
)
from heterosis.backends.native.codegen.kernels.convolution.padding import Plane, copy_rows
from heterosis.backends.native.codegen.kernels.convolution.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.tiles import (
    BACK,
    INPUT,
    parted,
    span,
    store_joined,
)
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    ceil_div,
    depth_blocks,
    evenly,
    round_up,
    share_count,
    share_range,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import (
    as_they_are,
    emit_macro_kernel,
    product_kernel,
)
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import ACCUMULATE, Kernel
from heterosis.backends.native.codegen.target import Target

_LINE = 32  # numbers that threads never share
_GROUP_TILES = 400  # of a group of bands: columns enough for the product
_GROUP_NUMBERS = 1 << 20  # in the transformed tiles of a group
_BLOCK_NUMBERS = 1 << 17  # in the products of a block of filters
_SHARE_WORK = 1 << 17  # multiplications worth waking a thread for
_SHARE_COPIES = 1 << 14  # elements to transform, likewise


@dataclass(frozen=True)
class Layout:
    """How the work is cut up, and where in the scratch memory what is, in numbers."""

    inputs: Size  # planes that one plane of results is made of
    high: Size  # rows of tiles in a plane
    wide: Size  # tiles in a row
    rows_of_band: Size  # of tiles
    bands_of_plane: Size
    bands: Size
    tiles: Size  # of a band
    bands_of_group: Size  # at most
    columns: Size  # tiles of such a group, whole panels of them
    depth: Size  # of one block
    shares: Size  # of the filters
    block: Size  # filters of the largest share
    pitch: Size  # of a row of the padded input
    spread: Size  # numbers for one place of the input in all tiles of a band
    plane: Size  # numbers for one place of the results in all tiles of a band
    between: Size  # transformed tiles of one place to those of the next
    apart: Size  # products of one place to those of the next
    private: Size  # where the threads' own memory begins
    own: Size  # of one thread


def layout(
    f: Function, kernel: Kernel, problem: Problem, v: SimpleNamespace, workers: Size
) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    m, side, lanes, panel = problem.winograd, span(problem.winograd), kernel.tile.lanes, kernel.tile
    inputs = f.mul_size(v.channels, v.kernel_d)
    high, wide = ceil_div(f, v.out_h, m), ceil_div(f, v.out_w, m)
    most = f.div_size(_GROUP_NUMBERS, f.mul_size(inputs, side * side))
    most = f.min_size(_GROUP_TILES, f.max_size(panel.columns, most))
    parts = ceil_div(f, high, f.max_size(1, f.div_size(most, wide)))
    rows_of_band = ceil_div(f, high, parts)
    bands_of_plane = ceil_div(f, high, rows_of_band)
    bands = product(f, v.images, v.out_d, bands_of_plane)
    tiles = f.mul_size(rows_of_band, wide)
    bands_of_group = f.max_size(1, f.min_size(bands, f.div_size(most, tiles)))
    columns = round_up(f, f.mul_size(bands_of_group, tiles), panel.columns)
    largest = f.div_size(_BLOCK_NUMBERS, f.mul_size(columns, side * side))
    largest = f.max_size(panel.rows, f.mul_size(f.div_size(largest, panel.rows), panel.rows))
    work = product(f, v.rows, columns, inputs, side * side)
    shares = share_count(f, v.rows, panel.rows, largest, work, workers)
    block = f.mul_size(ceil_div(f, ceil_div(f, v.rows, panel.rows), shares), panel.rows)
    # Places of a tile do not fall into the same sets of the caches.
    between = f.add_size(f.mul_size(inputs, columns), panel.columns)
    apart = f.add_size(f.mul_size(block, columns), panel.columns)
    pitch = f.mul_size(f.add_size(round_up(f, wide, lanes), lanes), m)
    spread = f.add_size(round_up(f, f.add_size(tiles, wide), lanes), lanes + panel.columns)
    before = product(f, f.add_size(f.mul_size(rows_of_band, m), side), pitch)
    before = f.add_size(before, f.mul_size(spread, side * side))
    plane = f.add_size(round_up(f, f.add_size(tiles, wide), lanes), lanes)
    joined = f.add_size(product(f, rows_of_band, m, v.out_w), m * lanes)
    joined = f.add_size(joined, f.mul_size(plane, m * m))
    back = f.add_size(f.mul_size(apart, side * side), joined)
    return Layout(
        inputs, high, wide, rows_of_band, bands_of_plane, bands, tiles, bands_of_group, columns,
        depth_blocks(f, kernel, inputs)[0], shares, block, pitch, spread, plane, between, apart,
        round_up(f, f.mul_size(between, side * side), _LINE),
        round_up(f, f.max_size(before, back), _LINE),
    )  # fmt: skip


def winograd_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = product_kernel(f.module, target, problem.dtype)
    found = layout(f, kernel, problem, SimpleNamespace(**problem.known()), workers)
    numbers = f.add_size(found.private, f.mul_size(found.own, workers))
    return known(f.mul_size(numbers, kernel.element.size))


def emit_winograd(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, x, a, y, scratch, finish)`; `finish` stores results."""
    kernel = product_kernel(module, target, problem.dtype)
    emit_macro_kernel(kernel)
    f, v, memory = begun(module, target, name, problem.parameters() + POINTERS)
    blocks = layout(f, kernel, problem, v, abi.workers(f, v.call))
    several = evenly(f, blocks.bands, blocks.bands_of_group, 1)
    with f.loop(0, blocks.bands, several) as group:
        count = f.min_size(several, f.sub_size(blocks.bands, group.index))
        frame = Frame(**vars(v), **vars(blocks), first=group.index, count=count)
        frame.save(f, memory)
        workers = abi.workers(f, v.call)
        fair = ceil_div(f, blocks.inputs, f.mul_size(workers, 4))
        one = f.mul_size(blocks.columns, span(problem.winograd) ** 2)
        grain = f.max_size(fair, abi.grain_of(f, one, _SHARE_COPIES))
        abi.parallel_for(f, v.call, f"{name}.spread", memory, blocks.inputs, grain)
        work = product(f, blocks.block, blocks.columns, blocks.inputs)
        grain = abi.grain_of(f, work, _SHARE_WORK)
        abi.parallel_for(f, v.call, f"{name}.multiply", memory, blocks.shares, grain)
    f.ret()
    _Spread(kernel, problem, name, frame).emit()
    _Multiply(kernel, problem, name, frame).emit()


class _Part:
    """What the two parallel loops have in common."""

    def __init__(self, kernel: Kernel, problem: Problem, name: str, frame: Frame):
        self.kernel, self.name, self.frame = kernel, name, frame
        self.m, self.side, self.step = problem.winograd, span(problem.winograd), problem.step
        self.kind, self.lanes = kernel.element.compute, kernel.tile.lanes
        self.vector = Type(self.kind.element, self.lanes)

    @contextmanager
    def shares(self, part: str) -> Iterator[tuple[Function, SimpleNamespace, Value]]:
        """A function whose body runs for every task of a share."""
        f, v, begin, end, worker = self.frame.body(
            self.kernel.module, self.kernel.target, f"{self.name}.{part}"
        )
        v.turn = f.allocate(self.vector, self.side * self.side)
        own = f.add_size(v.private, f.mul_size(worker, v.own))
        v.mine = f.offset(self.kind, v.scratch, own)
        self.prepare(f, v)
        with f.loop(begin, end) as task:
            yield f, v, task.index
        f.ret()

    def prepare(self, f: Function, v: SimpleNamespace) -> None:
        """What a thread does before its first task."""

    def vectors(self, f: Function, start: Value, between: Size, count: int) -> list[Value]:
        return [
            f.load(self.vector, f.offset(self.kind, start, f.mul_size(between, i)))
            for i in range(count)
        ]

    def keep(self, f: Function, v: SimpleNamespace, column: int, values: Sequence[Value]) -> None:
        """Half-transformed: one column of a tile."""
        for i, value in enumerate(values):
            at = (i * self.side + column) * self.lanes
            f.store(value, f.offset(self.kind, v.turn, at), align=4 * self.lanes)

    def kept(self, f: Function, v: SimpleNamespace, row: int) -> list[Value]:
        start = f.offset(self.kind, v.turn, row * self.side * self.lanes)
        return self.vectors(f, start, self.lanes, self.side)

    def columns(self, f: Function, v: SimpleNamespace) -> Size:
        """Tiles of the bands that this group has, whole panels of them."""
        return round_up(f, f.mul_size(v.count, v.tiles), self.kernel.tile.columns)

    def band(self, f: Function, v: SimpleNamespace, inside: Size) -> tuple[Size, Size, Size]:
        """The image of a band of this group, the depth there, and the first row of tiles."""
        band = f.add_size(v.first, inside)
        plane, number = f.div_size(band, v.bands_of_plane), f.rem_size(band, v.bands_of_plane)
        image, deep = f.div_size(plane, v.out_d), f.rem_size(plane, v.out_d)
        return image, deep, f.mul_size(number, v.rows_of_band)


class _Spread(_Part):
    """One input in all bands of the group: padded, sorted by the place in the tile, transformed."""

    def emit(self) -> None:
        with self.shares("spread") as (f, v, number), f.loop(0, v.count) as band:
            image, deep, first = self.band(f, v, band.index)
            self._pad(f, v, self._plane(f, v, image, deep, number), first)
            before = f.mul_size(band.index, v.tiles)
            begin, end = f.round_down(before, self.lanes), f.add_size(before, v.tiles)
            self._sort(f, v, f.sub_size(before, begin))
            is_last = f.compare("eq", f.i64(f.sub_size(v.count, 1)), band.index)
            whole = f.i64(f.round_down(end, self.lanes))
            end = f.select(is_last, f.i64(self.columns(f, v)), whole)
            self._transform(f, v, number, begin, end)
            self._begin_with(f, v, f.sub_size(end, begin))

    def prepare(self, f: Function, v: SimpleNamespace) -> None:
        rows = f.add_size(f.mul_size(v.rows_of_band, self.m), self.side)
        padded = f.mul_size(rows, v.pitch)
        v.sorted = f.offset(self.kind, v.mine, padded)
        whole = f.add_size(padded, f.mul_size(v.spread, self.side * self.side))
        with f.loop(0, whole, self.lanes) as at:
            f.store(constant(self.vector, 0), f.offset(self.kind, v.mine, at.index))

    def _plane(
        self, f: Function, v: SimpleNamespace, image: Size, deep: Size, number: Size
    ) -> Plane:
        """What a channel has where a tap of results at depth `deep` lies: no rows outside."""
        channel, tap = f.div_size(number, v.kernel_d), f.rem_size(number, v.kernel_d)
        here = f.add_size(f.mul_size(deep, v.stride_d), f.mul_size(tap, v.dilate_d))
        here = f.i64(f.add_size(here, v.origin_d))
        inside = f.compare("ult", here, f.i64(v.in_d))
        at = f.add_size(f.mul_size(image, v.x_image), f.mul_size(channel, v.x_channel))
        at = f.add_size(at, f.mul_size(f.select(inside, here, f.i64(0)), v.x_d))
        rows = f.select(inside, f.i64(v.in_h), f.i64(0))
        start = f.offset(self.kind, v.x, at)
        return Plane(start, rows, v.in_w, v.x_h, 1 if self.step else v.x_w)

    def _pad(self, f: Function, v: SimpleNamespace, plane: Plane, first: Size) -> None:
        """The rows that the band reads, zero where they lie outside. What stands beside them is
        zero from the beginning."""
        top = f.add_size(f.mul_size(first, self.m), v.origin_h)
        count = f.add_size(f.mul_size(v.rows_of_band, self.m), self.side - self.m)
        to = f.offset(self.kind, v.mine, f.sub_size(0, v.origin_w))
        copy_rows(f, self.kernel.target, self.vector, plane, top, count, to, v.pitch)

    def _sort(self, f: Function, v: SimpleNamespace, at: Size) -> None:
        """Every place of a tile gets a plane, tile after tile, from `at` on. Vectors reach behind
        a row of tiles, where the next row comes later. Rows that two tiles share come twice."""
        start = f.offset(self.kind, v.sorted, at)
        shared = self.side - self.m
        rows = f.add_size(f.mul_size(v.rows_of_band, self.m), shared)
        with f.loop(0, rows) as row:
            place, above = f.rem_size(row.index, self.m), f.div_size(row.index, self.m)
            source = f.offset(self.kind, v.mine, f.mul_size(row.index, v.pitch))
            here = self._row_of_tiles(f, v, start, place, above)
            before = f.add_size(place, self.m), f.sub_size(above, 1)
            again = f.binary(
                "and", f.compare("ult", f.i64(place), f.i64(shared)),
                f.compare("ne", f.i64(above), f.i64(0)),
            )  # fmt: skip
            there = f.select(again, self._row_of_tiles(f, v, start, *before), here)
            with f.loop(0, v.wide, self.lanes) as tile_:
                start_ = f.offset(self.kind, source, f.mul_size(tile_.index, self.m))
                for j, value in enumerate(parted(f, start_, self.m, self.lanes, self.kind)):
                    at = f.add_size(f.mul_size(v.spread, j), tile_.index)
                    f.store(value, f.offset(self.kind, here, at))
                    f.store(value, f.offset(self.kind, there, at))

    def _row_of_tiles(
        self, f: Function, v: SimpleNamespace, start: Value, place: Size, above: Size
    ) -> Value:
        """Where a row of tiles of a band begins in the first plane of a row of places."""
        plane = f.mul_size(f.mul_size(place, self.side), v.spread)
        return f.offset(self.kind, start, f.add_size(plane, f.mul_size(above, v.wide)))

    def _transform(
        self, f: Function, v: SimpleNamespace, number: Size, begin: Size, end: Size
    ) -> None:
        """What is sorted, tiles `begin` to `end` of the group, into panels of `tile.columns`
        tiles, one row for each input."""
        panel = self.kernel.tile.columns
        step = f.mul_size(f.div_size(number, v.depth), v.depth)
        depth = f.min_size(v.depth, f.sub_size(v.inputs, step))
        row = f.add_size(f.mul_size(step, v.columns), f.mul_size(f.sub_size(number, step), panel))
        with f.loop(begin, end, self.lanes) as at:
            self._columns(f, v, f.sub_size(at.index, begin))
            first = f.round_down(at.index, panel) if panel & (panel - 1) == 0 else f.mul_size(
                f.div_size(at.index, panel), panel
            )  # fmt: skip
            to = f.add_size(row, f.mul_size(first, depth))
            to = f.add_size(to, f.sub_size(at.index, first))
            start = f.offset(self.kind, v.scratch, to)
            for i in range(self.side):
                for j, value in enumerate(INPUT[self.m](f, self.kept(f, v, i))):
                    there = f.mul_size(v.between, i * self.side + j)
                    f.store(value, f.offset(self.kind, start, there))

    def _begin_with(self, f: Function, v: SimpleNamespace, tile_: Size) -> None:
        """Tiles from `tile_` on, too few for a vector, wait for those of the next band."""
        with f.loop(0, self.side * self.side) as place:
            plane = f.offset(self.kind, v.sorted, f.mul_size(place.index, v.spread))
            f.store(f.load(self.vector, f.offset(self.kind, plane, tile_)), plane)

    def _columns(self, f: Function, v: SimpleNamespace, tile_: Size) -> None:
        start = f.offset(self.kind, v.sorted, tile_)
        for j in range(self.side):
            column = f.offset(self.kind, start, f.mul_size(v.spread, j))
            loaded = self.vectors(f, column, f.mul_size(v.spread, self.side), self.side)
            self.keep(f, v, j, INPUT[self.m](f, loaded))


class _Multiply(_Part):
    """A block of filters: multiplied with all tiles of the group, transformed back, stored."""

    def emit(self) -> None:
        with self.shares("multiply") as (f, v, task):
            row, rows = share_range(f, task, v.shares, v.rows, self.kernel.tile.rows)
            self._products(f, v, row, rows)
            with f.loop(0, v.count) as band, f.loop(0, rows) as filter_:
                self._back(f, v, filter_.index, band.index)
                self._join(f, v)
                self._store(f, v, band.index, f.add_size(row, filter_.index))

    def _products(self, f: Function, v: SimpleNamespace, row: Size, rows: Size) -> None:
        padded = round_up(f, v.rows, self.kernel.tile.rows)
        columns = self.columns(f, v)
        with f.loop(0, self.side * self.side) as place, f.loop(0, v.inputs, v.depth) as step:
            depth = f.min_size(v.depth, f.sub_size(v.inputs, step.index))
            left = f.add_size(f.mul_size(place.index, v.inputs), step.index)
            left = f.add_size(f.mul_size(left, padded), f.mul_size(row, depth))
            right = f.mul_size(place.index, v.between)
            right = f.add_size(right, f.mul_size(step.index, v.columns))
            begun = f.compare("eq", step.index, f.i64(0))
            mode = f.select(begun, f.i64(0), f.i64(ACCUMULATE))
            operands = [
                f.offset(self.kind, v.a, left), f.offset(self.kind, v.scratch, right),
                f.offset(self.kind, v.mine, f.mul_size(place.index, v.apart)),
            ]  # fmt: skip
            sizes = [f.i64(size) for size in (columns, rows, columns, depth)]
            f.call(self.kernel.name("macro"), [*operands, *sizes, *as_they_are(f, mode, v.call)])
            # Vectors of the last filter's products reach behind them.
            behind = f.offset(self.kind, operands[-1], f.mul_size(rows, columns))
            f.store(constant(self.vector, 0), behind)

    def prepare(self, f: Function, v: SimpleNamespace) -> None:
        v.results = f.offset(self.kind, v.mine, f.mul_size(v.apart, self.side * self.side))
        v.joined = f.offset(self.kind, v.results, f.mul_size(v.plane, self.m * self.m))

    def _back(self, f: Function, v: SimpleNamespace, filter_: Value, band: Value) -> None:
        """One filter's products into a plane of results for each place in a tile."""
        at = f.add_size(f.mul_size(filter_, self.columns(f, v)), f.mul_size(band, v.tiles))
        start = f.offset(self.kind, v.mine, at)
        with f.loop(0, v.tiles, self.lanes) as tile_:
            here = f.offset(self.kind, start, tile_.index)
            for j in range(self.side):
                column = f.offset(self.kind, here, f.mul_size(v.apart, j))
                loaded = self.vectors(f, column, f.mul_size(v.apart, self.side), self.side)
                self.keep(f, v, j, BACK[self.m](f, loaded))
            for i in range(self.m):
                for j, value in enumerate(BACK[self.m](f, self.kept(f, v, i))):
                    to = f.add_size(f.mul_size(v.plane, i * self.m + j), tile_.index)
                    f.store(value, f.offset(self.kind, v.results, to))

    def _join(self, f: Function, v: SimpleNamespace) -> None:
        """The planes into rows. Vectors reach behind a row, where the next one comes later."""
        with f.loop(0, v.rows_of_band) as above, f.loop(0, self.m) as row:
            line = f.add_size(f.mul_size(above.index, self.m), row.index)
            to = f.offset(self.kind, v.joined, f.mul_size(line, v.out_w))
            at = f.mul_size(f.mul_size(row.index, self.m), v.plane)
            at = f.add_size(at, f.mul_size(above.index, v.wide))
            source = f.offset(self.kind, v.results, at)
            with f.loop(0, v.wide, self.lanes) as tile_:
                here = f.offset(self.kind, source, tile_.index)
                places = self.vectors(f, here, v.plane, self.m)
                store_joined(f, places, f.offset(self.kind, to, f.mul_size(tile_.index, self.m)))

    def _store(self, f: Function, v: SimpleNamespace, band: Size, filter_: Size) -> None:
        """The rows, which are neighbours in the result, through what ends them."""
        image, deep, first = self.band(f, v, band)
        line = f.mul_size(first, self.m)
        high = f.min_size(f.mul_size(v.rows_of_band, self.m), f.sub_size(v.out_h, line))
        begin = f.mul_size(f.add_size(f.mul_size(deep, v.out_h), line), v.out_w)
        count = f.mul_size(high, v.out_w)
        row = f.add_size(f.mul_size(image, v.rows), filter_)
        at = f.add_size(f.mul_size(row, product(f, v.out_d, v.out_h, v.out_w)), begin)
        y = f.offset(self.kind, v.y, at)
        place = [v.call, *(f.i64(size) for size in (image, filter_, begin))]
        f.call_pointer(v.finish, [v.joined, y, f.i64(count), *place])


__all__ = ["emit_winograd", "winograd_scratch_bytes"]
