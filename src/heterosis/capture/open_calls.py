"""Captures for files that hold no Python: of a call whose extents stay open, and for those of 1."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, product
from traceback import walk_tb
from typing import Any

from heterosis.capture import trees
from heterosis.capture.attempts import capture
from heterosis.capture.captured import Captured
from heterosis.capture.compiled import Compiled
from heterosis.capture.open_sizes import (
    Conditions,
    Dynamic,
    Opening,
    kind_of,
    openings,
    shapes_of,
    unlike,
    with_extents,
)
from heterosis.capture.programs import Call
from heterosis.ir.traced_sizes import LEAST, function_of
from heterosis.runtime.errors import HeterosisError, ProgramError, ScheduleError, UnsupportedError
from heterosis.runtime.lines import PACKAGE

_MOST_TOGETHER = 3  # sizes of which each combination is captured where they are 1
_TRIED = (8, 9, 10, 11, 12, 2, 3, 4, 5, 6, 7, 13, 14, 15, 16, 17, 31, 32, 33, 64, 100, 255, 1000)
_MOST_TRIED = 500  # combinations of more than two sizes


@dataclass(frozen=True)
class OpenCall:
    """A program with open extents, the call that it was captured for, and the names that are 1."""

    function: Callable[..., Any]
    captured: Captured
    call: Call
    names: Mapping[Any, str]  # of all axes that are open
    ones: tuple[str, ...] = ()

    @property
    def _conditions(self) -> Conditions | None:
        return self.captured.conditions

    @property
    def values(self) -> Mapping[str, int]:
        """What the names of the program are in its call; not those that are known."""
        if self._conditions is None:
            return {}
        known = self._conditions.fixed
        given = self._conditions.opening.values
        return {name: value for name, value in given.items() if name not in known}

    @property
    def conditions(self) -> tuple[str, ...]:
        """For which values of the names it holds."""
        found = [f"{name} == 1" for name in self.ones]
        found += [f"{name} >= {LEAST}" for name in self.values]
        if self._conditions is not None:
            given = self._conditions.opening.values
            known = {name: given[name] for name in self._conditions.fixed}
            texts = (_with_numbers(text, known) for text in self._conditions.noted)
            found += [text for text in texts if re.search(r"[A-Za-z_]", text)]
        return tuple(found)

    def serves(self, call: Call) -> bool:
        """Whether the program, or one for extents of 1, may run for a call."""
        if kind_of(call) != kind_of(self.call):
            return False
        shapes = shapes_of(list(trees.arrays_in(call)))
        assert self._conditions is not None, "some extents are open"
        opening = self._conditions.opening
        known = self._conditions.fixed
        for i, (own, given) in enumerate(zip(opening.shapes, shapes, strict=True)):
            for axis, extent in enumerate(given or ()):
                name = opening.names.get((i, axis))
                if (name is None or name in known) and own is not None and own[axis] != extent:
                    return False
        return given_once(opening, shapes)

    def special(self, refused: Callable[[tuple[str, ...], Exception], None]) -> Iterator[OpenCall]:
        """Programs for calls with extents of 1: what broadcasts may be another program. Of names
        that the function does not take to be 1, `refused` is told, and why."""
        names = list(self.values)
        most = len(names) if len(names) <= _MOST_TOGETHER else 1
        known: list[set[str]] = []
        for ones in chain.from_iterable(combinations(names, n) for n in range(1, most + 1)):
            if any(one <= set(ones) for one in known):
                continue
            try:
                yield self._with_ones(ones)
            except Exception as error:
                if not refuses(error):
                    raise
                known.append(set(ones))
                refused(ones, error)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Whether the program is for these values of the names, those of 1 among them."""
        condition = function_of(values, [" and ".join(self.conditions) or "True"])
        return bool(condition(**values)[0])

    def unheld(self, others: Collection[OpenCall]) -> tuple[Mapping[str, int], str] | None:
        """Sizes for which neither this program nor one of the others is, and the condition of this
        one that does not hold there, with the line that it comes from; None if none were found."""
        for values in _spread(tuple(self.values)):
            if any(one.holds(values) for one in (self, *others)):
                continue
            for text in self.conditions:
                if not function_of(values, [text])(**values)[0]:
                    return values, self._reason(text)
        return None

    def _reason(self, condition: str) -> str:
        lines = self._conditions.noted if self._conditions is not None else {}
        line = lines.get(condition)
        return f"{condition}, asked at {line}" if line else condition

    def _with_ones(self, ones: tuple[str, ...]) -> OpenCall:
        axes = dict.fromkeys((axis for axis, name in self.names.items() if name in ones), 1)
        call = with_extents(self.call, axes)
        rest = {axis: n for axis, n in self.names.items() if axis not in axes and n in self.values}
        shapes = shapes_of(list(trees.arrays_in(call)))
        opening = Opening(rest, shapes) if rest else None
        captured = capture(self.function, *call, opening=opening)
        return OpenCall(self.function, captured, call, rest, ones)


def _spread(names: tuple[str, ...]) -> Iterator[Mapping[str, int]]:
    """Values for the names, of all remainders and orders."""
    tried: Iterator[tuple[int, ...]] = product(_TRIED, repeat=len(names))
    if len(names) > 2:
        chance = random.Random(0)
        tried = (tuple(chance.choice(_TRIED) for _ in names) for _ in range(_MOST_TRIED))
    for values in tried:
        yield dict(zip(names, values, strict=True))


def given_once(opening: Opening, shapes: Any) -> bool:
    """Whether axes of one name have one extent."""
    found: dict[str, int] = {}
    return all(
        found.setdefault(name, shapes[i][axis]) == shapes[i][axis]
        for (i, axis), name in opening.names.items()
        if shapes[i] is not None
    )


def open_call(compiled: Compiled[..., Any], dynamic: Dynamic, call: Call) -> OpenCall | None:
    """A capture that leaves extents of a call open; None if none of them may stay so, which the
    reasons of captures tell."""
    made = open_capture(compiled, dynamic, call, "exported")
    if made is None:
        return None
    captured, stand_in = made
    assert captured.conditions is not None, "some extents are open"
    found = OpenCall(compiled.function, captured, stand_in, captured.conditions.opening.names)
    if found.values and found.serves(call):
        return found
    why = "; ".join(captured.conditions.fixed.values()) or "it is another program for these"
    compiled.captures_why.append(f"exported without open extents: {why}")
    return None


def refuses(error: Exception) -> bool:
    """Whether an error says that a function does not take what it was captured for: an operation of
    ours says so with a class of its own, and the function in any way. All else is our fault."""
    if isinstance(error, ProgramError):  # one that no program says with open extents
        return isinstance(error.__cause__, UnsupportedError)
    if isinstance(error, HeterosisError):
        return not isinstance(error, ScheduleError)
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and not frames[-1].f_code.co_filename.startswith(PACKAGE)


def open_capture(
    compiled: Compiled[..., Any], dynamic: Dynamic, call: Call, what: str
) -> tuple[Captured, Call] | None:
    """What is captured with open extents, as many as can be, and for which arguments; None if that
    fails. In the reasons of captures it is `what` is done."""
    for stand_in, opening in openings(dynamic, compiled.parameters, call):
        try:
            captured = capture(compiled.function, *stand_in, opening=opening)
        except Exception as error:
            if not refuses(error):
                raise
            compiled.captures_why.append(f"{what} without open extents: {error}")
            continue
        return _opened_more(compiled.function, captured, stand_in)
    return None


def _opened_more(
    function: Callable[..., Any], captured: Captured, call: Call
) -> tuple[Captured, Call]:
    """The same where extents are open that had one value left by chance: since they happen to be
    equal to a number in the function."""
    assert captured.conditions is not None, "some extents are open"
    opening = captured.conditions.opening
    for name in captured.conditions.fixed:
        axes = [axis for axis, own in opening.names.items() if own == name]
        other = with_extents(call, dict.fromkeys(axes, unlike(call)))
        shapes = shapes_of(list(trees.arrays_in(other)))
        try:
            found = capture(function, *other, opening=Opening(opening.names, shapes))
        except Exception as error:
            if not refuses(error):
                raise
            continue  # it is this extent alone that works
        assert found.conditions is not None, "some extents are open"
        if found.conditions.fixed.keys() < captured.conditions.fixed.keys():
            captured, call = found, other
    return captured, call


def _with_numbers(condition: str, known: Mapping[str, int]) -> str:
    """A condition where some names are known."""

    def number(found: re.Match[str]) -> str:
        return f"({known[found[0]]})" if found[0] in known else found[0]

    return re.sub(r"[A-Za-z_]\w*", number, condition)
