"""What a program prints whenever it has run: `npx.print` in a captured function.

The values that are printed are results of the program. A choice hands on those of both branches,
and what it decided by; a loop those of all turns, as rows. So nothing of the program has an effect
that a pass could lose, double or put elsewhere: the lines are read off when the results are there,
in the order in which the function's statements would have come to them.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heterosis import _core
from heterosis.capture import trees
from heterosis.ir.program import Value
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray
Pick = Callable[[int], Any]  # the array of a number

# Of the turns that nobody knows the number of, so many of the last are printed, and fewer if what
# they print takes more memory.
_KEPT_TURNS = 1024
_KEPT_BYTES = 1 << 22


@dataclass(frozen=True)
class _Shown:
    """A value, by its number."""

    number: int


@dataclass(frozen=True)
class _Text:
    """An object of Python's, as it was when the function was captured."""

    text: str

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Line:
    """What one call prints."""

    values: tuple[Any, ...]
    ends: dict[str, Any]

    def show(self, pick: Pick) -> None:
        """Print it."""
        found = trees.replaced(self.values, lambda shown: pick(shown.number), _Shown)
        builtins.print(*found, **self.ends)


@dataclass(frozen=True)
class Part:
    """What a branch or a body prints, whose values are those from number `first` on."""

    items: tuple[Line | Choice | Turns, ...]
    first: int

    def show(self, pick: Pick) -> None:
        """Print all of it."""
        for item in self.items:
            item.show(lambda number: pick(self.first + number))


@dataclass(frozen=True)
class Choice:
    """What one of two branches prints."""

    holds: int
    then: Part
    otherwise: Part

    def show(self, pick: Pick) -> None:
        """Print what the branch that has run does."""
        (self.then if bool(pick(self.holds)) else self.otherwise).show(pick)


@dataclass(frozen=True)
class Turns:
    """What the turns of a loop print, whose values are rows. There are `most` of them: one for each
    turn; or, where `count` is the number of a value that tells of the turns, for the last ones."""

    body: Part
    most: int
    count: int | None = None

    def show(self, pick: Pick) -> None:
        """Print one turn after the other."""
        turns = self.most if self.count is None else int(pick(self.count))
        first = max(turns - self.most, 0)
        if first:
            builtins.print(
                f"... npx.print keeps the last {self.most} turns of a while: what the {first} "
                "before them print is left out ..."
            )
        for turn in range(first, turns):
            self.body.show(lambda number, row=turn % self.most: pick(number)[row])  # type: ignore[misc]


class Prints:
    """What a part of a capture prints: in order, with the values that are shown."""

    def __init__(self) -> None:
        self.items: list[Line | Choice | Turns] = []
        self.values: list[Value] = []

    def __bool__(self) -> bool:
        return bool(self.items)

    @property
    def types(self) -> list[TensorType]:
        """The types of the values."""
        return [value.type for value in self.values]

    def add_line(
        self, given: Sequence[Any], ends: dict[str, Any], value_of: Callable[[Any], Value]
    ) -> None:
        """Print what is given, arrays having the values that `value_of` tells."""

        def found(text: Callable[[Any], str], leaf: Any) -> _Shown | _Text:
            if isinstance(leaf, ndarray):
                return _Shown(self._added([value_of(leaf)]))
            return _Text(_checked(text(leaf)))

        texts = (repr if isinstance(one, tuple | list | dict) else str for one in given)
        values = (
            trees.mapped(one, functools.partial(found, text))
            for one, text in zip(given, texts, strict=True)
        )
        self.items.append(Line(tuple(values), ends))

    def add_choice(self, holds: Value, branches: Sequence[Prints], values: Sequence[Value]) -> None:
        """Print what one of two branches does, whose `values` follow each other."""
        place = self._added([holds])
        start = self._added(values)
        then, otherwise = (tuple(branch.items) for branch in branches)
        parts = Part(then, start), Part(otherwise, start + len(branches[0].values))
        self.items.append(Choice(place, *parts))

    def add_turns(
        self, turn: Prints, rows: Sequence[Value], most: int, count: Value | None = None
    ) -> None:
        """Print what turns do."""
        place = None if count is None else self._added([count])
        self.items.append(Turns(Part(tuple(turn.items), self._added(rows)), most, place))

    def _added(self, values: Sequence[Value]) -> int:
        """The number of the first of more values."""
        self.values += values
        return len(self.values) - len(values)

    def show(self, arrays: Sequence[Any]) -> None:
        """Print everything, `arrays` being what the values are now."""
        Part(tuple(self.items), 0).show(arrays.__getitem__)


def kept_turns(types: Iterable[TensorType]) -> int:
    """Of how many turns what they print is kept, if nobody knows how many there are."""
    turn = sum(type_.nbytes for type_ in types)
    return max(1, min(_KEPT_TURNS, _KEPT_BYTES // max(turn, 1)))


def _checked(text: str) -> str:
    """A text; refuses one that an array has been made part of, which has no elements yet."""
    if "<array " in text and " of a program>" in text:
        raise CaptureError(
            f"npx.print is given the text {text!r}, made of an array while a program is captured. "
            "Hand in the array by itself: npx.print('x is', x), and not npx.print(f'x is {x}')."
        )
    return text
