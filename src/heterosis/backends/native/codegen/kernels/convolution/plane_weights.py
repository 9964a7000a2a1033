"""The gradient of the filters where channels are few: sums over the positions of planes.

Too little is computed of each element of the input to pay for windows in panels. Vectors run along
the rows of planes that are copied with their padding, times those of the left operand.
"""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit.access import first_lanes
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.convolution.forward import kernel_of, product
from heterosis.backends.native.codegen.kernels.convolution.planes import (
    body,
    copy_plane,
    emit_entry,
    planes_scratch_bytes,
    row_start,
)
from heterosis.backends.native.codegen.kernels.convolution.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.weights import POINTERS
from heterosis.backends.native.codegen.kernels.matmul.dots import horizontal
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.target import Target

# Bytes of lines that stay in the first-level cache while sums are made of them, and how many images
# have their sums brought together once, at most.
_NEAR_BYTES, _MOST_TOGETHER = 1 << 15, 4
# Filters and taps whose sums are computed together, by the number of registers: every vector that
# is read is multiplied as often as there are others.
_TILES = {32: ((4, 6), (1, 5)), 16: ((4, 2), (1, 5))}


def plane_weights_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    return planes_scratch_bytes(problem, target, workers, _together)


def _lines(f: Function, kernel: Kernel, v: SimpleNamespace) -> Size:
    """How many lines of the planes that a tile reads are near: of its filters, and of two channels,
    which its taps belong to."""
    (height, _), *_ = _TILES[kernel.target.vector_registers]
    line = f.mul_size(f.max_size(v.out_w, kernel.tile.lanes), kernel.element.size)
    return f.max_size(1, f.div_size(_NEAR_BYTES // (height + 2), line))


def _together(f: Function, kernel: Kernel, v: SimpleNamespace) -> Size:
    some = f.div_size(_lines(f, kernel, v), f.mul_size(v.out_d, v.out_h))
    return f.max_size(1, f.min_size(f.min_size(some, v.images), _MOST_TOGETHER))


def emit_plane_weights(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, a, x, y, scratch)`, as `emit_weights` does."""
    kernel = kernel_of(module, target, problem, name)
    labels = problem.parameters() + POINTERS
    frame = emit_entry(kernel, labels, ("chunks", "groups"), _together)
    with body(kernel, frame) as (f, v, task):
        chunk, v.group = f.div_size(task, v.groups), f.rem_size(task, v.groups)
        count = f.mul_size(v.rows, v.columns)
        v.sums = f.offset(kernel.element.storage, v.y, f.mul_size(task, count))
        with f.loop(0, count) as i:
            zero = constant(kernel.element.storage, 0)
            f.store(zero, f.offset(kernel.element.storage, v.sums, i.index))
        first = f.div_size(f.mul_size(chunk, v.images), v.chunks)
        last = f.div_size(f.mul_size(f.add_size(chunk, 1), v.images), v.chunks)
        lines = _lines(f, kernel, v)
        with f.loop(first, last, v.together) as some:
            v.first, images = some.index, f.min_size(v.together, f.sub_size(last, some.index))
            with f.loop(0, images) as image, f.loop(0, v.channels) as channel:
                place = f.add_size(f.mul_size(image.index, v.channels), channel.index)
                at = f.add_size(some.index, image.index)
                copy_plane(kernel, problem.step, f, v, at, v.group, channel.index, place)
            with f.loop(0, v.out_h, lines) as line:
                v.lines = line.index, f.min_size(v.out_h, f.add_size(line.index, lines))
                _add_products(kernel, f, v, images)


def _add_products(kernel: Kernel, f: Function, v: SimpleNamespace, images: Size) -> None:
    """To every sum, its elements of some lines of some images times those of the left operand.

    Some filters and taps at a time; the last taps may be repeated.
    """
    last = f.sub_size(v.columns, 1)
    reached: Size = 0
    for height, width in _TILES[kernel.target.vector_registers]:
        end = f.add_size(reached, f.round_down(f.i64(f.sub_size(v.rows, reached)), height))
        with f.loop(reached, end, height) as row, f.loop(0, v.columns, width) as column:
            rows = [f.add_size(row.index, i) for i in range(height)]
            columns = [f.min_size(f.add_size(column.index, i), last) for i in range(width)]
            totals = _tile(kernel, f, v, rows, columns, images)
            places = [f.add_size(f.mul_size(r, v.columns), c) for r in rows for c in columns]
            to = [f.offset(kernel.element.storage, v.sums, place) for place in places]
            before = [f.load(kernel.element.storage, pointer) for pointer in to]
            sums = horizontal(f, totals)
            for pointer, old, total in zip(to, before, sums, strict=True):
                f.store(f.add(old, total), pointer)
        reached = end


def _tile(
    kernel: Kernel, f: Function, v: SimpleNamespace, rows: list[Size], columns: list[Size],
    images: Size,
) -> list[Value]:  # fmt: skip
    """The sums of some filters' taps, lane by lane."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    offsets = [f.load(I64, f.offset(I64, v.offsets, f.mul_size(c, 2))) for c in columns]
    zeros = [constant(Type(storage.element, lanes), 0)] * (len(rows) * len(columns))
    with f.loop(0, images, 1, zeros) as image:
        start = f.mul_size(f.add_size(v.first, image.index), v.a_image)
        start = f.add_size(start, f.mul_size(v.group, v.a_group))
        lefts = [f.offset(storage, v.a, f.add_size(start, f.mul_size(r, v.a_row))) for r in rows]
        planes = f.mul_size(image.index, f.mul_size(v.channels, v.numbers))
        with f.loop(0, v.out_d, 1, image.carried) as d:
            source = f.offset(storage, row_start(kernel, f, v, d.index, f.i64(0)), planes)
            here = product(f, d.index, v.out_h, v.out_w)
            left = [f.offset(storage, pointer, here) for pointer in lefts]
            right = [f.offset(storage, source, offset) for offset in offsets]
            d.next = _plane(kernel, f, v, left, right, d.carried)
        image.next = d.results
    return image.results


def _plane(
    kernel: Kernel, f: Function, v: SimpleNamespace, left: list[Value], right: list[Value],
    sums: list[Value],
) -> list[Value]:  # fmt: skip
    """Products of each row with each source, a vector of columns after the other: down the lines,
    which lie equally far apart, so that little more than loads and products is to do."""
    lanes = kernel.tile.lanes
    vector = Type(kernel.element.storage.element, lanes)
    below = f.mul_size(v.stride_h, v.pitch)
    first, end = v.lines

    def read(pointer: Value, at: Size, mask: Value | None) -> Value:
        here = f.offset(kernel.element.storage, pointer, at)
        return f.load(vector, here) if mask is None else f.masked_load(vector, here, mask)

    def down(at: Size, sums: list[Value], mask: Value | None = None) -> list[Value]:
        with f.loop(first, end, 1, sums) as h:
            row, line = f.mul_size(h.index, v.out_w), f.mul_size(h.index, below)
            rows = [read(pointer, f.add_size(row, at), mask) for pointer in left]
            columns = [read(pointer, f.add_size(line, at), mask) for pointer in right]
            pairs = ((r, column) for r in rows for column in columns)
            h.next = [f.fma(*pair, total) for pair, total in zip(pairs, h.carried, strict=True)]
        return h.results

    whole = f.round_down(v.out_w, lanes)
    with f.loop(0, whole, lanes, sums) as at:
        at.next = down(at.index, at.carried)
    rest = f.compare("slt", f.i64(whole), v.out_w)
    mask = first_lanes(f, f.sub_size(v.out_w, whole), lanes)
    mask = f.emit(mask.type, f"freeze {mask}")  # or every turn would find it anew
    return f.if_else(rest, lambda: down(whole, at.results, mask), lambda: at.results)
