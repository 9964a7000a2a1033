"""Tiles whose vectors are columns of the result: turned in registers, and stored as its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heterosis.backends.native.codegen.emit.builder import Function, Size, Type, Value
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.epilogue import Position
from heterosis.backends.native.codegen.kernels.matmul.micro_kernel import Kernel


@dataclass(frozen=True)
class TurnedTile:
    """How tiles end whose columns are so many `vectors`, each a column of the result.

    What is there is added where `accumulate` holds, and the epilogue applied where `final` does; if
    these are not given, never and always. Of a single vector, `rows` says how many there are.
    """

    kernel: Kernel
    f: Function
    vectors: int
    accumulate: Value | None = None
    final: Value | None = None
    rows: Size | None = None

    def store(self, sums: Sequence[Value], to: Value, c_row: Value, at: Position) -> None:
        """Store the tile's sums, from the place `at` of the result on, which is at `to`."""
        f, lanes, size = self.f, self.kernel.tile.lanes, self.kernel.element.size
        height = len(sums) // self.vectors
        for first in range(0, height, lanes):
            columns = min(lanes, height - first)
            own = sums[first * self.vectors : (first + columns) * self.vectors]
            rows = [
                row
                for j in range(self.vectors)
                for row in transpose(f, list(own[j :: self.vectors]), 16 // size)
            ]
            here = replace(at, column=f.add_size(at.column, first), mask=_mask(columns, lanes))
            there = f.offset(self.kernel.element.storage, to, first)
            _Rows(self, there, c_row, here).store(rows)


@dataclass(frozen=True)
class _Rows:
    """A piece of the result: some columns, which a mask chooses, of some rows."""

    tile: TurnedTile
    to: Value
    c_row: Value
    at: Position

    def store(self, values: Sequence[Value]) -> None:
        """Store the rows; dear epilogues are applied afterwards, in a loop."""
        f, epilogue = self.tile.f, self.tile.kernel.epilogue

        def plainly(values: Sequence[Value]) -> None:
            # From the last one on: what stands for rows that there are not is written over.
            for row, value in reversed(list(enumerate(values))):
                f.masked_store(value, self._place(self._inside(row)), self._mask)

        def at_once() -> None:
            plainly([self._ended(v, self._inside(row)) for row, v in enumerate(values)])

        def afterwards() -> None:
            plainly(values)
            many = len(values) if self.tile.rows is None else self.tile.rows
            with f.loop(0, many) as row:
                value = self._load(values[0].type, row.index)
                f.masked_store(self._ended(value, row.index), self._place(row.index), self._mask)

        if self.tile.accumulate is not None:
            before = values
            values = f.if_else(
                self.tile.accumulate, lambda: self._added(before), lambda: list(before)
            )
        finish = at_once if epilogue is None or epilogue.is_cheap else afterwards
        if self.tile.final is None or epilogue is None:
            finish()
        else:
            f.if_else(self.tile.final, finish, lambda: plainly(values))

    @property
    def _mask(self) -> Value:
        assert self.at.mask is not None, "a tile has fewer columns than a vector has lanes"
        return self.at.mask

    def _inside(self, row: int) -> Size:
        """A row's number; the last one's, for what there is not."""
        f, rows = self.tile.f, self.tile.rows
        return row if rows is None else f.min_size(row, f.sub_size(rows, 1))

    def _place(self, row: Size) -> Value:
        f = self.tile.f
        return f.offset(self.tile.kernel.element.storage, self.to, f.mul_size(self.c_row, row))

    def _load(self, type_: Type, row: Size) -> Value:
        return self.tile.f.masked_load(type_, self._place(row), self._mask)

    def _added(self, values: Sequence[Value]) -> list[Value]:
        """With what is there."""
        f = self.tile.f
        return [f.add(v, self._load(v.type, self._inside(row))) for row, v in enumerate(values)]

    def _ended(self, value: Value, row: Size) -> Value:
        epilogue, at = self.tile.kernel.epilogue, self.at
        here = replace(at, row=self.tile.f.add_size(at.row, row))
        return epilogue(self.tile.f, value, here) if epilogue else value


def _mask(count: int, lanes: int) -> Value:
    """The mask of the first `count` of so many lanes."""
    chosen = ", ".join(f"i1 {int(lane < count)}" for lane in range(lanes))
    return Value(Type("i1", lanes), f"<{chosen}>")
