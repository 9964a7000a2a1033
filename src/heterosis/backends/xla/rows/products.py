"""Matrix products, of all bits that the operands have: no TF32, no bfloat16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
from jax import lax

from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.types import is_half, numpy_dtype

if TYPE_CHECKING:
    from heterosis.ir.program import Node

PRECISION = lax.Precision.HIGHEST


def _product(node: Node, a: Any, b: Any) -> Any:
    dtype = node.types[0].dtype
    wide = numpy.dtype("float32" if is_half(dtype) else "int32" if dtype == "bool" else dtype)
    a, b = (lax.convert_element_type(x, wide) for x in (a, b))
    stacks = tuple(range(a.ndim - 2))
    numbers = (((a.ndim - 1,), (b.ndim - 2,)), (stacks, stacks))
    found = lax.dot_general(a, b, numbers, precision=PRECISION, preferred_element_type=wide)
    return found != 0 if dtype == "bool" else lax.convert_element_type(found, numpy_dtype(dtype))


ROWS[MATMUL] = _product
