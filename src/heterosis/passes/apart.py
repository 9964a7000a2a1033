"""Whether parts of an array, each at its (starts, steps), have elements in common."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any


def are_apart(places: Sequence[Any], shape: tuple[int, ...]) -> bool:
    """Whether parts of one shape, each at its (starts, steps), have no element in common."""
    return all(is_apart(a, shape, b, shape) for a, b in itertools.combinations(places, 2))


def is_apart(a: Any, shape: tuple[int, ...], b: Any, other: tuple[int, ...]) -> bool:
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
