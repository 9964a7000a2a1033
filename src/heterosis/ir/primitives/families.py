"""The families of primitives: what each does to elements, and what passes may know of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.types import TensorType, as_type, is_half

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
    where there are several. `attributes` names all attributes with their kinds, annotations such as
    `tuple[int, ...]`, and `about` says in a line what is computed.
    """

    name: str
    types: Callable[[Node], tuple[TensorType, ...]] = field(kw_only=True)
    meaning: Callable[..., Any] = field(kw_only=True)
    attributes: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    about: str = field(default="", kw_only=True)

    def __repr__(self) -> str:
        return self.name

    def evaluate(self, node: Node, *arrays: Any) -> tuple[Any, ...]:
        """The results of `node` for these operands, as `meaning` says."""
        with numpy.errstate(all="ignore"):
            return held(node, self.meaning(node, *arrays))


def widened(array: Any) -> Any:
    """Elements as they are computed with: those of 16 bits in float32."""
    return array.astype("float32") if is_half(array.dtype.name) else array


def held(node: Node, found: Any) -> tuple[Any, ...]:
    """One result, or a tuple of them, as the element types of `node` hold them: rounded once."""
    results = found if isinstance(found, tuple) else (found,)
    pairs = zip(map(numpy.asarray, results), node.types, strict=True)
    return tuple(as_type(result, type_.dtype) for result, type_ in pairs)


class Leaf(Primitive):
    """Has no operands: a program input, a number argument, a constant."""


@dataclass(frozen=True, eq=False, repr=False)
class Elementwise(Primitive):
    """Each result element from the operands' elements at the same place, all of one shape.

    `meaning(*arrays)` takes no node, since there are no attributes, and knows nothing of types of
    16 bits: `evaluate` widens such operands and rounds the result. It is `exact` if the compiled
    code gives its very bits. An operand equal to its number in `neutral` leaves the other one as it
    is. With `keeps`, elements that a type of fewer bits holds too are made of such ones; with
    `by_type` it depends on the element type beyond the one that is computed in, and sees operands
    of 16 bits as they are.
    """

    exact: bool = False
    neutral: tuple[float | None, ...] = ()
    keeps: bool = False
    by_type: bool = False

    def evaluate(self, node: Node, *arrays: Any) -> tuple[Any, ...]:
        """The result of `node` for these operands, as `meaning` says."""
        operands = arrays if self.by_type else map(widened, arrays)
        with numpy.errstate(all="ignore"):
            return held(node, self.meaning(*operands))


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


class Control(Opaque):
    """A choice or a loop: attributes are closed programs, which operands are handed to."""
