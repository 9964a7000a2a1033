"""Packed blocks times packed panels, tile by tile, and what ends the tiles.

The functions here are the same for all products of one element type. An epilogue adds two of its
own, which are reached through a table: the kernel of a whole tile, and the store of a tile that
lies across an edge.
"""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.builder import (
    I1,
    I64,
    PTR,
    Function,
    Module,
    Size,
    Value,
    constant,
)
from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import (
    FETCHES,
    FINAL,
    PACE_AT,
    PLACE,
    Fetching,
    Kernel,
    emit_edge_store,
    emit_micro_kernel,
    has,
)
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.target import Target

_NOTHING = Value(PTR, "null")


def product_kernel(module: Module, target: Target, dtype: str) -> Kernel:
    """The kernel of all products of these elements."""
    kind = element(dtype, target)
    return Kernel(module, target, kind, tile(target, kind), f"matmul.{dtype}")


def finish(kernel: Kernel, epilogue: Epilogue | None) -> Value:
    """What `macro` takes to end results with an epilogue, or without one."""
    if epilogue is None:
        return _NOTHING
    own = kernel.ended_by(epilogue)
    whole = own.name(f"micro.{kernel.tile.rows}")
    if not kernel.module.defines(own.name("edge")):
        emit_edge_store(own)
    if _is_direct(kernel) and not kernel.module.defines(whole):
        emit_micro_kernel(own, kernel.tile.rows)
    functions = [f"@{whole}" if _is_direct(kernel) else "null", f"@{own.name('edge')}"]
    return kernel.module.pointers(own.name("finish"), functions)


def _is_direct(kernel: Kernel) -> bool:
    """Whether whole tiles go straight into the result: narrow types are stored by `edge`."""
    return not kernel.element.converts


def as_they_are(f: Function, mode: Value, call: Value) -> list[Value]:
    """The last arguments of `macro` for results that no epilogue ends."""
    return [mode, _NOTHING, call, *[f.i64(0)] * 3]


@dataclass(frozen=True)
class Ending:
    """The functions that store tiles, and whether they apply an epilogue."""

    applies: Value
    whole: Value
    edge: Value


def ending(kernel: Kernel, f: Function, mode: Value, finish: Value) -> Ending:
    """What stores the tiles of this block of depth."""
    given = f.compare("ne", finish, _NOTHING)
    applies = f.binary("and", given, has(f, mode, FINAL))
    plain = [f"micro.{kernel.tile.rows}", "edge"]
    whole, edge = f.if_else(
        applies,
        lambda: [f.load(PTR, f.offset(PTR, finish, i)) for i in range(2)],
        lambda: [Value(PTR, f"@{kernel.name(part)}") for part in plain],
    )
    return Ending(applies, whole, edge)


def emit_macro_kernel(kernel: Kernel) -> None:
    """`macro(a, b, c, c_row, rows, columns, depth, mode, finish, call, batch, row, column)`, once a
    module.

    A packed block of the left operand times packed panels of the right one.
    """
    if kernel.module.defines(kernel.name("macro")):
        return
    tile, element = kernel.tile, kernel.element
    for height in _heights(kernel):
        emit_micro_kernel(kernel, height)
    emit_edge_store(kernel)
    f = kernel.function(
        "macro",
        [("a", PTR), ("b", PTR), ("c", PTR), ("c_row", I64), ("rows", I64), ("columns", I64)]
        + [("depth", I64), ("mode", I64), ("finish", PTR), *PLACE],
    )
    a, b, c, c_row, rows, columns, depth, mode, finish, call, batch, row0, column0 = f.parameters
    scratch = f.allocate(element.compute, tile.rows * tile.columns)
    end = ending(kernel, f, mode, finish)
    tiles = f.div_size(f.add_size(rows, tile.rows - 1), tile.rows)
    fetching = Fetching.shared_by(kernel, f, tiles)
    with f.loop(0, columns, tile.columns) as j:
        right = f.offset(element.compute, b, f.mul_size(j.index, depth))
        width = f.i64(f.min_size(tile.columns, f.sub_size(columns, j.index)))
        following = f.offset(element.compute, right, f.mul_size(depth, tile.columns))
        with f.loop(0, rows, tile.rows) as i:
            to = f.offset(element.storage, c, f.add_size(f.mul_size(i.index, c_row), j.index))
            ahead, fetched = _ahead(fetching, following, i.index, rows, depth)
            _OneTile(
                kernel, f, end, scratch,
                left=f.offset(element.compute, a, f.mul_size(i.index, depth)), right=right,
                to=to, c_row=c_row, depth=depth, mode=mode, ahead=ahead, fetched=fetched,
                height=f.i64(f.min_size(tile.rows, f.sub_size(rows, i.index))), width=width,
                place=[
                    call, batch,
                    f.i64(f.add_size(row0, i.index)), f.i64(f.add_size(column0, j.index)),
                ],
            ).emit()  # fmt: skip
    f.ret()


def _heights(kernel: Kernel) -> list[int]:
    return sorted({kernel.tile.rows, *kernel.tile.tails})


def _ahead(
    fetching: Fetching, following: Value, row: Value, rows: Size, depth: Size
) -> tuple[Value, Value]:
    """What of the next right panel to fetch with the tile that begins at `row`, and what `mode`
    says of that: the last tiles fetch it all. What came earlier would be gone: the left panels of
    all tiles pass through the cache."""
    f, kernel = fetching.f, fetching.kernel
    to_come = f.div_size(f.sub_size(f.sub_size(rows, 1), row), kernel.tile.rows)
    part = fetching.fetched(f.round_down(f.i64(depth), kernel.tile.unroll))
    number = f.min_size(to_come, f.sub_size(fetching.tiles, 1))
    ahead = f.offset(kernel.element.compute, following, f.mul_size(number, part))
    is_late = f.compare("slt", f.i64(to_come), fetching.tiles)
    pace = f.binary("shl", fetching.pace, constant(I64, PACE_AT))
    fetches = f.binary("or", pace, constant(I64, FETCHES))
    return ahead, f.select(is_late, fetches, constant(I64, 0))


@dataclass(frozen=True)
class _OneTile:
    """The smallest kernel that covers a tile: straight into the result where it fits exactly."""

    kernel: Kernel
    f: Function
    end: Ending
    scratch: Value
    left: Value
    right: Value
    to: Value
    c_row: Value
    depth: Value
    mode: Value
    ahead: Value
    fetched: Value  # of that, as bits of the mode
    height: Value
    width: Value
    place: list[Value]

    def emit(self) -> None:
        f, tallest = self.f, self.kernel.tile.rows
        if not _is_direct(self.kernel):
            self._smallest(_heights(self.kernel))
            return
        # the inner tiles first: they are most of the work
        f.if_else(self._fits(tallest), self._whole, lambda: self._smallest(_heights(self.kernel)))

    def _fits(self, rows: int) -> Value:
        f = self.f
        wide = f.compare("eq", self.width, constant(I64, self.kernel.tile.columns))
        return f.binary("and", wide, f.compare("eq", self.height, constant(I64, rows)))

    def _whole(self) -> None:
        into = [self.to, self.c_row, self.depth, self._fetching(self.mode)]
        self.f.call_pointer(self.end.whole, [self.left, self.right, *into, self.ahead, *self.place])

    def _smallest(self, heights: list[int]) -> None:
        rows, *larger = heights
        if not larger:
            self._part(rows)
            return
        fits = self.f.compare("sle", self.height, constant(I64, rows))
        self.f.if_else(fits, lambda: self._part(rows), lambda: self._smallest(larger))

    def _part(self, rows: int) -> None:
        if rows == self.kernel.tile.rows or not _is_direct(self.kernel):
            self._through_scratch(rows)
            return
        plain = self.f.binary("xor", self.end.applies, constant(I1, 1))
        exact = self.f.binary("and", plain, self._fits(rows))
        self.f.if_else(exact, lambda: self._short(rows), lambda: self._through_scratch(rows))

    def _short(self, rows: int) -> None:
        self._micro(rows, [self.to, self.c_row, self.depth, self._fetching(self.mode)])

    def _through_scratch(self, rows: int) -> None:
        f = self.f
        into = [self.scratch, f.i64(self.kernel.tile.columns), self.depth]
        self._micro(rows, [*into, self._fetching(constant(I64, 0))])
        sizes = [self.c_row, self.height, self.width, self.mode]
        f.call_pointer(self.end.edge, [self.scratch, self.to, *sizes, *self.place])

    def _fetching(self, mode: Value) -> Value:
        return self.f.binary("or", mode, self.fetched)

    def _micro(self, rows: int, into: list[Value]) -> None:
        name = self.kernel.name(f"micro.{rows}")
        self.f.call(name, [self.left, self.right, *into, self.ahead, *self.place])
