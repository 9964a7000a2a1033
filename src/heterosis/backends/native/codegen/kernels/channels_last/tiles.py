"""Winograd's convolutions with channels last: 3 x 3 taps, one apart, with stride 1.

The tiles of a group are transformed for all channels; for each place in a tile, they then are the
rows of a matrix. A panel of filters at a time is multiplied, transformed back and stored. Vectors
run along the channels throughout: nothing is sorted or gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    PTR,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.epilogue import Epilogue, Position
from heterosis.backends.native.codegen.kernels.channels_last.problem import Problem
from heterosis.backends.native.codegen.kernels.channels_last.product import POINTERS
from heterosis.backends.native.codegen.kernels.convolution.forward import begun, known, product
from heterosis.backends.native.codegen.kernels.convolution.tiles import BACK, INPUT, Line, span
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    ceil_div,
    depth_blocks,
    mode_of,
    round_up,
    share_range,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    EvenRows,
    PanelProduct,
    emit_panel_kernels,
    tile_rows,
)
from heterosis.backends.native.codegen.target import Target

_LINE = 32  # numbers that threads never share
_GROUP_NUMBERS = 1 << 17  # in the transformed tiles of a group, for each thread
_GROUP_ROWS = 4  # tiles of the product, at least, that a group fills
_SHARE_COPIES = 1 << 14  # numbers to transform that are worth a thread


@dataclass(frozen=True)
class Layout:
    """How the work is cut up, and where in the scratch memory what is, in numbers."""

    high: Size  # rows of tiles in an image
    wide: Size  # tiles in a row
    tiles: Size  # of all images
    group: Size  # tiles that a group has room for
    panels: Size  # of filters
    parts: Size  # of a group's tiles, for threads beyond one a panel
    depth: Size  # of one block
    between: Size  # transformed tiles of one place to those of the next
    apart: Size  # products of one place to those of the next
    private: Size  # where the threads' own memory begins
    own: Size  # of one thread


def layout(f: Function, kernel: Kernel, m: int, v: SimpleNamespace, workers: Size) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    places, columns = span(m) ** 2, kernel.tile.columns
    high, wide = ceil_div(f, v.out_h, m), ceil_div(f, v.out_w, m)
    tiles = product(f, v.images, high, wide)
    most = f.div_size(_GROUP_NUMBERS, f.mul_size(v.channels, places))
    most = f.mul_size(workers, f.max_size(_GROUP_ROWS * tile_rows(kernel), most))
    group = f.min_size(tiles, most)
    panels = ceil_div(f, v.filters, columns)
    parts = f.min_size(ceil_div(f, workers, panels), ceil_div(f, group, tile_rows(kernel)))
    # Places of a tile do not fall into the same sets of the caches.
    between = f.add_size(f.mul_size(group, v.channels), columns)
    apart = f.mul_size(f.add_size(group, 1), columns)
    around = f.mul_size(places, v.channels)
    return Layout(
        high, wide, tiles, group, panels, parts, depth_blocks(f, kernel, v.channels)[0], between,
        apart, round_up(f, f.mul_size(between, places), _LINE),
        round_up(f, f.max_size(f.mul_size(apart, places), around), _LINE),
    )  # fmt: skip


def tiles_scratch_bytes(problem: Problem, m: int, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = product_kernel(f.module, target, problem.dtype)
    found = layout(f, kernel, m, SimpleNamespace(**problem.known()), workers)
    numbers = f.add_size(found.private, f.mul_size(found.own, workers))
    return known(f.mul_size(numbers, kernel.element.size))


def emit_tiles(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None, m: int
) -> None:
    """Define `@name(call, x, a, y, scratch, numbers...)` for tiles of `m` x `m` results; `a` is the
    packed right operand of a product, a column for each filter and a row for each place in a tile
    and channel. Channels and filters are whole vectors."""
    kernel = product_kernel(module, target, problem.dtype)
    emit_panel_kernels(kernel)
    f, v, memory = begun(module, target, name, POINTERS + problem.parameters())
    cut = layout(f, kernel, m, v, abi.workers(f, v.call))
    even = ceil_div(f, cut.tiles, f.max_size(1, ceil_div(f, cut.tiles, cut.group)))
    with f.loop(0, cut.tiles, even) as group:
        count = f.min_size(even, f.sub_size(cut.tiles, group.index))
        frame = Frame(**vars(v), **vars(cut), first=group.index, count=count)
        frame.save(f, memory)
        fair = ceil_div(f, count, f.mul_size(abi.workers(f, v.call), 4))
        one = f.mul_size(v.channels, span(m) ** 2)
        grain = f.max_size(fair, abi.grain_of(f, one, _SHARE_COPIES))
        abi.parallel_for(f, v.call, f"{name}.spread", memory, count, grain)
        tasks = f.mul_size(cut.panels, cut.parts)
        abi.parallel_for(f, v.call, f"{name}.multiply", memory, tasks, 1)
    f.ret()
    _emit_spread(_Part(kernel, m, f"{name}.spread", frame))
    _emit_multiply(_Part(kernel.ended_by(epilogue), m, f"{name}.multiply", frame), kernel)


class _Part:
    """What the two parallel loops have in common."""

    def __init__(self, kernel: Kernel, m: int, name: str, frame: Frame):
        self.kernel, self.m, self.name, self.frame = kernel, m, name, frame
        self.side, self.kind, self.lanes = span(m), kernel.element.compute, kernel.tile.lanes
        self.vector = Type(self.kind.element, self.lanes)

    @contextmanager
    def tasks(self) -> Iterator[tuple[Function, SimpleNamespace, Value]]:
        """A function whose body runs for every task of a share."""
        f, v, begin, end, worker = self.frame.body(
            self.kernel.module, self.kernel.target, self.name
        )
        if self.kernel.epilogue:
            self.kernel.epilogue.read_words(f, v.call)
        v.turn = f.allocate(self.vector, self.side * self.side)
        own = f.add_size(v.private, f.mul_size(worker, v.own))
        v.mine = f.offset(self.kind, v.scratch, own)
        with f.loop(begin, end) as task:
            yield f, v, task.index
        f.ret()

    def both_ways(
        self, f: Function, v: SimpleNamespace, line: Line, load: Callable[[int, int], Value],
        store: Callable[[int, int, Value], None],
    ) -> None:  # fmt: skip
        """Transform a vector at each place of a tile, along its columns and then along its rows."""
        high = 0
        for j in range(self.side):
            found = line(f, [load(i, j) for i in range(self.side)])
            high = len(found)
            for i, value in enumerate(found):
                f.store(value, self._turned(f, v, i, j))
        for i in range(high):
            row = [f.load(self.vector, self._turned(f, v, i, j)) for j in range(self.side)]
            for j, value in enumerate(line(f, row)):
                store(i, j, value)

    def _turned(self, f: Function, v: SimpleNamespace, i: int, j: int) -> Value:
        return f.offset(self.kind, v.turn, (i * self.side + j) * self.lanes)

    def place(self, f: Function, v: SimpleNamespace, inside: Size) -> tuple[Size, Size, Size]:
        """The image of a tile of this group, and its first line and position there."""
        tile = f.add_size(v.first, inside)
        row = f.div_size(tile, v.wide)
        image, above = f.div_size(row, v.high), f.rem_size(row, v.high)
        before = f.rem_size(tile, v.wide)
        return image, f.mul_size(above, self.m), f.mul_size(before, self.m)


# -- forth ----------------------------------------------------------------------------------------


def _emit_spread(part: _Part) -> None:
    """Each task: one tile, for all channels."""
    kind = part.kind
    with part.tasks() as (f, v, task):
        source, pitch = _seen(part, f, v, task)
        to = f.offset(kind, v.scratch, f.mul_size(task, v.channels))
        with f.loop(0, v.channels, part.lanes) as channel:
            here, there = (f.offset(kind, start, channel.index) for start in (source, to))
            _spread(part, f, v, here, pitch, there)


def _seen(part: _Part, f: Function, v: SimpleNamespace, task: Size) -> tuple[Value, Value]:
    """Where the input of a tile begins, and how far apart its lines are. A tile at the border is
    copied, with the zeros around it."""
    image, line, position = part.place(f, v, task)
    top, left = (f.i64(f.add_size(*pair)) for pair in ((line, v.origin_h), (position, v.origin_w)))
    start = f.add_size(f.mul_size(f.add_size(f.mul_size(image, v.in_h), top), v.in_w), left)
    source = f.offset(part.kind, v.x, f.mul_size(start, v.channels))
    pitch = f.i64(f.mul_size(v.in_w, v.channels))

    def copied() -> Sequence[Value]:
        _copy(part, f, v, source, pitch, top, left)
        return v.mine, f.i64(f.mul_size(v.channels, part.side))

    inside = [
        f.compare("ult", at, f.i64(f.max_size(0, f.sub_size(n, part.side - 1))))
        for at, n in ((top, v.in_h), (left, v.in_w))
    ]
    found, apart = f.if_else(f.binary("and", *inside), lambda: (source, pitch), copied)
    return found, apart


def _spread(
    part: _Part, f: Function, v: SimpleNamespace, source: Value, pitch: Value, to: Value
) -> None:
    """A vector of channels at every place of a tile, transformed."""

    def load(i: int, j: int) -> Value:
        at = f.add_size(f.mul_size(pitch, i), f.mul_size(v.channels, j))
        return f.load(part.vector, f.offset(part.kind, source, at))

    def store(i: int, j: int, value: Value) -> None:
        place = f.mul_size(v.between, i * part.side + j)
        f.store(value, f.offset(part.kind, to, place))

    part.both_ways(f, v, INPUT[part.m], load, store)


def _copy(
    part: _Part, f: Function, v: SimpleNamespace, source: Value, pitch: Value, top: Value,
    left: Value,
) -> None:  # fmt: skip
    """What a tile sees, into the thread's own memory: zero where it lies outside of the input."""
    with f.loop(0, part.side) as i, f.loop(0, part.side) as j:
        exists = f.binary(
            "and",
            f.compare("ult", f.add(top, i.index), f.i64(v.in_h)),
            f.compare("ult", f.add(left, j.index), f.i64(v.in_w)),
        )
        at = f.add_size(f.mul_size(pitch, i.index), f.mul_size(v.channels, j.index))
        # Where nothing is to be read, the tile reads itself, and is cleared.
        there = f.select(exists, f.offset(part.kind, source, at), v.mine)
        place = f.add_size(f.mul_size(i.index, part.side), j.index)
        to = f.offset(part.kind, v.mine, f.mul_size(place, v.channels))
        with f.loop(0, v.channels, part.lanes) as channel:
            value = f.load(part.vector, f.offset(part.kind, there, channel.index))
            value = f.select(exists, value, constant(part.vector, 0))
            f.store(value, f.offset(part.kind, to, channel.index))


# -- products and back ----------------------------------------------------------------------------


def _emit_multiply(part: _Part, plain: Kernel) -> None:
    """Each task: a panel of filters for some tiles of the group."""
    kind, columns = part.kind, plain.tile.columns
    with part.tasks() as (f, v, task):
        panel, number = f.div_size(task, v.parts), f.rem_size(task, v.parts)
        first, count = share_range(f, f.i64(number), v.parts, v.count, tile_rows(plain))
        filter_ = f.mul_size(panel, columns)
        _products(part, plain, f, v, filter_, first, count)
        width = f.min_size(columns, f.sub_size(v.filters, filter_))
        with f.loop(0, count) as tile:
            place = part.place(f, v, f.add_size(first, tile.index))
            start = f.offset(kind, v.mine, f.mul_size(tile.index, columns))
            with f.loop(0, width, part.lanes) as at:
                here = f.offset(kind, start, at.index)
                _back(part, f, v, here, place, f.add_size(filter_, at.index))


def _products(
    part: _Part, kernel: Kernel, f: Function, v: SimpleNamespace, filter_: Size, first: Size,
    count: Size,
) -> None:  # fmt: skip
    """The tiles from `first` on, at every place, times the filters of a panel."""
    kind, places, columns = part.kind, part.side**2, kernel.tile.columns
    panel = f.offset(kind, v.a, product(f, filter_, v.channels, places))
    nowhere: list[Size | Value] = [Value(PTR, "null"), 0, 0, 0]  # no epilogue asks
    with f.loop(0, places) as place, f.loop(0, v.channels, v.depth) as step:
        depth = f.min_size(v.depth, f.sub_size(v.channels, step.index))
        left = f.add_size(f.mul_size(place.index, v.between), f.mul_size(first, v.channels))
        row = f.add_size(f.mul_size(place.index, v.channels), step.index)
        PanelProduct(
            EvenRows(f.offset(kind, v.scratch, f.add_size(left, step.index)), v.channels),
            runs=1, a_run=0, depth=depth, panel=f.offset(kind, panel, f.mul_size(row, columns)),
            to=f.offset(kind, v.mine, f.mul_size(place.index, v.apart)), c_row=columns,
            rows=count, width=columns, mode=mode_of(f, step.index, depth, v.channels),
            place=nowhere,
        ).whole(kernel, f)  # fmt: skip


def _back(
    part: _Part, f: Function, v: SimpleNamespace, source: Value, place: tuple[Size, Size, Size],
    filter_: Size,
) -> None:  # fmt: skip
    """A vector of filters at every result of a tile, ended and stored where there is one."""
    image, line, position = place

    def load(i: int, j: int) -> Value:
        at = f.mul_size(v.apart, i * part.side + j)
        return f.load(part.vector, f.offset(part.kind, source, at))

    def keep(i: int, j: int, value: Value) -> None:
        f.store(value, f.offset(part.kind, source, f.mul_size(v.apart, i * part.m + j)))

    part.both_ways(f, v, BACK[part.m], load, keep)
    high, wide = (
        f.min_size(part.m, f.sub_size(n, at)) for n, at in ((v.out_h, line), (v.out_w, position))
    )
    above = f.add_size(f.mul_size(image, v.out_h), line)
    with f.loop(0, high) as i:
        row = f.add_size(f.mul_size(f.add_size(above, i.index), v.out_w), position)
        at = f.mul_size(f.mul_size(i.index, part.m), v.apart)
        with f.loop(0, wide) as j:
            here = f.add_size(at, f.mul_size(j.index, v.apart))
            value = f.load(part.vector, f.offset(part.kind, source, here))
            result = f.add_size(row, j.index)
            if part.kernel.epilogue:
                where = Position(v.call, f.i64(0), f.i64(result), f.i64(filter_))
                value = part.kernel.epilogue(f, value, where)
            to = f.add_size(f.mul_size(result, v.y_row), filter_)
            f.store(value, f.offset(part.kind, v.y, to))
