"""Convolution as a matrix product with positions for rows and filters for columns.

Vectors run along the filters. An image of few positions fills tiles of so many rows better than
vectors, and every filter is read once. The result comes out with the filters last, and is turned
on its way to memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    Function,
    Module,
    Size,
    Type,
    Value,
)
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.kernels.convolution.forward import (
    POINTERS,
    begun,
    is_plain,
    kernel_of,
    known,
    product,
)
from heterosis.backends.native.codegen.kernels.convolution.problem import Problem
from heterosis.backends.native.codegen.kernels.convolution.window import TABLE_BYTES, Windows
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    call_pack,
    ceil_div,
    depth_blocks,
    mode_of,
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
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel
from heterosis.backends.native.codegen.kernels.matmul.packing import emit_pack
from heterosis.backends.native.codegen.target import Target

_LINE = 128  # bytes that threads never share
_LARGEST_SHARE = 1 << 9  # filters
_SHARE_WORK = 1 << 17  # multiplications worth waking a thread for
_SHARE_COPIES = 1 << 14  # elements, likewise


@dataclass(frozen=True)
class Layout:
    """How the work is cut up, and where in the scratch memory what is, in bytes."""

    taps: Size
    positions: Size  # of one image
    k: Size
    depth: Size  # of one block
    some: Size  # positions that are packed at a time: whole panels, in one panel of windows
    padded: Size  # positions of an image, whole times as many
    shares: Size  # of the filters
    block: Size  # filters of the largest share, whole panels
    pitch: Size  # positions of an image, whole vectors
    rows: Size  # where the packed positions begin
    private: Size  # where the threads' own memory begins
    windows: Size  # where in a thread's memory a panel of windows begins
    turned: Size  # and the filters that are being turned
    own: Size  # bytes of one thread's


def layout(
    f: Function, kernel: Kernel, problem: Problem, v: SimpleNamespace, workers: Size
) -> Layout:
    """`v` holds the sizes; the same formulas serve numbers and values."""
    panel, size = kernel.tile, kernel.element.size
    taps = product(f, v.kernel_d, v.kernel_h, v.kernel_w)
    positions = product(f, v.out_d, v.out_h, v.out_w)
    k = f.mul_size(v.channels, taps)
    depth, _ = depth_blocks(f, kernel, k)
    some = panel.columns // panel.rows * panel.rows
    padded = round_up(f, positions, some)
    work = product(f, v.rows, positions, k)
    shares = share_count(f, v.rows, panel.columns, _LARGEST_SHARE, work, workers)
    panels = ceil_div(f, v.rows, panel.columns)
    block = f.mul_size(ceil_div(f, panels, shares), panel.columns)
    pitch = round_up(f, positions, panel.lanes)
    rows = round_up(f, f.mul_size(k, TABLE_BYTES), _LINE)
    private = f.add_size(rows, round_up(f, product(f, k, padded, size), _LINE))
    windows = round_up(f, Windows(kernel, problem.step).own_bytes(f, taps), _LINE)
    gathered = f.add_size(windows, product(f, depth, panel.columns, size))
    turned = round_up(f, product(f, pitch, block, size), _LINE)
    multiplied = f.add_size(turned, product(f, pitch, panel.lanes, size))
    own = round_up(f, f.max_size(gathered, multiplied), _LINE)
    return Layout(
        taps, positions, k, depth, some, padded, shares, block, pitch, rows, private, windows,
        turned, own,
    )  # fmt: skip


def turned_scratch_bytes(problem: Problem, target: Target, workers: int) -> int:
    f = Function(Module(), "sizes", [])
    kernel = kernel_of(f.module, target, problem, "sizes")
    found = layout(f, kernel, problem, SimpleNamespace(**problem.known()), workers)
    return known(f.add_size(found.private, f.mul_size(found.own, workers)))


def emit_turned(module: Module, target: Target, name: str, problem: Problem) -> None:
    """Define `@name(numbers..., call, x, a, y, scratch, finish)`; `finish` stores results."""
    kernel = kernel_of(module, target, problem, name)
    windows = Windows(kernel, problem.step)
    emit_macro_kernel(product_kernel(module, target, problem.dtype))
    emit_pack(module, target, kernel.element, kernel.tile.rows)
    f, v, memory = begun(module, target, name, problem.parameters() + POINTERS)
    blocks = layout(f, kernel, problem, v, abi.workers(f, v.call))
    windows.fill_table(f, v, v.scratch)
    filters = v.rows
    sizes = vars(v) | vars(blocks) | {"filters": filters}
    with f.loop(0, v.images) as image:
        frame = Frame(**sizes, image=image.index)
        frame.save(f, memory)
        tasks = ceil_div(f, blocks.positions, blocks.some)
        one = f.mul_size(blocks.k, blocks.some)
        grain = abi.grain_of(f, one, _SHARE_COPIES)
        abi.parallel_for(f, v.call, kernel.name("pack"), memory, tasks, grain)
        work = product(f, blocks.block, blocks.positions, blocks.k)
        grain = abi.grain_of(f, work, _SHARE_WORK)
        abi.parallel_for(f, v.call, kernel.name("multiply"), memory, blocks.shares, grain)
    f.ret()
    windows.emit_look_up(v)
    windows.emit_pack()
    _emit_packing(kernel, windows, frame)
    _emit_multiplying(kernel, frame)


def _body(
    kernel: Kernel, part: str, frame: Frame
) -> tuple[Function, SimpleNamespace, Value, Value]:
    f, v, begin, end, worker = frame.body(kernel.module, kernel.target, kernel.name(part))
    own = f.add_size(v.private, f.mul_size(worker, v.own))
    v.mine = f.offset(I8, v.scratch, own)
    return f, v, begin, end


def _emit_packing(kernel: Kernel, windows: Windows, frame: Frame) -> None:
    """Each share: all depth of some positions."""
    f, v, begin, end = _body(kernel, "pack", frame)
    storage, panel = kernel.element.storage, kernel.tile
    packed, table = f.offset(I8, v.scratch, v.rows), v.scratch
    into = f.offset(I8, v.mine, v.windows)
    x = f.offset(storage, v.x, f.mul_size(v.image, v.x_image))
    with f.loop(begin, end) as task, f.loop(0, v.k, v.depth) as step:
        depth = f.min_size(v.depth, f.sub_size(v.k, step.index))
        at = f.mul_size(task.index, v.some)
        count = f.min_size(v.some, f.sub_size(v.positions, at))
        to = f.add_size(f.mul_size(step.index, v.padded), f.mul_size(at, depth))
        there = f.offset(storage, packed, to)

        def copied() -> None:
            source = f.offset(storage, x, f.add_size(f.mul_size(step.index, v.x_channel), at))
            call_pack(kernel, f, panel.rows, source, 1, v.x_channel, there, count, depth)

        def gathered() -> None:
            place = f.add_size(f.mul_size(v.image, v.positions), at)
            f.call(windows.name("look_up"), [f.parameters[0], f.i64(place), f.i64(count), v.mine])
            taps = f.offset(I64, table, f.mul_size(step.index, 2))
            f.call(windows.name("window"), [v.x, taps, v.mine, f.i64(depth), into])
            call_pack(kernel, f, panel.rows, into, 1, panel.columns, there, v.some, depth)

        f.if_else(is_plain(f, v), copied, gathered)
    f.ret()


def _emit_multiplying(kernel: Kernel, frame: Frame) -> None:
    """Each share: all positions times some filters."""
    f, v, begin, end = _body(kernel, "multiply", frame)
    storage, panel = kernel.element.storage, kernel.tile
    packed = f.offset(I8, v.scratch, v.rows)
    macro = product_kernel(kernel.module, kernel.target, kernel.element.dtype).name("macro")
    with f.loop(begin, end) as task:
        first, count = share_range(f, task.index, v.shares, v.filters, panel.columns)
        wide = round_up(f, count, panel.columns)
        every = round_up(f, v.filters, panel.columns)
        with f.loop(0, v.k, v.depth) as step:
            depth = f.min_size(v.depth, f.sub_size(v.k, step.index))
            left = f.offset(storage, packed, f.mul_size(step.index, v.padded))
            right = f.add_size(f.mul_size(step.index, every), f.mul_size(first, depth))
            rows = round_up(f, v.positions, 2)  # so that the kernel for few rows fits
            sizes = [f.i64(n) for n in (v.block, rows, wide, depth)]
            mode = mode_of(f, step.index, depth, v.k)
            operands = [left, f.offset(storage, v.a, right), v.mine]
            f.call(macro, [*operands, *sizes, *as_they_are(f, mode, v.call)])
        _turn(kernel, f, v, first, count)
    f.ret()


def _turn(kernel: Kernel, f: Function, v: SimpleNamespace, first: Size, count: Size) -> None:
    """As many filters at a time as a vector has lanes."""
    storage, lanes = kernel.element.storage, kernel.tile.lanes
    vector = Type(storage.element, lanes)
    rows = f.offset(I8, v.mine, v.turned)
    with f.loop(0, count, lanes) as some:
        with f.loop(0, v.positions, lanes) as at:
            start = f.add_size(f.mul_size(at.index, v.block), some.index)
            source = f.offset(storage, v.mine, start)
            loaded = [
                f.load(vector, f.offset(storage, source, f.mul_size(v.block, i)))
                for i in range(lanes)
            ]
            to = f.offset(storage, rows, at.index)
            for i, turned in enumerate(transpose(f, loaded, 16 // kernel.element.size)):
                f.store(turned, f.offset(storage, to, f.mul_size(v.pitch, i)))
        with f.loop(0, f.min_size(lanes, f.sub_size(count, some.index))) as row:
            filter_ = f.add_size(f.add_size(first, some.index), row.index)
            plane = f.add_size(f.mul_size(v.image, v.filters), filter_)
            y = f.offset(storage, v.y, f.mul_size(plane, v.positions))
            source = f.offset(storage, rows, f.mul_size(row.index, v.pitch))
            run = [source, y, f.i64(v.positions)]
            f.call_pointer(v.finish, [*run, v.call, v.image, f.i64(filter_), f.i64(0)])
