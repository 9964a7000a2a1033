"""Numbers in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.ir.program import Node

_LOW = 0xFFFFFFFF
_MULTIPLIER, _WEYL = 0xD256D193, 0x9E3779B9  # Philox 2x32
_ROUNDS = 10


def _types(node: Node) -> tuple[TensorType, ...]:
    expected.operands(node, 1)
    expected.ranks(node, 0)
    expected.element_type(node, 0, ("int64",))
    (count,) = expected.result_shape(node, None)
    expected.holds(node, 0 <= node.attributes["wanted"] <= count, f"at most {count} wanted")
    return (TensorType((count,), "int64"),)


def _shuffled(node: Node, key: Any) -> Any:
    places = list(range(node.types[0].size))
    for place in range(node.attributes["wanted"]):
        other = place + (_block(place, int(key)) * (len(places) - place) >> 64)
        places[place], places[other] = places[other], places[place]
    return numpy.array(places, "int64")


def _block(counter: int, key: int) -> int:
    """64 random bits: Philox 2x32-10 (Salmon et al., 2011), the halves of counter and key mixed."""
    left, right = counter & _LOW, (counter ^ key) >> 32 & _LOW
    round_key = key & _LOW
    for _ in range(_ROUNDS):
        product = left * _MULTIPLIER
        left, right = product >> 32 ^ round_key ^ right, product & _LOW
        round_key = round_key + _WEYL & _LOW
    return left << 32 | right


SHUFFLED_PLACES = Opaque(
    "shuffled_places",
    types=_types,
    meaning=_shuffled,
    attributes={"wanted": int},
    about="The numbers below the result's size, of which the first `wanted` are drawn at random by "
    "a key (Fisher and Yates, with bits from Philox 2x32-10), and the rest as that leaves them.",
)
