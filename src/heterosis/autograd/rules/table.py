"""The rules, and how they are found: what a primitive's operands receive for what its results do.

A rule stands in the module here that is called as the one of `ir.primitives` that declares the
primitive. It is written with operations, so that a gradient is a program like any other and has
gradients itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, TypeAlias

from heterosis.autograd.conditional import Received, in_any_case
from heterosis.ir.primitives import subject_of
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import Value

Cotangents: TypeAlias = "Sequence[Received | None]"


@dataclass(frozen=True)
class Step:
    """One application of a primitive, as its rule sees it. A result that receives nothing has the
    cotangent None; so has, in what a rule returns, an operand that receives nothing."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    received: Sequence[Received | None]  # the cotangents, and under which conditions
    attributes: dict[str, Any]

    @cached_property
    def cotangents(self) -> list[Value | None]:
        """Of the results, with zeros where a condition does not hold."""
        return list(map(in_any_case, self.received))

    @property
    def cotangent(self) -> Value:
        """Of the only result."""
        (only,) = self.cotangents
        assert only is not None, "a step without any cotangent is never visited"
        return only


Rule: TypeAlias = Callable[[Step], Cotangents]

_RULES: dict[Primitive, Rule] = {}

# Modules of `ir.primitives` that have one of the same name here. It is imported when a rule for one
# of its primitives is first asked for: who computes no gradients never loads them.
_SUBJECTS = (
    "boxes", "checks", "control", "conversions", "counting", "elementwise", "products", "real",
    "rearranging", "recurrent", "reductions", "rows", "sorting", "windows",
)  # fmt: skip


# -- adding rules ---------------------------------------------------------------------------------


def adjoint(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Make the decorated function the rule of `primitives`."""

    def register(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(primitives, rule))
        return rule

    return register


def elementwise_adjoints(rules: Mapping[Primitive, Callable[..., Any]]) -> None:
    """Add rules of elementwise primitives: `rule(g, y, *operands)` gives the operand's cotangent,
    or a tuple with one for each, from those of the result, the result and the operands."""
    for primitive, rule in rules.items():
        _RULES[primitive] = _whole(rule)


def _whole(rule: Callable[..., Any]) -> Rule:
    def whole(step: Step) -> Cotangents:
        found = rule(step.cotangent, *step.outputs, *step.inputs)
        return found if isinstance(found, tuple) else (found,)

    return whole


def piecewise_constant(*primitives: Primitive) -> None:
    """Say that `primitives` are constant wherever they have a derivative."""
    _RULES.update(dict.fromkeys(primitives, _nothing))


def _nothing(step: Step) -> Cotangents:
    return (None,) * len(step.inputs)


# -- finding them ---------------------------------------------------------------------------------


def rule_of(primitive: Primitive) -> Rule | None:
    """The rule of `primitive`, if it has one; `absent` says why others have none."""
    if primitive not in _RULES:
        subject = subject_of(primitive)
        if subject in _SUBJECTS:
            import_module(f"{__package__}.{subject}")
    return _RULES.get(primitive)


def is_piecewise_constant(primitive: Primitive) -> bool:
    """Whether a gradient may end at `primitive`."""
    return rule_of(primitive) is _nothing
