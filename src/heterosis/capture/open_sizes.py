"""Extents that a captured program leaves open: which ones, and under which conditions it holds."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, TypeAlias

from heterosis import _core
from heterosis.capture import trees
from heterosis.ir.sizes import Size, named
from heterosis.ir.traced_sizes import LEAST, Decisions, function_of, untraced
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ArgumentError

Axis = tuple[int, int]  # the position of an array among the arguments, and a dimension of it
Shapes = tuple[tuple[int, ...] | None, ...]  # None for an array whose extents all stay known
# What `hybridize(dynamic=...)` takes: whether extents are open, "auto" for those that calls show to
# vary, or which of which parameters.
Dynamic: TypeAlias = "bool | str | Mapping[str, Sequence[int]]"
AUTO = "auto"

_MOST_ATTEMPTS = 4  # captures with open extents for calls of one kind


def shapes_of(arrays: Sequence[Any]) -> Shapes:
    """The shapes of arrays, as far as their extents can be left open: in memory without gaps."""
    return tuple(array.shape if array._contiguous else None for array in arrays)


def kind_of(tree: Any) -> Hashable:
    """What calls agree in that differ in extents alone."""
    found: Hashable = trees.description(tree, _kind_of_array)
    return found


def _kind_of_array(array: Any) -> Hashable:
    if array._contiguous:
        return array._dtype_name, array.ndim
    return array._dtype_name, array.shape, array._element_strides


@dataclass(frozen=True)
class Opening:
    """Open extents: a name for each, the same where they are equal in the call at hand."""

    names: Mapping[Axis, str]
    shapes: Shapes  # of the call at hand

    @property
    def values(self) -> dict[str, int]:
        """What the names are in the call at hand."""
        return {name: self.shapes[i][axis] for (i, axis), name in self.names.items()}  # type: ignore[index]

    def alone(self, names: Collection[str]) -> set[Axis]:
        """The axes that have one of these names, and no other axis has it too: of axes that happen
        to be equal in the call at hand, it may be another one that a condition was for."""
        used = Counter(self.names.values())
        return {axis for axis, name in self.names.items() if name in names and used[name] == 1}

    def values_in(self, shapes: Shapes) -> dict[str, int] | None:
        """What the names are where arrays have these shapes; None if these are others."""
        found: dict[str, int] = {}
        for i, (own, given) in enumerate(zip(self.shapes, shapes, strict=True)):
            if own is None or given is None:
                continue
            for axis, extent in enumerate(given):
                name = self.names.get((i, axis))
                if name is None:
                    if extent != own[axis]:
                        return None
                elif extent < LEAST or found.setdefault(name, extent) != extent:
                    return None
        return found


def opened(axes: Iterable[Axis], shapes: Shapes) -> Opening | None:
    """The extents on these axes, open; None if none of them may be."""
    extents: dict[Axis, int] = {}
    for i, axis in sorted(axes):
        shape = shapes[i]
        if shape is not None and shape[axis] >= LEAST:
            extents[i, axis] = shape[axis]
    order = list(dict.fromkeys(extents.values()))
    names = {axis: f"n{order.index(extent)}" for axis, extent in extents.items()}
    return Opening(names, shapes) if names else None


class OpenExtents:
    """How a capture sees the shapes of its arguments."""

    def __init__(self, opening: Opening):
        self.opening = opening
        self.decisions = Decisions(opening.values)

    def conditions(self) -> Conditions:
        """Under which the program holds that was captured."""
        return Conditions(self.opening, dict(self.decisions.conditions))

    def untraced(self, extent: Any) -> Any:
        """An extent of the captured program: a size, without what has one value alone; a number,
        if a condition says which one it is."""
        size = untraced(extent)
        if not isinstance(size, Size):
            return size
        rest = size.at(self.opening.values) - size.number
        if f"{Size(size.terms)} == {rest}" in self.decisions.conditions:
            return rest + size.number
        return size.at(self.decisions.fixed)

    def shape(self, position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the array at a position among the arguments, open extents by their names."""
        names = self.opening.names
        return tuple(
            self.decisions.traced(named(names[position, axis]))
            if (position, axis) in names
            else extent
            for axis, extent in enumerate(shape)
        )


@dataclass
class Conditions:
    """Under which values of its names a captured program holds."""

    opening: Opening
    noted: Mapping[str, str]  # each with the user's line
    _hold: Callable[..., tuple[Any, ...]] = field(init=False)

    def __post_init__(self) -> None:
        names = dict.fromkeys(self.opening.names.values())
        self._hold = function_of(names, [" and ".join(self.noted) or "True"])

    def values(self, shapes: Shapes) -> dict[str, int] | None:
        """What the names are that the program has, for arrays of these shapes; None if it does not
        hold for them."""
        found = self.opening.values_in(shapes)
        if found is None or not self._hold(**found)[0]:
            return None
        return {name: value for name, value in found.items() if name not in self.fixed}

    def named(self, position: int, type_: TensorType) -> TensorType:
        """The type of the array at a position among the arguments, with the names of its extents
        that are open."""
        found = (self.opening.names.get((position, axis)) for axis in range(len(type_.shape)))
        shape: tuple[Any, ...] = tuple(
            named(name) if name is not None and name not in self.fixed else extent
            for name, extent in zip(found, type_.shape, strict=True)
        )
        return TensorType(shape, type_.dtype)

    @cached_property
    def fixed(self) -> dict[str, str]:
        """The names that have one value left, with the line that did it."""
        found = {}
        for name, value in self.opening.values.items():
            for condition, line in self.noted.items():
                if condition == f"{name} == {value}":
                    found[name] = f"{condition} at {line}"
        return found


@dataclass
class Kind:
    """Calls that differ in extents alone: which extents have been seen to vary."""

    shapes: Shapes | None = None  # of the first call
    varied: set[Axis] = field(default_factory=set)
    closed: set[Axis] = field(default_factory=set)  # what a capture could not leave open
    attempts: int = 0

    def see(self, shapes: Shapes) -> None:
        """Take account of one more call."""
        if self.shapes is None:
            self.shapes = shapes
        for i, (first, now) in enumerate(zip(self.shapes, shapes, strict=True)):
            if first is not None and now is not None:
                self.varied |= {(i, k) for k in range(len(now)) if first[k] != now[k]}

    def close(self, opening: Opening) -> None:
        """Leave none of these extents open any more."""
        self.closed |= opening.names.keys()

    def opening(self, shapes: Shapes, given: Iterable[Axis] | None) -> Opening | None:
        """What to leave open in a capture for these shapes, `given` what the user has said."""
        axes = (self.varied if given is None else set(given)) - self.closed
        if not axes or self.attempts >= _MOST_ATTEMPTS:
            return None
        return opened(axes, shapes)


def check_dynamic(dynamic: Any) -> None:
    """Refuse what `hybridize(dynamic=...)` does not take."""
    if not isinstance(dynamic, bool | Mapping) and dynamic != AUTO:
        raise ArgumentError(
            f"hybridize: got dynamic={dynamic!r}; expected False, True, 'auto', or axes by the "
            "names of parameters, as {'x': (0,)}."
        )


def axes_of(
    dynamic: Dynamic, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> set[Axis] | None:
    """The axes that the user has said are open; None where calls are to show it."""
    if isinstance(dynamic, str) or dynamic is False:
        return None
    arrays = list(trees.arrays_in((arguments, keywords)))
    if dynamic is True:
        return {(i, axis) for i, array in enumerate(arrays) for axis in range(array.ndim)}
    bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    found: set[Axis] = set()
    for name, axes in dynamic.items():
        if name not in bound:
            raise ArgumentError(
                f"dynamic={dict(dynamic)!r}: there is no argument {name!r}; expected names among "
                f"{', '.join(bound)}."
            )
        own = list(trees.arrays_in(bound[name]))
        for i, array in enumerate(arrays):
            if any(array is one for one in own):
                found |= {(i, axis % array.ndim) for axis in axes}
    return found


_STAND_INS = (7, 11, 13, 17, 19, 23)  # for extents of 1: not to be taken for others


def openings(
    dynamic: Dynamic, function: Any, call: tuple[tuple[Any, ...], dict[str, Any]]
) -> Iterator[tuple[Any, Opening]]:
    """What extents of a call to leave open in a program that is to serve later ones, what is wanted
    most first, each with arguments for which it is captured: all that may be, unless the user has
    named some. Where extents are 1, others stand for them; with these, the program may be one of
    another kind, since 1 is what broadcasts."""
    if dynamic is False:
        return
    given = True if isinstance(dynamic, str) else dynamic
    axes = axes_of(given, function, *call)
    assert axes is not None, "the user has said which, or all"
    shapes = shapes_of(list(trees.arrays_in(call)))
    taken = {extent for shape in shapes for extent in shape or ()}
    free = next((n for n in _STAND_INS if n not in taken), None)
    if free is not None and any(shapes[i] and shapes[i][axis] == 1 for i, axis in axes):  # type: ignore[index]
        other = _with_ones(call, axes, free)
        found = opened(axes, shapes_of(list(trees.arrays_in(other))))
        if found is not None:
            yield other, found
    found = opened(axes, shapes)
    if found is not None:
        yield call, found


def _with_ones(call: Any, axes: Collection[Axis], other: int) -> Any:
    """A call like this one, with arrays without elements, in which another extent stands for 1 on
    these axes."""
    numbers = count()

    def stand_in(array: Any) -> Any:
        i = next(numbers)
        shape = tuple(
            other if n == 1 and (i, axis) in axes else n for axis, n in enumerate(array.shape)
        )
        return _core.unreadable(array._dtype_name, shape, "an example has no elements")

    return trees.replaced(call, stand_in)
