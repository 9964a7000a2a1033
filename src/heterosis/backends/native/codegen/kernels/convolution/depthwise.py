"""Convolution with one channel a group: too little depth for a matrix product."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

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
    kernel_of,
    product,
)
from heterosis.backends.native.codegen.kernels.convolution.planes import (
    body,
    copy_plane,
    emit_entry,
    row_start,
)
from heterosis.backends.native.codegen.kernels.convolution.problem import Problem
from heterosis.backends.native.codegen.kernels.matmul.blocked import round_up
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.target import Target

_WIDE = {
    4: (2, 1),
    2: (4, 2, 1),
    1: (4, 2, 1),
}  # rows, and vectors of each, that are computed together


def emit_depthwise(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None = None
) -> None:
    """Define `@name(numbers..., call, x, a, y, scratch, finish)`; `finish` stores runs of results,
    and the epilogue ends those that need not be brought together."""
    kernel = kernel_of(module, target, problem, name, epilogue)
    labels = problem.parameters() + FORWARD_POINTERS
    frame = emit_entry(kernel, labels, ("images", "groups"))
    with body(kernel, frame) as (f, v, task):
        image, group = f.div_size(task, v.groups), f.rem_size(task, v.groups)
        copy_plane(kernel, problem.step, f, v, image, group)
        _rows_of_filters(kernel, f, v, image, group)


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

        def directly() -> None:
            _planes(kernel, f, v, weights, to, first)

        def together() -> None:
            spread = f.offset(I8, v.offsets, v.results)
            _planes(kernel, f, v, weights, spread, None)
            _bring_together(kernel, f, v, spread)
            place = [v.call, *(f.i64(size) for size in (image, filter_, 0))]
            f.call_pointer(v.finish, [spread, to, f.i64(plane), *place])

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
                source = row_start(kernel, f, v, d.index, h.index)
                spot = replace(first, column=place) if first else None
                _some_rows(kernel, f, v, weights, source, here, spot, height)
            reached = end


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
