"""The product straight from its operands, nothing copied: small matrices, and a few rows.

The right operand's rows are read as they lie, so its columns must be neighbours; the left one
may have any strides. A few columns are computed by the transposed operands, whose result is stored
`turned`: the left one's rows must be neighbours then.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.access import first_lanes
from heterosis.backends.native.codegen.emit.builder import (
    I64,
    PTR,
    Function,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.epilogue import Position
from heterosis.backends.native.codegen.kernels.matmul.blocked import (
    ceil_div,
    core_function,
    mode_of,
    round_up,
)
from heterosis.backends.native.codegen.kernels.matmul.frame import Frame, share
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import (
    ACCUMULATE,
    FINAL,
    PLACE,
    Kernel,
    emit_finish,
    has,
    multiply_add,
)
from heterosis.backends.native.codegen.kernels.matmul.problem import Problem
from heterosis.backends.native.codegen.kernels.matmul.tile import direct_tiles
from heterosis.backends.native.codegen.kernels.matmul.turned_tile import TurnedTile

# Multiplications that make a share of the work worth a thread.
_SHARE_WORK = 1 << 17
# Rows of the right operand that are walked through at a time when it is large: their pages stay
# in the address cache.
_DEPTH = 32

_STRIDES = [(name, I64) for name in ("a_row", "a_column", "b_row", "c_row", "c_column")]


def emit_direct(kernel: Kernel, problem: Problem, name: str) -> None:
    """Define `<name>(call, scratch, batch, a, b, c, <unknown sizes>)`."""
    heights, turned = _heights(kernel, problem.m), problem.variant == "direct_turned"
    if turned:
        kernel = replace(kernel, prefix=kernel.name("turned"))
    for height in heights:
        if not kernel.module.defines(kernel.name(f"strip.{height}")):
            _emit_strip(kernel, height, turned=turned)
    f, v = core_function(kernel.module, kernel.target, problem, name)
    # Of the result that is computed: turned, its rows are columns.
    v.c_row, v.c_column = (1, v.c_row) if turned else (v.c_row, 1)
    memory = Frame.allocate(f)
    # Many rows are shared by rows, few by columns.
    tall = f.compare("sge", f.i64(v.m), f.i64(2 * heights[0]))
    least = abi.grain_of(f, f.mul_size(v.n, v.k), _SHARE_WORK)
    workers = f.i64(1) if problem.over_batches else abi.workers(f, v.call)
    fair = f.max_size(least, ceil_div(f, v.m, f.mul_size(workers, 2)))
    rows = f.select(tall, f.i64(round_up(f, fair, heights[0])), f.i64(f.max_size(v.m, 1)))
    least = abi.grain_of(f, f.mul_size(v.m, v.k), _SHARE_WORK)
    fair = f.max_size(least, ceil_div(f, v.n, f.mul_size(workers, 2)))
    columns = f.select(tall, f.i64(v.n), f.i64(round_up(f, fair, 8 * kernel.tile.lanes)))
    frame = Frame(**vars(v), share_rows=rows, share_columns=columns)
    frame.save(f, memory)
    count = f.mul_size(ceil_div(f, v.m, rows), ceil_div(f, v.n, columns))
    share(f, v.call, f"{name}.share", memory, count, 1, alone=problem.over_batches)
    f.ret()
    _emit_share(kernel, name, frame, heights)


def _heights(kernel: Kernel, rows: Size | None) -> list[int]:
    """The strips that a result of so many rows is made of; None: any number."""
    heights = list(direct_tiles(kernel.target, kernel.element))
    return [1] if rows == 1 else heights


def _emit_share(kernel: Kernel, name: str, frame: Frame, heights: list[int]) -> None:
    """A range of rows by a range of columns; one of the two is everything."""
    f, v, begin, end, _ = frame.body(kernel.module, kernel.target, f"{name}.share")
    with f.loop(begin, end) as part:
        across = ceil_div(f, v.n, v.share_columns)
        row = f.mul_size(f.div_size(part.index, across), v.share_rows)
        column = f.mul_size(f.rem_size(part.index, across), v.share_columns)
        rows = f.min_size(v.share_rows, f.sub_size(v.m, row))
        columns = f.min_size(v.share_columns, f.sub_size(v.n, column))
        _depth_blocks(kernel, f, v, heights, row, column, rows, columns)
    f.ret()


def _depth_blocks(
    kernel: Kernel, f: Function, v: SimpleNamespace, heights: list[int],
    row: Size, column: Size, rows: Size, columns: Size,
) -> None:  # fmt: skip
    depth: Size = f.max_size(v.k, 1)
    if kernel.element.splits_depth:
        large = f.compare("sgt", f.i64(f.mul_size(v.k, v.b_row)), f.i64(1 << 17))
        depth = f.select(large, f.i64(f.min_size(depth, _DEPTH)), f.i64(depth))
    storage = kernel.element.storage
    with f.loop(0, f.max_size(v.k, 1), depth) as step:
        steps = f.min_size(depth, f.sub_size(v.k, step.index))
        left = f.add_size(f.mul_size(row, v.a_row), f.mul_size(step.index, v.a_column))
        right = f.add_size(f.mul_size(step.index, v.b_row), column)
        to = f.add_size(f.mul_size(row, v.c_row), f.mul_size(column, v.c_column))
        operands = SimpleNamespace(
            a=f.offset(storage, v.a, left), b=f.offset(storage, v.b, right),
            c=f.offset(storage, v.c, to), depth=steps, mode=mode_of(f, step.index, steps, v.k),
            a_row=v.a_row, a_column=v.a_column, b_row=v.b_row, c_row=v.c_row, c_column=v.c_column,
            call=v.call, batch=v.batch, row=row, column=column,
        )  # fmt: skip
        _strips(kernel, f, operands, heights, rows, columns)


def _strips(
    kernel: Kernel, f: Function, o: SimpleNamespace, heights: list[int], rows: Size, columns: Size
) -> None:
    """The tallest strips that fit, then lower ones."""
    at: Size = 0
    for height in heights:
        end = f.add_size(at, f.mul_size(f.div_size(f.sub_size(rows, at), height), height))
        with f.loop(at, end, height) as i:
            arguments = [
                f.offset(kernel.element.storage, o.a, f.mul_size(i.index, o.a_row)),
                o.b,
                f.offset(kernel.element.storage, o.c, f.mul_size(i.index, o.c_row)),
                *(f.i64(getattr(o, label)) for label, _ in _STRIDES),
                f.i64(columns), f.i64(o.depth), o.mode,
                o.call, o.batch, f.i64(f.add_size(o.row, i.index)), f.i64(o.column),
            ]  # fmt: skip
            f.call(kernel.name(f"strip.{height}"), arguments)
        at = end


# Of wider tiles, more columns would be turned at once than registers hold.
_TURNED_VECTORS = 2


def _emit_strip(kernel: Kernel, rows: int, *, turned: bool) -> None:
    """`strip.<rows>(a, b, c, strides, columns, depth, mode, place)`: all columns of some rows."""
    lanes = kernel.tile.lanes
    wide = direct_tiles(kernel.target, kernel.element)[rows]
    widths = [(vectors, lanes) for vectors in wide if vectors <= _TURNED_VECTORS or not turned]
    if _by_masks(kernel):
        _emit_tile(kernel, rows, 1, _REST, turned=turned)
    else:
        assert not turned, "shorter vectors would be turned otherwise"
        widths += [(1, lanes >> less) for less in range(1, lanes.bit_length())]
    for vectors, narrow in widths:
        _emit_tile(kernel, rows, vectors, narrow, turned=turned)
    f = kernel.function(
        f"strip.{rows}",
        [("a", PTR), ("b", PTR), ("c", PTR), *_STRIDES, ("columns", I64), ("depth", I64)]
        + [("mode", I64), *PLACE],
    )
    columns, _, mode, *_ = f.parameters[_COLUMNS:]
    once = f.compare("eq", f.binary("and", mode, constant(I64, ACCUMULATE)), f.i64(0))
    vector = f.compare("sge", columns, f.i64(kernel.tile.lanes))
    f.if_else(
        f.binary("and", once, vector),
        lambda: _overlapping(kernel, f, rows, [w for w in widths if w[1] == kernel.tile.lanes]),
        lambda: _dividing(kernel, f, rows, widths),
    )
    f.ret()


def _overlapping(kernel: Kernel, f: Function, rows: int, widths: list[tuple[int, int]]) -> None:
    """Whole tiles; the last ends with the matrix and computes some columns a second time."""
    columns = f.parameters[_COLUMNS]
    (vectors, lanes), *narrower = widths
    width = vectors * lanes

    def whole() -> None:
        end = f.round_down(columns, width)
        with f.loop(0, end, width) as j:
            _call_tile(kernel, f, rows, vectors, lanes, j.index)
        rest = f.i64(f.sub_size(columns, end))
        f.if_else(f.compare("sgt", rest, f.i64(0)), lambda: last(widths[::-1], rest))

    def last(candidates: list[tuple[int, int]], rest: Value) -> None:
        """The narrowest tile that covers the rest."""
        (some, wide), *larger = candidates

        def covered() -> None:
            begin = f.i64(f.sub_size(columns, some * wide))
            _call_tile(kernel, f, rows, some, wide, begin)

        if not larger:
            covered()
            return
        fits = f.compare("sle", rest, f.i64(some * wide))
        f.if_else(fits, covered, lambda: last(larger, rest))

    if not narrower:
        whole()
        return
    enough = f.compare("sge", columns, f.i64(width))
    f.if_else(enough, whole, lambda: _overlapping(kernel, f, rows, narrower))


def _dividing(kernel: Kernel, f: Function, rows: int, widths: list[tuple[int, int]]) -> None:
    """Tiles of falling width, each column once."""
    columns = f.parameters[_COLUMNS]
    at: Size = 0
    for vectors, lanes in widths:
        end = f.round_down(columns, vectors * lanes)
        with f.loop(at, end, vectors * lanes) as j:
            _call_tile(kernel, f, rows, vectors, lanes, j.index)
        at = end
    if _by_masks(kernel):
        with f.loop(at, columns, kernel.tile.lanes) as j:
            _call_tile(kernel, f, rows, 1, _REST, j.index)


_COLUMNS = 3 + len(_STRIDES)  # where a strip's parameters say how many there are
_REST = 0  # lanes of a tile that says how many it has when it is called


def _by_masks(kernel: Kernel) -> bool:
    """Whether columns too few for a vector are one under a mask; else they are shorter vectors."""
    return kernel.target.has_masks() and not kernel.element.converts


def _call_tile(
    kernel: Kernel, f: Function, rows: int, vectors: int, lanes: int, column: Value
) -> None:
    a, b, c, *strides, columns, depth, mode, call, batch, row, column0 = f.parameters
    storage = kernel.element.storage
    place = [call, batch, row, f.i64(f.add_size(column0, column))]
    to = f.offset(storage, c, f.mul_size(column, strides[-1]))
    arguments = [a, f.offset(storage, b, column), to]
    left = f.i64(f.sub_size(columns, column))
    name = kernel.name(f"tile.{rows}.{vectors}.{lanes}")
    f.call(name, [*arguments, *strides, left, depth, mode, *place])


def _emit_tile(kernel: Kernel, rows: int, vectors: int, lanes: int, *, turned: bool) -> None:
    """`tile.<rows>.<vectors>.<lanes>(a, b, c, strides, columns, depth, mode, place)`; `columns` are
    from the tile on, and no fewer than it computes, unless it is that of the `_REST`."""
    f = kernel.function(
        f"tile.{rows}.{vectors}.{lanes}",
        [("a", PTR), ("b", PTR), ("c", PTR), *_STRIDES, ("columns", I64), ("depth", I64)]
        + [("mode", I64), *PLACE],
    )
    element = kernel.element
    a, b, c, a_row, a_column, b_row, c_row, c_column, columns, depth, mode, *place = f.parameters
    is_rest = lanes == _REST
    mask = first_lanes(f, columns, kernel.tile.lanes) if is_rest else None
    lanes = kernel.tile.lanes if is_rest else 0 if lanes == 1 else lanes
    vector = Type(element.compute.element, lanes)
    left = [f.offset(element.storage, a, f.mul_size(row, a_row)) for row in range(rows)]
    zero = constant(vector, 0)
    with f.loop(0, depth, 1, [constant(I64, 0), b, *[zero] * (rows * vectors)]) as step:
        at, right, *sums = step.carried
        loaded = [
            element.load(f, f.offset(element.storage, right, j * max(lanes, 1)), lanes, mask)
            for j in range(vectors)
        ]
        for row in range(rows):
            scale = f.splat(element.load(f, f.offset(element.storage, left[row], at)), lanes)
            for j, part in enumerate(loaded):
                here = row * vectors + j
                sums[here] = multiply_add(f, element, scale, part, sums[here])
        step.next = [
            f.i64(f.add_size(at, a_column)),
            f.offset(element.storage, right, b_row),
            *sums,
        ]
    more, final, sums = has(f, mode, ACCUMULATE), has(f, mode, FINAL), step.results[2:]
    if turned:
        call, batch, *corner = place
        tile = TurnedTile(kernel, f, vectors, more, final, columns if is_rest else None)
        tile.store(sums, c, c_column, Position(call, batch, *reversed(corner)))
    else:
        targets = [f.offset(element.storage, c, f.mul_size(row, c_row)) for row in range(rows)]
        emit_finish(kernel, f, targets, c_row, sums, vectors, more, place, final, mask=mask)
    f.ret()
