"""The register-tiled kernel under every large product, and the store of tiles at the edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from heterosis.codegen.builder import I64, PTR, Function, Module, Size, Value, constant
from heterosis.codegen.epilogue import Epilogue, Position
from heterosis.codegen.matmul.element import Element
from heterosis.codegen.matmul.tile import Tile
from heterosis.codegen.memory import lane_numbers
from heterosis.codegen.target import Target

# How a tile meets the result: bits of the `mode` argument.
ACCUMULATE = 1  # add to what is there: not the first block of depth
FINAL = 2  # the last block of depth: the epilogue applies

_LINE = 64  # bytes that are fetched at once
_AHEAD = 2048  # how many bytes of the left operand ahead to fetch
_AT_ONCE = 2 * _LINE  # of the next right panel, in each turn of the unrolled loop

PLACE = [("call", PTR), ("batch", I64), ("row", I64), ("column", I64)]


@dataclass(frozen=True)
class Kernel:
    """What the functions of one product are specialised for."""

    module: Module
    target: Target
    element: Element
    tile: Tile
    prefix: str
    epilogue: Epilogue | None = None

    def function(self, name: str, parameters: list) -> Function:
        return self.module.function(
            f"{self.prefix}.{name}", parameters, attributes=self.target.function_attributes
        )

    def name(self, part: str) -> str:
        return f"{self.prefix}.{part}"


def multiply_add(f: Function, element: Element, a: Value, b: Value, total: Value) -> Value:
    if element.compute.is_float:
        return f.fma(a, b, total)
    return f.add(f.mul(a, b), total)


def emit_micro_kernel(kernel: Kernel, rows: int) -> None:
    """`micro.<rows>(a, b, c, c_row, depth, mode, ahead, call, batch, row, column)`.

    A tile of `rows` x `tile.columns` from a panel of the left operand (`tile.rows` numbers a
    step) and one of the right. All sums stay in registers until the depth is through. What is
    wanted soon is fetched from `ahead` on.
    """
    element, tile = kernel.element, kernel.tile
    f = kernel.function(
        f"micro.{rows}",
        [("a", PTR), ("b", PTR), ("c", PTR), ("c_row", I64), ("depth", I64), ("mode", I64)]
        + [("ahead", PTR), *PLACE],
    )
    a, b, c, c_row, depth, mode, ahead, *place = f.parameters
    targets = [f.offset(element.compute, c, f.mul_size(row, c_row)) for row in range(rows)]
    for pointer in targets:
        for byte in range(0, tile.columns * element.size, 64):
            f.prefetch(f.offset(element.compute, pointer, byte // element.size), write=True)
    zero = constant(_vector(kernel), 0)
    sums: list[Value] = [zero] * (rows * tile.vectors)
    unrolled = f.round_down(depth, tile.unroll)
    with f.loop(0, unrolled, tile.unroll, [a, b, *sums]) as loop:
        at = f.div_size(f.mul_size(loop.index, _AT_ONCE // element.size), tile.unroll)
        lines = _lines(kernel, f, f.offset(element.compute, ahead, at), loop.carried[0])
        loop.next = _steps(kernel, f, rows, loop.carried, tile.unroll, lines)
    state = loop.results
    with f.loop(unrolled, depth, 1, state) as loop:
        loop.next = _steps(kernel, f, rows, loop.carried, 1)
    # narrow types arrive in a scratch tile
    plain = replace(kernel, element=element.widened)
    emit_finish(plain, f, targets, c_row, loop.results[2:], tile.vectors, mode, place)
    f.ret()


def _vector(kernel: Kernel):
    return type(kernel.element.compute)(kernel.element.compute.element, kernel.tile.lanes)


def _steps(
    kernel: Kernel, f: Function, rows: int, state: Sequence[Value], count: int,
    lines: Sequence[Value] = (),
) -> list[Value]:  # fmt: skip
    """`count` steps of depth: a column of the left panel times a row of the right one. Each
    fetches some of the `lines`: all at once, they would upset the allocation of registers."""
    element, tile = kernel.element, kernel.tile
    a, b, *sums = state
    for step in range(count):
        right = [
            f.load(
                _vector(kernel), f.offset(element.compute, b, step * tile.columns + j * tile.lanes)
            )
            for j in range(tile.vectors)
        ]
        for line in lines[step::count]:
            f.prefetch(line)
        left = _broadcasts(kernel, f, a, step * tile.rows, rows)
        for row in range(rows):
            scale = left(row)
            for j, vector in enumerate(right):
                at = row * tile.vectors + j
                sums[at] = multiply_add(f, element, scale, vector, sums[at])
    a = f.offset(element.compute, a, count * tile.rows)
    b = f.offset(element.compute, b, count * tile.columns)
    return [a, b, *sums]


def _broadcasts(
    kernel: Kernel, f: Function, a: Value, first: int, rows: int
) -> Callable[[int], Value]:
    """Row number -> its number in every lane."""
    element, lanes = kernel.element, kernel.tile.lanes

    def from_memory(row: int) -> Value:
        return f.splat(f.load(element.compute, f.offset(element.compute, a, first + row)), lanes)

    if kernel.target.name != "neon" or rows % lanes:
        return from_memory
    # Multiplying by one lane of a register is an instruction here: four numbers cost one load.
    loaded = [
        f.load(_vector(kernel), f.offset(element.compute, a, first + row))
        for row in range(0, rows, lanes)
    ]
    return lambda row: f.shuffle(loaded[row // lanes], loaded[row // lanes], [row % lanes] * lanes)


def emit_finish(
    kernel: Kernel, f: Function, targets: list[Value], c_row: Value, sums: list[Value],
    vectors: int, mode: Value, place: list[Value],
) -> None:  # fmt: skip
    """Add what is there, apply the epilogue, store; `targets` are the rows, `vectors` wide."""
    element, epilogue = kernel.element, kernel.epilogue
    width = max(sums[0].type.lanes, 1)

    def pointer(at: int) -> Value:
        row, j = divmod(at, vectors)
        return f.offset(element.storage, targets[row], j * width)

    def added() -> list[Value]:
        return [
            f.add(total, element.load(f, pointer(at), total.type.lanes))
            for at, total in enumerate(sums)
        ]

    def store(values: Sequence[Value]) -> Sequence[Value]:
        for at, value in enumerate(values):
            element.store(f, value, pointer(at))
        return ()

    if kernel.element.splits_depth:
        sums = f.if_else(has(f, mode, ACCUMULATE), added, lambda: sums)
    if epilogue is None:
        store(sums)
        return
    call, batch, row, column = place

    def finished(total: Value, down: Size, j: Size) -> Value:
        right = f.mul_size(j, width)
        here = Position(call, batch, f.add_size(row, down), f.add_size(column, right))
        return epilogue(f, total, here)

    def at_once() -> Sequence[Value]:
        return store([finished(total, *divmod(at, vectors)) for at, total in enumerate(sums)])

    def afterwards() -> Sequence[Value]:
        """One vector after another, read from the cache: dear work is written out once."""
        store(sums)
        with f.loop(0, len(targets)) as down, f.loop(0, vectors) as j:
            at = f.add_size(f.mul_size(down.index, c_row), f.mul_size(j.index, width))
            to = f.offset(element.storage, targets[0], at)
            total = element.load(f, to, sums[0].type.lanes)
            element.store(f, finished(total, down.index, j.index), to)
        return ()

    # narrow types would be rounded on the way
    final = at_once if epilogue.is_cheap or element.converts else afterwards
    f.if_else(has(f, mode, FINAL), final, lambda: store(sums))


def has(f: Function, mode: Value, bit: int) -> Value:
    return f.compare("ne", f.binary("and", mode, constant(I64, bit)), constant(I64, 0))


def emit_edge_store(kernel: Kernel) -> None:
    """`edge(tile, c, c_row, rows, columns, mode, call, batch, row, column)`.

    Stores the part of a finished tile that lies inside the result, narrowing it if need be.
    """
    f = kernel.function(
        "edge",
        [("tile", PTR), ("c", PTR), ("c_row", I64), ("rows", I64), ("columns", I64)]
        + [("mode", I64), *PLACE],
    )
    mode = f.parameters[5]

    def final(accumulate: bool) -> Callable[[], Sequence[Value]]:
        def branch() -> Sequence[Value]:
            if kernel.epilogue is None:
                return _copy_tile(kernel, f, accumulate, False)
            return f.if_else(
                has(f, mode, FINAL),
                lambda: _copy_tile(kernel, f, accumulate, True),
                lambda: _copy_tile(kernel, f, accumulate, False),
            )

        return branch

    f.if_else(has(f, mode, ACCUMULATE), final(True), final(False))
    f.ret()


def _copy_tile(kernel: Kernel, f: Function, accumulate: bool, final: bool) -> Sequence[Value]:
    element, tile = kernel.element, kernel.tile
    source, c, c_row, rows, columns, _, call, batch, row0, column0 = f.parameters

    by_masks = kernel.target.name in ("avx512", "avx2") and not element.converts

    def copy(row: Value, column: Value, lanes: int, mask: Value | None = None) -> None:
        at = f.add_size(f.mul_size(row, tile.columns), column)
        to = f.offset(element.storage, c, f.add_size(f.mul_size(row, c_row), column))
        wide = type(element.compute)(element.compute.element, lanes)
        own = f.offset(element.compute, source, at)
        value = f.load(wide, own) if mask is None else f.masked_load(wide, own, mask)
        if accumulate and mask is None:
            value = f.add(value, element.load(f, to, lanes))
        elif accumulate:
            value = f.add(value, f.masked_load(wide, to, mask))
        if final:
            here = Position(call, batch, f.add_size(row0, row), f.add_size(column0, column), mask)
            value = kernel.epilogue(f, value, here)
        if mask is None:
            element.store(f, value, to)
        else:
            f.masked_store(value, to, mask)

    whole = f.round_down(columns, tile.lanes)
    integer = element.compute.as_integer
    left = f.int(f.sub_size(columns, whole))
    left = left if integer == I64 else f.convert("trunc", left, integer)
    lanes = lane_numbers(f, tile.lanes, integer)
    rest = f.compare("slt", lanes, f.splat(left, tile.lanes))
    with f.loop(0, rows) as row:
        with f.loop(0, whole, tile.lanes) as column:
            copy(row.index, column.index, tile.lanes)
        with f.loop(whole, columns, tile.lanes if by_masks else 1) as column:
            if by_masks:
                copy(row.index, column.index, tile.lanes, rest)
            else:
                copy(row.index, column.index, 0)
    return ()


def emit_macro_kernel(kernel: Kernel) -> None:
    """`macro(a, b, c, c_row, rows, columns, depth, mode, call, batch, row, column)`.

    A packed block of the left operand times packed panels of the right one.
    """
    tile, element = kernel.tile, kernel.element
    heights = sorted({tile.rows, *tile.tails})
    for rows in heights:
        emit_micro_kernel(kernel, rows)
    emit_edge_store(kernel)
    f = kernel.function(
        "macro",
        [("a", PTR), ("b", PTR), ("c", PTR), ("c_row", I64), ("rows", I64), ("columns", I64)]
        + [("depth", I64), ("mode", I64), *PLACE],
    )
    a, b, c, c_row, rows, columns, depth, mode, call, batch, row0, column0 = f.parameters
    scratch = f.allocate(element.compute, tile.rows * tile.columns)
    with f.loop(0, columns, tile.columns) as j:
        right = f.offset(element.compute, b, f.mul_size(j.index, depth))
        width = f.min_size(tile.columns, f.sub_size(columns, j.index))
        wide = f.compare("eq", width, constant(I64, tile.columns))
        following = f.offset(element.compute, right, f.mul_size(depth, tile.columns))
        with f.loop(0, rows, tile.rows) as i:
            ahead = _ahead(kernel, f, following, i.index, depth)
            left = f.offset(element.compute, a, f.mul_size(i.index, depth))
            height = f.min_size(tile.rows, f.sub_size(rows, i.index))
            to = f.offset(element.storage, c, f.add_size(f.mul_size(i.index, c_row), j.index))
            place = [call, batch, f.add_size(row0, i.index), f.add_size(column0, j.index)]
            _one_tile(kernel, f, heights, (left, right, to, c_row, depth, mode, ahead), place,
                      height, width, wide, scratch)  # fmt: skip
    f.ret()


def _lines(kernel: Kernel, f: Function, ahead: Value, a: Value) -> list[Value]:
    """What to fetch in a turn of the unrolled loop. Large operands come from memory, where the
    processor guesses too late what will be read."""
    kind, size = kernel.element.compute, kernel.element.size
    right = [f.offset(kind, ahead, byte // size) for byte in range(0, _AT_ONCE, _LINE)]
    deep = kernel.tile.unroll * kernel.tile.rows * size
    left = [f.offset(kind, a, (_AHEAD + byte) // size) for byte in range(0, deep, _LINE)]
    return right + left


def _ahead(kernel: Kernel, f: Function, following: Value, row: Value, depth: Value) -> Value:
    """The part of the next right panel to fetch with the tile that begins at `row`: the first
    tiles fetch it all."""
    size = kernel.element.size
    part = f.mul_size(f.div_size(depth, kernel.tile.unroll), _AT_ONCE // size)
    number = f.div_size(row, kernel.tile.rows)
    enough = -(-kernel.tile.unroll * kernel.tile.columns * size // _AT_ONCE)
    number = f.min_size(number, enough - 1)
    return f.offset(kernel.element.compute, following, f.mul_size(number, part))


def _one_tile(
    kernel: Kernel, f: Function, heights: list[int], operands: tuple, place: list[Value],
    height: Value, width: Value, wide: Value, scratch: Value,
) -> None:  # fmt: skip
    """The smallest kernel that covers the tile: straight into the result where it fits exactly."""
    left, right, to, c_row, depth, mode, ahead = operands
    direct = not kernel.element.converts

    def through_scratch(rows: int) -> Sequence[Value]:
        step, plain = constant(I64, kernel.tile.columns), constant(I64, 0)
        f.call(
            kernel.name(f"micro.{rows}"), [left, right, scratch, step, depth, plain, ahead, *place]
        )
        f.call(kernel.name("edge"), [scratch, to, c_row, height, width, mode, *place])
        return ()

    def whole(rows: int) -> Sequence[Value]:
        f.call(kernel.name(f"micro.{rows}"), [left, right, to, c_row, depth, mode, ahead, *place])
        return ()

    def choose(candidates: list[int]) -> Sequence[Value]:
        rows, *larger = candidates
        if larger:
            fits = f.compare("sle", height, constant(I64, rows))
            return f.if_else(fits, lambda: with_rows(rows), lambda: choose(larger))
        return with_rows(rows)

    def with_rows(rows: int) -> Sequence[Value]:
        if not direct:
            return through_scratch(rows)
        exact = f.binary("and", wide, f.compare("eq", height, constant(I64, rows)))
        return f.if_else(exact, lambda: whole(rows), lambda: through_scratch(rows))

    full = f.binary("and", wide, f.compare("eq", height, constant(I64, kernel.tile.rows)))
    if direct:  # the inner tiles first: they are most of the work
        f.if_else(full, lambda: whole(kernel.tile.rows), lambda: choose(heights))
    else:
        choose(heights)
