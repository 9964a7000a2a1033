"""What a hybridized function may return: a later call makes it anew, of arrays that it computes."""

from __future__ import annotations

import gc
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from heterosis import _core
from heterosis.capture import trees
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray

# What holds no arrays of a program, and whose copy is another one of the same contents.
CHANGEABLE = (set, bytearray, numpy.ndarray)

# As far as an object is looked into: its attributes, the items of its containers, theirs.
_DEPTH = 4
_CURE = (
    "A later call makes tuples, lists, dictionaries and named tuples of arrays anew, and gives "
    "back other objects as they were. Return the arrays, and make the object of what the call "
    "returns."
)


def check(result: Any, name: str, is_computed: Callable[[Any], bool]) -> None:
    """Refuse a result that later calls could not make: an iterator, which is used up by the first
    caller, and an object that holds arrays without elements, those that `is_computed` knows."""
    for leaf in trees.objects_in(result):
        if isinstance(leaf, Iterator):
            raise CaptureError(
                f"{name} returns an iterator, a {type(leaf).__name__}, which the next call would "
                "find used up. Return a list or a tuple of what it gives."
            )
        held = next(filter(is_computed, _held_by(leaf)), None)
        if held is not None:
            raise CaptureError(
                f"{name} returns an object of type {type(leaf).__name__}, which holds an array "
                f"{held._dtype_name}{list(held.shape)} of the program. {_CURE}"
            )


def _held_by(leaf: Any) -> Iterator[Any]:
    """The arrays that an object holds, or what it holds."""
    waiting, seen = deque([(leaf, 0)]), {id(leaf)}
    while waiting:
        one, depth = waiting.popleft()
        if isinstance(one, ndarray):
            yield one
        elif depth < _DEPTH:
            found = [other for other in _parts(one) if id(other) not in seen]
            seen.update(map(id, found))
            waiting.extend((other, depth + 1) for other in found)


def _parts(one: Any) -> list[Any]:
    """What an object refers to by itself: not its class, and not the module it comes from."""
    if isinstance(one, type | types.ModuleType):
        return []
    if isinstance(one, types.FunctionType):
        return [*(one.__closure__ or ()), *(one.__defaults__ or ())]
    return gc.get_referents(one)
