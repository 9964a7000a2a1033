"""The register-tiled kernel under every large product, and the store of tiles at the edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from heterosis.backends.native.codegen.emit.access import lane_numbers
from heterosis.backends.native.codegen.emit.builder import (
    I8,
    I64,
    LINE,
    PTR,
    SECOND_LEVEL,
    Function,
    Module,
    Size,
    Type,
    Value,
    constant,
)
from heterosis.backends.native.codegen.epilogue import Epilogue, Position
from heterosis.backends.native.codegen.kernels.matmul.element import Element
from heterosis.backends.native.codegen.kernels.matmul.tile import Tile
from heterosis.backends.native.codegen.target import Target

# How a tile meets the result: bits of the `mode` argument.
ACCUMULATE = 1  # add to what is there: not the first block of depth
FINAL = 2  # the last block of depth: the epilogue applies
FRESH = 4  # the left operand has not been read before, and is fetched
FETCHES = 8  # a part of the next right panel is fetched
PACE_AT = 4  # the bit with which the pace begins: see `Fetching`

_AHEAD = 2048  # how many bytes of the left operand ahead to fetch
_AT_ONCE = LINE  # of the next right panel, in each turn of the unrolled loop, at pace 0

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
    narrow: int = 0  # of a panel's columns, only the first so many are computed; 0: all

    @property
    def columns(self) -> int:
        """How many columns are computed."""
        return self.narrow or self.tile.columns

    @property
    def vectors(self) -> tuple[Type, ...]:
        """The vectors that a row of them is, of which the last may be half a one."""
        element, lanes = self.element.compute.element, self.tile.lanes
        whole, rest = divmod(self.columns, lanes)
        return (Type(element, lanes),) * whole + ((Type(element, rest),) if rest else ())

    def narrowed(self, columns: int) -> Kernel:
        """The same for panels of which there are so many columns."""
        return replace(self, prefix=self.name(f"narrow.{columns}"), narrow=columns)

    def function(self, name: str, parameters: list[tuple[str, Type]]) -> Function:
        return self.module.function(
            f"{self.prefix}.{name}", parameters, attributes=self.target.function_attributes
        )

    def name(self, part: str) -> str:
        return f"{self.prefix}.{part}"

    def ended_by(self, epilogue: Epilogue | None) -> Kernel:
        """The same with an epilogue, for functions of its own."""
        if epilogue is None:
            return self
        return replace(self, prefix=self.name(epilogue.digest), epilogue=epilogue)


def multiply_add(f: Function, element: Element, a: Value, b: Value, total: Value) -> Value:
    if element.compute.is_float:
        return f.fma(a, b, total)
    return f.add(f.mul(a, b), total)


def emit_micro_kernel(kernel: Kernel, rows: int) -> None:
    """`micro.<rows>(a, b, c, c_row, depth, mode, ahead, call, batch, row, column)`.

    A tile of `rows` x `tile.columns` from a panel of the left operand (`tile.rows` numbers a
    step) and one of the right. All sums stay in registers until the depth is through. What of the
    next right panel is wanted soon is fetched from `ahead` on. A kernel with an epilogue is for
    the last block of depth.
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
        f.prefetch(pointer, tile.columns * element.size, write=True)
    fetch_beside(kernel, f, Position(*place), range(rows))
    sums: list[Value] = zeros(kernel, rows)
    unrolled = f.round_down(depth, tile.unroll)
    fetching = Fetching(kernel, f, f.binary("lshr", mode, constant(I64, PACE_AT)))
    fetches = has(f, mode, FETCHES)
    with f.loop(0, unrolled, tile.unroll, [ahead, a, b, *sums]) as loop:
        ahead, *state = loop.carried
        ahead = fetching.fetch_if(fetches, ahead)
        lines = _lines(kernel, f, state[0])
        loop.next = [ahead, *_steps(kernel, f, rows, state, tile.unroll, lines)]
    state = loop.results[1:]
    with f.loop(unrolled, depth, 1, state) as loop:
        loop.next = _steps(kernel, f, rows, loop.carried, 1)
    # narrow types arrive in a scratch tile
    plain = replace(kernel, element=element.widened)
    sums = loop.results[2:]
    emit_finish(plain, f, targets, c_row, sums, tile.vectors, has(f, mode, ACCUMULATE), place)
    f.ret()


def fetch_beside(kernel: Kernel, f: Function, at: Position, down: Sequence[Size]) -> None:
    """Fetch what an epilogue will read for a tile whose rows lie so far `down` from a place."""
    if kernel.epilogue is None:
        return
    for below in down:
        here = replace(at, row=f.add_size(at.row, below))
        kernel.epilogue.fetch(f, here, kernel.columns)


def _lines(kernel: Kernel, f: Function, a: Value) -> list[Value]:
    """What of the left panel to fetch in a turn of the unrolled loop. Large operands come from
    memory, where the processor guesses too late what will be read."""
    kind, size = kernel.element.compute, kernel.element.size
    deep = kernel.tile.unroll * kernel.tile.rows * size
    return [f.offset(kind, a, (_AHEAD + byte) // size) for byte in range(0, deep, LINE)]


@dataclass(frozen=True)
class Fetching:
    """Brings the next right panel into the cache while tiles are computed, a few lines in each turn
    of the unrolled loop. Each `pace` fetches twice as much in a turn as the one before."""

    kernel: Kernel
    f: Function
    pace: Value

    @classmethod
    def shared_by(cls, kernel: Kernel, f: Function, tiles: Size) -> Fetching:
        """The slowest pace at which so many tiles fetch a panel together: memory delivers at an
        even rate, and lets few lines be asked for at a time."""
        pace: Size = 0
        for step in range(_paces(kernel) - 1):
            hurries = f.compare("slt", f.i64(tiles), f.i64(_tiles_at(kernel, step)))
            pace = f.add_size(pace, f.select(hurries, constant(I64, 1), constant(I64, 0)))
        return cls(kernel, f, f.i64(pace))

    @property
    def tiles(self) -> Value:
        """How many tiles fetch a panel."""
        most = constant(I64, 1 << (_paces(self.kernel) - 1))
        return self.f.binary("lshr", most, self.pace)

    def fetch(self, ahead: Value) -> Value:
        """Fetch what lies `ahead` in this turn; gives what does in the next one."""
        f = self.f
        self._lines(ahead, 0, _AT_ONCE)
        for pace in range(1, _paces(self.kernel)):
            more = f.compare("sge", self.pace, constant(I64, pace))
            end = _AT_ONCE << pace
            f.if_else(more, partial(self._lines, ahead, end // 2, end))
        return f.offset(self.kernel.element.compute, ahead, self._in_a_turn)

    def fetch_if(self, wanted: Value, ahead: Value) -> Value:
        """The same only where it is `wanted`; or always, with turns so short that a branch in them
        costs registers."""
        if _paces(self.kernel) == 1:
            return self.fetch(ahead)
        return self.f.if_else(wanted, lambda: [self.fetch(ahead)], lambda: [ahead])[0]

    def _lines(self, ahead: Value, begin: int, end: int) -> None:
        self.f.prefetch(self.f.offset(I8, ahead, begin), end - begin, locality=SECOND_LEVEL)

    def fetched(self, steps: Size) -> Size:
        """How many numbers are fetched in so many steps of depth."""
        turns = self.f.div_size(steps, self.kernel.tile.unroll)
        return self.f.mul_size(turns, self._in_a_turn)

    @property
    def _in_a_turn(self) -> Value:
        numbers = constant(I64, _AT_ONCE // self.kernel.element.size)
        return self.f.binary("shl", numbers, self.pace)


def _tiles_at(kernel: Kernel, pace: int) -> int:
    """How many tiles it takes to fetch a panel at this pace."""
    tile = kernel.tile
    read = tile.unroll * tile.columns * kernel.element.size  # of a panel, in a turn
    return -(-read // (_AT_ONCE << pace))


def _paces(kernel: Kernel) -> int:
    """How many paces there are: at the last one, a tile fetches a panel alone."""
    return (_tiles_at(kernel, 0) - 1).bit_length() + 1


def zeros(kernel: Kernel, rows: int) -> list[Value]:
    """The sums of so many rows of a tile before anything is added."""
    return [constant(vector, 0) for vector in kernel.vectors] * rows


def _steps(
    kernel: Kernel, f: Function, rows: int, state: Sequence[Value], count: int,
    lines: Sequence[Value] = (),
) -> list[Value]:  # fmt: skip
    """`count` steps of depth: a column of the left panel times a row of the right one. Each
    fetches some of the `lines`: all at once, they would upset the allocation of registers."""
    element, tile = kernel.element, kernel.tile
    a, b, *sums = state
    for step in range(count):
        right = row_of_panel(kernel, f, b, step)
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


def row_of_panel(kernel: Kernel, f: Function, b: Value, step: int) -> list[Value]:
    """What a panel of the right operand holds `step` steps of depth on."""
    compute, tile = kernel.element.compute, kernel.tile
    return [
        f.load(vector, f.offset(compute, b, step * tile.columns + j * tile.lanes))
        for j, vector in enumerate(kernel.vectors)
    ]


def _broadcasts(
    kernel: Kernel, f: Function, a: Value, first: int, rows: int
) -> Callable[[int], Value]:
    """Row number -> its number in every lane."""
    element, lanes = kernel.element, kernel.tile.lanes

    def from_memory(row: int) -> Value:
        return f.splat(f.load(element.compute, f.offset(element.compute, a, first + row)), lanes)

    if not kernel.target.multiplies_by_lanes or rows % lanes:
        return from_memory
    # Multiplying by one lane of a register is an instruction here: four numbers cost one load.
    loaded = [
        f.load(kernel.vectors[0], f.offset(element.compute, a, first + row))
        for row in range(0, rows, lanes)
    ]
    return lambda row: f.shuffle(loaded[row // lanes], loaded[row // lanes], [row % lanes] * lanes)


def emit_finish(
    kernel: Kernel, f: Function, targets: list[Value], c_row: Value, sums: list[Value],
    vectors: int, accumulate: Value, place: list[Value], final: Value | None = None,
    down: Sequence[Size] | None = None, mask: Value | None = None,
) -> None:  # fmt: skip
    """Add what is there, apply the epilogue (if `final`, in case that is given), store; `targets`
    are the rows, `vectors` wide, the last of which may be shorter. They are one below the other,
    unless `down` says which row of the tile each is: the last one may come several times. Of a
    single vector, a `mask` says which lanes are part of the result."""
    down = range(len(targets)) if down is None else down
    end = _End(kernel, f, targets, c_row, vectors, max(sums[0].type.lanes, 1), down, mask)
    if kernel.element.splits_depth:
        sums = f.if_else(accumulate, lambda: end.added(sums), lambda: sums)
    if kernel.epilogue is None:
        end.store(sums)
        return
    # narrow types would be rounded on the way
    at_once = kernel.epilogue.is_cheap or kernel.element.converts
    finish = partial(end.at_once if at_once else end.afterwards, place, sums)
    if final is None:
        finish()
    else:
        f.if_else(final, finish, lambda: end.store(sums))


@dataclass(frozen=True)
class _End:
    """Where a tile's sums go, `vectors` of `width` numbers a row, as `emit_finish` has it."""

    kernel: Kernel
    f: Function
    targets: list[Value]
    c_row: Value
    vectors: int
    width: int
    down: Sequence[Size]
    mask: Value | None

    def _pointer(self, at: int) -> Value:
        row, j = divmod(at, self.vectors)
        return self.f.offset(self.kernel.element.storage, self.targets[row], j * self.width)

    def added(self, sums: list[Value]) -> list[Value]:
        """The sums and what is there."""
        f, load = self.f, self.kernel.element.load
        return [
            f.add(total, load(f, self._pointer(at), total.type.lanes, self.mask))
            for at, total in enumerate(sums)
        ]

    def store(self, values: Sequence[Value]) -> None:
        for at, value in enumerate(values):
            self.kernel.element.store(self.f, value, self._pointer(at), self.mask)

    def at_once(self, place: list[Value], sums: list[Value]) -> None:
        """Apply the epilogue in registers."""
        down, vectors = self.down, self.vectors
        self.store(
            [
                self._finished(place, total, down[at // vectors], at % vectors)
                for at, total in enumerate(sums)
            ]
        )

    def afterwards(self, place: list[Value], sums: list[Value]) -> None:
        """Apply it to one row after another, read from the cache: dear work is written out once,
        for so many vectors that their chains of operations run side by side."""
        f, vectors = self.f, self.vectors
        self.store(sums)
        together = vectors if vectors & (vectors - 1) == 0 else 1
        with f.loop(0, f.add_size(self.down[-1], 1)) as i:
            if sums[0].type == sums[vectors - 1].type:
                with f.loop(0, vectors, together) as j:
                    self._end_again(place, i.index, j.index, together * sums[0].type.lanes)
            else:
                for number, total in enumerate(sums[:vectors]):
                    self._end_again(place, i.index, number, total.type.lanes)

    def _end_again(self, place: list[Value], i: Size, j: Size, lanes: int) -> None:
        f, element = self.f, self.kernel.element
        at = f.add_size(f.mul_size(i, self.c_row), f.mul_size(j, self.width))
        to = f.offset(element.storage, self.targets[0], at)
        stored = element.load(f, to, lanes, self.mask)
        element.store(f, self._finished(place, stored, i, j), to, self.mask)

    def _finished(self, place: list[Value], total: Value, i: Size, j: Size) -> Value:
        f, epilogue = self.f, self.kernel.epilogue
        assert epilogue is not None
        (call, batch, row, column), right = place, f.mul_size(j, self.width)
        here = Position(call, batch, f.add_size(row, i), f.add_size(column, right), self.mask)
        return epilogue(f, total, here)


def has(f: Function, mode: Value, bit: int) -> Value:
    return f.compare("ne", f.binary("and", mode, constant(I64, bit)), constant(I64, 0))


def emit_edge_store(kernel: Kernel) -> None:
    """`edge(tile, c, c_row, rows, columns, mode, call, batch, row, column)`.

    Stores the part of a finished tile that lies inside the result, through the kernel's epilogue
    if it has one, narrowing it if need be.
    """
    f = kernel.function(
        "edge",
        [("tile", PTR), ("c", PTR), ("c_row", I64), ("rows", I64), ("columns", I64)]
        + [("mode", I64), *PLACE],
    )
    f.if_else(
        has(f, f.parameters[5], ACCUMULATE),
        lambda: _copy_tile(kernel, f, accumulate=True),
        lambda: _copy_tile(kernel, f, accumulate=False),
    )
    f.ret()


def _copy_tile(kernel: Kernel, f: Function, *, accumulate: bool) -> None:
    element, tile = kernel.element, kernel.tile
    source, c, c_row, rows, columns, _, call, batch, row0, column0 = f.parameters

    by_masks = kernel.target.has_masks() and not element.converts

    def copy(row: Value, column: Value, lanes: int, mask: Value | None = None) -> None:
        at = f.add_size(f.mul_size(row, tile.columns), column)
        to = f.offset(element.storage, c, f.add_size(f.mul_size(row, c_row), column))
        wide = type(element.compute)(element.compute.element, lanes)
        own = f.offset(element.compute, source, at)
        value = f.load(wide, own) if mask is None else f.masked_load(wide, own, mask)
        if accumulate:
            old = element.load(f, to, lanes) if mask is None else f.masked_load(wide, to, mask)
            value = f.add(value, old)
        if kernel.epilogue:
            here = Position(call, batch, f.add_size(row0, row), f.add_size(column0, column), mask)
            value = kernel.epilogue(f, value, here)
        if mask is None:
            element.store(f, value, to)
        else:
            f.masked_store(value, to, mask)

    whole = f.round_down(columns, tile.lanes)
    integer = element.compute.as_integer
    left = f.i64(f.sub_size(columns, whole))
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
