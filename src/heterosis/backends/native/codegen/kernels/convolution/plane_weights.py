"""The gradient of the filters of convolutions with one channel a group."""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit.builder import (
    I64,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.convolution.forward import (
    kernel_of,
)
from heterosis.backends.native.codegen.kernels.convolution.planes import (
    body,
    copy_plane,
    emit_entry,
    lanes_before,
    row_start,
)
from heterosis.backends.native.codegen.kernels.convolution.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.weights import POINTERS
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.target import Target

_TAPS = 4  # whose gradients are computed together


def emit_plane_weights(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, a, x, y, scratch)`, as `emit_weights` does."""
    kernel = kernel_of(module, target, problem, name)
    frame = emit_entry(kernel, problem.parameters() + POINTERS, ("chunks", "groups"))
    with body(kernel, frame) as (f, v, task):
        chunk, group = f.div_size(task, v.groups), f.rem_size(task, v.groups)
        row = f.mul_size(task, f.mul_size(v.rows, v.taps))
        v.sums = f.offset(kernel.element.storage, v.y, row)
        with f.loop(0, f.mul_size(v.rows, v.taps)) as i:
            zero = constant(kernel.element.storage, 0)
            f.store(zero, f.offset(kernel.element.storage, v.sums, i.index))
        first = f.div_size(f.mul_size(chunk, v.images), v.chunks)
        last = f.div_size(f.mul_size(f.add_size(chunk, 1), v.images), v.chunks)
        with f.loop(first, last) as image:
            copy_plane(kernel, problem.step, f, v, image.index, group)
            _add_products(kernel, f, v, image.index, group)


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
                source = row_start(kernel, f, v, d.index, h.index)
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
        mask = lanes_before(kernel, f, v.out_w, whole)
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
