"""What is received where a condition holds, as behind a choice, and not elsewhere.

That something receives nothing is not the same as zeros: zero times an infinite slope is NaN. What
is received under a condition is therefore carried on with it, whatever it may be where the
condition does not hold, and zeros take its place where it meets what is received in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from heterosis.ir.program import INPUT, Program, Value, apply
from heterosis.ir.types import TensorType
from heterosis.ops.control.flow import conditional
from heterosis.ops.math.elementwise import add, logical_and, logical_not, logical_or
from heterosis.ops.rules import zeros


@dataclass(frozen=True, eq=False)
class Condition:
    """That `truth`, one element of a program or an array of one, is true; or that it is not."""

    truth: Any
    holds: bool = True

    def chosen(self, value: Any, other: Any = None) -> Any:
        """`value` where it holds, else the `other` of its type, or zeros for None.

        As a choice, which lets a further gradient go to what is chosen and nowhere else: `where`
        gives zeros to the rest.
        """
        given = [value] if other is None else [value, other]
        inputs = tuple(apply(INPUT, (), _type_of(one)) for one in given)
        results = inputs if len(inputs) == 2 else (*inputs, zeros(inputs[0]))
        branches = [Program(inputs, (result,), "chosen", ()) for result in results]
        then, otherwise = branches if self.holds else reversed(branches)
        made = conditional(self.truth, given, then, otherwise)
        return made[0] if isinstance(made, tuple) else made  # a value of a program; or an array

    def as_truth(self) -> Any:
        """True where it holds."""
        return self.truth if self.holds else logical_not(self.truth)

    def is_about(self, other: Condition) -> bool:
        """Whether both ask for the same truth."""
        if isinstance(self.truth, Value) and isinstance(other.truth, Value):
            return self.truth == other.truth
        return self.truth is other.truth

    def equals(self, other: Condition) -> bool:
        """Whether both hold at once."""
        return self.is_about(other) and self.holds == other.holds


def _type_of(value: Any) -> TensorType:
    dtype = value.dtype if isinstance(value, Value) else value._dtype_name
    return TensorType(value.shape, dtype)


@dataclass(frozen=True, eq=False)
class Conditional:
    """What is received where a condition holds."""

    value: Any
    condition: Condition


Received: TypeAlias = "Any | Conditional"  # a value of a program or an array, or a conditional one


def value_of(received: Received | None) -> Any:
    """What is received where anything is; None of nothing."""
    return received.value if isinstance(received, Conditional) else received


def in_any_case(received: Received | None) -> Any:
    """What is received, with zeros where a condition does not hold; None of nothing."""
    if isinstance(received, Conditional):
        return received.condition.chosen(received.value)
    return received


def under(condition: Condition | None, received: Received) -> Received:
    """What is received where that is received, and a condition holds besides."""
    if condition is None:
        return received
    if not isinstance(received, Conditional):
        return Conditional(received, condition)
    both = logical_and(condition.as_truth(), received.condition.as_truth())
    return Conditional(received.value, Condition(both))


def total(first: Received, second: Received) -> Received:
    """The sum of what is received twice."""
    if not isinstance(first, Conditional) or not isinstance(second, Conditional):
        return add(in_any_case(first), in_any_case(second))
    one, other = first.condition, second.condition
    if not one.is_about(other):
        either = Condition(logical_or(one.as_truth(), other.as_truth()))
        return Conditional(add(in_any_case(first), in_any_case(second)), either)
    if one.holds == other.holds:
        return Conditional(add(first.value, second.value), one)
    return one.chosen(first.value, second.value)


def apart(
    received: Sequence[Received | None],
) -> tuple[Sequence[Received | None], Condition | None]:
    """What is received without the condition that all of it is under, and that condition; as it
    is, and None, if there is no such one."""
    conditions = [one.condition for one in received if isinstance(one, Conditional)]
    there = sum(one is not None for one in received)
    if not conditions or len(conditions) < there or not all(map(conditions[0].equals, conditions)):
        return received, None
    return [value_of(one) for one in received], conditions[0]
