"""The rule for the result's type that all elementwise primitives share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heterosis.ir.primitives.expected import operands
from heterosis.ir.types import DTYPES, FLOATS, INTEGERS, TensorType
from heterosis.runtime.errors import DTypeError, ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

NUMBERS = tuple(d for d in DTYPES if d != "bool")
WHOLE = ("bool", *INTEGERS)
TRUTH = ("bool",)


@dataclass(frozen=True)
class ElementTypes:
    """Operands of one shape, which is the result's, and which element types go together.

    `operands` has the element types that each operand may have, or the number of the operand whose
    type it shares. `result` is a type, or the number of the operand whose type it has.
    """

    operands: tuple[tuple[str, ...] | int, ...]
    result: str | int

    def __call__(self, node: Node) -> tuple[TensorType, ...]:
        given = [type_.dtype for type_ in operands(node, len(self.operands))]
        self._check_shapes(node)
        for i, dtype in enumerate(given):
            expected = self._expected(i, given)
            if dtype not in expected:
                raise DTypeError(
                    f"{node.primitive.name}: operand {i} is of {dtype}; expected "
                    f"{' or '.join(expected)}. Convert it first."
                )
        result = given[self.result] if isinstance(self.result, int) else self.result
        return (TensorType(node.inputs[0].shape, result),)

    def _expected(self, operand: int, given: Sequence[str]) -> tuple[str, ...]:
        allowed = self.operands[operand]
        return (given[allowed],) if isinstance(allowed, int) else allowed

    def _check_shapes(self, node: Node) -> None:
        shapes = [value.shape for value in node.inputs]
        if any(shape != shapes[0] for shape in shapes):  # equal sizes may have other forms
            raise ShapeError(
                f"{node.primitive.name}: operands of shapes {' and '.join(map(str, shapes))}; "
                "expected one shape. Repeat the smaller ones with broadcast first."
            )


def alike(count: int, dtypes: tuple[str, ...] = DTYPES) -> ElementTypes:
    """All operands of one type, which is the result's."""
    return ElementTypes((dtypes, *(0 for _ in range(count - 1))), 0)


def truth(count: int, dtypes: tuple[str, ...] = DTYPES) -> ElementTypes:
    """A question about operands of one type."""
    return ElementTypes((dtypes, *(0 for _ in range(count - 1))), "bool")


def fixed(*operands: str, result: str) -> ElementTypes:
    """Operands and a result of these types and no others."""
    return ElementTypes(tuple((dtype,) for dtype in operands), result)


REAL = alike(1, FLOATS)
TWO_REAL = alike(2, FLOATS)
