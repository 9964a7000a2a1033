"""The product of few rows with a right operand whose columns lie as rows: the other way round.

A layer multiplies its input by the weights' transpose, and to pack weights that change with every
call takes an eighth of the time of 64 rows. Here the weights are the left operand, whose rows are
read as they lie, and the few rows of the input are packed in their place. What a tile has summed up
is turned where it is, in registers, and stored as the rows that the result has.
"""

from __future__ import annotations

from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.builder import Function, Size, Value
from heterosis.backends.native.codegen.epilogue import Position
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    core_function,
    share_count,
    share_grain,
    share_range,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import FINAL, FRESH, Kernel
from heterosis.backends.native.codegen.kernels.matmul.panels import (
    EvenRows,
    emit_rows,
    panel_sums,
    tile_rows,
)
from heterosis.backends.native.codegen.kernels.matmul.prepack import emit_pack_b, pack_parameters
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem
from heterosis.backends.native.codegen.kernels.matmul.turned_tile import TurnedTile

_TILES = 2  # of a share, at least: the last tile of a share ends with it, and begins inside it


def emit_turned(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`. The rows of the product are
    whole vectors, and the last panel of them is `narrow`; its depth is one block."""
    _emit_kernels(kernel, problem.narrow)
    packed = Problem(problem.dtype, b_row=1, one_block=True, over_batches=problem.over_batches)
    emit_pack_b(kernel.module, kernel.target, f"{name}.pack", packed)
    f, v = core_function(kernel.module, kernel.target, problem, name)
    memory = Frame.allocate(f)
    sizes = {"n": v.m, "k": v.k, "b_column": v.a_row}
    given = [sizes[label] for label, _ in pack_parameters(packed)]
    f.call(f"{name}.pack", [v.call, v.a, v.scratch, *given])
    work = f.mul_size(f.mul_size(v.m, v.n), v.k)
    workers = f.i64(1) if problem.over_batches else abi.workers(f, v.call)
    rows = tile_rows(kernel)
    shares = share_count(f, v.n, rows, kernel.tile.block_rows, work, workers)
    shares = f.min_size(shares, f.max_size(1, f.div_size(v.n, _TILES * rows)))
    frame = Frame(**vars(v), shares=shares)
    frame.save(f, memory)
    grain = share_grain(f, work, shares)
    share(f, v.call, f"{name}.share", memory, shares, grain, alone=problem.over_batches)
    f.ret()
    _emit_share(kernel, f"{name}.share", frame, problem.narrow)


def _emit_share(kernel: Kernel, name: str, frame: Frame, narrow: int) -> None:
    """Each share: some columns of the result, a panel of its rows after the other."""
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, name)
    tile, storage, compute = kernel.tile, kernel.element.storage, kernel.element.compute
    with f.loop(begin, end) as part:
        column, columns = share_range(f, part.index, v.shares, v.n, tile_rows(kernel))
        left = f.offset(storage, v.b, f.mul_size(column, v.b_column))
        with f.loop(0, v.m, tile.columns) as row:
            panel = f.offset(compute, v.scratch, f.mul_size(row.index, v.k))
            behind = f.offset(compute, panel, f.mul_size(v.k, tile.columns))
            to = f.offset(storage, v.c, f.add_size(f.mul_size(row.index, v.c_row), column))
            first = f.compare("eq", row.index, f.i64(0))
            mode = f.select(first, f.i64(FINAL | FRESH), f.i64(FINAL))
            sizes = map(f.i64, (v.b_column, 1, 0, v.k))
            into = [to, *map(f.i64, (v.c_row, columns)), mode]
            place = [v.call, v.batch, f.i64(column), f.i64(row.index)]
            given = [left, *sizes, panel, behind, *into, *place]
            _call(kernel, f, f.sub_size(v.m, row.index), narrow, given)
    f.ret()


def _call(kernel: Kernel, f: Function, left: Size, narrow: int, given: list[Value]) -> None:
    """The kernel for a panel of the rows that are `left`."""

    def called(each: Kernel) -> None:
        f.call(each.name("turned"), given)

    if not narrow:
        called(kernel)
        return
    whole = f.compare("sge", f.i64(left), f.i64(kernel.tile.columns))
    f.if_else(whole, lambda: called(kernel), lambda: called(kernel.narrowed(narrow)))


def _emit_kernels(kernel: Kernel, narrow: int) -> None:
    """What a share calls, once a module."""
    for each in (kernel, kernel.narrowed(narrow)) if narrow else (kernel,):
        if not each.module.defines(each.name("turned")):
            emit_rows(each, EvenRows, "turned", _emit_tiles)


def _emit_tiles(
    kernel: Kernel, f: Function, v: SimpleNamespace, begin: Value, end: Value, height: int,
    there: Size,
) -> None:  # fmt: skip
    """Tiles one below the other, which are columns of the result side by side. The last one ends
    with the rows, and may compute some of the one before once more."""
    down = list(range(height))
    left = v.left.tiles(kernel, f, down)
    with f.loop(begin, end, height) as i:
        row = f.i64(f.min_size(i.index, f.sub_size(v.rows, height)))
        sums = panel_sums(kernel, f, v, left(row), height, f.add_size(i.index, height))
        to = f.offset(kernel.element.storage, v.c, row)
        at = Position(v.call, v.batch, v.column, f.add_size(v.row, row))
        TurnedTile(kernel, f, len(kernel.vectors)).store(sums, to, v.c_row, at)
