"""Running update rules: the one place where weights and states are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from heterosis import _core, capture
from heterosis.ir.traced_sizes import is_traced
from heterosis.runtime import modes


class Step(NamedTuple):
    """One call of an update rule, whose results replace the weight and the states, in order."""

    rule: Any
    weight: _core.ndarray
    grad: _core.ndarray
    states: tuple[_core.ndarray, ...]
    numbers: dict[str, Any]


def run(take: Callable[[], Iterable[Step]]) -> None:
    """Take the steps that `take()` gives, one native call for all that share a rule. Weights and
    states are new when all that is queued is done.

    As part of a program that is captured, `take` is asked anew for the numbers of every run.
    """
    steps = list(take())
    if modes.is_capturing():
        steps = _with_numbers(steps, capture.supplied(lambda: _numbers(take()), _numbers(steps)))
    for rule, group in groupby(steps, attrgetter("rule")):
        names = [(p.name, p.default) for p in rule.record.parameters]
        rule.each([_call(step, names) for step in group])


def _numbers(steps: Iterable[Step]) -> list[float]:
    return [n for step in steps for n in step.numbers.values() if _is_supplied(n)]


def _is_supplied(number: Any) -> bool:
    """Whether it may be another one at every run; what follows from sizes, the program computes."""
    return type(number) is float or (isinstance(number, float) and not is_traced(number))


def _with_numbers(steps: Iterable[Step], numbers: Sequence[Any]) -> list[Step]:
    """The steps with other numbers, in the order of `_numbers`."""
    following = iter(numbers)
    return [
        step._replace(
            numbers={
                name: next(following) if _is_supplied(number) else number
                for name, number in step.numbers.items()
            }
        )
        for step in steps
    ]


def _call(step: Step, names: list[tuple[str, Any]]) -> tuple[tuple[Any, ...], Any]:
    """The positional arguments of a step, and what its results are written over."""
    arrays = (step.weight, step.grad, *step.states)
    given = step.numbers.get
    numbers = [given(name, default) for name, default in names[len(arrays) :]]
    return (*arrays, *numbers), (step.weight, *step.states)
