"""Numbers written in the program, and places counted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy
from jax import lax

from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives.leaves import CONSTANT, EXTENT, IOTA
from heterosis.ir.types import as_type, numpy_dtype

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def number(node: Node) -> Any:
    """The number of a node, of its type exactly."""
    value, dtype = node.attributes["value"], node.types[0].dtype
    wide = numpy.asarray(value, "float64") if isinstance(value, float) else numpy.asarray(value)
    with numpy.errstate(over="ignore"):
        return lax.full((), as_type(wide, dtype), numpy_dtype(dtype))


def _iota(node: Node) -> Any:
    shape = node.types[0].shape
    return lax.reshape(lax.iota(numpy.dtype("int64"), math.prod(shape)), shape)


ROWS[CONSTANT] = number
ROWS[EXTENT] = number
ROWS[IOTA] = _iota
