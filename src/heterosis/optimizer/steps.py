"""Running update rules: the one place where weights and states are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from heterosis import _core
from heterosis.ops.cast import assign


class Step(NamedTuple):
    """One call of an update rule, whose results replace the weight and the states, in order."""

    rule: Any
    weight: _core.ndarray
    grad: _core.ndarray
    states: tuple[_core.ndarray, ...]
    numbers: dict[str, Any]


def run(steps: Iterable[Step]) -> None:
    """Take the steps. Weights and states are new when all that is queued is done."""
    for rule, weight, grad, states, numbers in steps:
        if not states:
            rule(weight, grad, **numbers, out=weight)
            continue
        results = rule(weight, grad, *states, **numbers)
        for old, new in zip((weight, *states), results, strict=True):
            assign(new, out=old)
