"""Extents that a captured program leaves open: which ones, and under which conditions it holds."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from typing import Any, TypeAlias

from heterosis import _core
from heterosis.capture import trees
from heterosis.capture.signatures import by_name
from heterosis.ir.sizes import named
from heterosis.ir.traced_sizes import LEAST, Decisions, function_of
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ArgumentError, check_axis

Axis = tuple[int, int]  # the position of an array among the arguments, and a dimension of it
Shapes = tuple[tuple[Any, ...] | None, ...]  # None for an array whose extents all stay known
# What `hybridize(dynamic=...)` takes: whether extents are open, "auto" for those that calls show to
# vary, or which of which parameters.
Dynamic: TypeAlias = "bool | str | Mapping[str, Sequence[int]]"
AUTO = "auto"

_MOST_ATTEMPTS = 4  # captures with open extents for calls of one kind


def shapes_of(arrays: Sequence[Any]) -> Shapes:
    """The shapes of arrays, as far as their extents can be left open: in memory without gaps."""
    return tuple(array.shape if array._contiguous else None for array in arrays)


def numbers_of(tree: Any) -> tuple[float, ...]:
    """The numbers of Python's, in order, as far as programs can leave them open."""
    return tuple(leaf for leaf in trees.leaves(tree) if type(leaf) in _OPEN)


def kind_of(tree: Any, numbers: Collection[int] | None = ()) -> Hashable:
    """What calls agree in that differ in extents alone, and in numbers at these positions, or in
    all numbers for None."""
    places = count()

    def masked(leaf: Any) -> Any:
        if type(leaf) not in _OPEN:
            return leaf
        return _OPEN[type(leaf)] if numbers is None or next(places) in numbers else leaf

    tree = tree if numbers == () else trees.mapped(tree, masked)
    found: Hashable = trees.description(tree, _kind_of_array)
    return found


_OPEN = {int: object(), float: object()}  # what stands for numbers that may be others


def _kind_of_array(array: Any) -> Hashable:
    if array._contiguous:
        return array._dtype_name, array.ndim
    return array._dtype_name, array.shape, array._element_strides


@dataclass(frozen=True)
class Opening:
    """Open extents: a name for each, the same where they are equal in the call at hand.

    Numbers of Python's that are open stand like extents of one more array behind the others.
    """

    names: Mapping[Axis, str]
    shapes: Shapes  # of the call at hand
    numbers: tuple[int, ...] = ()  # the positions of those that are open, among all numbers

    @property
    def values(self) -> dict[str, int]:
        """What the names are in the call at hand, but for floats."""
        return sizes_among(self.named)

    @property
    def floats(self) -> dict[str, float]:
        """What the names of floats are in the call at hand."""
        return floats_among(self.named)

    @property
    def named(self) -> dict[str, float]:
        """What all names are in the call at hand."""
        return {name: self.shapes[i][axis] for (i, axis), name in self.names.items()}  # type: ignore[index]

    def number(self, position: int) -> str | None:
        """The name of the number at a position among all numbers, if it is open."""
        if position not in self.numbers:
            return None
        return self.names.get((len(self.shapes) - 1, self.numbers.index(position)))

    def place(self, axis: Axis) -> tuple[int, int]:
        """An array among the arguments, and a dimension of it; for a number of Python's, -1, and
        its position among all numbers."""
        i, k = axis
        return (-1, self.numbers[k]) if self.numbers and i == len(self.shapes) - 1 else axis

    def numbers_alone(self, names: Collection[str]) -> set[int]:
        """The positions of numbers that have one of these names alone."""
        own = len(self.shapes) - 1
        axes = self.alone(names) if self.numbers else ()
        return {self.numbers[k] for i, k in axes if i == own}

    def alone(self, names: Collection[str]) -> set[Axis]:
        """The axes that have one of these names, and no other axis has it too: of axes that happen
        to be equal in the call at hand, it may be another one that a condition was for."""
        used = Counter(self.names.values())
        return {axis for axis, name in self.names.items() if name in names and used[name] == 1}

    def values_in(self, shapes: Shapes) -> dict[str, float] | None:
        """What the names are where arrays have these shapes; None if these are others."""
        found: dict[str, float] = {}
        for i, (own, given) in enumerate(zip(self.shapes, shapes, strict=True)):
            if own is None or given is None:
                continue
            for axis, extent in enumerate(given):
                name = self.names.get((i, axis))
                if name is None:
                    if extent != own[axis]:
                        return None
                elif not may_be_open(extent) or found.setdefault(name, extent) != extent:
                    return None
        return found


def sizes_among(values: Mapping[str, float]) -> dict[str, int]:
    """The values of names that are sizes."""
    return {name: value for name, value in values.items() if type(value) is int}


def floats_among(values: Mapping[str, float]) -> dict[str, float]:
    """The values of names that are floats."""
    return {name: value for name, value in values.items() if type(value) is float}


def may_be_open(number: float) -> bool:
    """Whether a program may hold for others in place of an extent or number: what broadcasts, and
    what is no finite number or divides by zero, has programs of its own."""
    if type(number) is float:
        return number != 0.0 and math.isfinite(number)
    return LEAST <= number < LARGEST


LARGEST = 2**48  # no array has more elements


def opened(axes: Iterable[Axis], shapes: Shapes, numbers: tuple[int, ...] = ()) -> Opening | None:
    """The extents on these axes, open; None if none of them may be."""
    found: dict[Axis, float] = {}
    for i, axis in sorted(axes):
        shape = shapes[i]
        if shape is not None and may_be_open(shape[axis]):
            found[i, axis] = shape[axis]
    order = list(dict.fromkeys(extent for extent in found.values() if type(extent) is int))
    floats = [axis for axis, extent in found.items() if type(extent) is float]
    names = {
        axis: f"f{floats.index(axis)}" if axis in floats else f"n{order.index(extent)}"  # type: ignore[arg-type]
        for axis, extent in found.items()
    }
    return Opening(names, shapes, numbers) if names else None


class OpenExtents:
    """How a capture sees the shapes of its arguments."""

    def __init__(self, opening: Opening):
        self.opening = opening
        self.decisions = Decisions(opening.values, opening.floats)

    def conditions(self) -> Conditions:
        """Under which the program holds that was captured."""
        return Conditions(self.opening, dict(self.decisions.conditions))

    def untraced(self, extent: Any) -> Any:
        """An extent of the captured program: a size, without what has one value alone; a number,
        if a condition says which one it is."""
        return self.decisions.extent(extent)

    def numbers(self, tree: Any) -> Any:
        """Arguments with names in place of the numbers that are open."""
        places = count()

        def traced(leaf: Any) -> Any:
            name = self.opening.number(next(places)) if type(leaf) in _OPEN else None
            return leaf if name is None else self.decisions.number(name)

        return trees.mapped(tree, traced) if self.opening.numbers else tree

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

    def values(self, shapes: Shapes) -> dict[str, float] | None:
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
        for name, value in (self.opening.values | self.opening.floats).items():
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

    def opening(
        self, shapes: Shapes, given: Iterable[Axis] | None, numbers: tuple[int, ...] = ()
    ) -> Opening | None:
        """What to leave open in a capture for these shapes, `given` what the user has said; the
        last shape has the numbers at these positions, which are open."""
        axes = (self.varied if given is None else set(given)) - self.closed
        axes |= {(len(shapes) - 1, k) for k in range(len(numbers))}
        if not axes or self.attempts >= _MOST_ATTEMPTS:
            return None
        return opened(axes, shapes, numbers)


@dataclass
class Numbers:
    """Calls that differ in extents and numbers alone: which numbers have been seen to vary."""

    first: tuple[float, ...] | None = None
    varied: set[int] = field(default_factory=set)
    closed: set[int] = field(default_factory=set)  # what a capture could not leave open
    extents: Kind = field(default_factory=Kind)  # those of the arrays, whatever the numbers are

    def see(self, numbers: tuple[float, ...]) -> tuple[int, ...]:
        """Take account of one more call: the positions of the numbers that are open in it."""
        if self.first is None:
            self.first = numbers
        self.varied |= {i for i, n in enumerate(self.first) if n != numbers[i]}
        return tuple(i for i in sorted(self.varied - self.closed) if may_be_open(numbers[i]))


def check_dynamic(dynamic: Any) -> None:
    """Refuse what `hybridize(dynamic=...)` does not take."""
    if not isinstance(dynamic, bool | Mapping) and dynamic != AUTO:
        raise ArgumentError(
            f"hybridize: got dynamic={dynamic!r}; expected False, True, 'auto', or axes by the "
            "names of parameters, as {'x': (0,)}."
        )


def axes_of(
    dynamic: Dynamic,
    parameters: inspect.Signature,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> set[Axis] | None:
    """The axes that the user has said are open; None where calls are to show it."""
    if isinstance(dynamic, str) or dynamic is False:
        return None
    arrays = list(trees.arrays_in((arguments, keywords)))
    if dynamic is True:
        return {(i, axis) for i, array in enumerate(arrays) for axis in range(array.ndim)}
    bound = by_name(parameters, arguments, keywords)
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
                found |= {(i, check_axis("dynamic", axis, array.ndim)) for axis in axes}
    return found


_STAND_INS = (7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)


def unlike(call: tuple[tuple[Any, ...], dict[str, Any]]) -> int:
    """A number to stand for an extent of a call: not to be taken for another one there."""
    taken = {extent for array in trees.arrays_in(call) for extent in array.shape}
    return next(n for n in chain(_STAND_INS, count(53, 6)) if n not in taken)


def openings(
    dynamic: Dynamic, parameters: inspect.Signature, call: tuple[tuple[Any, ...], dict[str, Any]]
) -> Iterator[tuple[Any, Opening]]:
    """What extents of a call to leave open in a program that is to serve later ones, what is wanted
    most first, each with arguments for which it is captured: all that may be, unless the user has
    named some. Where extents are 1, others stand for them; with these, the program may be one of
    another kind, since 1 is what broadcasts."""
    if dynamic is False:
        return
    given = True if isinstance(dynamic, str) else dynamic
    axes = axes_of(given, parameters, *call)
    assert axes is not None, "the user has said which, or all"
    shapes = shapes_of(list(trees.arrays_in(call)))
    ones = _in_place_of_ones(shapes, axes, unlike(call))
    if ones:
        other = with_extents(call, ones)
        found = opened(axes, shapes_of(list(trees.arrays_in(other))))
        if found is not None:
            yield other, found
    found = opened(axes, shapes)
    if found is not None:
        yield call, found


def _in_place_of_ones(shapes: Shapes, axes: Collection[Axis], other: int) -> dict[Axis, int]:
    """Another extent on those of the axes where it is 1."""
    return {(i, axis): other for i, axis in axes if (shapes[i] or ())[axis:][:1] == (1,)}


def with_extents(call: Any, extents: Mapping[Axis, int]) -> Any:
    """A call like this one, with arrays without elements, which have these extents on some axes."""
    numbers = count()

    def stand_in(array: Any) -> Any:
        i = next(numbers)
        shape = tuple(extents.get((i, axis), n) for axis, n in enumerate(array.shape))
        return _core.unreadable(array._dtype_name, shape, "an example has no elements")

    return trees.replaced(call, stand_in)
