"""Primitives of this back end alone: operands packed for a processor, and what takes them.

No program that is captured, differentiated or written down has them: they appear once parameters
are prepared, or before the program is planned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.types import DTYPES, FLOATS, TensorType
from heterosis.runtime.errors import UnsupportedError

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _by_processor(node: Node, *arrays: Any) -> Any:
    raise UnsupportedError(
        f"{node.primitive}: how operands are packed depends on the processor, and only its code "
        "can tell; evaluate the program as it is before parameters are prepared."
    )


def _packed(rank: int) -> Callable[[Node], tuple[TensorType, ...]]:
    """The rule for an operand of so many dimensions; how much is needed is up to the processor."""

    def types(node: Node) -> tuple[TensorType, ...]:
        expected.operands(node, 1)
        expected.ranks(node, rank)
        dtype = expected.element_type(node, 0, FLOATS)
        return (TensorType(expected.result_shape(node, None), dtype),)

    return types


def _multiplied(node: Node) -> tuple[TensorType, ...]:
    a, _ = expected.operands(node, 2)
    expected.ranks(node, a.ndim, 1)
    dtype = expected.common_element_type(node, DTYPES)
    return (TensorType(expected.result_shape(node, *a.shape[:-1], None), dtype),)


PACK_RIGHT = Opaque(
    "pack_right",
    types=_packed(2),
    meaning=_by_processor,
    about="The right operand (depth, columns) of a product as its kernel reads it.",
)
MATMUL_PACKED = Opaque(
    "matmul_packed",
    types=_multiplied,
    meaning=_by_processor,
    about="Matrix products of a stack of matrices and one packed right operand.",
)
