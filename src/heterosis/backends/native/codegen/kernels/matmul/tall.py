"""A tall matrix of few columns, which lies in one piece, times few columns; and what is summed up
over the rows of such a matrix.

Rows shorter than a vector would leave most of it unused. Vectors are of rows here: the columns of
as many rows as there are lanes are taken apart in registers, and what is written as rows is put
together there.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit.access import first_lanes
from heterosis.backends.native.codegen.emit.builder import (
    Function,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.emit.transposition import put_together, taken_apart
from heterosis.backends.native.codegen.kernels.matmul.blocked import ceil_div, core_function
from heterosis.backends.native.codegen.kernels.matmul.dots import horizontal
from heterosis.backends.native.codegen.kernels.matmul.finish import finish_runs
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel, multiply_add
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem

# Numbers that are read, multiplications and numbers that are written which make a share of the work
# worth a thread.
_SHARE_WORK = 1 << 16


def emit_tall(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`."""
    assert kernel.epilogue is None, "its vectors are not of neighbours in a row of the result"
    f, v = core_function(kernel.module, kernel.target, problem, name)
    memory = Frame.allocate(f)
    frame = Frame(**vars(v))
    frame.save(f, memory)
    lanes = kernel.tile.lanes
    grain = max(1, _SHARE_WORK // (lanes * (v.k * v.n + v.k + v.n)))
    count = ceil_div(f, v.m, lanes)
    share(f, v.call, f"{name}.share", memory, count, grain, alone=problem.over_batches)
    f.ret()
    _emit_share(kernel, name, frame)


def _emit_share(kernel: Kernel, name: str, frame: Frame) -> None:
    """As many rows at a time as a vector has lanes; behind whole vectors what is left."""
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, f"{name}.share")
    lanes = kernel.tile.lanes
    whole = f.min_size(end, f.div_size(v.m, lanes))
    with f.loop(begin, whole) as block:
        _rows(kernel, f, v, f.mul_size(block.index, lanes), None)
    with f.loop(f.max_size(begin, whole), end) as block:
        row = f.mul_size(block.index, lanes)
        _rows(kernel, f, v, row, f.sub_size(v.m, row))
    f.ret()


def _rows(kernel: Kernel, f: Function, v: SimpleNamespace, row: Size, left: Size | None) -> None:
    """A vector's rows from `row` on; fewer where no more are `left`."""
    kind, element, lanes = kernel.element.storage, kernel.element, kernel.tile.lanes
    columns = _columns(kernel, f, v.a, v.k, row, left)
    sums = [constant(columns[0].type, 0)] * v.n
    for i, column in enumerate(columns):
        for j in range(v.n):
            at = f.add_size(f.mul_size(i, v.b_row), f.mul_size(j, v.b_column))
            factor = f.splat(element.load(f, f.offset(kind, v.b, at)), lanes)
            sums[j] = multiply_add(f, element, factor, column, sums[j])
    to = f.offset(kind, v.c, f.mul_size(row, v.n))
    written = zip(put_together(f, sums), _masks(f, v.n, lanes, left), strict=True)
    for i, (values, mask) in enumerate(written):
        element.store(f, values, f.offset(kind, to, i * lanes), mask)


def _columns(
    kernel: Kernel, f: Function, matrix: Value, count: int, row: Size, left: Size | None
) -> list[Value]:
    """The columns of a matrix in a vector's rows from `row` on; 0 behind those that are `left`."""
    kind, lanes = kernel.element.storage, kernel.tile.lanes
    base = f.offset(kind, matrix, f.mul_size(row, count))
    rows = [
        kernel.element.load(f, f.offset(kind, base, i * lanes), lanes, mask)
        for i, mask in enumerate(_masks(f, count, lanes, left))
    ]
    return taken_apart(f, rows)


def _masks(f: Function, columns: int, lanes: int, left: Size | None) -> Sequence[Value | None]:
    """What is there of the vectors that so many columns of a vector's rows lie in."""
    if left is None:
        return [None] * columns
    numbers = f.mul_size(left, columns)
    return [first_lanes(f, f.sub_size(numbers, i * lanes), lanes) for i in range(columns)]


def emit_deep(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`: few sums over a long depth.

    The left operand is a transposed tall matrix, or the right one is a tall one; the other one may
    have neighbours along the depth. Results are finished when all of them are there.
    """
    finish = finish_runs(kernel, kernel.epilogue) if kernel.epilogue else None
    f, v = core_function(kernel.module, kernel.target, problem, name)
    element, lanes = kernel.element, kernel.tile.lanes
    places = list(itertools.product(range(v.m), range(v.n)))

    def added(sums: Sequence[Value], step: Size, left: Size | None) -> list[Value]:
        rows = _along(kernel, f, v.a, v.m, (v.a_row, v.a_column), step, left)
        columns = _along(kernel, f, v.b, v.n, (v.b_column, v.b_row), step, left)
        return [
            multiply_add(f, element, rows[i], columns[j], total)
            for (i, j), total in zip(places, sums, strict=True)
        ]

    whole = f.round_down(v.k, lanes)
    zeros = [constant(Type(element.compute.element, lanes), 0)] * len(places)
    with f.loop(0, whole, lanes, zeros) as loop:
        loop.next = added(loop.carried, loop.index, None)
    with f.loop(whole, v.k, lanes, loop.results) as loop:
        loop.next = added(loop.carried, loop.index, f.sub_size(v.k, loop.index))
    for (i, j), sums in zip(places, loop.results, strict=True):
        (total,) = horizontal(f, [sums])
        at = f.add_size(f.mul_size(v.c_row, i), j)
        element.store(f, total, f.offset(element.storage, v.c, at))
    if finish:
        for row in range(v.m):
            at = f.offset(element.storage, v.c, f.mul_size(v.c_row, row))
            f.call_pointer(finish, [at, at, f.i64(v.n), v.call, v.batch, f.i64(row), f.i64(0)])
    f.ret()


def _along(
    kernel: Kernel, f: Function, matrix: Value, count: int, strides: tuple[Size, Size],
    step: Size, left: Size | None,
) -> list[Value]:  # fmt: skip
    """So many runs along the depth from a step on, with these strides between runs and steps."""
    apart, onward = strides
    if onward != 1:
        return _columns(kernel, f, matrix, count, step, left)
    kind, lanes = kernel.element.storage, kernel.tile.lanes
    (mask,) = _masks(f, 1, lanes, left)
    starts = [f.add_size(f.mul_size(apart, i), step) for i in range(count)]
    return [kernel.element.load(f, f.offset(kind, matrix, at), lanes, mask) for at in starts]
