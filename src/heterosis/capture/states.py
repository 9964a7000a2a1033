"""What a loop carries from turn to turn, as it begins and behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heterosis import _core, np
from heterosis.capture.inner import Inner, note_chosen, note_one, note_shared
from heterosis.capture.memory import Cell
from heterosis.capture.trace import Trace
from heterosis.ir.types import TensorType
from heterosis.ops.math.cast import assign
from heterosis.ops.record import as_users_call
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray
_assign = as_users_call(assign)


class StateError(CaptureError):
    """The refusal of a state, which `named` tells by the name of the variable that it is."""

    def __init__(self, turn: Inner, position: int, what: str):
        self.position, self.outer = position, turn.outer
        self._text = f"{turn.name} at {turn.line}: {{}} {what}"
        super().__init__(self._text.format(f"state {position}"))

    def named(self, name: str) -> CaptureError:
        """The same of a variable."""
        return CaptureError(self._text.format(name))


class StateTypeError(StateError):
    """A state is of another type behind a turn, `found`, as which it is made at `line`."""

    def __init__(self, turn: Inner, position: int, what: str, found: TensorType, line: str):
        super().__init__(turn, position, what)
        self.found, self.line = found, line


@dataclass(frozen=True)
class Number:
    """A number of Python's that a loop begins with, as an array of an element type: for turns that
    give a number too it goes on to be one."""

    number: float
    dtype: str


def as_array(given: Any) -> Any:
    if isinstance(given, Number):
        return np.array(given.number, dtype=given.dtype)
    if isinstance(given, ndarray):
        return given
    return np.array(given, dtype="int64" if type(given) is int else None)


def _two_types(given: TensorType, found: TensorType) -> str:
    return (
        f"is {given} before a turn and {found} behind it; expected one type. Begin with an array "
        "of the type that the body gives, or convert there with .astype or .reshape."
    )


def check_turn(name: str, line: str, before: Sequence[Any], after: Sequence[Any]) -> None:
    """Refuse a turn that gives other states than it was given: fewer, or arrays of other types."""
    if len(before) != len(after):
        raise CaptureError(
            f"{name} at {line}: the body gives {len(after)} states; expected {len(before)}, as "
            "many as it is given."
        )
    for i, (one, other) in enumerate(zip(before, after, strict=True)):
        if isinstance(other, ndarray):
            given, found = (TensorType(a.shape, a._dtype_name) for a in (one, other))
            if (given.shape, given.dtype) != (found.shape, found.dtype):
                raise CaptureError(f"{name} at {line}: state {i} {_two_types(given, found)}")


class States:
    """What a loop carries from turn to turn, as it begins."""

    def __init__(self, outer: Trace, given: Sequence[Any]):
        self._outer, self._given = outer, given
        self.arrays = [*map(as_array, given)]

    def stand_ins(self, turn: Inner) -> list[Any]:
        """What a turn is given."""
        pairs = zip(self._given, self.arrays, strict=True)
        return [self._stand_in(turn, given, array) for given, array in pairs]

    def _stand_in(self, turn: Inner, given: Any, array: Any) -> Any:
        made = turn.parameter(self._outer.cell(array).value().type)
        stands = isinstance(given, Number) or self._outer.stands_for_number(array)
        return turn.note_number(made) if stands else made

    def check(
        self, turn: Inner, before: Sequence[Any], after: Sequence[Any], asked: Sequence[Any] = ()
    ) -> None:
        """A loop carries on what it began with: as many states, of the same types. `asked` are the
        arrays from around that its condition reads."""
        if len(before) != len(after):
            check_turn(turn.name, turn.line, before, after)
        written = self._bases(turn.written())
        for i, (state, leaf) in enumerate(zip(self.arrays, after, strict=True)):
            given, found = self._outer.cell(state).value().type, turn.value_of(leaf).type
            if (given.shape, given.dtype) != (found.shape, found.dtype):
                raise StateTypeError(turn, i, _two_types(given, found), found, turn.line_of(leaf))
            if self._is_array(i) and turn.is_written(before[i]):
                self._check_in_place(turn, i, before[i], leaf, asked)
            elif self._is_array(i) and written & self._bases([state]):
                raise StateError(
                    turn,
                    i,
                    "begins with an array, or a part of one, that turns write to by another name. "
                    "Begin with a copy, np.copy(x).",
                )

    def _bases(self, arrays: Iterable[Any]) -> set[Cell]:
        """The whole arrays that these are, may be, or are parts of."""
        return {cell for array in arrays for cell in self._outer.may_be(array)}

    def _is_array(self, i: int) -> bool:
        """Whether the state has been an array from the beginning: a number is never written to."""
        return isinstance(self._given[i], ndarray)

    def _check_in_place(
        self, turn: Inner, i: int, stand_in: Any, leaf: Any, asked: Sequence[Any]
    ) -> None:
        """An array that each turn writes to stays that array, and is known by one name alone."""
        states = [array for j, array in enumerate(self.arrays) if j != i]
        others = self._bases([*turn.taken, *asked, *states])
        if leaf is not stand_in or others & self._bases([self.arrays[i]]):
            raise StateError(
                turn,
                i,
                "is written to in place, and is another array behind the turn, or known there or "
                "in the condition by another name too. Compute a new array instead, x = x + 1, or "
                "write to the same, by one name.",
            )

    def check_asked(self, turn: Inner, asked: Sequence[Any], written: Sequence[Any]) -> None:
        """What the condition reads is what turns write to, or shares no memory with that."""
        if self._bases(asked) & self._bases(written):
            raise CaptureError(
                f"{turn.name} at {turn.line}: turns write to an array that the condition of the "
                "loop reads by another name, and would not see the writes. Use one name for it."
            )

    def check_rows(self, turn: Inner, before: Sequence[Any], arrays: Iterable[Any]) -> None:
        """What a loop goes over stays as it is: turns are given rows as they were before it."""
        states = zip(self.arrays, before, strict=True)
        changed = [*turn.written(), *(a for a, stand_in in states if turn.is_written(stand_in))]
        written = {cell.base or cell for cell in map(self._outer.cell, changed)}
        if any(not written.isdisjoint(self._outer.may_be(array)) for array in arrays):
            raise CaptureError(
                f"{turn.name} at {turn.line}: turns write to an array whose rows the loop goes "
                "over, and later turns would see that. Loop over a copy, np.copy(x), or write to "
                "another array."
            )

    def after(
        self, turn: Inner, before: Sequence[Any], after: Sequence[Any], made: Sequence[Any]
    ) -> list[Any]:
        """The states behind the loop, of which `made` are the values. Arrays that turns write to
        are there already."""
        found: list[Any] = []
        for i, (stand_in, leaf) in enumerate(zip(before, after, strict=True)):
            if self._is_array(i) and leaf is stand_in and turn.is_written(stand_in):
                _assign(made[i], out=self.arrays[i])
                found.append(self.arrays[i])
                continue
            found.append(made[i])
            if turn.stands_for_number(stand_in) and turn.stands_for_number(leaf):
                self._outer.note_number(made[i])
            note_chosen(turn, leaf, made[i])
            self._note_handed_on(turn, before, leaf, made[i])
        note_shared(turn, after, found)
        return found

    def _note_handed_on(self, turn: Inner, before: Sequence[Any], leaf: Any, made: Any) -> None:
        """Remember the states that a result may be, because a turn hands them on."""
        if not isinstance(leaf, ndarray):
            return
        handed_on = turn.may_be(leaf)
        for i, stand_in in enumerate(before):
            if self._is_array(i) and turn.cell(stand_in) in handed_on:
                note_one(self._outer, self.arrays[i], made)

    def note_untouched(self, last: Sequence[Any]) -> None:
        """Remember that the states are behind the loop what they were, if there is no turn."""
        for i, (array, made) in enumerate(zip(self.arrays, last, strict=True)):
            if self._is_array(i) and made is not array:
                note_one(self._outer, array, made)


# -- what turns must not write to -----------------------------------------------------------------


def check_unwritten(turn: Inner, given: Iterable[Any]) -> None:
    if any(map(turn.is_written, given)):
        raise CaptureError(
            f"{turn.name} at {turn.line}: a row, or what a condition is given, is written to in "
            "place. What it is a row of would change too: compute a new array instead."
        )


def check_outputs(turn: Inner, kept: Iterable[Any], outputs: Iterable[Any]) -> None:
    """A row is no array that stays from turn to turn and is written to: in a list that turns append
    to, all rows would be what it holds in the end."""
    cells = map(turn.cell, kept)
    written = {base for cell in cells if (base := cell.base or cell).writes}
    alike = {*written, *(c for pair in turn.chosen if written.intersection(pair) for c in pair)}
    rows = (turn.cell(leaf) for leaf in outputs if isinstance(leaf, ndarray))
    if any((cell.base or cell) in alike for cell in rows):
        raise CaptureError(
            f"{turn.name} at {turn.line}: an output is an array, or a part of one, that turns "
            "write to in place: later turns would change the rows of those before. Give a copy, "
            "np.copy(x)."
        )
