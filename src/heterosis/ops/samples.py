"""How tests make arguments for an operation: cases of shapes and attributes, and domains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from heterosis.ir.types import DTYPES, FLOATS, INTEGERS

Shape = tuple[int, ...]

NUMBERS = tuple(d for d in DTYPES if d != "bool")
REALS = FLOATS
WHOLE = ("bool", *INTEGERS)


@dataclass(frozen=True)
class Case:
    """Shapes of the arrays, in order, and the attributes by name.

    A shape of `None` stands for a Python number; a list of shapes for a sequence of arrays.
    """

    shapes: tuple[Shape | list[Shape] | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Samples:
    """Cases, the values that the arrays hold, and the element types that the operation takes.

    `domain` bounds every array's values, or is a pair of bounds for each array. `ulps` is how far
    float32 and float64 results may be from the reference, in units of its last place; `absolute`
    is added for results near zero, as a multiple of the type's rounding unit.
    """

    cases: Sequence[Case]
    domain: Sequence[Any] = (-4, 4)
    dtypes: tuple[str, ...] = DTYPES
    ulps: float = 4.0
    absolute: float = 4.0
    integer_arrays: tuple[int, ...] = ()  # positions of arrays that hold indices: always int64
    rising_arrays: tuple[int, ...] = ()  # positions of arrays whose elements must not decrease

    def bounds(self, position: int) -> tuple[float, float]:
        first = self.domain[0]
        return self.domain[position] if isinstance(first, tuple) else tuple(self.domain)


_SHAPES: tuple[Shape, ...] = ((), (0,), (1,), (1, 2), (37,), (3, 0, 2), (5, 7), (2, 3, 4), (3, 70))
_PAIRS = ((3, 1), (1, 4)), ((4,), (3, 4)), ((2, 1, 3), (5, 1)), ((), (3,)), ((0, 3), (1, 3))


def elementwise_cases(arity: int) -> tuple[Case, ...]:
    """Equal shapes of every class; for several operands also broadcasting and numbers."""
    equal = [Case((shape,) * arity) for shape in _SHAPES]
    if arity == 1:
        return tuple(equal)
    if arity == 2:
        mixed = [Case(pair) for pair in _PAIRS]
        return (*equal, *mixed, Case(((3, 4), None)), Case((None, (3, 4))))
    mixed = [Case((*pair, pair[0])) for pair in _PAIRS]
    return (*equal, *mixed)


def reduction_cases(**more: Sequence[Any]) -> tuple[Case, ...]:
    """Shapes by axes by `keepdims`, and every value of further attributes once."""
    return tuple(_reduction_cases(more))


def _reduction_cases(more: Mapping[str, Sequence[Any]]) -> Iterator[Case]:
    for shape in ((), (1,), (37,), (300,), (5, 7), (70, 3), (2, 3, 4), (2, 1, 3)):
        for axis in (None, *range(-len(shape), len(shape))):
            yield Case((shape,), {"axis": axis})
    for keepdims in (False, True):
        yield Case(((2, 3, 4),), {"axis": (0, 2), "keepdims": keepdims})
        yield Case(((2, 3, 4),), {"axis": 1, "keepdims": keepdims})
    for name, values in more.items():
        for value in values:
            yield Case(((3, 4),), {"axis": 1, name: value})
