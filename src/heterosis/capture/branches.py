"""What the branches of a choice give: results of one structure, and values of one type each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from heterosis import _core
from heterosis.capture import trees
from heterosis.capture.inner import PLAIN, Filler, Inner
from heterosis.ir.program import Value
from heterosis.ir.types import is_float
from heterosis.ops.rules import cast, result_type
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray


class Joined:
    """The results of two branches, as values of one type each."""

    def __init__(self, first: Inner, second: Inner):
        self._outer, self._branches = first.outer, (first, second)
        structures = _structure(first.result), _structure(second.result)
        if trees.description(structures[0]) != trees.description(structures[1]):
            raise CaptureError(
                f"the branches of the choice at {first.line} give {structures[0]} and "
                f"{structures[1]}; expected results of one structure from both."
            )
        both = list(_pairs(first.result, second.result))
        self.pairs = [pair for pair in both if not _is_fixed(*pair)]
        self.values: tuple[list[Value], list[Value]] = ([], [])
        for one, other in self.pairs:
            values = _of_one_type(
                first.line,
                first.value_of(one),
                second.value_of(other),
                are_numbers=self.is_number((one, other)),
            )
            for found, value in zip(self.values, values, strict=True):
                found.append(value)

    @property
    def leaves(self) -> tuple[list[Any], list[Any]]:
        """What each branch gives, but for what both give alike."""
        return [one for one, _ in self.pairs], [other for _, other in self.pairs]

    def is_number(self, pair: Sequence[Any]) -> bool:
        """Whether a result is a number of Python's in every branch that gives any."""
        given = [leaf for leaf in pair if not isinstance(leaf, Filler)]
        return bool(given) and all(map(self._outer.stands_for_number, given))

    def tree(self, arrays: Iterable[Any]) -> Any:
        """What the choice gives, as its branches do."""
        first, second = self._branches
        return self._merged(first.result, second.result, iter(arrays))

    def _merged(self, one: Any, other: Any, arrays: Iterator[Any]) -> Any:
        if one is other:
            return one
        if isinstance(one, dict):
            found = [self._merged(one[key], other[key], arrays) for key in one]
            return self._settled(trees.like(one, found), one, other)
        if isinstance(one, tuple | list):
            items = [self._merged(*pair, arrays) for pair in zip(one, other, strict=True)]
            made = trees.like(one, items)
            return made if isinstance(one, tuple) else self._settled(made, one, other)
        return one if _is_fixed(one, other) else next(arrays)

    def _settled(self, made: Any, one: Any, other: Any) -> Any:
        """A container of the choice, in place of those of the branches. Where one of these is known
        by another name, too, a change to one of them would not be seen in the others."""
        for branch, given in zip(self._branches, (one, other), strict=True):
            if not branch.made_alone(given):
                self._outer.outermost.note_chosen_object(made, given)
        self._outer.made_here[id(made)] = made
        return made


def _pairs(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The leaves of two trees of one structure."""
    if isinstance(one, dict):
        for key, item in one.items():
            yield from _pairs(item, other[key])
    elif isinstance(one, tuple | list):
        for pair in zip(one, other, strict=True):
            yield from _pairs(*pair)
    else:
        yield one, other


def _is_fixed(one: Any, other: Any) -> bool:
    """Whether both branches give the same object: an array from around, or one of Python's."""
    if one is other:
        return True
    return isinstance(one, PLAIN) and type(one) is type(other) and repr(one) == repr(other)


def _of_one_type(line: str, one: Value, other: Value, *, are_numbers: bool) -> tuple[Value, Value]:
    if one.shape != other.shape:
        raise CaptureError(
            f"the branches of the choice at {line} give arrays of the shapes {one.shape} and "
            f"{other.shape}; expected one shape. np.broadcast_to repeats, np.reshape rearranges."
        )
    dtype = result_type(one, other)
    if are_numbers and is_float(dtype):
        dtype = "float64"
    return cast(one, dtype), cast(other, dtype)


def _structure(tree: Any) -> Any:
    """A tree with words in place of its leaves."""
    return trees.mapped(tree, lambda leaf: "an array" if _is_number(leaf) else type(leaf).__name__)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, ndarray | bool | int | float | Filler)
