"""Numbers in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.random_bits import below, block
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _types(node: Node) -> tuple[TensorType, ...]:
    expected.operands(node, 1)
    expected.ranks(node, 0)
    expected.element_type(node, 0, ("int64",))
    (count,) = expected.result_shape(node, None)
    expected.holds(node, 0 <= node.attributes["wanted"] <= count, f"at most {count} wanted")
    return (TensorType((count,), "int64"),)


def _shuffled(node: Node, key: Any) -> Any:
    places, turns = numpy.arange(node.types[0].size), numpy.arange(node.attributes["wanted"])
    others = turns + below(block(turns, key), len(places) - turns)
    for place, other in zip(turns, others, strict=True):
        places[[place, other]] = places[[other, place]]
    return places


SHUFFLED_PLACES = Opaque(
    "shuffled_places",
    types=_types,
    meaning=_shuffled,
    attributes={"wanted": int},
    about="The numbers below the result's size, of which the first `wanted` are drawn at random by "
    "a key (Fisher and Yates, with bits from Philox 2x32-10), and the rest as that leaves them.",
)
