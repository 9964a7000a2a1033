"""Running update rules: the one place where weights and states are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from heterosis import _core
from heterosis.ops.cast import assign


@dataclass(frozen=True, slots=True)
class Step:
    """One call of an update rule, whose results replace the weight and the states, in order."""

    rule: Any
    weight: _core.ndarray
    grad: _core.ndarray
    states: tuple[_core.ndarray, ...]
    numbers: dict[str, Any]


def run(steps: Iterable[Step]) -> None:
    """Take the steps. Weights and states are new when all that is queued is done."""
    for step in steps:
        if step.states:
            results = step.rule(step.weight, step.grad, *step.states, **step.numbers)
            for old, new in zip((step.weight, *step.states), results, strict=True):
                assign(new, out=old)
        else:
            step.rule(step.weight, step.grad, **step.numbers, out=step.weight)
