"""What is counted or placed by values: how often numbers occur, and where truth values are true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _types(*dtypes: str) -> Any:
    """The rule for a row of such elements: int64, as many as the node says."""

    def types(node: Node) -> tuple[TensorType, ...]:
        expected.operands(node, 1)
        expected.ranks(node, 1)
        expected.element_type(node, 0, dtypes)
        return (TensorType(expected.result_shape(node, None), "int64"),)

    return types


def _occurring(node: Node, numbers: Any) -> Any:
    (count,) = node.types[0].shape
    inside = numbers[(numbers >= 0) & (numbers < count)]
    return numpy.bincount(inside, minlength=count).astype("int64")


def _true(node: Node, truths: Any) -> Any:
    found = numpy.zeros(node.types[0].shape, "int64")
    (places,) = numpy.nonzero(truths)
    found[: len(places)] = places[: len(found)]
    return found


OCCURRENCES = Opaque(
    "occurrences",
    types=_types("int32", "int64"),
    meaning=_occurring,
    about="How often each of the numbers from 0 on occurs, for as many as the result has room for; "
    "other numbers count for nothing.",
)
TRUE_PLACES = Opaque(
    "true_places",
    types=_types("bool"),
    meaning=_true,
    about="Where the elements are true, in order, up to as many as the result has room for; zeros "
    "behind them.",
)
