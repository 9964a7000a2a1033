"""Planes of an input copied with their padding into memory of the thread, and shared out.

The columns are sorted by the phase of the stride. Then every tap reads runs of neighbours, and
vectors run along rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import first_lanes
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
from heterosis.backends.native.codegen.kernels.convolution.forward import (
    begun,
    kernel_of,
    known,
    product,
)
from heterosis.backends.native.codegen.kernels.convolution.problem import AXES, Problem
from heterosis.backends.native.codegen.kernels.matmul.blocked import ceil_div, round_up
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.target import Target

_LINE = 128  # bytes that threads never share
_SHARE_WORK = 1 << 16  # multiplications worth waking a thread for


# How many images have their planes side by side, given the sizes.
Together = Callable[[Function, Kernel, SimpleNamespace], Size]


def alone(f: Function, kernel: Kernel, v: SimpleNamespace) -> Size:
    """One image after the other."""
    return 1


@dataclass(frozen=True)
class Layout:
    """A padded plane, and one thread's memory: offsets of the taps, then planes: of all channels
    of a group, and of some images `together`."""

    taps: Size  # of a plane
    columns: Size  # taps of all channels
    together: Size
    reach_d: Size  # extents of the padded plane
    reach_h: Size
    reach_w: Size
    low_d: Size  # the input coordinates that it begins with
    low_h: Size
    low_w: Size
    phase: Size  # columns of one phase, and room for vectors to run over
    pitch: Size  # numbers in a row
    numbers: Size  # in the plane
    filled: Size  # in all planes
    plane: Size  # where they begin, in bytes
    results: Size  # where the results of a filter begin, if their rows are no whole vectors
    own: Size  # bytes


def layout(f: Function, kernel: Kernel, v: SimpleNamespace, together: Together) -> Layout:
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
    columns = f.mul_size(taps, v.channels)
    plane = round_up(f, f.mul_size(columns, 16), _LINE)
    size = kernel.element.size
    many = together(f, kernel, v)
    filled = product(f, numbers, v.channels, many)
    results = round_up(f, f.add_size(plane, f.mul_size(filled, size)), _LINE)
    rows = product(f, v.out_d, v.out_h, round_up(f, v.out_w, lanes), size)
    own = round_up(f, f.add_size(results, rows), _LINE)
    return Layout(
        taps, columns, many, **reach, **low, phase=phase, pitch=pitch, numbers=numbers,
        filled=filled, plane=plane, results=results, own=own,
    )  # fmt: skip


def planes_scratch_bytes(
    problem: Problem, target: Target, workers: int, together: Together = alone
) -> int:
    f = Function(Module(), "sizes", [])
    kernel = kernel_of(f.module, target, problem, "sizes")
    own = layout(f, kernel, SimpleNamespace(**problem.known()), together).own
    return known(f.mul_size(own, workers))


# -- threads --------------------------------------------------------------------------------------


def emit_entry(
    kernel: Kernel, labels: list[tuple[str, Type]], shared: Sequence[str],
    together: Together = alone,
) -> Frame:  # fmt: skip
    """The function that hands out the planes."""
    name = kernel.prefix
    f, v, memory = begun(kernel.module, kernel.target, name, labels)
    blocks = layout(f, kernel, v, together)
    frame = Frame(**vars(v), **vars(blocks))
    frame.save(f, memory)
    tasks = product(f, *(getattr(v, label) for label in shared))
    work = product(f, v.images, v.groups, v.rows, blocks.columns, v.out_d, v.out_h, v.out_w)
    one = f.div_size(work, f.max_size(1, tasks))
    fair = ceil_div(f, tasks, f.mul_size(abi.workers(f, v.call), 4))
    grain = f.max_size(fair, abi.grain_of(f, one, _SHARE_WORK))
    abi.parallel_for(f, v.call, f"{name}.share", memory, tasks, grain)
    f.ret()
    return frame


@contextmanager
def body(kernel: Kernel, frame: Frame) -> Iterator[tuple[Function, SimpleNamespace, Value]]:
    """One share: the offsets of taps and empty planes, then the body for each task."""
    f, v, begin, end, worker = frame.body(kernel.module, kernel.target, f"{kernel.prefix}.share")
    v.offsets = f.offset(I8, v.scratch, f.mul_size(worker, v.own))
    v.copy = f.offset(I8, v.offsets, v.plane)
    _fill_offsets(f, v)
    zero = constant(Type(kernel.element.compute.element, kernel.tile.lanes), 0)
    with f.loop(0, v.filled, kernel.tile.lanes) as at:
        f.store(zero, f.offset(kernel.element.compute, v.copy, at.index))
    with f.loop(begin, end) as task:
        yield f, v, task.index
    f.ret()


def _fill_offsets(f: Function, v: SimpleNamespace) -> None:
    """For each tap of each channel, where in the planes the first position reads, and where in the
    filter it is."""

    def place(axis: str, tap: Size) -> Size:
        there = f.add_size(
            f.mul_size(tap, getattr(v, f"dilate_{axis}")), getattr(v, f"origin_{axis}")
        )
        return f.sub_size(there, getattr(v, f"low_{axis}"))

    axes = (f.loop(0, size) for size in (v.channels, v.kernel_d, v.kernel_h, v.kernel_w))
    with next(axes) as channel, next(axes) as d, next(axes) as h, next(axes) as w:
        tap = f.add_size(f.mul_size(channel.index, v.kernel_d), d.index)
        tap = f.add_size(f.mul_size(tap, v.kernel_h), h.index)
        tap = f.add_size(f.mul_size(tap, v.kernel_w), w.index)
        row = f.add_size(f.mul_size(place("d", d.index), v.reach_h), place("h", h.index))
        column = _column(f, v, place("w", w.index), v.stride_w)
        at = f.add_size(f.mul_size(row, v.pitch), column)
        at = f.add_size(f.mul_size(channel.index, v.numbers), at)
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


def copy_plane(
    kernel: Kernel, step: int, f: Function, v: SimpleNamespace, image: Size, group: Size,
    channel: Size = 0, place: Size = 0,
) -> None:  # fmt: skip
    """Copy a plane to its `place` among those of the thread."""
    storage = kernel.element.storage
    start = f.add_size(f.mul_size(image, v.x_image), f.mul_size(group, v.x_group))
    start = f.add_size(start, f.mul_size(channel, v.x_channel))
    source = f.offset(storage, v.x, start)
    copy = f.offset(storage, v.copy, f.mul_size(place, v.numbers))

    def inside(axis: str) -> tuple[Size, Size]:
        low = getattr(v, f"low_{axis}")
        end = f.add_size(low, getattr(v, f"reach_{axis}"))
        return f.max_size(0, low), f.min_size(getattr(v, f"in_{axis}"), end)

    first, last = inside("w")
    with f.loop(*inside("d")) as d, f.loop(*inside("h")) as h:
        at = f.add_size(f.mul_size(d.index, v.x_d), f.mul_size(h.index, v.x_h))
        row = f.mul_size(f.sub_size(d.index, v.low_d), v.reach_h)
        row = f.add_size(row, f.sub_size(h.index, v.low_h))
        to = f.offset(storage, copy, f.mul_size(row, v.pitch))
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
            mask = first_lanes(f, f.sub_size(last, here), lanes)
            loaded.append(f.masked_load(vector, pointer, mask))
    place = f.div_size(f.sub_size(at, v.low_w), step)
    for phase in range(step):
        value = loaded[0]
        if step > 1:
            value = f.shuffle(loaded[0], loaded[1], range(phase, step * lanes, step))
        column = f.add_size(f.mul_size(phase, v.phase), place)
        f.store(value, f.offset(storage, to, column))


def row_start(kernel: Kernel, f: Function, v: SimpleNamespace, d: Value, h: Value) -> Value:
    """Where the first position of an output row begins to read."""
    row = f.mul_size(f.mul_size(d, v.stride_d), v.reach_h)
    row = f.add_size(row, f.mul_size(h, v.stride_h))
    return f.offset(kernel.element.storage, v.copy, f.mul_size(row, v.pitch))
