"""The families of primitives: what each does to elements, and what passes may know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.ir.program import Node


@dataclass(frozen=True, eq=False)
class Primitive:
    """An operation that is not made of others: its name, and what holds on every back end.

    The subclasses, its families, say what a primitive does to its operands' elements; passes and
    back ends look at the family, never at the name.

    `types(node)` gives the types that the results of a node must have, or raises; where these do
    not follow from operands and attributes, as the shape in `reshape`, it takes them from the node
    and checks them. `meaning(node, *arrays)` computes the results with NumPy: an array, or a tuple
    where there are several. `attributes` names all attributes with their kinds, and `about` says in
    a line what is computed.
    """

    name: str
    types: Callable[[Node], tuple[TensorType, ...]] | None = field(default=None, kw_only=True)
    meaning: Callable[..., Any] | None = field(default=None, kw_only=True)
    attributes: Mapping[str, type] = field(default_factory=dict, kw_only=True)
    about: str = field(default="", kw_only=True)

    def __repr__(self) -> str:
        return self.name


class Leaf(Primitive):
    """Has no operands: a program input, a number argument, a constant."""


@dataclass(frozen=True, eq=False, repr=False)
class Elementwise(Primitive):
    """Each result element from the operands' elements at the same place, all of one shape.

    `lower(function, dtype, *values)` emits it for one vector, `dtype` naming the first operand's
    element type, and `cost` is its price in units of one addition. `exact` is NumPy's function, if
    it gives the very same bits; an operand equal to its number in `neutral` leaves the other one
    as it is. With `keeps`, elements that a type of fewer bits holds too are made of such ones; with
    `by_type` it depends on the element type beyond the one that is computed in.
    """

    lower: Callable[..., Any]
    cost: float = 1.0
    exact: Callable[..., Any] | None = None
    neutral: tuple[float | None, ...] = ()
    keeps: bool = False
    by_type: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class View(Primitive):
    """Elements rearranged, none computed. `move(node)` says how: a method of `ir.strided`'s
    `Strided` by name, and its arguments."""

    move: Callable[[Node], tuple[str, tuple[Any, ...]]]


class Reduction(Primitive):
    """Combines the elements along the attribute `axes`; the order is left to the lowering."""


class Scan(Reduction):
    """A reduction that keeps every partial result along its one axis."""


class Gather(Primitive):
    """Rows of the first operand, found by one integer operand for each of its leading axes."""


class Scatter(Primitive):
    """The first operand with the last one written, or added, at the rows that indices name."""


class Assemble(Primitive):
    """Operands side by side in one result: attribute `places` has a (starts, steps) for each.

    A number operand in front, present where the attribute `filled` is true, fills the gaps.
    """


class Opaque(Primitive):
    """Whole operands to whole results, which no loop over elements gives."""
