"""Convolution with channels last as a matrix product that copies nothing.

What the taps of a window's row see are neighbours in memory: a position of the result is a row of
the left operand, made of one run for each row of its window, and it overlaps the next one. The
input comes padded.
"""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import PTR, Function, Module, Size, Value
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernels.channels_last.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.forward import begun
from heterosis.backends.native.codegen.kernels.matmul.blocked import share_count, share_range
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import FINAL, Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    PanelProduct,
    emit_panel_kernels,
    scratch_tile,
)
from heterosis.backends.native.codegen.target import Target

_LARGEST_SHARE = 16  # lines of positions: what they read stays in the second-level cache

POINTERS = [(label, PTR) for label in ("call", "x", "a", "y")]


def emit_product(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None
) -> None:
    """Define `@name(call, x, a, y, numbers...)`; `a` is the packed right operand of a product, a
    column for each filter and a row for each tap and channel."""
    kernel = product_kernel(module, target, problem.dtype).ended_by(epilogue)
    emit_panel_kernels(kernel)
    f, v, memory = begun(module, target, name, POINTERS + problem.parameters())
    lines = f.mul_size(v.images, v.out_h)
    run = f.mul_size(v.kernel_w, v.channels)
    depth = f.mul_size(run, v.kernel_h)
    work = f.mul_size(f.mul_size(lines, v.out_w), f.mul_size(v.filters, depth))
    workers = abi.workers(f, v.call)
    shares = share_count(f, lines, 1, _LARGEST_SHARE, work, workers)
    frame = Frame(**vars(v), lines=lines, run=run, whole=depth, shares=shares)
    frame.save(f, memory)
    abi.parallel_for(f, v.call, f"{name}.share", memory, shares, 1)
    f.ret()
    _emit_share(kernel, f"{name}.share", frame)


def _emit_share(kernel: Kernel, name: str, frame: Frame) -> None:
    """Each share: all filters on some lines, which stay in the cache from panel to panel."""
    f = kernel.module.function(
        name, abi.LOOP_BODY_PARAMETERS, attributes=kernel.target.function_attributes
    )
    context, begin, end, _ = f.parameters
    v = frame.load(f, context)
    scratch = scratch_tile(kernel, f)
    with f.loop(begin, end) as part:
        first, count = share_range(f, part.index, v.shares, v.lines, 1)
        last = f.add_size(first, count)
        with (
            f.loop(0, v.filters, kernel.tile.columns) as j,
            f.loop(first, last) as line,
        ):
            _one_line(kernel, f, v, line.index, j.index).emit(kernel, f, scratch)
    f.ret()


def _one_line(
    kernel: Kernel, f: Function, v: SimpleNamespace, line: Value, column: Value
) -> PanelProduct:
    storage, compute = kernel.element.storage, kernel.element.compute
    in_row = f.mul_size(v.in_w, v.channels)
    image, h = f.div_size(line, v.out_h), f.rem_size(line, v.out_h)
    above: Size = f.add_size(f.mul_size(image, v.in_h), f.mul_size(h, v.stride_h))
    row = f.mul_size(line, v.out_w)
    return PanelProduct(
        left=f.offset(storage, v.x, f.mul_size(above, in_row)),
        a_row=f.mul_size(v.stride_w, v.channels), runs=v.kernel_h, a_run=in_row, depth=v.run,
        panel=f.offset(compute, v.a, f.mul_size(column, v.whole)),
        to=f.offset(storage, v.y, f.add_size(f.mul_size(row, v.filters), column)),
        c_row=v.filters, rows=v.out_w, width=f.sub_size(v.filters, column),
        mode=f.i64(FINAL), place=[v.call, f.i64(0), row, column],
    )  # fmt: skip
