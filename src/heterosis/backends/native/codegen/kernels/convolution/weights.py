"""The gradient of a convolution's filters: a matrix product whose depth is the positions.

Result rows are filters, columns are taps. Every share has a range of taps, and of images if there
are few taps, to itself: it packs both operands, so that threads never wait for each other.
"""

from __future__ import annotations

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
    Value,
    constant,
)
from heterosis.backends.native.codegen.kernels.convolution.forward import begun, known, product
from heterosis.backends.native.codegen.kernels.convolution.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.window import TABLE_BYTES, Windows
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    call_pack,
    depth_blocks,
    round_up,
    share_count,
    share_range,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame
from heterosis.backends.native.codegen.kernels.matmul.macro_kernel import (
    as_they_are,
    emit_macro_kernel,
    product_kernel,
)
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import ACCUMULATE, Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import emit_pack
from heterosis.backends.native.codegen.target import Target

_LINE = 128  # bytes that threads never share
_BLOCK_BYTES = 1 << 18  # of packed windows that stay in the second-level cache
_SHARE_WORK = 1 << 17  # multiplications worth waking a thread for

POINTERS = [(label, PTR) for label in ("call", "a", "x", "y", "scratch")]


@dataclass(frozen=True)
class Layout:
    """Where in the scratch memory what is, in bytes, and how the work is cut up."""

    positions: Size
    taps: Size
    columns: Size
    depth: Size  # positions of one block, whole panels of them
    shares: Size  # of the columns
    windows: Size  # where in a thread's memory the packed windows begin
    left: Size  # and the packed left operand
    private: Size  # where the threads' own memory begins
    own: Size  # bytes of one thread's


def layout(f: Function, kernel: Kernel, step: int, v: SimpleNamespace, workers: Size) -> Layout:
    panel, size = kernel.tile.columns, kernel.element.size
    taps = product(f, v.kernel_d, v.kernel_h, v.kernel_w)
    positions = product(f, v.out_d, v.out_h, v.out_w)
    columns = f.mul_size(v.channels, taps)
    depth = round_up(f, depth_blocks(f, kernel, positions)[0], panel)
    wide = f.div_size(_BLOCK_BYTES // size, f.mul_size(depth, panel))
    widest = f.mul_size(f.max_size(1, wide), panel)
    work = product(f, v.rows, columns, positions, v.images)
    shares = share_count(f, columns, panel, widest, work, workers)
    windows = round_up(f, Windows(kernel, step, runs=2).own_bytes(f, taps), _LINE)
    block = product(f, f.min_size(widest, round_up(f, columns, panel)), depth, size)
    left = f.add_size(windows, round_up(f, block, _LINE))
    own = f.add_size(left, f.mul_size(depth, kernel.tile.block_rows * size))
    private = round_up(f, f.mul_size(columns, TABLE_BYTES), _LINE)
    return Layout(
        positions, taps, columns, depth, shares, windows, left, private, round_up(f, own, _LINE)
    )


def weights_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = product_kernel(f.module, target, problem.dtype)
    found = layout(f, kernel, problem.step, SimpleNamespace(**problem.known()), workers)
    return known(f.add_size(found.private, f.mul_size(found.own, workers)))


def emit_weights(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, a, x, y, scratch)`: `y` is (chunks, groups, rows, columns),
    one part of the sum for each chunk of the images."""
    kernel = product_kernel(module, target, problem.dtype)
    windows = Windows(kernel, problem.step, runs=2)
    emit_macro_kernel(kernel)
    emit_pack(module, target, kernel.element, kernel.tile.rows)
    f, v, memory = begun(module, target, name, problem.parameters() + POINTERS)
    blocks = layout(f, kernel, problem.step, v, abi.workers(f, v.call))
    windows.fill_table(f, v, v.scratch)
    frame = Frame(**vars(v), **vars(blocks))
    frame.save(f, memory)
    tasks = product(f, v.chunks, v.groups, blocks.shares)
    work = product(f, v.rows, blocks.columns, blocks.positions, v.images)
    one = f.div_size(work, product(f, v.chunks, blocks.shares))
    grain = abi.grain_of(f, one, _SHARE_WORK)
    abi.parallel_for(f, v.call, f"{name}.share", memory, tasks, grain)
    f.ret()
    windows.emit_look_up(v)
    windows.emit_pack_turned()
    _emit_share(kernel, windows, name, frame)


def _emit_share(kernel: Kernel, windows: Windows, name: str, frame: Frame) -> None:
    f, v, begin, end, worker = frame.body(kernel.module, kernel.target, f"{name}.share")
    v.mine = f.offset(I8, v.scratch, f.add_size(v.private, f.mul_size(worker, v.own)))
    v.windows, v.left = f.offset(I8, v.mine, v.windows), f.offset(I8, v.mine, v.left)
    with f.loop(begin, end) as task:
        rest, part = f.div_size(task.index, v.shares), f.i64(f.rem_size(task.index, v.shares))
        v.chunk, v.group = f.div_size(rest, v.groups), f.rem_size(rest, v.groups)
        v.column, v.width = share_range(f, part, v.shares, v.columns, kernel.tile.columns)
        first = f.div_size(f.mul_size(v.chunk, v.images), v.chunks)
        last = f.div_size(f.mul_size(f.add_size(v.chunk, 1), v.images), v.chunks)
        _clear_unless(f.compare("slt", f.i64(first), f.i64(last)), kernel, f, v)
        with f.loop(first, last) as image, f.loop(0, v.positions, v.depth) as at:
            depth = f.min_size(v.depth, f.sub_size(v.positions, at.index))
            begun = f.add_size(f.sub_size(image.index, first), at.index)
            fresh = f.compare("eq", f.i64(begun), f.i64(0))
            mode = f.select(fresh, f.i64(0), f.i64(ACCUMULATE))
            _pack_windows(windows, f, v, image.index, at.index, depth)
            _multiply(kernel, f, v, image.index, at.index, depth, mode)
    f.ret()


def _clear_unless(filled: Value, kernel: Kernel, f: Function, v: SimpleNamespace) -> None:
    """Zeros for the sum of no images: of fewer images than chunks, some chunks have none."""
    storage = kernel.element.storage
    part = f.add_size(f.mul_size(v.chunk, v.groups), v.group)
    first = f.mul_size(part, v.rows)
    with f.loop(0, f.select(filled, f.i64(0), f.i64(v.rows))) as row:
        start = f.mul_size(f.add_size(first, row.index), v.columns)
        with f.loop(0, v.width) as column:
            at = f.add_size(start, f.add_size(v.column, column.index))
            f.store(constant(storage, 0), f.offset(storage, v.y, at))


def _pack_windows(
    windows: Windows, f: Function, v: SimpleNamespace, image: Value, at: Value, depth: Size
) -> None:
    panel, element = windows.columns, windows.kernel.element
    x = f.offset(element.storage, v.x, f.mul_size(v.group, v.x_group))
    before = f.add_size(f.mul_size(image, v.positions), at)
    with f.loop(0, depth, panel) as some:
        count = f.min_size(panel, f.sub_size(depth, some.index))
        place = [f.add_size(before, some.index), f.i64(count), v.mine]
        f.call(windows.name("look_up"), [f.parameters[0], *place])
        row = f.mul_size(some.index, panel)
        with f.loop(0, v.width, panel) as j:
            column = f.add_size(v.column, j.index)
            table = f.offset(I64, v.scratch, f.mul_size(column, 2))
            width = f.min_size(panel, f.sub_size(v.width, j.index))
            into = f.add_size(f.mul_size(j.index, v.depth), row)
            to = f.offset(element.compute, v.windows, into)
            f.call(windows.name("turned"), [x, table, v.mine, f.i64(width), to])


def _multiply(
    kernel: Kernel, f: Function, v: SimpleNamespace,
    image: Value, at: Value, depth: Size, mode: Value,
) -> None:  # fmt: skip
    """All rows, a block of them at a time, times the packed windows."""
    storage, compute, tile_ = kernel.element.storage, kernel.element.compute, kernel.tile
    start = product(f, image, v.a_image)
    start = f.add_size(start, f.mul_size(v.group, v.a_group))
    start = f.add_size(start, f.mul_size(at, v.a_column))
    part = f.add_size(f.mul_size(v.chunk, v.groups), v.group)
    with f.loop(0, v.rows, tile_.block_rows) as block:
        rows = f.min_size(tile_.block_rows, f.sub_size(v.rows, block.index))
        source = f.add_size(start, f.mul_size(block.index, v.a_row))
        call_pack(
            kernel, f, tile_.rows, f.offset(storage, v.a, source), v.a_row, v.a_column,
            v.left, rows, depth,
        )  # fmt: skip
        row = f.add_size(f.mul_size(part, v.rows), block.index)
        with f.loop(0, v.width, tile_.columns) as j:
            right = f.offset(compute, v.windows, f.mul_size(j.index, v.depth))
            column = f.add_size(v.column, j.index)
            to = f.offset(storage, v.y, f.add_size(f.mul_size(row, v.columns), column))
            width = f.min_size(tile_.columns, f.sub_size(v.width, j.index))
            sizes = [f.i64(size) for size in (v.columns, rows, width, depth)]
            f.call(kernel.name("macro"), [v.left, right, to, *sizes, *as_they_are(f, mode, v.call)])
