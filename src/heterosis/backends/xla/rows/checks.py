"""Values that a program checks as it runs. It goes on with some numbers where one does not hold:
nobody gets to see what comes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.evaluation import Failure
from heterosis.backends.xla.rows.elementwise import converted, is_nan, like
from heterosis.backends.xla.tables import CHECKED_ROWS
from heterosis.ir.primitives.checks import CHECK_INDICES, MOST_SHOWN, REQUIRE

if TYPE_CHECKING:
    from heterosis.backends.xla.evaluation import Turn
    from heterosis.ir.program import Node


def _indices(node: Node, turn: Turn, given: Any) -> Any:
    count = node.attributes["count"]
    index = converted(given, "int64")
    huge = (index >= MOST_SHOWN) | (index < -MOST_SHOWN) | is_nan(given)
    behind = (index < -count) | (index >= count)
    if given.size:
        wrong = lax.reshape(huge | behind, (given.size,))
        first = jnp.argmax(wrong)
        is_huge = lax.reshape(huge, (given.size,))[first]
        shown = lax.reshape(index, (given.size,))[first]
        outside = Failure(node, (numpy.zeros(1, "int64"),), shows=True)
        turn.check(outside, wrong[first] & ~is_huge, shown)
        turn.check(Failure(node, (numpy.full(1, numpy.nan),)), wrong[first] & is_huge)
    index = lax.select(index < 0, index + count, index)
    return lax.select(huge | behind, like(index, 0), index)


def _required(node: Node, turn: Turn, holds: Any, numbers: Any) -> Any:
    turn.check(Failure(node, (numpy.zeros(1, "bool"), numpy.zeros(1, "int64"))), ~jnp.all(holds))
    return numbers


CHECKED_ROWS[CHECK_INDICES] = _indices
CHECKED_ROWS[REQUIRE] = _required
