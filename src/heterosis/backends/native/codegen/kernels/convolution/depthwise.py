"""Convolution with one channel a group: too little depth for a matrix product.

Each plane of the input is copied with its padding into memory of the thread, the columns sorted
by the phase of the stride. Then every tap reads runs of neighbours, and vectors run along rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.epilogue import Epilogue, Position
from heterosis.backends.native.codegen.kernels.convolution.forward import (
    POINTERS as FORWARD_POINTERS,
)
from heterosis.backends.native.codegen.kernels.convolution.forward import (
    begun,
    kernel_of,
    known,
    product,
)
from heterosis.backends.native.codegen.kernels.convolution.problem import AXES, Problem
from heterosis.backends.native.codegen.kernels.convolution.weights import POINTERS
from heterosis.backends.native.codegen.kernels.matmul.blocked import ceil_div, round_up
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.target import Target

_LINE = 128  # bytes that threads never share
_SHARE_WORK = 1 << 16  # multiplications worth waking a thread for
_WIDE = {
    4: (2, 1),
    2: (4, 2, 1),
    1: (4, 2, 1),
}  # rows, and vectors of each, that are computed together
_TAPS = 4  # whose gradients are computed together


@dataclass(frozen=True)
class Layout:
    """A padded plane, and one thread's memory: offsets of the taps, then the plane."""

    taps: Size
    reach_d: Size  # extents of the padded plane
    reach_h: Size
    reach_w: Size
    low_d: Size  # the input coordinates that it begins with
    low_h: Size
    low_w: Size
    phase: Size  # columns of one phase, and room for vectors to run over
    pitch: Size  # numbers in a row
    numbers: Size  # in the plane
    plane: Size  # where it begins, in bytes
    results: Size  # where the results of a filter begin, if their rows are no whole vectors
    own: Size  # bytes


def layout(f: Function, kernel: Kernel, v: SimpleNamespace) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    reach, low = {}, {}
    for axis in AXES:
        span = f.mul_size(f.sub_size(getattr(v, f"kernel_{axis}"), 1), getattr(v, f"dilate_{axis}"))
        back = f.min_size(0, span)
        length = f.sub_size(span, f.mul_size(back, 2))
        steps = f.mul_size(f.sub_size(getattr(v, f"out_{axis}"), 1), getattr(v, f"stride_{axis}"))
        reach[f"reach_{axis}"] = f.add_size(f.add_size(steps, length), 1)
        low[f"low_{axis}"] = f.add_size(getattr(v, f"origin_{axis}"), back)
    lanes = kernel.tile.lanes
    phase = f.add_size(round_up(f, ceil_div(f, reach["reach_w"], v.stride_w), lanes), lanes)
    pitch = f.mul_size(phase, v.stride_w)
    numbers = product(f, reach["reach_d"], reach["reach_h"], pitch)
    taps = product(f, v.kernel_d, v.kernel_h, v.kernel_w)
    plane = round_up(f, f.mul_size(taps, 16), _LINE)
    size = kernel.element.size
    results = round_up(f, f.add_size(plane, f.mul_size(numbers, size)), _LINE)
    rows = product(f, v.out_d, v.out_h, round_up(f, v.out_w, lanes), size)
    own = round_up(f, f.add_size(results, rows), _LINE)
    return Layout(taps, **reach, **low, phase=phase, pitch=pitch, numbers=numbers, plane=plane,
                  results=results, own=own)  # fmt: skip


def depthwise_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = kernel_of(f.module, target, problem, "sizes")
    own = layout(f, kernel, SimpleNamespace(**problem.known())).own
    return known(f.mul_size(own, workers))


def emit_depthwise(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None = None
) -> None:
    """Define `@name(numbers..., call, x, a, y, scratch, finish)`; `finish` stores runs of results,
    and the epilogue ends those that need not be brought together."""
    kernel = kernel_of(module, target, problem, name, epilogue)
    labels = problem.parameters() + FORWARD_POINTERS
    frame = _emit_entry(kernel, labels, ("images", "groups"))
    with _body(kernel, frame) as (f, v, task):
        image, group = f.div_size(task, v.groups), f.rem_size(task, v.groups)
        _copy_plane(kernel, problem.step, f, v, image, group)
        _rows_of_filters(kernel, f, v, image, group)


def emit_depthwise_weights(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, a, x, y, scratch)`, as `emit_weights` does."""
    kernel = kernel_of(module, target, problem, name)
    frame = _emit_entry(kernel, problem.parameters() + POINTERS, ("chunks", "groups"))
    with _body(kernel, frame) as (f, v, task):
        chunk, group = f.div_size(task, v.groups), f.rem_size(task, v.groups)
        row = f.mul_size(task, f.mul_size(v.rows, v.taps))
        v.sums = f.offset(kernel.element.storage, v.y, row)
        with f.loop(0, f.mul_size(v.rows, v.taps)) as i:
            zero = constant(kernel.element.storage, 0)
            f.store(zero, f.offset(kernel.element.storage, v.sums, i.index))
        first = f.div_size(f.mul_size(chunk, v.images), v.chunks)
        last = f.div_size(f.mul_size(f.add_size(chunk, 1), v.images), v.chunks)
        with f.loop(first, last) as image:
            _copy_plane(kernel, problem.step, f, v, image.index, group)
            _add_products(kernel, f, v, image.index, group)


# -- threads --------------------------------------------------------------------------------------


def _emit_entry(kernel: Kernel, labels: list[tuple[str, Type]], shared: Sequence[str]) -> Frame:
    """The function that hands out the planes."""
    name = kernel.prefix
    f, v, memory = begun(kernel.module, kernel.target, name, labels)
    blocks = layout(f, kernel, v)
    frame = Frame(**vars(v), **vars(blocks))
    frame.save(f, memory)
    tasks = product(f, *(getattr(v, label) for label in shared))
    work = product(f, v.images, v.groups, v.rows, blocks.taps, v.out_d, v.out_h, v.out_w)
    one = f.div_size(work, f.max_size(1, tasks))
    fair = ceil_div(f, tasks, f.mul_size(abi.workers(f, v.call), 4))
    grain = f.max_size(fair, abi.grain_of(f, one, _SHARE_WORK))
    abi.parallel_for(f, v.call, f"{name}.share", memory, tasks, grain)
    f.ret()
    return frame


@contextmanager
def _body(kernel: Kernel, frame: Frame) -> Iterator[tuple[Function, SimpleNamespace, Value]]:
    """One share: the offsets of taps and an empty plane, then the body for each task."""
    f, v, begin, end, worker = frame.body(kernel.module, kernel.target, f"{kernel.prefix}.share")
    v.offsets = f.offset(I8, v.scratch, f.mul_size(worker, v.own))
    v.copy = f.offset(I8, v.offsets, v.plane)
    _fill_offsets(f, v)
    zero = constant(Type(kernel.element.compute.element, kernel.tile.lanes), 0)
    with f.loop(0, v.numbers, kernel.tile.lanes) as at:
        f.store(zero, f.offset(kernel.element.compute, v.copy, at.index))
    with f.loop(begin, end) as task:
        yield f, v, task.index
    f.ret()


def _fill_offsets(f: Function, v: SimpleNamespace) -> None:
    """For each tap, where in the plane the first position reads, and where in the filter it is."""

    def place(axis: str, tap: Size) -> Size:
        there = f.add_size(
            f.mul_size(tap, getattr(v, f"dilate_{axis}")), getattr(v, f"origin_{axis}")
        )
        return f.sub_size(there, getattr(v, f"low_{axis}"))

    with f.loop(0, v.kernel_d) as d, f.loop(0, v.kernel_h) as h, f.loop(0, v.kernel_w) as w:
        tap = f.add_size(f.mul_size(d.index, v.kernel_h), h.index)
        tap = f.add_size(f.mul_size(tap, v.kernel_w), w.index)
        row = f.add_size(f.mul_size(place("d", d.index), v.reach_h), place("h", h.index))
        column = _column(f, v, place("w", w.index), v.stride_w)
        at = f.add_size(f.mul_size(row, v.pitch), column)
        to = f.offset(I64, v.offsets, f.mul_size(tap, 2))
        f.store(f.i64(at), to)
        weight = f.add_size(f.mul_size(d.index, v.a_d), f.mul_size(h.index, v.a_h))
        weight = f.add_size(weight, f.mul_size(w.index, v.a_w))
        f.store(f.i64(weight), f.offset(I64, to, 1))


def _column(f: Function, v: SimpleNamespace, column: Size, step: Size) -> Size:
    """Where in its row a column of the padded plane stands, given the stride."""
    phase = f.mul_size(f.rem_size(column, step), v.phase)
    return f.add_size(phase, f.div_size(column, step))


# -- copying --------------------------------------------------------------------------------------


def _copy_plane(
    kernel: Kernel, step: int, f: Function, v: SimpleNamespace, image: Size, group: Size
) -> None:
    storage = kernel.element.storage
    start = f.add_size(f.mul_size(image, v.x_image), f.mul_size(group, v.x_group))
    source = f.offset(storage, v.x, start)

    def inside(axis: str) -> tuple[Size, Size]:
        low = getattr(v, f"low_{axis}")
        end = f.add_size(low, getattr(v, f"reach_{axis}"))
        return f.max_size(0, low), f.min_size(getattr(v, f"in_{axis}"), end)

    first, last = inside("w")
    with f.loop(*inside("d")) as d, f.loop(*inside("h")) as h:
        at = f.add_size(f.mul_size(d.index, v.x_d), f.mul_size(h.index, v.x_h))
        row = f.mul_size(f.sub_size(d.index, v.low_d), v.reach_h)
        row = f.add_size(row, f.sub_size(h.index, v.low_h))
        to = f.offset(storage, v.copy, f.mul_size(row, v.pitch))
        _copy_row(kernel, step, f, v, f.offset(storage, source, at), to, first, last)


def _copy_row(
    kernel: Kernel, step: int, f: Function, v: SimpleNamespace, source: Value, to: Value,
    first: Size, last: Size,
) -> None:  # fmt: skip
    """Elements `first` to `last`: in vectors if neighbours are `step` apart, else one by one."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    every = step or v.stride_w

    def one(at: Value) -> None:
        value = f.load(storage, f.offset(storage, source, f.mul_size(at, v.x_w)))
        f.store(value, f.offset(storage, to, _column(f, v, f.sub_size(at, v.low_w), every)))

    if not step:
        with f.loop(first, last) as at:
            one(at.index)
        return
    # The vectors begin with the first phase.
    ahead = f.rem_size(f.sub_size(first, v.low_w), step)
    begin = f.add_size(first, f.rem_size(f.sub_size(step, ahead), step))
    with f.loop(first, f.min_size(begin, last)) as at:
        one(at.index)
    span = step * lanes
    whole = f.mul_size(f.div_size(f.max_size(0, f.sub_size(last, begin)), span), span)
    reached = f.add_size(begin, whole)
    with f.loop(begin, reached, span) as at:
        _copy_vectors(kernel, step, f, v, source, to, at.index, None)
    if kernel.target.has_masks():
        # What comes behind the row is padding: zero, as the masks leave it.
        with f.loop(reached, last, span) as at:
            _copy_vectors(kernel, step, f, v, source, to, at.index, last)
    else:
        with f.loop(reached, last) as at:
            one(at.index)


def _copy_vectors(
    kernel: Kernel, step: int, f: Function, v: SimpleNamespace, source: Value, to: Value,
    at: Value, last: Size | None,
) -> None:  # fmt: skip
    """Elements from `at` on, sorted by phase: one vector of each; those from `last` on are zero."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    vector = Type(storage.element, lanes)
    loaded = []
    for part in range(step):
        here = f.add_size(at, part * lanes)
        pointer = f.offset(storage, source, here)
        if last is None:
            loaded.append(f.load(vector, pointer))
        else:
            loaded.append(f.masked_load(vector, pointer, _left(kernel, f, last, here)))
    place = f.div_size(f.sub_size(at, v.low_w), step)
    for phase in range(step):
        value = loaded[0]
        if step > 1:
            value = f.shuffle(loaded[0], loaded[1], range(phase, step * lanes, step))
        column = f.add_size(f.mul_size(phase, v.phase), place)
        f.store(value, f.offset(storage, to, column))


# -- filters --------------------------------------------------------------------------------------


def _rows_of_filters(
    kernel: Kernel, f: Function, v: SimpleNamespace, image: Size, group: Size
) -> None:
    """Whole vectors: into the result where they fit its rows, else into rows of whole vectors,
    which are then brought together."""
    storage = kernel.element.storage
    v.wide = round_up(f, v.out_w, kernel.tile.lanes)
    fits = f.compare("eq", f.i64(v.wide), f.i64(v.out_w))
    plane = product(f, v.out_d, v.out_h, v.out_w)
    with f.loop(0, v.rows) as row:
        filter_ = f.add_size(f.mul_size(group, v.rows), row.index)
        number = f.add_size(f.mul_size(image, f.mul_size(v.groups, v.rows)), filter_)
        to = f.offset(storage, v.y, f.mul_size(number, plane))
        start = f.add_size(f.mul_size(group, v.a_group), f.mul_size(row.index, v.a_row))
        weights = f.offset(storage, v.a, start)
        first = Position(v.call, image, filter_, 0)

        def directly() -> Sequence[Value]:
            _planes(kernel, f, v, weights, to, first)
            return ()

        def together() -> Sequence[Value]:
            spread = f.offset(I8, v.offsets, v.results)
            _planes(kernel, f, v, weights, spread, None)
            _bring_together(kernel, f, v, spread)
            place = [v.call, *(f.i64(size) for size in (image, filter_, 0))]
            f.call_pointer(v.finish, [spread, to, f.i64(plane), *place])
            return ()

        f.if_else(fits, directly, together)


def _bring_together(kernel: Kernel, f: Function, v: SimpleNamespace, spread: Value) -> None:
    """Rows of whole vectors, in place. Vectors reach behind a row, where the next one comes."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    vector = Type(storage.element, lanes)
    with f.loop(1, f.mul_size(v.out_d, v.out_h)) as line:
        source = f.offset(storage, spread, f.mul_size(line.index, v.wide))
        to = f.offset(storage, spread, f.mul_size(line.index, v.out_w))
        with f.loop(0, v.wide, lanes) as at:
            value = f.load(vector, f.offset(storage, source, at.index))
            f.store(value, f.offset(storage, to, at.index))


def _planes(
    kernel: Kernel, f: Function, v: SimpleNamespace, weights: Value, to: Value,
    first: Position | None,
) -> None:  # fmt: skip
    """All rows of one filter, some at a time; with `first`, they are finished."""
    with f.loop(0, v.out_d) as d:
        reached: Size = 0
        for height in _WIDE:
            end = f.add_size(reached, f.round_down(f.i64(f.sub_size(v.out_h, reached)), height))
            with f.loop(reached, end, height) as h:
                line = f.add_size(f.mul_size(d.index, v.out_h), h.index)
                place = f.mul_size(line, v.wide)
                here = f.offset(kernel.element.storage, to, place)
                source = _row_start(kernel, f, v, d.index, h.index)
                spot = replace(first, column=place) if first else None
                _some_rows(kernel, f, v, weights, source, here, spot, height)
            reached = end


def _row_start(kernel: Kernel, f: Function, v: SimpleNamespace, d: Value, h: Value) -> Value:
    """Where the first position of an output row begins to read."""
    row = f.mul_size(f.mul_size(d, v.stride_d), v.reach_h)
    row = f.add_size(row, f.mul_size(h, v.stride_h))
    return f.offset(kernel.element.storage, v.copy, f.mul_size(row, v.pitch))


def _some_rows(
    kernel: Kernel, f: Function, v: SimpleNamespace, weights: Value, source: Value, to: Value,
    first: Position | None, height: int,
) -> None:  # fmt: skip
    """`first` is where in the result the first row begins."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    at: Size = 0

    def finished(total: Value, spot: Size) -> Value:
        if first is None or kernel.epilogue is None:
            return total
        here = replace(first, column=f.add_size(first.column, spot))
        return kernel.epilogue(f, total, here)

    for count in _WIDE[height]:
        step = count * lanes
        end = f.add_size(at, f.mul_size(f.div_size(f.sub_size(v.wide, at), step), step))
        with f.loop(at, end, step) as column:
            sums = _sums(kernel, f, v, weights, source, column.index, count, height)
            spots = [
                f.add_size(f.mul_size(row, v.wide), f.add_size(column.index, i * lanes))
                for row in range(height)
                for i in range(count)
            ]
            sums = [finished(total, spot) for total, spot in zip(sums, spots, strict=True)]
            for total, spot in zip(sums, spots, strict=True):
                f.store(total, f.offset(storage, to, spot))
        at = end


def _left(kernel: Kernel, f: Function, end: Size, at: Size) -> Value:
    """The lanes from `at` on that come before `end`."""
    integer = kernel.element.compute.as_integer
    left = f.i64(f.sub_size(end, at))
    narrow = left if integer == I64 else f.convert("trunc", left, integer)
    numbers = lane_numbers(f, kernel.tile.lanes, integer)
    return f.compare("slt", numbers, f.splat(narrow, kernel.tile.lanes))


def _sums(
    kernel: Kernel, f: Function, v: SimpleNamespace, weights: Value, source: Value, column: Size,
    count: int, height: int,
) -> list[Value]:  # fmt: skip
    """Neighbouring vectors of some rows, row by row: all taps of each."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    here = f.offset(storage, source, column)
    zero = constant(Type(storage.element, lanes), 0)
    below = f.mul_size(v.stride_h, v.pitch)
    with f.loop(0, v.taps, 1, [zero] * (height * count)) as tap:
        entry = f.offset(I64, v.offsets, f.mul_size(tap.index, 2))
        offset = f.load(I64, entry)
        place = f.load(I64, f.offset(I64, entry, 1))
        weight = f.load(storage, f.offset(storage, weights, place))
        scale, base = f.splat(weight, lanes), f.offset(storage, here, offset)
        vector = Type(storage.element, lanes)
        tap.next = [
            f.fma(scale, f.load(vector, f.offset(storage, start, i % count * lanes)), total)
            for i, total in enumerate(tap.carried)
            for start in [f.offset(storage, base, f.mul_size(i // count, below))]
        ]
    return tap.results


# -- the gradient of the filters ------------------------------------------------------------------


def _add_products(
    kernel: Kernel, f: Function, v: SimpleNamespace, image: Size, group: Size
) -> None:
    """To every tap's sum, its elements of the plane times the rows of the left operand.

    Some taps at a time share what is read of the left operand; the last ones may be repeated.
    """
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    start = f.add_size(f.mul_size(image, v.a_image), f.mul_size(group, v.a_group))
    last = f.sub_size(v.taps, 1)
    zeros = [constant(Type(storage.element, lanes), 0)] * _TAPS
    with f.loop(0, v.rows) as row, f.loop(0, v.taps, _TAPS) as tap:
        taps = [f.min_size(f.add_size(tap.index, i), last) for i in range(_TAPS)]
        offsets = [f.load(I64, f.offset(I64, v.offsets, f.mul_size(t, 2))) for t in taps]
        left = f.offset(storage, v.a, f.add_size(start, f.mul_size(row.index, v.a_row)))
        with f.loop(0, v.out_d, 1, zeros) as d:
            with f.loop(0, v.out_h, 1, d.carried) as h:
                source = _row_start(kernel, f, v, d.index, h.index)
                line = f.add_size(f.mul_size(d.index, v.out_h), h.index)
                begin = f.offset(storage, left, f.mul_size(line, v.out_w))
                sources = [f.offset(storage, source, offset) for offset in offsets]
                h.next = _dots(kernel, f, v, begin, sources, h.carried)
            d.next = h.results
        before = [_sum_of(f, storage, v, row.index, t) for t in taps]
        for (to, old), total in zip(before, d.results, strict=True):
            f.store(f.add(old, _across(f, total)), to)


def _sum_of(
    f: Function, storage: Type, v: SimpleNamespace, row: Value, tap: Size
) -> tuple[Value, Value]:
    to = f.offset(storage, v.sums, f.add_size(f.mul_size(row, v.taps), tap))
    return to, f.load(storage, to)


def _dots(
    kernel: Kernel, f: Function, v: SimpleNamespace, a: Value, sources: list[Value],
    sums: list[Value],
) -> list[Value]:  # fmt: skip
    """Products of one row with each source, added lane by lane."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    vector = Type(storage.element, lanes)
    whole = f.round_down(v.out_w, lanes)
    with f.loop(0, whole, lanes, sums) as at:
        left = f.load(vector, f.offset(storage, a, at.index))
        at.next = [
            f.fma(left, f.load(vector, f.offset(storage, x, at.index)), total)
            for x, total in zip(sources, at.carried, strict=True)
        ]

    def rest() -> list[Value]:
        mask = _left(kernel, f, v.out_w, whole)
        left = f.masked_load(vector, f.offset(storage, a, whole), mask)
        return [
            f.fma(left, f.masked_load(vector, f.offset(storage, x, whole), mask), total)
            for x, total in zip(sources, at.results, strict=True)
        ]

    return f.if_else(f.compare("slt", f.i64(whole), v.out_w), rest, lambda: at.results)


def _across(f: Function, total: Value) -> Value:
    while total.type.lanes > 2:
        half = total.type.lanes // 2
        low = f.shuffle(total, total, range(half))
        total = f.add(low, f.shuffle(total, total, range(half, 2 * half)))
    return f.add(f.extract(total, 0), f.extract(total, 1))
