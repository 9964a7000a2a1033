"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.numbers import precise
from heterosis.ir.types import DTYPES, TensorType
from heterosis.runtime.errors import ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _types(node: Node) -> tuple[TensorType, ...]:
    a, b = expected.operands(node, 2)
    dtype = expected.common_element_type(node, DTYPES)
    fits = a.ndim == b.ndim >= 2 and a.shape[:-2] == b.shape[:-2] and a.shape[-1] == b.shape[-2]
    if not fits:
        raise ShapeError(
            f"{node.primitive}: operands of shapes {a.shape} and {b.shape}; expected "
            "(..., rows, depth) and (..., depth, columns) with the same leading dimensions."
        )
    return (TensorType((*a.shape[:-1], b.shape[-1]), dtype),)


def _product(node: Node, a: Any, b: Any) -> Any:
    return numpy.matmul(precise(a), precise(b))


MATMUL = Opaque(
    "matmul",
    types=_types,
    meaning=_product,
    about="Matrix products of two stacks of matrices, which are equally many. Integers wrap.",
)
