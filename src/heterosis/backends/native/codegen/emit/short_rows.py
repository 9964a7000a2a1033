"""Reductions over rows of few elements, a vector of rows at a time.

Along a row of ten elements a vector is not full once, its lanes have to be merged, and what follows
from a sum is computed for each row alone. So as many rows as a vector has lanes are read, turned in
registers and put aside, a vector for each column. The loop over columns finds them there, and
leaves there what it stores, which is turned and written when the rows are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from heterosis.backends.native.codegen import tables
from heterosis.backends.native.codegen.emit.access import SPREAD, STORED, first_lanes
from heterosis.backends.native.codegen.emit.builder import Function, Size, Type, Value
from heterosis.backends.native.codegen.emit.squares import is_along, is_known
from heterosis.backends.native.codegen.emit.transposition import transpose
from heterosis.backends.native.codegen.nest import (
    Apply,
    Buffer,
    Load,
    Nest,
    Operand,
    Step,
    Store,
    known,
)
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import ITEMSIZE

LEAST = max(SPREAD) + 1  # elements of a row: fewer are loaded without being turned
# Bytes of a row: along more of them vectors are full often enough; and where much is computed of
# every element, so that a sum and what follows from it cost little beside.
_MOST, _MOST_OF_MUCH = 128, 160
_NARROW = 4  # bytes: narrower elements are more to a vector than rows are turned at a time
_FEW_OPERANDS = 4  # that are put aside: the first-level cache has to hold them


def are_short_rows(nest: Nest) -> bool:
    """Whether the rows of a nest, if there are many, are best taken so: with none of their elements
    found by an index, and nothing written but what has been read from the same place, or from
    another array."""
    if len(nest.reduced) != 1 or is_traced(nest.reduced[0]):
        return False
    indices = [s.indices for s in (*nest.steps, *nest.stores) if isinstance(s, Load | Store)]
    (loads, stores), apart = _operands(nest), _apart(nest)
    computed = (s.primitive for s in nest.steps if isinstance(s, Apply))
    most = _MOST_OF_MUCH if any(map(tables.is_dear, computed)) else _MOST
    count = known(nest.reduced[0])
    return (
        not any(indices)
        and not set(loads).isdisjoint(apart) and len(apart) <= _FEW_OPERANDS
        and count >= LEAST
        and all(_NARROW <= ITEMSIZE[o.dtype] <= most // count for o in apart)
        and all(is_known(1, o.strides[-1]) for o in apart)
        and all(o == s for o in loads for s in stores if o.buffer == s.buffer)
    )  # fmt: skip


def _operands(nest: Nest) -> tuple[list[Operand], list[Operand]]:
    """What is loaded and what is stored, each once."""
    loads = dict.fromkeys(s.operand for s in nest.steps if isinstance(s, Load))
    return list(loads), list(dict.fromkeys(s.operand for s in nest.stores))


def _apart(nest: Nest) -> list[Operand]:
    """The operands of which a vector of rows would be loaded or stored with gaps."""
    loads, stores = _operands(nest)
    across = len(nest.kept) - 1
    return [o for o in dict.fromkeys((*loads, *stores)) if not is_along(o.strides[across])]


def turned_operands(nest: Nest) -> list[Operand]:
    """What is put aside: the operands whose elements are neighbours along the rows."""
    return _apart(nest) if nest.vector == "rows" else []


@dataclass(frozen=True)
class Aside:
    """A nest that finds columns where they were put aside: what it has in place of which operands,
    and which of these are read before the loop over columns, and written after it."""

    nest: Nest
    places: dict[Operand, Operand] = field(default_factory=dict)  # by what the nest has instead
    read: tuple[Operand, ...] = ()
    written: tuple[Operand, ...] = ()


def put_aside(nest: Nest, lanes: int) -> Aside:
    """`nest` with vectors of `lanes` rows, which stand one behind the other."""
    strides = [0] * (len(nest.kept) + len(nest.reduced))
    strides[len(nest.kept) - 1 :] = [1, lanes]
    columns = {
        own: Operand(Buffer("aside", number), own.dtype, 0, tuple(strides))
        for number, own in enumerate(turned_operands(nest))
    }

    def with_columns(item: Step | Store) -> Any:
        if isinstance(item, Load | Store) and item.operand in columns:
            return replace(item, operand=columns[item.operand])
        return item

    steps, stores = (tuple(map(with_columns, items)) for items in (nest.steps, nest.stores))
    return Aside(
        replace(nest, steps=steps, stores=stores),
        places={made: own for own, made in columns.items()},
        read=tuple(made for own, made in columns.items() if _is_read(nest, own)),
        written=tuple(columns[own] for own in _operands(nest)[1] if own in columns),
    )


def _is_read(nest: Nest, operand: Operand) -> bool:
    """Whether anything of it is needed but what a nest itself has kept there."""
    kept = min((s.value for s in nest.stores if s.operand == operand), default=len(nest.steps))
    ahead = nest.steps[:kept]
    return any(isinstance(s, Load) and s.operand == operand for s in ahead)


def bytes_aside(lanes: int) -> int:
    """The memory of columns that are put aside: of all that there may be of four bytes, or more."""
    return max(_MOST_OF_MUCH, lanes * _NARROW) * lanes


@dataclass(frozen=True)
class Rows:
    """So many rows of `count` elements, of which `left` are there. The last of them stands for
    those that are not, too; what is computed beside differs, and what comes of these is no copy of
    what comes of it."""

    f: Function
    dtype: str
    base: Value
    stride: Size
    count: Size
    left: Size
    lanes: int

    def read(self, aside: Value) -> None:
        """Put their columns `aside`."""

        def turn(at: Size, mask: Value | None) -> None:
            rows = [self._load(start, mask) for start in self._starts(at)]
            for i, column in enumerate(self._transposed(rows)):
                self.f.store(column, self._column(aside, at, i))

        self._in_squares(turn)

    def write(self, aside: Value) -> None:
        """Make them of the columns that stand `aside`."""

        def turn(at: Size, mask: Value | None) -> None:
            found = [self.f.load(self._type, self._column(aside, at, i)) for i in range(self.lanes)]
            pairs = list(zip(self._starts(at), self._transposed(found), strict=True))
            for start, row in reversed(pairs):  # the last row that is there has the last word
                if mask is None:
                    self.f.store(row, start)
                else:
                    self.f.masked_store(row, start, mask)

        self._in_squares(turn)

    def _in_squares(self, turn: Callable[[Size, Value | None], None]) -> None:
        """`turn` for all columns, as many at a time as there are rows; the last ones with those
        before them once more, where there are so many. What is stored in parts in no more time is
        written as one loop."""
        f, target = self.f, self.f.module.target
        last = f.max_size(0, f.sub_size(self.count, self.lanes))
        if target and target.stores_parts:
            mask = self._mask()
            with f.loop(0, self.count, self.lanes) as loop:
                turn(f.min_size(loop.index, last), mask)
            return
        whole = f.round_down(self.count, self.lanes)
        with f.loop(0, whole, self.lanes) as loop:
            turn(loop.index, None)
        with f.loop(whole, self.count, self.lanes):
            turn(last, self._mask())

    def _mask(self) -> Value | None:
        """The columns that are there, if they may be fewer than lanes."""
        return None if self.lanes < LEAST else first_lanes(self.f, self.count, self.lanes)

    def _starts(self, at: Size) -> list[Value]:
        """Where the elements of each row begin, from column `at` on."""
        f, element = self.f, STORED[self.dtype]
        found = [f.offset(element, self.base, at)]
        for i in range(1, self.lanes):
            is_there = f.compare("slt", f.i64(i), f.i64(self.left))
            step = f.select(is_there, f.i64(self.stride), f.i64(0))
            found.append(f.offset(element, found[-1], step))
        return found

    def _load(self, start: Value, mask: Value | None) -> Value:
        f = self.f
        return f.load(self._type, start) if mask is None else f.masked_load(self._type, start, mask)

    def _column(self, aside: Value, at: Size, number: int) -> Value:
        place = self.f.mul_size(self.f.add_size(at, number), self.lanes)
        return self.f.offset(STORED[self.dtype], aside, place)

    def _transposed(self, vectors: list[Value]) -> list[Value]:
        return transpose(self.f, vectors, 16 // ITEMSIZE[self.dtype])

    @property
    def _type(self) -> Type:
        return Type(STORED[self.dtype].element, self.lanes)
