"""Convolution in groups of as many filters as channels, channels last: vectors run along these.

A block of channels, of whole groups, is copied, with its padding, into memory of the thread. Every
tap then reads at a fixed distance, whatever the strides are: whole vectors of single channels; of
groups, one channel after the other, repeated for all filters of its group. Where the input is the
result of a product with packed weights, the product may write the block itself: the input is never
in memory as a whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import TypeAlias

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
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
from heterosis.backends.native.codegen.kernels.convolution.forward import begun
from heterosis.backends.native.codegen.kernels.matmul.blocked import ceil_div, round_up
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import FINAL, FRESH, Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    EvenRows,
    PanelProduct,
    emit_panel_kernels,
    scratch_tile,
)
from heterosis.backends.native.codegen.target import Target
from heterosis.ir.types import numpy_dtype

_APART = 128  # bytes that threads never share
_PLANE_BYTES = 1 << 17  # of padded input that stays in the second-level cache
_SHARE_WORK = 1 << 16  # multiplications worth waking a thread for
# Positions of a line that are computed together. The lines of most networks are multiples of 7
# long: their images of 224 x 224 are halved five times.
_TOGETHER = (7, 4, 2, 1)
# The same where channels come one after the other: every sum waits for the one before it, and seven
# of them do not fill the time. So many registers hold fourteen.
_TOGETHER_IN_GROUPS, _MANY_REGISTERS = (14, *_TOGETHER), 32
# Channels of a group: what the filters of a vector of results take is to stay in the first-level
# cache, or near it.
_WIDEST = 64
# What picks lanes of vectors of so many bytes, by numbers known at run time.
_PICK = {
    (64, "float"): "llvm.x86.avx512.permvar.sf.512",
    (64, "double"): "llvm.x86.avx512.permvar.df.512",
    (32, "float"): "llvm.x86.avx2.permps",
}

POINTERS = [(label, PTR) for label in ("call", "x", "a", "y", "scratch")]
# What a product that gives the input is told: its own call, its operands and its depth.
_BEFORE = [(label, PTR) for label in ("before", "left", "panels")]
_BEFORE += [("left_row", I64), ("depth", I64)]


@dataclass(frozen=True)
class Before:
    """A product of rows as they lie, whose result is the input; `narrow` as a problem has it."""

    epilogue: Epilogue | None
    narrow: int


@dataclass(frozen=True)
class _Producer:
    """The kernel of that product, and how many columns its last panel has, if a narrow one."""

    kernel: Kernel
    narrow: int


@dataclass(frozen=True)
class Layout:
    """How the work is cut up, and what a thread has of memory: one plane."""

    rows: Size  # of the filters: what a result takes of multiplications
    blocks: Size  # of channels
    lines: Size  # of the result that are made from one plane
    bands: Size  # of so many lines in an image
    reach_h: Size  # extents of the plane
    reach_w: Size
    own: Size  # bytes


def layout(f: Function, kernel: Kernel, v: SimpleNamespace) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    block, size = v.block, kernel.element.size
    filters = f.mul_size(f.mul_size(v.kernel_h, v.kernel_w), v.width)

    def span(axis: str) -> Size:
        taps = f.sub_size(getattr(v, f"kernel_{axis}"), 1)
        return f.add_size(f.mul_size(taps, getattr(v, f"dilate_{axis}")), 1)

    def reach(axis: str, count: Size) -> Size:
        steps = f.mul_size(f.sub_size(count, 1), getattr(v, f"stride_{axis}"))
        return f.add_size(steps, span(axis))

    reach_w = reach("w", v.out_w)
    rows = f.div_size(_PLANE_BYTES // (block * size), reach_w)
    room = f.max_size(0, f.sub_size(rows, span("h")))
    most = f.add_size(f.div_size(room, v.stride_h), 1)
    bands = ceil_div(f, v.out_h, most)
    lines = ceil_div(f, v.out_h, bands)
    reach_h = reach("h", lines)
    own = round_up(f, f.mul_size(f.mul_size(reach_h, reach_w), block * size), _APART)
    return Layout(filters, ceil_div(f, v.channels, block), lines, bands, reach_h, reach_w, own)


def takes_groups(width: int, target: Target, dtype: str) -> bool:
    """Whether vectors of `target` run along groups of so many channels: these are some to a vector,
    or some vectors to a group, and few enough."""
    size = numpy_dtype(dtype).itemsize
    lanes = target.lanes(size)
    picks = target.picks_lanes(8 * size)
    in_vectors = width == 1 or width % lanes == 0 or (picks and lanes % width == 0)
    return in_vectors and width <= _WIDEST


def _cut(kernel: Kernel, problem: Problem) -> dict[str, int]:
    """The channels of a group, and of a block: panels of the filters, and whole groups."""
    return {"width": problem.width, "block": math.lcm(kernel.tile.columns, problem.width)}


def grouped_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = product_kernel(f.module, target, problem.dtype)
    v = SimpleNamespace(**problem.known(), **_cut(kernel, problem))
    own = f.mul_size(layout(f, kernel, v).own, workers)
    assert isinstance(own, int)
    return own


def emit_grouped(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None,
    before: Before | None = None,
) -> None:  # fmt: skip
    """Define `@name(call, x, a, y, scratch, numbers...)` for the windows of `problem`; `a` is the
    packed right operand of a product, a column for each filter and a row for every height of a tap,
    channel of a group and width of a tap. The channels are whole vectors. What a product `before`
    needs comes behind; then `x` is unused.
    """
    plain = product_kernel(module, target, problem.dtype)
    kernel = plain.ended_by(epilogue)
    producer = None
    if before:
        producer = _Producer(plain.ended_by(before.epilogue), before.narrow)
        emit_panel_kernels(producer.kernel, narrow=producer.narrow)
    labels = POINTERS + problem.parameters() + (_BEFORE if before else [])
    f, v, memory = begun(module, target, name, labels)
    vars(v).update(problem.windows(), **_cut(kernel, problem))
    cut = layout(f, kernel, v)
    frame = Frame(**vars(v), **vars(cut))
    frame.save(f, memory)
    tasks = f.mul_size(f.mul_size(v.images, cut.bands), cut.blocks)
    seen = f.add_size(cut.rows, v.depth) if before else cut.rows
    one = f.mul_size(f.mul_size(cut.lines, v.out_w), f.mul_size(seen, v.block))
    fair = ceil_div(f, tasks, f.mul_size(abi.workers(f, v.call), 4))
    grain = f.max_size(fair, abi.grain_of(f, one, _SHARE_WORK))
    abi.parallel_for(f, v.call, f"{name}.share", memory, tasks, grain)
    f.ret()
    _emit_share(kernel, producer, f"{name}.share", frame)


def _emit_share(kernel: Kernel, producer: _Producer | None, name: str, frame: Frame) -> None:
    """Each task: a block of channels of a band of lines."""
    with _tasks(kernel, producer, name, frame) as (f, v, task):
        rest, number = f.div_size(task, v.blocks), f.rem_size(task, v.blocks)
        v.image, band = f.div_size(rest, v.bands), f.rem_size(rest, v.bands)
        v.channel, v.line = f.mul_size(number, v.block), f.mul_size(band, v.lines)
        count = f.min_size(v.lines, f.sub_size(v.out_h, v.line))
        wide = f.min_size(v.block, f.sub_size(v.channels, v.channel))
        _fill_plane(kernel, producer, f, v, count, wide)
        with f.loop(0, wide, kernel.tile.lanes) as at, f.loop(0, count) as line:
            _one_line(kernel, f, v, at.index, line.index)


@contextmanager
def _tasks(
    kernel: Kernel, producer: _Producer | None, name: str, frame: Frame
) -> Iterator[tuple[Function, SimpleNamespace, Value]]:
    """One share: the body for each task."""
    f, v, begin, end, worker = frame.body(kernel.module, kernel.target, name)
    if kernel.epilogue:
        kernel.epilogue.read_words(f, v.call)
    v.copy = f.offset(I8, v.scratch, f.mul_size(worker, v.own))
    if producer:
        v.tile = scratch_tile(producer.kernel, f)
    with f.loop(begin, end) as task:
        yield f, v, task.index
    f.ret()


def _fill_plane(
    kernel: Kernel, producer: _Producer | None, f: Function, v: SimpleNamespace, count: Size,
    wide: Size,
) -> None:  # fmt: skip
    """The channels that `count` lines of the result see, zeros around them."""
    storage, block = kernel.element.storage, v.block
    low = f.add_size(f.mul_size(v.line, v.stride_h), v.origin_h)
    rows = f.add_size(
        f.mul_size(f.sub_size(count, 1), v.stride_h),
        f.add_size(f.mul_size(f.sub_size(v.kernel_h, 1), v.dilate_h), 1),
    )
    first = f.min_size(v.reach_w, f.max_size(0, f.sub_size(0, v.origin_w)))
    last = f.max_size(first, f.min_size(v.reach_w, f.sub_size(v.in_w, v.origin_w)))
    with f.loop(0, rows) as row:
        h = f.add_size(low, row.index)
        to = f.offset(storage, v.copy, f.mul_size(f.mul_size(row.index, v.reach_w), block))
        inside = f.binary(
            "and",
            f.compare("sge", f.i64(h), f.i64(0)),
            f.compare("slt", f.i64(h), f.i64(v.in_h)),
        )
        begin, end = (f.select(inside, f.i64(n), f.i64(0)) for n in (first, last))
        line = f.mul_size(f.add_size(f.mul_size(v.image, v.in_h), h), v.in_w)
        _zeros(kernel, f, v, to, 0, begin)
        if producer:
            _multiply(producer, f, v, line, to, begin, end, wide)
        else:
            _copy(kernel, f, v, line, to, begin, end, wide)
        _zeros(kernel, f, v, to, end, v.reach_w)


def _multiply(
    producer: _Producer, f: Function, v: SimpleNamespace, line: Size, to: Value, begin: Value,
    end: Value, wide: Size,
) -> None:  # fmt: skip
    """The product's panels of a block for the positions from `begin` to `end`, if there are any."""
    columns = producer.kernel.tile.columns
    for part in range(0, v.block, columns):
        few = f.min_size(columns, f.sub_size(wide, part))
        panel = partial(_multiply_panel, producer, f, v, line, to, begin, end, part, few)
        some = f.compare("slt", begin, end)
        there = f.binary("and", some, f.compare("sgt", f.i64(few), f.i64(0))) if part else some
        f.if_else(there, panel)


def _multiply_panel(
    producer: _Producer, f: Function, v: SimpleNamespace, line: Size, to: Value, begin: Value,
    end: Value, part: int, wide: Size,
) -> None:  # fmt: skip
    """The one of them that begins `part` channels into the block and has `wide` of them."""
    storage, channel = producer.kernel.element.storage, f.add_size(v.channel, part)
    position = f.add_size(line, f.add_size(begin, v.origin_w))
    panel = f.offset(storage, v.panels, f.mul_size(channel, v.depth))
    product = PanelProduct(
        EvenRows(f.offset(storage, v.left, f.mul_size(position, v.left_row)), v.left_row),
        runs=1, a_run=0, depth=v.depth, panel=panel, following=panel,
        to=f.offset(storage, to, f.add_size(f.mul_size(begin, v.block), part)), c_row=v.block,
        rows=f.sub_size(end, begin), width=wide,
        mode=f.i64(FINAL | FRESH), place=[v.before, f.i64(0), position, channel],
        narrow=producer.narrow,
    )  # fmt: skip
    product.emit(producer.kernel, f, v.tile)


def _copy(
    kernel: Kernel, f: Function, v: SimpleNamespace, line: Size, to: Value, begin: Value,
    end: Value, wide: Size,
) -> None:  # fmt: skip
    """The same from the input."""
    place = f.mul_size(f.add_size(line, v.origin_w), v.channels)
    source = f.offset(kernel.element.storage, v.x, f.add_size(place, v.channel))
    f.if_else(
        f.compare("eq", f.i64(wide), f.i64(v.block)),
        lambda: _copy_line(kernel, f, v, source, to, begin, end, v.block),
        lambda: _copy_line(kernel, f, v, source, to, begin, end, wide),
    )


def _copy_line(
    kernel: Kernel, f: Function, v: SimpleNamespace, source: Value, to: Value, begin: Size,
    end: Size, wide: Size,
) -> None:  # fmt: skip
    """`wide` channels of the positions from `begin` to `end`; a whole block without a loop."""
    storage, lanes, block = kernel.element.storage, kernel.tile.lanes, v.block
    vector = Type(storage.element, lanes)

    def copy(there: Value, here: Value, at: Size) -> None:
        f.store(f.load(vector, f.offset(storage, there, at)), f.offset(storage, here, at))

    with f.loop(begin, end) as w:
        there = f.offset(storage, source, f.mul_size(w.index, v.channels))
        here = f.offset(storage, to, f.mul_size(w.index, block))
        if isinstance(wide, int):
            for at in range(0, wide, lanes):
                copy(there, here, at)
        else:
            with f.loop(0, wide, lanes) as part:
                copy(there, here, part.index)


def _zeros(
    kernel: Kernel, f: Function, v: SimpleNamespace, to: Value, begin: Size, end: Size
) -> None:
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    zero = constant(Type(storage.element, lanes), 0)
    with f.loop(f.mul_size(begin, v.block), f.mul_size(end, v.block), lanes) as at:
        f.store(zero, f.offset(storage, to, at.index))


def _one_line(kernel: Kernel, f: Function, v: SimpleNamespace, at: Value, line: Value) -> None:
    """One vector of filters at every position of a line, as many together as there are."""
    storage, columns = kernel.element.storage, kernel.tile.columns
    channel = f.add_size(v.channel, at)
    column = f.rem_size(at, columns)
    panel = f.mul_size(f.sub_size(channel, column), v.rows)
    weights = f.offset(storage, v.a, f.add_size(panel, column))
    above = f.mul_size(f.mul_size(line, v.stride_h), f.mul_size(v.reach_w, v.block))
    first = at if v.width < kernel.tile.lanes else f.sub_size(at, f.rem_size(at, v.width))
    source = f.offset(storage, v.copy, f.add_size(above, first))
    row = f.add_size(f.mul_size(v.image, v.out_h), f.add_size(v.line, line))
    step = v.stride_w * v.block
    reached: Size = 0
    for count in _together(kernel, v):
        whole = f.mul_size(f.div_size(f.sub_size(v.out_w, reached), count), count)
        end = f.add_size(reached, whole)
        with f.loop(reached, end, count) as w:
            here = f.offset(storage, source, f.mul_size(w.index, step))
            sums = _sums(kernel, f, v, weights, here, count)
            position = f.add_size(f.mul_size(row, v.out_w), w.index)
            _store(kernel, f, v, sums, position, channel)
        reached = end


def _together(kernel: Kernel, v: SimpleNamespace) -> Sequence[int]:
    many = v.width > 1 and kernel.target.vector_registers >= _MANY_REGISTERS
    return _TOGETHER_IN_GROUPS if many else _TOGETHER


def _sums(
    kernel: Kernel, f: Function, v: SimpleNamespace, weights: Value, source: Value, count: int
) -> list[Value]:
    """`count` positions side by side: what every tap sees there of every channel, times its
    weight."""
    storage = kernel.element.storage
    zero = constant(Type(storage.element, kernel.tile.lanes), 0)
    row = f.mul_size(f.mul_size(v.reach_w, v.block), v.dilate_h)
    with f.loop(0, v.kernel_h, 1, [source, weights, *[zero] * count]) as h:
        here, *carried = h.carried
        if v.width == 1:
            carried = _with_channel(kernel, f, v, carried, _single(kernel, f, v, here))
        else:
            with f.loop(0, v.width, 1, carried) as channel:
                seen = _repeated(kernel, f, v, here, channel.index)
                channel.next = _with_channel(kernel, f, v, channel.carried, seen)
            carried = channel.results
        h.next = [f.offset(storage, here, row), *carried]
    return h.results[2:]


# What a line of taps sees so many positions on, of one channel of every group.
_Seen: TypeAlias = Callable[[int], Value]


def _with_channel(
    kernel: Kernel, f: Function, v: SimpleNamespace, carried: Sequence[Value], seen: _Seen
) -> list[Value]:
    """The following weights, and the sums with what a line of taps sees, times its weights. What
    several positions see is read once."""
    storage, (weight, *sums) = kernel.element.storage, carried
    vector = Type(storage.element, kernel.tile.lanes)
    seen_by: dict[int, list[tuple[int, int]]] = {}
    for i, tap in itertools.product(range(len(sums)), range(v.kernel_w)):
        seen_by.setdefault(i * v.stride_w + tap * v.dilate_w, []).append((i, tap))
    columns = kernel.tile.columns
    factors = [
        f.load(vector, f.offset(storage, weight, tap * columns)) for tap in range(v.kernel_w)
    ]
    for place, users in sorted(seen_by.items()):
        value = seen(place)
        for i, tap in users:
            sums[i] = f.fma(value, factors[tap], sums[i])
    return [f.offset(storage, weight, v.kernel_w * columns), *sums]


def _single(kernel: Kernel, f: Function, v: SimpleNamespace, here: Value) -> _Seen:
    """Single channels are what filters of their own see."""
    storage = kernel.element.storage
    vector = Type(storage.element, kernel.tile.lanes)
    return lambda place: f.load(vector, f.offset(storage, here, place * v.block))


def _repeated(
    kernel: Kernel, f: Function, v: SimpleNamespace, here: Value, channel: Value
) -> _Seen:
    """One channel of every group, for all of its filters."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    if v.width >= lanes:
        there = f.offset(storage, here, channel)
        return lambda place: f.splat(
            f.load(storage, f.offset(storage, there, place * v.block)), lanes
        )
    plain, integer = _single(kernel, f, v, here), storage.as_integer
    number = channel if integer == I64 else f.convert("trunc", channel, integer)
    every = lane_numbers(f, lanes, integer)
    firsts = f.binary("and", every, constant(every.type, -v.width))
    numbers = f.add(firsts, f.splat(number, lanes))
    pick = _PICK[kernel.target.vector_bytes, storage.element]
    return lambda place: f.call(pick, [plain(place), numbers], numbers.type.of(storage.element))


def _store(
    kernel: Kernel, f: Function, v: SimpleNamespace, sums: list[Value], position: Size,
    channel: Size,
) -> None:  # fmt: skip
    storage = kernel.element.storage
    for i, total in enumerate(sums):
        row = f.add_size(position, i)
        if kernel.epilogue:
            total = kernel.epilogue(f, total, Position(v.call, f.i64(0), row, channel))
        to = f.add_size(f.mul_size(row, v.channels), channel)
        f.store(total, f.offset(storage, v.y, to))
