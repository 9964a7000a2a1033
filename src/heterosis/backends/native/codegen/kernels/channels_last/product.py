"""Convolution with channels last as a matrix product that copies nothing.

What the taps of a window's row see are neighbours in memory: a position of the result is a row of
the left operand, made of one run for each row of its window, and it overlaps the next one. A list
says where the rows begin. The input comes padded, the filters in one block of depth.
"""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import I64, PTR, Function, Module
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernels.channels_last.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.forward import begun, product
from heterosis.backends.native.codegen.kernels.matmul.blocked import share_range
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import product_kernel
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import FINAL, Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    ListedRows,
    PanelProduct,
    emit_panel_kernels,
    scratch_tile,
    shares_of,
    tile_rows,
)
from heterosis.backends.native.codegen.target import Target

POINTERS = [(label, PTR) for label in ("call", "x", "a", "y", "scratch")]


def product_scratch_bytes(problem: Problem) -> int:
    """Room for the list of rows."""
    known = problem.known()
    return known["images"] * known["out_h"] * known["out_w"] * I64.bits // 8


def emit_product(
    module: Module, target: Target, name: str, problem: Problem, epilogue: Epilogue | None, *,
    narrow: int,
) -> None:  # fmt: skip
    """Define `@name(call, x, a, y, scratch, numbers...)`; `a` is the packed right operand of a
    product, a column for each filter and a row for each tap and channel. `narrow`: of how many
    filters the last panel is, if they have a kernel of their own."""
    kernel = product_kernel(module, target, problem.dtype).ended_by(epilogue)
    emit_panel_kernels(kernel, ListedRows, narrow=narrow)
    f, v, memory = begun(module, target, name, POINTERS + problem.parameters())
    _list_rows(f, v)
    run = f.mul_size(v.kernel_w, v.channels)
    v.m, v.n, v.k = product(f, v.images, v.out_h, v.out_w), v.filters, product(f, run, v.kernel_h)
    row_shares, column_shares = shares_of(f, kernel, v, abi.workers(f, v.call))
    frame = Frame(**vars(v), run=run, row_shares=row_shares, column_shares=column_shares)
    frame.save(f, memory)
    shares = f.mul_size(row_shares, column_shares)
    abi.parallel_for(f, v.call, f"{name}.share", memory, shares, 1)
    f.ret()
    _emit_share(kernel, f"{name}.share", frame, narrow)


def _list_rows(f: Function, v: SimpleNamespace) -> None:
    """Where the windows of all positions begin in the input."""
    line = f.mul_size(v.in_w, v.channels)
    across, down = f.mul_size(v.stride_w, v.channels), f.mul_size(v.stride_h, line)
    with f.loop(0, v.images) as image, f.loop(0, v.out_h) as h:
        above = f.mul_size(image.index, f.mul_size(v.in_h, line))
        start = f.add_size(above, f.mul_size(h.index, down))
        row = f.mul_size(f.add_size(f.mul_size(image.index, v.out_h), h.index), v.out_w)
        to = f.offset(I64, v.scratch, row)
        with f.loop(0, v.out_w) as w:
            place = f.i64(f.add_size(start, f.mul_size(w.index, across)))
            f.store(place, f.offset(I64, to, w.index), align=8)


def _emit_share(kernel: Kernel, name: str, frame: Frame, narrow: int) -> None:
    """Each share: some positions times some filters."""
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, name)
    tile, storage, compute = kernel.tile, kernel.element.storage, kernel.element.compute
    scratch = scratch_tile(kernel, f)
    with f.loop(begin, end) as part:
        down = f.i64(f.div_size(part.index, v.column_shares))
        across = f.i64(f.rem_size(part.index, v.column_shares))
        row, rows = share_range(f, down, v.row_shares, v.m, tile_rows(kernel))
        column, columns = share_range(f, across, v.column_shares, v.n, tile.columns)
        left = ListedRows(v.x, v.scratch).behind(f, storage, row)
        with f.loop(column, f.add_size(column, columns), tile.columns) as j:
            PanelProduct(
                left, runs=v.kernel_h, a_run=f.mul_size(v.in_w, v.channels), depth=v.run,
                panel=f.offset(compute, v.a, f.mul_size(j.index, v.k)),
                to=f.offset(storage, v.y, f.add_size(f.mul_size(row, v.y_row), j.index)),
                c_row=v.y_row, rows=rows, width=f.sub_size(v.n, j.index),
                mode=f.i64(FINAL), place=[v.call, f.i64(0), row, j.index], narrow=narrow,
            ).emit(kernel, f, scratch)  # fmt: skip
    f.ret()
