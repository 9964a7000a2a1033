"""What a hybridized function may return: a later call makes it anew, of arrays that it computes."""

from __future__ import annotations

import enum
import gc
import types
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from heterosis import _core
from heterosis.capture import trees
from heterosis.capture.captured import Made
from heterosis.capture.guards import Guards
from heterosis.ir.traced_sizes import is_traced
from heterosis.runtime.errors import CaptureError

ndarray = _core.ndarray

# What holds no arrays of a program, and whose copy is another one of the same contents.
CHANGEABLE = (set, bytearray, numpy.ndarray)

# As far as an object is looked into: its attributes, the items of its containers, theirs.
_DEPTH = 4
_CURE = (
    "A later call makes tuples, lists, dictionaries and named tuples of arrays anew, and no other "
    "objects that hold some. Return the arrays, and make the object of what the call returns."
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
        held = next(_held_by(leaf, is_traced), None)
        if held is not None and not is_traced(leaf):
            raise CaptureError(
                f"{name} returns an object of type {type(leaf).__name__}, which holds the size "
                f"{held}. {_CURE}"
            )
        held = next(_held_by(leaf, lambda one: isinstance(one, ndarray) and is_computed(one)), None)
        if held is not None:
            raise CaptureError(
                f"{name} returns an object of type {type(leaf).__name__}, which holds an array "
                f"{held._dtype_name}{list(held.shape)} of the program. {_CURE}"
            )


def made_again(guards: Guards, one: Any) -> Any:
    """What stands for an object of Python's that is returned: itself, if it was there before, or if
    nobody can tell it from another; else what every call makes one like it of."""
    changes = isinstance(one, CHANGEABLE) or _is_users_object(guards, one)
    if guards.is_outside(one) or not changes:
        return one
    made = Made(one, tuple(_outside_in(guards, one)))
    try:
        made.again({})
    except Exception as error:
        raise CaptureError(
            f"an object of type {type(one).__name__} is returned, which every call would make "
            f"anew, and it cannot be copied ({error}). {_CURE}"
        ) from error
    return made


def _is_users_object(guards: Guards, one: Any) -> bool:
    """Whether it is an object of a user's class that can be changed, as far as that can be seen."""
    kind = type(one)
    if isinstance(one, enum.Enum | type | types.ModuleType | types.FunctionType):
        return False
    return guards.users.is_module(kind.__module__) and not kind.__module__.startswith("heterosis.")


def _outside_in(guards: Guards, one: Any) -> Iterator[Any]:
    """What an object refers to that was there before the capture."""
    waiting, seen = deque([one]), {id(one)}
    while waiting:
        for part in _parts(waiting.popleft()):
            if id(part) in seen:
                continue
            seen.add(id(part))
            if guards.is_outside(part):
                yield part
            else:
                waiting.append(part)


def _held_by(leaf: Any, is_wanted: Callable[[Any], bool]) -> Iterator[Any]:
    """What an object holds, or what that holds, of the kind that is wanted."""
    waiting, seen = deque([(leaf, 0)]), {id(leaf)}
    while waiting:
        one, depth = waiting.popleft()
        if is_wanted(one):
            yield one
        elif depth < _DEPTH and not isinstance(one, ndarray):
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
