"""What the branches of a choice give: results of one structure, and values of one type each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from heterosis import _core
from heterosis.capture import trees
from heterosis.capture.inner import Filler, Inner
from heterosis.ir.program import Value
from heterosis.ops.rules import cast, result_type
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray


class Joined:
    """The results of two branches, as values of one type each."""

    def __init__(self, first: Inner, second: Inner):
        self._tree = first.result
        ours, theirs = list(trees.leaves(first.result)), list(trees.leaves(second.result))
        if _structure(first.result) != _structure(second.result):
            raise CaptureError(
                f"the branches of the choice at {first.line} give {_structure(first.result)} and "
                f"{_structure(second.result)}; expected results of one structure from both."
            )
        both = list(zip(ours, theirs, strict=True))
        self._fixed = [_is_fixed(*pair) for pair in both]
        self.pairs = [pair for pair, fixed in zip(both, self._fixed, strict=True) if not fixed]
        self.values: tuple[list[Value], list[Value]] = ([], [])
        for one, other in self.pairs:
            values = _of_one_type(first.line, first.value_of(one), second.value_of(other))
            for found, value in zip(self.values, values, strict=True):
                found.append(value)

    @property
    def leaves(self) -> tuple[list[Any], list[Any]]:
        """What each branch gives, but for what both give alike."""
        return [one for one, _ in self.pairs], [other for _, other in self.pairs]

    def tree(self, arrays: Iterable[Any]) -> Any:
        """What the choice gives, as its branches do."""
        waiting, fixed = iter(arrays), iter(self._fixed)
        return trees.mapped(self._tree, lambda leaf: leaf if next(fixed) else next(waiting))


def _is_fixed(one: Any, other: Any) -> bool:
    """Whether both branches give the same object of Python's."""
    if isinstance(one, ndarray) or isinstance(other, ndarray):
        return False
    return one is other or (type(one) is type(other) and repr(one) == repr(other))


def _of_one_type(line: str, one: Value, other: Value) -> tuple[Value, Value]:
    if one.shape != other.shape:
        raise CaptureError(
            f"the branches of the choice at {line} give arrays of the shapes {one.shape} and "
            f"{other.shape}; expected one shape. np.broadcast_to repeats, np.reshape rearranges."
        )
    dtype = result_type(one, other)
    return cast(one, dtype), cast(other, dtype)


def _structure(tree: Any) -> Any:
    """A tree with words in place of its leaves."""
    return trees.mapped(tree, lambda leaf: "an array" if _is_number(leaf) else type(leaf).__name__)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, ndarray | bool | int | float | Filler)
