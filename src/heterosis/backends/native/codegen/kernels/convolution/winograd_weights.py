"""The gradient of 3 x 3 filters by Winograd's tiles: `winograd`, turned round.

With `y = back ((filter g filter^T) * (input d input^T)) back^T`, the gradient of `g` is
`filter^T ((back^T dy back) * (input d input^T)) filter`, summed over all tiles. So each place in a
tile has a product of matrices of its own: filters by channels, as deep as there are tiles.

The tiles of a group of lines are transformed into packed panels, then multiplied, place by place,
and added to those of the groups before. A line is one row of tiles of one image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.kernels.convolution.filters import weighted
from heterosis.backends.native.codegen.kernels.convolution.forward import begun, known, product
from heterosis.backends.native.codegen.kernels.convolution.padding import Plane, copy_rows
from heterosis.backends.native.codegen.kernels.convolution.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.tiles import (
    FILTERS,
    INPUT,
    RESULTS,
    TAPS,
    Line,
    span,
    turned,
)
from heterosis.backends.native.codegen.kernels.convolution.weights import POINTERS
from heterosis.backends.native.codegen.kernels.matmul.blocked import ceil_div, round_up
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import (
    as_they_are,
    emit_macro_kernel,
    product_kernel,
)
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import ACCUMULATE, Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import (
    store_first,
    store_step,
)
from heterosis.backends.native.codegen.target import Target

_LINE = 32  # numbers that threads never share
_GROUP_TILES = 64  # deep enough for the products, few enough for the caches
_GROUP_NUMBERS = 1 << 22  # in the transformed tiles of a group
_SHARE_WORK = 1 << 17  # multiplications worth waking a thread for
_SHARE_COPIES = 1 << 14  # elements to transform, likewise
_READ = 8  # neighbours that a tile may read of a row, whole loads of them


@dataclass(frozen=True)
class Layout:
    """How the work is cut up, and where in the scratch memory what is, in numbers."""

    high: Size  # lines of an image
    wide: Size  # tiles of a line
    lines: Size  # of a group
    x_panels: Size  # that the channels fill
    a_panels: Size  # that the rows fill, which stand for filters
    x_between: Size  # transformed tiles of one place to those of the next
    a_between: Size
    apart: Size  # products of one place to those of the next
    left: Size  # where the transformed gradients of results begin
    products: Size  # where the sums of products begin
    x_pitch: Size  # of a row of the padded input
    a_pitch: Size  # of a row of the padded gradients
    a_padded: Size  # where in a thread's own memory the padded gradients begin
    private: Size  # where the threads' own memory begins
    own: Size  # of one thread


def layout(f: Function, kernel: Kernel, problem: Problem, v: SimpleNamespace) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    m, side, tile = problem.winograd, span(problem.winograd), kernel.tile
    high, wide = ceil_div(f, v.out_h, m), ceil_div(f, v.out_w, m)
    line = product(f, f.add_size(v.channels, v.rows), wide, side * side)
    most = f.min_size(f.div_size(_GROUP_TILES, wide), f.div_size(_GROUP_NUMBERS, line))
    lines = f.max_size(1, f.min_size(most, f.mul_size(v.images, high)))
    x_panels, a_panels = ceil_div(f, v.channels, tile.columns), ceil_div(f, v.rows, tile.rows)
    # Places of a tile do not fall into the same sets of the caches.
    tiles = f.mul_size(lines, wide)
    x_between = f.add_size(product(f, x_panels, tiles, tile.columns), tile.columns)
    a_between = f.add_size(product(f, a_panels, tiles, tile.rows), tile.columns)
    apart = f.add_size(f.mul_size(v.rows, v.channels), tile.columns)
    left = round_up(f, f.mul_size(x_between, side * side), _LINE)
    products = round_up(f, f.add_size(left, f.mul_size(a_between, side * side)), _LINE)
    private = round_up(f, f.add_size(products, f.mul_size(apart, side * side)), _LINE)
    read = f.add_size(f.mul_size(wide, m), _READ)
    beside = f.add_size(f.add_size(v.in_w, f.sub_size(0, v.origin_w)), tile.lanes)
    x_pitch = round_up(f, f.max_size(read, beside), tile.lanes)
    a_pitch = round_up(f, f.max_size(read, f.add_size(v.out_w, tile.lanes)), tile.lanes)
    a_padded = f.mul_size(x_pitch, tile.columns * side)
    own = round_up(f, f.add_size(a_padded, f.mul_size(a_pitch, tile.rows * m)), _LINE)
    return Layout(
        high, wide, lines, x_panels, a_panels, x_between, a_between, apart, left, products,
        x_pitch, a_pitch, a_padded, private, own,
    )  # fmt: skip


def winograd_weights_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = product_kernel(f.module, target, problem.dtype)
    found = layout(f, kernel, problem, SimpleNamespace(**problem.known()))
    numbers = f.add_size(found.private, f.mul_size(found.own, workers))
    return known(f.mul_size(numbers, kernel.element.size))


def emit_winograd_weights(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, a, x, y, scratch)`: `y` is (chunks, 1, rows, columns), one
    part of the sum for each chunk of the images."""
    kernel = product_kernel(module, target, problem.dtype)
    emit_macro_kernel(kernel)
    f, v, memory = begun(module, target, name, problem.parameters() + POINTERS)
    blocks = layout(f, kernel, problem, v)
    places, tile = span(problem.winograd) ** 2, kernel.tile
    with f.loop(0, v.chunks) as chunk:
        first, last = (
            f.mul_size(f.div_size(f.mul_size(at, v.images), v.chunks), blocks.high)
            for at in (chunk.index, f.add_size(chunk.index, 1))
        )
        chunks = Frame(**vars(v), **vars(blocks), chunk=chunk.index, begun=first, ended=last)
        with f.loop(first, last, blocks.lines) as line:
            count = f.min_size(blocks.lines, f.sub_size(last, line.index))
            depth = f.mul_size(count, blocks.wide)
            frame = Frame(**vars(v), **vars(blocks), begun=first, first=line.index, depth=depth)
            frame.save(f, memory)
            panels = f.add_size(blocks.x_panels, blocks.a_panels)
            grain = _grain(f, _SHARE_COPIES, f.mul_size(blocks.wide, places * tile.columns))
            abi.parallel_for(f, v.call, f"{name}.spread", memory, f.mul_size(count, panels), grain)
            parts = ceil_div(f, v.rows, tile.block_rows)
            rows = f.min_size(v.rows, tile.block_rows)
            grain = _grain(f, _SHARE_WORK, product(f, rows, v.channels, depth))
            abi.parallel_for(
                f, v.call, f"{name}.multiply", memory, f.mul_size(parts, places), grain
            )
        chunks.save(f, memory)
        grain = _grain(f, _SHARE_COPIES, f.mul_size(v.channels, places))
        abi.parallel_for(f, v.call, f"{name}.back", memory, v.rows, grain)
    f.ret()
    bodies = _Bodies(kernel, problem, name)
    bodies.emit_spread(frame)
    bodies.emit_multiply(frame)
    bodies.emit_back(chunks)


def _grain(f: Function, worth: int, one: Size) -> Size:
    """How many tasks make a share, if `one` is the work of a task."""
    return f.max_size(1, f.div_size(worth, f.max_size(1, one)))


@dataclass(frozen=True)
class _Operand:
    """One side of the products: planes of numbers, `width` of them in a panel, and what a tile of
    one of them, which is `height` rows, is transformed by."""

    width: int
    height: int
    line: Line
    loads: int  # of a row of a tile, four numbers each
    planes: Size
    plane: Callable[[Size, Size], Plane]  # by the image and its number there
    top: Size  # of the first tile, before the plane
    before: Size  # of the first tile, to the left of the plane
    pitch: Size  # of the padded rows
    padded: Value  # where they are
    to: Value  # where transformed tiles go
    between: Size  # of one place to those of the next


class _Bodies:
    """Emits the bodies of the parallel loops. How work is cut up does not follow from the number of
    threads, so that sums are the same with any."""

    def __init__(self, kernel: Kernel, problem: Problem, name: str):
        self.kernel, self.name, self.tile = kernel, name, kernel.tile
        self.m, self.side, self.step = problem.winograd, span(problem.winograd), problem.step
        self.kind, self.lanes = kernel.element.compute, kernel.tile.lanes
        self.vector = Type(self.kind.element, self.lanes)

    @contextmanager
    def _body(self, part: str, frame: Frame) -> Iterator[tuple[Function, SimpleNamespace]]:
        """A function for a share of the tasks `v.begin` to `v.end`."""
        f, v, begin, end, worker = frame.body(
            self.kernel.module, self.kernel.target, f"{self.name}.{part}"
        )
        v.begin, v.end = begin, end
        own = f.add_size(v.private, f.mul_size(worker, v.own))
        v.mine = f.offset(self.kind, v.scratch, own)
        yield f, v
        f.ret()

    # -- transformed tiles ----------------------------------------------------------------------

    def emit_spread(self, frame: Frame) -> None:
        """One panel of one line, of the input or of the gradients of results."""
        with self._body("spread", frame) as (f, v):
            turn = f.allocate(self.vector, self.side * self.side)
            with f.loop(0, v.own, self.lanes) as at:
                f.store(constant(self.vector, 0), f.offset(self.kind, v.mine, at.index))
            panels = f.add_size(v.x_panels, v.a_panels)
            with f.loop(v.begin, v.end) as task:
                line, panel = f.div_size(task.index, panels), f.rem_size(task.index, panels)
                other = f.sub_size(panel, v.x_panels)

                def of_input(line: Size = line, panel: Size = panel) -> None:
                    self._panel(f, v, self._input(f, v), line, panel, turn)

                def of_results(line: Size = line, other: Size = other) -> None:
                    self._panel(f, v, self._results(f, v), line, other, turn)

                f.if_else(f.compare("slt", f.i64(other), f.i64(0)), of_input, of_results)

    def _input(self, f: Function, v: SimpleNamespace) -> _Operand:
        def plane(image: Size, number: Size) -> Plane:
            at = f.add_size(f.mul_size(image, v.x_image), f.mul_size(number, v.x_channel))
            start, along = f.offset(self.kind, v.x, at), 1 if self.step else v.x_w
            return Plane(start, v.in_h, v.in_w, v.x_h, along)

        return _Operand(
            self.tile.columns, self.side, INPUT[self.m], -(-self.side // 4), v.channels,
            plane, v.origin_h, v.origin_w, v.x_pitch, v.mine, v.scratch, v.x_between,
        )  # fmt: skip

    def _results(self, f: Function, v: SimpleNamespace) -> _Operand:
        def plane(image: Size, number: Size) -> Plane:
            at = f.add_size(f.mul_size(image, v.a_image), f.mul_size(number, v.a_row))
            return Plane(f.offset(self.kind, v.a, at), v.out_h, v.out_w, v.out_w, 1)

        return _Operand(
            self.tile.rows, self.m, RESULTS[self.m], 1, v.rows, plane, 0, 0, v.a_pitch,
            f.offset(self.kind, v.mine, v.a_padded), f.offset(self.kind, v.scratch, v.left),
            v.a_between,
        )  # fmt: skip

    def _panel(
        self, f: Function, v: SimpleNamespace, operand: _Operand, line: Size, panel: Size,
        turn: Value,
    ) -> None:  # fmt: skip
        """The tiles of a line, each for all planes of a panel."""
        self._pad(f, v, operand, f.add_size(v.first, line), panel)
        to = f.add_size(f.mul_size(panel, v.depth), f.mul_size(line, v.wide))
        to = f.offset(self.kind, operand.to, f.mul_size(to, operand.width))
        with f.loop(0, v.wide) as tile:
            source = f.offset(self.kind, operand.padded, f.mul_size(tile.index, self.m))
            into = f.offset(self.kind, to, f.mul_size(tile.index, operand.width))
            for first in range(0, operand.width, self.lanes):
                self._across(f, operand, source, first, turn)
                self._down(f, operand, into, first, turn)

    def _pad(
        self, f: Function, v: SimpleNamespace, operand: _Operand, line: Size, panel: Size
    ) -> None:
        """The rows that the tiles of a line read, of all planes of a panel. Behind the last plane,
        it takes the place of others: they only reach results that nobody stores."""
        image, number = f.div_size(line, v.high), f.rem_size(line, v.high)
        top = f.add_size(f.mul_size(number, self.m), operand.top)
        with f.loop(0, operand.width) as inside:
            at = f.add_size(f.mul_size(panel, operand.width), inside.index)
            plane = operand.plane(image, f.min_size(at, f.sub_size(operand.planes, 1)))
            to = f.mul_size(inside.index, f.mul_size(operand.pitch, operand.height))
            to = f.offset(self.kind, operand.padded, f.sub_size(to, operand.before))
            height, target = operand.height, self.kernel.target
            copy_rows(f, target, self.vector, plane, top, height, to, operand.pitch)

    def _across(
        self, f: Function, operand: _Operand, source: Value, first: int, turn: Value
    ) -> None:
        """Each row of a tile, one lane for each plane from `first` on, with columns for rows."""
        planes = [min(first + lane, operand.width - 1) for lane in range(self.lanes)]
        apart = f.mul_size(operand.pitch, operand.height)
        with f.loop(0, operand.height) as row:
            start = f.offset(self.kind, source, f.mul_size(row.index, operand.pitch))
            starts = [f.offset(self.kind, start, f.mul_size(apart, plane)) for plane in planes]
            read = [
                value
                for i in range(operand.loads)
                for value in turned(f, [f.offset(self.kind, at, 4 * i) for at in starts], self.kind)
            ]
            for j, value in enumerate(operand.line(f, read)):
                at = f.mul_size(f.add_size(row.index, j * self.side), self.lanes)
                f.store(value, f.offset(self.kind, turn, at), align=4 * self.lanes)

    def _down(self, f: Function, operand: _Operand, into: Value, first: int, turn: Value) -> None:
        """The columns that `_across` left, into the panels of all places."""
        valid = min(self.lanes, operand.width - first)
        with f.loop(0, self.side) as column:
            kept = f.offset(self.kind, turn, f.mul_size(column.index, self.side * self.lanes))
            rows = [
                f.load(self.vector, f.offset(self.kind, kept, i * self.lanes), align=4 * self.lanes)
                for i in range(operand.height)
            ]
            for i, value in enumerate(operand.line(f, rows)):
                place = f.mul_size(f.add_size(column.index, i * self.side), operand.between)
                to = f.offset(self.kind, into, f.add_size(place, first))
                store_first(f, value, valid, to)

    # -- the products ---------------------------------------------------------------------------

    def emit_multiply(self, frame: Frame) -> None:
        """Some rows of one place's product."""
        with self._body("multiply", frame) as (f, v), f.loop(v.begin, v.end) as task:
            parts = ceil_div(f, v.rows, self.tile.block_rows)
            place, part = f.div_size(task.index, parts), f.rem_size(task.index, parts)
            row = f.mul_size(part, self.tile.block_rows)
            rows = f.min_size(self.tile.block_rows, f.sub_size(v.rows, row))
            left = f.add_size(f.mul_size(place, v.a_between), f.mul_size(row, v.depth))
            to = f.add_size(f.mul_size(place, v.apart), f.mul_size(row, v.channels))
            fresh = f.compare("eq", f.i64(v.first), f.i64(v.begun))
            mode = f.select(fresh, f.i64(0), f.i64(ACCUMULATE))
            operands = [
                f.offset(self.kind, v.scratch, f.add_size(v.left, left)),
                f.offset(self.kind, v.scratch, f.mul_size(place, v.x_between)),
                f.offset(self.kind, v.scratch, f.add_size(v.products, to)),
            ]
            sizes = [f.i64(size) for size in (v.channels, rows, v.channels, v.depth)]
            f.call(self.kernel.name("macro"), [*operands, *sizes, *as_they_are(f, mode, v.call)])

    # -- filters of them ------------------------------------------------------------------------

    def emit_back(self, frame: Frame) -> None:
        """The taps of one row, `lanes` channels at a time. The last begin early enough to end with
        the row."""
        with self._body("back", frame) as (f, v), f.loop(v.begin, v.end) as row:
            filled = f.compare("slt", f.i64(v.begun), f.i64(v.ended))
            source = f.add_size(v.products, f.mul_size(row.index, v.channels))
            plane = f.add_size(f.mul_size(v.chunk, v.rows), row.index)
            to = f.offset(self.kind, v.y, f.mul_size(f.mul_size(plane, v.channels), TAPS * TAPS))
            with f.loop(0, v.channels, self.lanes) as channel:
                at = f.min_size(channel.index, f.sub_size(v.channels, self.lanes))
                taps = self._taps(f, v, f.offset(self.kind, v.scratch, f.add_size(source, at)))
                # Of fewer images than chunks, some chunks have none.
                nothing = constant(self.vector, 0)
                self._store_taps(
                    f, [f.select(filled, tap, nothing) for tap in taps],
                    f.offset(self.kind, to, f.mul_size(at, TAPS * TAPS)),
                )  # fmt: skip

    def _taps(self, f: Function, v: SimpleNamespace, source: Value) -> list[Value]:
        lines, half = list(zip(*FILTERS[self.m], strict=True)), []
        for j in range(self.side):
            column = [
                f.load(
                    self.vector,
                    f.offset(self.kind, source, f.mul_size(v.apart, i * self.side + j)),
                )
                for i in range(self.side)
            ]
            half.append([weighted(f, line, column) for line in lines])
        return [
            weighted(f, across, [column[h] for column in half])
            for h in range(TAPS)
            for across in lines
        ]

    def _store_taps(self, f: Function, taps: list[Value], to: Value) -> None:
        """The taps of each channel, one channel after another."""
        element = self.kernel.element
        columns = [
            transpose(f, taps[first : first + self.lanes], 16 // element.size)
            for first in range(0, len(taps), self.lanes)
        ]
        for channel, column in enumerate(zip(*columns, strict=True)):
            store_step(f, element, column, to, channel, len(taps))


__all__ = ["emit_winograd_weights", "winograd_weights_scratch_bytes"]
