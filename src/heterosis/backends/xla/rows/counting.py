"""What is counted or placed by values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy

from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives.counting import OCCURRENCES, TRUE_PLACES

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _occurring(node: Node, numbers: Any) -> Any:
    (count,) = node.types[0].shape
    inside = (numbers >= 0) & (numbers < count)
    zeros = jnp.zeros(count, numpy.dtype("int64"))
    return zeros.at[jnp.where(inside, numbers, count)].add(1, mode="drop")


def _true(node: Node, truths: Any) -> Any:
    (count,) = node.types[0].shape
    (places,) = jnp.nonzero(truths, size=count, fill_value=0)
    return places.astype(numpy.dtype("int64"))


ROWS[OCCURRENCES] = _occurring
ROWS[TRUE_PLACES] = _true
