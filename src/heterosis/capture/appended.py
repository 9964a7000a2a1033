"""What the turns of a loop append to lists: rows of what one turn does, when the loop is over."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from heterosis import _core
from heterosis.capture import trees
from heterosis.capture.captured import Enclosing
from heterosis.capture.inner import Inner, note_one
from heterosis.capture.memory import Cell
from heterosis.capture.trace import Trace
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))


class Appended:
    """The lists that turns append to, and what one turn does.

    `begun` and `rows` are the arrays that a turn is given, as they are outside of the loop.
    """

    def __init__(self, lists: Sequence[list[Any]], begun: Sequence[Any], rows: Sequence[Any]):
        self._lists = [one for one in lists if type(one) is list]
        self._outside = [*begun, *rows]
        self._arrays: list[Any] = []  # that are appended, in order
        self._bases: list[Cell] = []  # of each
        self._given: list[Cell] = []  # what stands in for those outside
        self._after: list[tuple[int, Cell]] = []

    def begin(self, turn: Inner, stand_ins: Sequence[Any]) -> None:
        """A turn begins, with arrays in place of those outside."""
        self._turn = turn
        self._given = [turn.cell(array) for array in stand_ins]
        turn.filled = {id(one): [] for one in self._lists}

    def end(self, after: Sequence[Any]) -> list[Any]:
        """The arrays that have been appended, `after` being what the turn hands on."""
        values = list(self._turn.filled.values())
        if not all(isinstance(one, _CONSTANTS) for one in trees.objects_in(values)):
            raise CaptureError("an object is appended that may hold what one turn alone has")
        found = list(trees.arrays_in(values))
        self._arrays = found
        self._bases = [_base(self._turn, array) for array in found]
        for base in self._bases:
            if base.writes and (base.source is not None or base in self._given):
                raise CaptureError("an array is appended that every turn writes to")
        arrays = ((i, one) for i, one in enumerate(after) if isinstance(one, ndarray))
        self._after = [(i, _base(self._turn, array)) for i, array in arrays]
        return found

    def fill(
        self,
        append: Callable[[list[Any], Any], None],
        stacked: Sequence[Any],
        last: Sequence[Any],
        count: int,
    ) -> None:
        """Append the rows, `last` being what the last turn has handed on."""
        outer = self._turn.outer
        for array, base in zip(stacked, self._bases, strict=True):
            self._note(outer, array, base, last)
        pairs = list(zip(self._arrays, stacked, strict=True))
        for k in range(count):
            row = {id(array): self._row(array, rows[k]) for array, rows in pairs}
            for one in self._lists:
                for value in self._turn.filled[id(one)]:
                    append(one, trees.replaced(value, functools.partial(_of_row, row)))

    def _row(self, appended: Any, row: Any) -> Any:
        """What one turn appends: a number, if it stands for one."""
        return self._turn.note_number(row) if self._turn.stands_for_number(appended) else row

    def _note(self, outer: Trace, made: Any, base: Cell, last: Sequence[Any]) -> None:
        """Remember which arrays rows would be, without a loop: nobody may write to these."""
        others = [last[i] for i, cell in self._after if cell is base]
        if isinstance(base.source, Enclosing):
            others.append(base.source.array)
        given = zip(self._given, self._outside, strict=True)
        others += [array for cell, array in given if cell is base and isinstance(array, ndarray)]
        for other in others:
            note_one(outer, made, other)


def _of_row(row: dict[int, Any], array: Any) -> Any:
    return row[id(array)]


def _base(turn: Inner, array: Any) -> Cell:
    cell = turn.cell(array)
    return cell.base or cell
