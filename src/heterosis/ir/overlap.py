"""Whether parts of an array, each at its (starts, steps), have elements in common."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, TypeAlias

Shape: TypeAlias = "tuple[int, ...]"
# (residue, first, last, number) of each part along one axis, in order.
Line: TypeAlias = "list[tuple[int, float, float, int]]"


def are_apart(places: Sequence[Any], shapes: Sequence[Shape]) -> bool:
    """Whether no two parts have an element in common."""
    return not any(meetings(places, shapes))


def meetings(places: Sequence[Any], shapes: Sequence[Shape]) -> list[list[int]]:
    """For each part, by number, which others it has elements in common with."""
    found: list[list[int]] = [[] for _ in places]
    for i, j in _close(places, shapes):
        if not is_apart(places[i], shapes[i], places[j], shapes[j]):
            found[i].append(j)
            found[j].append(i)
    return found


def _close(places: Sequence[Any], shapes: Sequence[Shape]) -> Iterable[tuple[int, int]]:
    """The pairs that may meet: those that do along the axis where fewest do. Looking at all pairs
    takes seconds where there are thousands of parts."""
    if len(places) < 2 or not shapes[0]:
        return itertools.combinations(range(len(places)), 2)
    lines = [_line(places, shapes, axis) for axis in range(len(shapes[0]))]
    return _pairs(min(lines, key=_count))


def _line(places: Sequence[Any], shapes: Sequence[Shape], axis: int) -> Line:
    steps = {abs(steps[axis]) for _, steps in places}
    step = steps.pop() if len(steps) == 1 else 1
    line: Line = []
    for number, ((starts, own), shape) in enumerate(zip(places, shapes, strict=True)):
        low, high = sorted((starts[axis], starts[axis] + (shape[axis] - 1) * own[axis]))
        line.append((starts[axis] % max(step, 1), low, high, number))
    return sorted(line)


def _reach(line: Line, at: int) -> int:
    """The position behind the last part that may meet the one at a position."""
    residue, _, high, _ = line[at]
    return bisect_right(line, (residue, high, inf, 0))


def _count(line: Line) -> int:
    return sum(_reach(line, at) - at - 1 for at in range(len(line)))


def _pairs(line: Line) -> Iterator[tuple[int, int]]:
    for at in range(len(line)):
        for other in range(at + 1, _reach(line, at)):
            yield line[at][3], line[other][3]


def is_apart(a: Any, shape: Shape, b: Any, other: Shape) -> bool:
    """Whether two parts, each at its (starts, steps), have no element in common."""
    axes = zip(zip(*a, shape, strict=True), zip(*b, other, strict=True), strict=True)
    return any(_axis_apart(*pair) for pair in axes)


def _axis_apart(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    """Whether positions, given as (first, step, count), are none of those of another part."""
    (first, step, count), (other, other_step, other_count) = a, b
    low, high = sorted((first, first + (count - 1) * step))
    other_low, other_high = sorted((other, other + (other_count - 1) * other_step))
    behind = high < other_low or other_high < low
    return behind or (step == other_step and (first - other) % step != 0)
