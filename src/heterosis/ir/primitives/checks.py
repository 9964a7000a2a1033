"""Values that a program checks as it runs: it fails, or goes on with them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.element_types import NUMBERS
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.sizes import Size
from heterosis.ir.traced_sizes import shown
from heterosis.ir.types import TensorType, is_float
from heterosis.runtime import raising
from heterosis.runtime.errors import ArgumentError, IndexingError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

# An error shows indices from its negative on, below itself.
MOST_SHOWN = 1 << 46


def failures_of_indices(node: Node) -> tuple[str, str]:
    """The messages for an index that is outside, `{}` in its place, and one that no array has."""
    count, subject, axis = (node.attributes[name] for name in ("count", "subject", "axis"))
    what = (
        f"for axis {axis} of an array of shape {shown(subject)}; "
        f"expected {shown(-count)} <= index < {shown(count)}."
    )
    return (
        f"index {{}} is out of bounds {what}",
        f"an index is NaN or larger than any array, {what}",
    )


def _index_types(node: Node) -> tuple[TensorType, ...]:
    (given,) = expected.operands(node, 1)
    expected.element_type(node, 0, NUMBERS)
    count, subject, axis = (node.attributes[name] for name in ("count", "subject", "axis"))
    expected.holds(node, isinstance(count, Size) or count >= 0, "a count from 0 on")
    expected.holds(node, 0 <= axis < len(subject), "an axis of the array that is indexed")
    return (TensorType(given.shape, "int64"),)


def _checked(node: Node, given: Any) -> Any:
    outside, nothing = failures_of_indices(node)
    count = node.attributes["count"]
    found = numpy.empty(given.shape, "int64")
    numbers = given.astype("float64") if is_float(node.inputs[0].dtype) else given
    for place, number in enumerate(numbers.ravel().tolist()):
        index = int(number) if math.isfinite(number) else MOST_SHOWN
        if not -MOST_SHOWN <= index < MOST_SHOWN:
            raise IndexingError(nothing)
        if not -count <= index < count:
            raise IndexingError(outside.format(index))
        found.flat[place] = index + count if index < 0 else index
    return found


def _required_types(node: Node) -> tuple[TensorType, ...]:
    _, numbers = expected.operands(node, 2)
    expected.ranks(node, 1, 1)
    expected.element_type(node, 0, ("bool",))
    return (TensorType(numbers.shape, numbers.dtype),)


def _required(node: Node, holds: Any, numbers: Any) -> Any:
    if not holds.all():
        failure = node.attributes["failure"]
        raise raising.exception(failure) if raising.is_told(failure) else ArgumentError(failure)
    return numbers.copy()


CHECK_INDICES = Opaque(
    "check_indices",
    types=_index_types,
    meaning=_checked,
    attributes={"count": int, "subject": tuple, "axis": int},
    about="Indices, counted from the front; the program fails at the first outside of `count` "
    "elements along an axis of an array of the shape `subject`. Fractions are cut off.",
)
REQUIRE = Opaque(
    "require",
    types=_required_types,
    meaning=_required,
    attributes={"failure": str},
    about="The second operand; the program fails with a message unless the first is true "
    "everywhere.",
)
