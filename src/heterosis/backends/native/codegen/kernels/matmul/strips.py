"""The product of rows as they lie with a right operand that is packed where it is multiplied.

To pack it once for all threads, they have to meet before they multiply, and what one of them has
written the others fetch from its caches: with two threads, that is a quarter of the time of 128
rows times 128 columns. Here a share of the work is a strip of columns, packed into memory of the
thread's own, a block of depth at a time, and all the rows pass by.
"""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import Function, Size
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    call_pack,
    core_function,
    depth_blocks,
    evenly,
    round_up,
    share_count,
    share_grain,
    share_range,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import emit_pack
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    emit_panel_kernels,
    multiply_block,
    scratch_tile,
    tile_rows,
)
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem


def emit_strips(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`."""
    tile = kernel.tile
    emit_pack(kernel.module, kernel.target, kernel.element, tile.columns)
    emit_panel_kernels(kernel, narrow=problem.narrow)
    f, v = core_function(kernel.module, kernel.target, problem, name)
    memory = Frame.allocate(f)
    workers = f.i64(1) if problem.over_batches else abi.workers(f, v.call)
    work = f.mul_size(f.mul_size(v.m, v.n), v.k)
    shares = share_count(f, v.n, tile.columns, tile.block_columns, work, workers)
    depth, _ = depth_blocks(f, kernel, v.k)
    frame = Frame(**vars(v), depth=depth, shares=shares, own=strip_numbers(f, kernel, v))
    frame.save(f, memory)
    grain = share_grain(f, work, shares)
    share(f, v.call, f"{name}.share", memory, shares, grain, alone=problem.over_batches)
    f.ret()
    _emit_share(kernel, f"{name}.share", frame, problem.narrow)


def strip_numbers(f: Function, kernel: Kernel, v: SimpleNamespace) -> Size:
    """How many numbers a thread packs at a time; `v` holds the sizes."""
    depth, _ = depth_blocks(f, kernel, v.k)
    columns = f.min_size(kernel.tile.block_columns, round_up(f, v.n, kernel.tile.columns))
    return f.mul_size(depth, columns)


def _emit_share(kernel: Kernel, name: str, frame: Frame, narrow: int) -> None:
    """Each share: a strip of columns, packed a block of depth at a time, and as many rows at a time
    as stay in the cache beside it."""
    f, v, begin, end, worker = frame.body(kernel.module, kernel.target, name)
    tile, element, scratch = kernel.tile, kernel.element, scratch_tile(kernel, f)
    own = f.offset(element.compute, v.scratch, f.mul_size(worker, v.own))
    height = evenly(f, v.m, tile.block_rows, tile_rows(kernel))
    with f.loop(begin, end) as part:
        column, columns = share_range(f, part.index, v.shares, v.n, tile.columns)
        with f.loop(0, f.max_size(v.k, 1), v.depth) as step:
            depth = f.min_size(v.depth, f.sub_size(v.k, step.index))
            source = f.add_size(f.mul_size(step.index, v.b_row), f.mul_size(column, v.b_column))
            call_pack(
                kernel, f, tile.columns, f.offset(element.storage, v.b, source), v.b_column,
                v.b_row, own, columns, depth,
            )  # fmt: skip
            with f.loop(0, v.m, height) as row:
                rows = f.min_size(height, f.sub_size(v.m, row.index))
                multiply_block(
                    kernel, f, v, scratch, (row.index, rows), (column, columns),
                    (step.index, depth), own, narrow=narrow, again=True,
                )  # fmt: skip
    f.ret()
