"""Numbers of Python's that arrays decide: in a program they are arrays of one element.

They go on as numbers do: `n += 1` gives another one, and whoever had the number before has it
still; beside arrays they adapt to their element types; `True + True` is 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir.program import CONSTANT, Value, constant
from heterosis.ir.types import is_float
from heterosis.ops.rules import result_type
from heterosis.runtime.errors import CaptureError

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
        if operation == "power":
            _check_power(*values)
        counted = operation in _ARITHMETIC
        return ["int64" if counted and v and v.dtype == "bool" else None for v in values]
    dtype = result_type(*(_weak(v) if is_number else v for v, is_number in pairs if v))
    return [dtype if v and is_number else None for v, is_number in pairs]


def _check_power(base: Value | None, exponent: Value | None) -> None:
    """Raise where Python gives an integer or a fraction, by the sign of what is not known."""
    assert base is not None, "a power has two operands"
    assert exponent is not None, "a power has two operands"
    node = exponent.node
    is_natural = node.primitive is CONSTANT and node.attributes["value"] >= 0
    if not (is_natural or is_float(base.dtype) or is_float(exponent.dtype)):
        raise CaptureError(
            "power: an integer to the power of an integer, one of which arrays have decided, is an "
            "integer or a fraction by its sign, for Python. Write 2.0 ** n."
        )


def _weak(value: Value) -> Value:
    """A number of the kind of `value`, which adapts."""
    return constant(0, "float64" if is_float(value.dtype) else value.dtype, weak=True)
