"""The variables of a loop that becomes a part of a program, and what of them is carried from turn
to turn.

Their values may be tuples, lists and dictionaries. Arrays in them are carried, and numbers; what is
the same object before and behind a turn is no part of it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from heterosis import _core, np
from heterosis.capture import trees
from heterosis.capture.active import active
from heterosis.capture.inner import PLAIN, Filler, containers_in
from heterosis.capture.states import Number, StateError, StateTypeError
from heterosis.capture.syntax import FLAGS, RESULT
from heterosis.ir.types import TensorType, is_float
from heterosis.ops.array.creation import zeros
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray

Leaf = tuple[int, int]  # the position of a variable, and that of a leaf in its value


class Unset:
    """What a variable is that has no value."""


class Nothing:
    """What a function has returned that has not returned yet."""


class Variables(NamedTuple):
    """The variables of a function that a statement sets: how to read and set them, and their
    names. UNSET stands for no value."""

    get: Callable[[], tuple[Any, ...]]
    put: Callable[[tuple[Any, ...]], None]
    names: tuple[str, ...]


def is_number(value: Any) -> bool:
    """Whether it is a number of Python's that an array can hold."""
    return isinstance(value, bool | int | float)


def kind(value: Any) -> str:
    """A value, for people."""
    if isinstance(value, ndarray):
        return f"{value._dtype_name}[{', '.join(map(str, value.shape))}]"
    if isinstance(value, Unset):
        return "not set"
    is_short = isinstance(value, PLAIN) or (isinstance(value, list | tuple | dict) and not value)
    text = repr(value) if is_short else ""
    return text if 0 < len(text) <= 40 else f"a {type(value).__name__}"


def another(one: Any, other: Any) -> str:
    """A value next to `one`, for people."""
    shown = kind(other)
    if shown != kind(one):
        return shown
    found = shown.replace("a ", "another ", 1)
    are_turned = isinstance(one, dict) and one.keys() == other.keys() and [*one] != [*other]
    return f"{found}, with its keys in another order," if are_turned else found


class _Again(Exception):
    """More has to be carried than was known."""


class State:
    """The variables of a loop, and what begins them.

    Numbers are carried where nobody knows how often the loop turns, `numbers`; elsewhere those that
    arrays become, and others have to stay what they are. `used` are those that have to have a value
    behind the loop.
    """

    def __init__(
        self, variables: Variables, place: str, *, numbers: bool, used: Sequence[str] = ()
    ):
        self.names, self.place, self._used = variables.names, place, used
        self.before = variables.get()
        self._numbers = numbers
        self._begun = list(self.before)  # trees, with fillers where zeros begin
        self._carried = {
            (i, j)
            for i, value in enumerate(self.before)
            for j, leaf in enumerate(_leaves(value))
            if isinstance(leaf, ndarray) or (is_number(leaf) and self._begins(i))
        }
        self._dtypes: dict[Leaf, str] = {}  # of numbers that have begun with another type
        self._arrays: set[Leaf] = set()  # numbers that are arrays behind a turn
        self._end_as_numbers: set[Leaf] = set()

    def _begins(self, i: int) -> bool:
        """Whether numbers of a variable are carried from the beginning."""
        return self._numbers or self.names[i].startswith(FLAGS)

    def _is_carried(self, i: int) -> bool:
        """Whether something of a variable is."""
        return any(i == place[0] for place in self._carried)

    def _places(self) -> list[Leaf]:
        """What is carried, in order."""
        return sorted(self._carried)

    def _first(self) -> list[Any]:
        """What is carried into the first turn."""
        return [self._first_of(place) for place in self._places()]

    def _first_of(self, place: Leaf) -> Any:
        i, j = place
        leaf = _leaves(self._begun[i])[j]
        if isinstance(leaf, Filler):
            return as_users_call(zeros)(leaf.type.shape, leaf.type.dtype)
        if not active().stands_for_number(leaf):
            return leaf
        if place in self._arrays:
            return np.array(leaf, dtype=self._dtypes.get(place) or _dtype_of_arrays(leaf))
        dtype = self._dtypes.get(place) or _dtype_of(leaf)
        if isinstance(leaf, ndarray):
            return active().note_number(leaf.astype(dtype))
        return Number(leaf, dtype)

    def all(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values of all variables, where `values` are those that are carried."""
        return tuple(self._all(iter(values)))

    def _all(self, values: Iterator[Any]) -> Iterator[Any]:
        for i, begun in enumerate(self._begun):
            if not self._is_carried(i):
                yield begun
                continue
            found = [
                next(values) if (i, j) in self._carried else leaf
                for j, leaf in enumerate(_leaves(begun))
            ]
            yield trees.mapped(begun, functools.partial(_next, iter(found)))

    def carried(self, after: Sequence[Any]) -> list[Any]:
        """What a turn hands on."""
        found: list[Any] = []
        more = False
        for i, value in enumerate(after):
            if isinstance(self._begun[i], Nothing) and trees.has_arrays(value):
                self._begun[i] = trees.mapped(value, _filler)
                more = True
            if self._is_left(i, value):
                continue
            begun = self._begun[i]
            if isinstance(value, Unset):
                raise self._lost(i)
            if _form(begun) != _form(value):
                raise self._refused(i, value)
            for j, (one, other) in enumerate(zip(_leaves(begun), _leaves(value), strict=True)):
                if (i, j) in self._carried:
                    more |= self._becomes_array((i, j), one, other)
                    found.append(other)
                elif isinstance(other, ndarray) and isinstance(one, Filler | bool | int | float):
                    self._carried.add((i, j))
                    more = True
                elif not _is_same(one, other):
                    raise self._refused(i, value)
        if more:
            raise _Again
        return found

    def _becomes_array(self, place: Leaf, begun: Any, after: Any) -> bool:
        """Whether it turns out now that a number is an array behind a turn: then it is written to
        in place by the next one."""
        trace = active()
        if trace.stands_for_number(after):
            self._end_as_numbers.add(place)
            return False
        known = place in self._arrays or not trace.stands_for_number(begun)
        if known or (isinstance(after, ndarray) and after.shape):  # which is refused
            return False
        self._arrays.add(place)
        return True

    def _is_left(self, i: int, value: Any) -> bool:
        """Whether a variable is no part of what is carried."""
        begun = self._begun[i]
        if self._is_carried(i):
            return False
        if isinstance(begun, Unset):
            is_set = not isinstance(value, Unset) or self.names[i] in active().outermost.unset
            if is_set and self.names[i] in self._used:
                raise self._refused(i, value)
            return True
        return value is begun

    def _refused(self, i: int, value: Any) -> CaptureError:
        return modes.refusals.note(
            CaptureError(
                f"{self.names[i]} is {kind(self.before[i])} before the loop at {self.place}, and "
                f"{another(self.before[i], value)} behind a turn: how often it turns depends on "
                "arrays. Carry arrays and numbers from turn to turn, and tuples, lists, "
                "dictionaries and named tuples of these."
            )
        )

    def _lost(self, i: int) -> CaptureError:
        """The refusal of a variable that has no value behind a turn, since branches disagree."""
        why = active().outermost.unset.get(self.names[i])
        if why is None:
            return self._refused(i, Unset())
        return modes.refusals.note(
            CaptureError(f"{why} The loop at {self.place} carries it from turn to turn.")
        )

    def run(self, loop: Callable[[list[Any]], Sequence[Any]]) -> Sequence[Any]:
        """The carried values behind the loop. A number begins with the type that it has then; what
        a turn may return, with zeros."""
        while True:
            self._end_as_numbers.clear()
            try:
                return self._noted(loop(self._first()))
            except _Again:
                pass
            except StateTypeError as error:
                self._pass_on(error)
                place = self._places()[error.position]
                leaf = _leaves(self._begun[place[0]])[place[1]]
                modes.refusals.first = None
                known = place in self._dtypes
                if error.found.shape or known or not active().stands_for_number(leaf):
                    raise self._of_another_type(self._called(place[0]), leaf, error) from None
                self._dtypes[place] = error.found.dtype
            except StateError as error:
                self._pass_on(error)
                modes.refusals.first = None
                i = self._places()[error.position][0]
                raise modes.refusals.note(error.named(self._called(i))) from None

    def _pass_on(self, error: StateError) -> None:
        """Raise what a loop in a turn refuses, whose states are others."""
        if error.outer is not active():
            raise error

    def _called(self, i: int) -> str:
        """What a variable, or something in it, is called."""
        if self.names[i] == RESULT:
            return "an array of what is returned"
        (first, *_) = _leaves(self._begun[i])
        is_all = first is self._begun[i]
        return self.names[i] if is_all else f"something in {self.names[i]}"

    def _of_another_type(self, name: str, leaf: Any, error: StateTypeError) -> CaptureError:
        line = f", which is made at {error.line}" if error.line else ""
        return modes.refusals.note(
            CaptureError(
                f"{name} is {kind(leaf)} before the loop at {self.place}, and {error.found} behind "
                f"a turn{line}: what goes from turn to turn keeps its shape and element type. "
                "Begin with what the turn gives, write to a part of a larger array, or convert "
                "with .astype or .reshape."
            )
        )

    def _noted(self, last: Sequence[Any]) -> Sequence[Any]:
        """What a loop has given; a number, where zeros stood for one before."""
        for place, array in zip(self._places(), last, strict=True):
            begun = _leaves(self._begun[place[0]])[place[1]]
            if isinstance(begun, Filler) and place in self._end_as_numbers:
                active().note_number(array)
        return last

    def behind(self, last: Sequence[Any]) -> tuple[Any, ...]:
        """The values of all variables behind the loop."""
        found = self.all(last)
        for begun, value in zip(self._begun, found, strict=True):
            if value is not begun:
                active().outermost.note_chosen_object(*containers_in(begun), *containers_in(value))
        for name, value in zip(self.names, found, strict=True):
            if isinstance(value, Unset):
                active().outermost.unset[name] = (
                    f"{name} is set in the loop at {self.place} alone, which may take no turn: an "
                    "array decides. Set it before the loop too."
                )
        return found


def _leaves(value: Any) -> list[Any]:
    return list(trees.leaves(value))


def _next(values: Iterator[Any], _: Any) -> Any:
    return next(values)


def _form(value: Any) -> Any:
    """Equal for trees of one structure."""
    return trees.description(trees.mapped(value, lambda leaf: None))


def _filler(leaf: Any) -> Any:
    if not isinstance(leaf, ndarray):
        return leaf
    return Filler(TensorType(leaf.shape, leaf._dtype_name))


def _is_same(one: Any, other: Any) -> bool:
    """Whether a leaf is the same behind a turn, for Python."""
    return one is other or (
        type(one) is type(other) and is_number(one) and repr(one) == repr(other)
    )


def _dtype_of(number: Any) -> str:
    """The element type that a number is carried as."""
    if isinstance(number, ndarray):
        return str(number._dtype_name)
    if isinstance(number, float):
        return "float64"
    return "bool" if isinstance(number, bool) else "int64"


def _dtype_of_arrays(number: Any) -> str:
    """The element type that a number becomes an array of."""
    dtype = _dtype_of(number)
    return active().outermost.float_of_arrays() if is_float(dtype) else dtype
