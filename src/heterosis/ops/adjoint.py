"""Gradient rules: what a primitive's operands receive for what its results receive.

A rule stands beside the primitive that it belongs to and is written with operations, so that a
gradient is a program like any other and has gradients itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import Value

Cotangents = Sequence[Value | None]


@dataclass(frozen=True)
class Step:
    """One application of a primitive, as its rule sees it. A result that receives nothing has the
    cotangent None; so has, in what a rule returns, an operand that receives nothing."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    cotangents: tuple[Value | None, ...]
    attributes: dict[str, Any]

    @property
    def cotangent(self) -> Value:
        """Of the only result."""
        (only,) = self.cotangents
        assert only is not None, "a step without any cotangent is never visited"
        return only


Rule = Callable[[Step], Cotangents]

_rules: dict[Primitive, Rule] = {}


def adjoint(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Make the decorated function the rule of `primitives`."""

    def register(rule: Rule) -> Rule:
        for primitive in primitives:
            _rules[primitive] = rule
        return rule

    return register


def elementwise_adjoint(primitive: Primitive, rule: Callable[..., Any]) -> None:
    """`rule(g, y, *operands)` gives the operand's cotangent, or a tuple with one for each."""

    def whole(step: Step) -> Cotangents:
        found = rule(step.cotangent, *step.outputs, *step.inputs)
        return found if isinstance(found, tuple) else (found,)

    _rules[primitive] = whole


def piecewise_constant(*primitives: Primitive) -> None:
    """Say that `primitives` are constant wherever they have a derivative."""
    for primitive in primitives:
        _rules[primitive] = _nothing


def _nothing(step: Step) -> Cotangents:
    return (None,) * len(step.inputs)


def is_piecewise_constant(primitive: Primitive) -> bool:
    """Whether a gradient may end at `primitive`."""
    return _rules.get(primitive) is _nothing


def rule_of(primitive: Primitive) -> Rule | None:
    """The rule of `primitive`, if it has one."""
    return _rules.get(primitive)
