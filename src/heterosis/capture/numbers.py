"""Numbers of Python's that arrays decide: in a program they are arrays of one element.

They go on as numbers do: `n += 1` gives another one, and whoever had the number before has it
still; beside arrays they adapt to their element types; `True + True` is 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir.program import Value, constant
from heterosis.ir.types import is_float
from heterosis.ops.rules import result_type

_ARITHMETIC = frozenset((
    "add", "subtract", "multiply", "true_divide", "floor_divide", "mod", "power", "left_shift",
    "right_shift", "negative", "absolute", "invert",
))  # fmt: skip
_COMPARING = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
# What Python's operators are, and of numbers give numbers.
OPERATORS = _ARITHMETIC | _COMPARING | {"bitwise_and", "bitwise_or", "bitwise_xor", "logical_not"}


def adapted(
    operation: str, values: Sequence[Value | None], numbers: Sequence[bool]
) -> list[str | None]:
    """The element types that the operands of an operator are converted to, `numbers` of which stand
    for numbers of Python's; None for those that stay what they are."""
    pairs = list(zip(values, numbers, strict=True))
    if all(numbers):
        counted = operation in _ARITHMETIC
        return ["int64" if counted and v and v.dtype == "bool" else None for v in values]
    dtype = result_type(*(_weak(v) if is_number else v for v, is_number in pairs if v))
    return [dtype if v and is_number else None for v, is_number in pairs]


def _weak(value: Value) -> Value:
    """A number of the kind of `value`, which adapts."""
    return constant(0, "float64" if is_float(value.dtype) else value.dtype, weak=True)
