"""Convolution with one channel a group, channels last: vectors run along the channels.

A panel of channels is copied, with its padding, into memory of the thread. Every tap then reads
whole vectors at a fixed distance, whatever the strides are. Where the input is the result of a
product with packed weights, the product may write the panel itself: the input is never in memory
as a whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
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

_APART = 128  # bytes that threads never share
_PLANE_BYTES = 1 << 17  # of padded input that stays in the second-level cache
_SHARE_WORK = 1 << 16  # multiplications worth waking a thread for
# Positions of a line that are computed together. The lines of most networks are multiples of 7
# long: their images of 224 x 224 are halved five times.
_TOGETHER = (7, 4, 2, 1)

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

    taps: Size
    blocks: Size  # of channels
    lines: Size  # of the result that are made from one plane
    bands: Size  # of so many lines in an image
    reach_h: Size  # extents of the plane
    reach_w: Size
    own: Size  # bytes


def layout(f: Function, kernel: Kernel, v: SimpleNamespace) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    block, size = kernel.tile.columns, kernel.element.size
    taps = f.mul_size(v.kernel_h, v.kernel_w)

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
    return Layout(taps, ceil_div(f, v.channels, block), lines, bands, reach_h, reach_w, own)


def grouped_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = product_kernel(f.module, target, problem.dtype)
    own = f.mul_size(layout(f, kernel, SimpleNamespace(**problem.known())).own, workers)
    assert isinstance(own, int)
    return own


def emit_grouped(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None,
    before: Before | None = None,
) -> None:  # fmt: skip
    """Define `@name(call, x, a, y, scratch, numbers...)` for the windows of `problem`; `a` is the
    packed right operand of a product, a column for each channel and a row for each tap. The
    channels are whole vectors. What a product `before` needs comes behind; then `x` is unused.
    """
    plain = product_kernel(module, target, problem.dtype)
    kernel = plain.ended_by(epilogue)
    producer = None
    if before:
        producer = _Producer(plain.ended_by(before.epilogue), before.narrow)
        emit_panel_kernels(producer.kernel, narrow=producer.narrow)
    labels = POINTERS + problem.parameters() + (_BEFORE if before else [])
    f, v, memory = begun(module, target, name, labels)
    vars(v).update(problem.windows())
    cut = layout(f, kernel, v)
    frame = Frame(**vars(v), **vars(cut))
    frame.save(f, memory)
    tasks = f.mul_size(f.mul_size(v.images, cut.bands), cut.blocks)
    seen = f.add_size(cut.taps, v.depth) if before else cut.taps
    one = f.mul_size(f.mul_size(cut.lines, v.out_w), f.mul_size(seen, kernel.tile.columns))
    fair = ceil_div(f, tasks, f.mul_size(abi.workers(f, v.call), 4))
    grain = f.max_size(fair, abi.grain_of(f, one, _SHARE_WORK))
    abi.parallel_for(f, v.call, f"{name}.share", memory, tasks, grain)
    f.ret()
    _emit_share(kernel, producer, f"{name}.share", frame)


def _emit_share(kernel: Kernel, producer: _Producer | None, name: str, frame: Frame) -> None:
    """Each task: a panel of channels of a band of lines."""
    with _tasks(kernel, producer, name, frame) as (f, v, task):
        block = kernel.tile.columns
        rest, number = f.div_size(task, v.blocks), f.rem_size(task, v.blocks)
        v.image, band = f.div_size(rest, v.bands), f.rem_size(rest, v.bands)
        v.channel, v.line = f.mul_size(number, block), f.mul_size(band, v.lines)
        count = f.min_size(v.lines, f.sub_size(v.out_h, v.line))
        wide = f.min_size(block, f.sub_size(v.channels, v.channel))
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
    storage, block = kernel.element.storage, kernel.tile.columns
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
        _zeros(kernel, f, to, 0, begin)
        if producer:
            _multiply(producer, f, v, line, to, begin, end, wide)
        else:
            _copy(kernel, f, v, line, to, begin, end, wide)
        _zeros(kernel, f, to, end, v.reach_w)


def _multiply(
    producer: _Producer, f: Function, v: SimpleNamespace, line: Size, to: Value, begin: Value,
    end: Value, wide: Size,
) -> None:  # fmt: skip
    """A panel of the product for the positions from `begin` to `end`, if there are any."""
    kernel = producer.kernel
    storage, block = kernel.element.storage, kernel.tile.columns
    position = f.add_size(line, f.add_size(begin, v.origin_w))
    panel = f.offset(storage, v.panels, f.mul_size(v.channel, v.depth))
    product = PanelProduct(
        EvenRows(f.offset(storage, v.left, f.mul_size(position, v.left_row)), v.left_row),
        runs=1, a_run=0, depth=v.depth, panel=panel, following=panel,
        to=f.offset(storage, to, f.mul_size(begin, block)), c_row=block,
        rows=f.sub_size(end, begin), width=wide,
        mode=f.i64(FINAL | FRESH), place=[v.before, f.i64(0), position, v.channel],
        narrow=producer.narrow,
    )  # fmt: skip

    def multiply() -> Sequence[Value]:
        product.emit(kernel, f, v.tile)
        return ()

    f.if_else(f.compare("slt", begin, end), multiply)


def _copy(
    kernel: Kernel, f: Function, v: SimpleNamespace, line: Size, to: Value, begin: Value,
    end: Value, wide: Size,
) -> None:  # fmt: skip
    """The same from the input."""
    place = f.mul_size(f.add_size(line, v.origin_w), v.channels)
    source = f.offset(kernel.element.storage, v.x, f.add_size(place, v.channel))
    f.if_else(
        f.compare("eq", f.i64(wide), f.i64(kernel.tile.columns)),
        lambda: _copy_line(kernel, f, v, source, to, begin, end, kernel.tile.columns),
        lambda: _copy_line(kernel, f, v, source, to, begin, end, wide),
    )


def _copy_line(
    kernel: Kernel, f: Function, v: SimpleNamespace, source: Value, to: Value, begin: Size,
    end: Size, wide: Size,
) -> Sequence[Value]:  # fmt: skip
    """`wide` channels of the positions from `begin` to `end`; a whole block without a loop."""
    storage, lanes, block = kernel.element.storage, kernel.tile.lanes, kernel.tile.columns
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
    return ()


def _zeros(kernel: Kernel, f: Function, to: Value, begin: Size, end: Size) -> None:
    storage, lanes, block = kernel.element.storage, kernel.tile.lanes, kernel.tile.columns
    zero = constant(Type(storage.element, lanes), 0)
    with f.loop(f.mul_size(begin, block), f.mul_size(end, block), lanes) as at:
        f.store(zero, f.offset(storage, to, at.index))


def _one_line(kernel: Kernel, f: Function, v: SimpleNamespace, at: Value, line: Value) -> None:
    """One vector of channels at every position of a line, as many together as there are."""
    storage, block = kernel.element.storage, kernel.tile.columns
    channel = f.add_size(v.channel, at)
    weights = f.offset(storage, v.a, f.add_size(f.mul_size(v.channel, v.taps), at))
    above = f.mul_size(f.mul_size(line, v.stride_h), f.mul_size(v.reach_w, block))
    source = f.offset(storage, v.copy, f.add_size(above, at))
    row = f.add_size(f.mul_size(v.image, v.out_h), f.add_size(v.line, line))
    step = v.stride_w * block
    reached: Size = 0
    for count in _TOGETHER:
        whole = f.mul_size(f.div_size(f.sub_size(v.out_w, reached), count), count)
        end = f.add_size(reached, whole)
        with f.loop(reached, end, count) as w:
            here = f.offset(storage, source, f.mul_size(w.index, step))
            sums = _sums(kernel, f, v, weights, here, count)
            position = f.add_size(f.mul_size(row, v.out_w), w.index)
            _store(kernel, f, v, sums, position, channel)
        reached = end


def _sums(
    kernel: Kernel, f: Function, v: SimpleNamespace, weights: Value, source: Value, count: int
) -> list[Value]:
    """`count` positions side by side: what every tap sees there, times its weight. What several
    positions see is read once."""
    storage, block = kernel.element.storage, kernel.tile.columns
    vector = Type(storage.element, kernel.tile.lanes)
    zero = constant(vector, 0)
    seen_by: dict[int, list[tuple[int, int]]] = {}
    for i, tap in itertools.product(range(count), range(v.kernel_w)):
        seen_by.setdefault(i * v.stride_w + tap * v.dilate_w, []).append((i, tap))
    row = f.mul_size(f.mul_size(v.reach_w, block), v.dilate_h)
    with f.loop(0, v.kernel_h, 1, [source, weights, *[zero] * count]) as h:
        here, weight, *sums = h.carried
        following = f.offset(storage, weight, v.kernel_w * kernel.tile.columns)
        factors = [
            f.load(vector, f.offset(storage, weight, tap * kernel.tile.columns))
            for tap in range(v.kernel_w)
        ]
        for place, users in sorted(seen_by.items()):
            seen = f.load(vector, f.offset(storage, here, place * block))
            for i, tap in users:
                sums[i] = f.fma(seen, factors[tap], sums[i])
        h.next = [f.offset(storage, here, row), following, *sums]
    return h.results[2:]


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
