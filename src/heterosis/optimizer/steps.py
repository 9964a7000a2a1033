"""Running update rules: the one place where weights and states are written."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from heterosis import _core


class Step(NamedTuple):
    """One call of an update rule, whose results replace the weight and the states, in order."""

    rule: Any
    weight: _core.ndarray
    grad: _core.ndarray
    states: tuple[_core.ndarray, ...]
    numbers: dict[str, Any]


def run(steps: Iterable[Step]) -> None:
    """Take the steps, one native call for all that share a rule. Weights and states are new when
    all that is queued is done."""
    for rule, group in groupby(steps, attrgetter("rule")):
        names = [(p.name, p.default) for p in rule.record.parameters]
        rule.each([_call(step, names) for step in group])


def _call(step: Step, names: list[tuple[str, Any]]) -> tuple[tuple[Any, ...], Any]:
    """The positional arguments of a step, and what its results are written over."""
    arrays = (step.weight, step.grad, *step.states)
    numbers = (step.numbers.get(name, default) for name, default in names[len(arrays) :])
    return (*arrays, *numbers), (step.weight, *step.states)
