"""Numbers of Python's that arrays decide: in a program they are arrays of one element, of int64,
float64 or bool.

They go on as numbers do: `n += 1` gives another one, and whoever had the number before has it
still; beside arrays they adapt to their element types; `True + True` is 2, and `1 / 3` has the
digits that Python gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.program import CONSTANT, Value, apply
from heterosis.ir.types import DEFAULT_FLOAT, TensorType, is_float
from heterosis.ops.record import Record
from heterosis.ops.rules import cast, result_type
from heterosis.runtime.errors import CaptureError

_ARITHMETIC = frozenset((
    "add", "subtract", "multiply", "true_divide", "floor_divide", "mod", "power", "left_shift",
    "right_shift", "negative", "absolute", "invert",
))  # fmt: skip
_BITWISE = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "logical_not"))
_COMPARING = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
# What Python's operators are, and of numbers give numbers.
OPERATORS = _ARITHMETIC | _COMPARING | _BITWISE


_KINDS = ("bool", "int64", "float64")
# What works on arrays that stand for numbers as on any others: what branches and turns are given.
_OF_ARRAYS = frozenset(("conditional", "while_loop", "scan", "asserted"))


def converted(operation: str, values: Sequence[Value | None]) -> tuple[Value | None, ...]:
    """The operands of an operator of numbers alone, of the element types in which it computes as
    Python does."""
    if operation == "power":
        _check_power(*values)
    given = [value for value in values if value is not None]
    floats = operation == "true_divide" or any(is_float(value.dtype) for value in given)
    return tuple(value and _converted(operation, value, floats=floats) for value in values)


def _converted(operation: str, value: Value, *, floats: bool) -> Value:
    if value.type.weak or operation in _BITWISE:
        return value
    if floats:
        return cast(value, "float64")
    is_count = operation in _ARITHMETIC and value.dtype == "bool"
    return cast(value, "int64") if is_count else value


def adapts(record: Record) -> bool:
    """Whether an operation takes numbers as they are, so that they adapt to the arrays beside."""
    return not record.views and record.name not in _OF_ARRAYS


def adapting(value: Value) -> Value:
    """What an array holds that stands for a number, as one of Python's, which adapts."""
    return apply(conversion(value.dtype), (value,), TensorType((), value.dtype, weak=True))


def is_number(operation: str, attributes: Sequence[Any]) -> bool:
    """Whether of numbers a number follows: from Python's operators, and its conversions."""
    return operation in OPERATORS or (operation == "astype" and attributes[1] in _KINDS)


def beside(value: Value, others: Iterable[Value]) -> Value:
    """A fraction, or another number, of the element type that it adapts to beside other values."""
    weak = adapting(value)
    return cast(value, result_type(weak, *others)) if is_float(value.dtype) else value


def settled(value: Value) -> Value:
    """A result that no longer adapts."""
    return cast(value, value.dtype)


def float_of(arrays: Iterable[Any]) -> str:
    """The element type of a fraction that becomes an array: float64 if all arrays of fractions
    have that."""
    dtypes = {array._dtype_name for array in arrays if is_float(array._dtype_name)}
    return "float64" if dtypes == {"float64"} else DEFAULT_FLOAT


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


def written_to() -> CaptureError:
    """What is raised where such an array is written to."""
    return CaptureError(
        "an array that stands for a number of Python's is written to in place: outside of a "
        "hybridized function that would be a number, which cannot be. Begin with np.array(0), or "
        "set the variable, n = ..."
    )


def beside_list(name: str) -> CaptureError:
    """What is raised where one computes with a list or a tuple."""
    return CaptureError(
        f"{name}: a list or a tuple, and a number that arrays have chosen: how long it becomes, or "
        "whether they are equal, is not known while a program is captured. Write np.array([...]) "
        "for numbers to compute with."
    )
