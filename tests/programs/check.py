"""Run a program in all ways, tell what differs, and shrink what fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tests.programs.comparison import differences
from tests.programs.generate import other_inputs
from tests.programs.meaning import Expected
from tests.programs.process import Worker
from tests.programs.program import Program
from tests.programs.report import reproduction
from tests.programs.shrink import shrunk

WAYS = ("eager", "hybridized", "loaded", "other_threads")


@dataclass(frozen=True)
class Failure:
    """What is wrong with a program: the way of running it, the target, and what was seen."""

    program: Program
    way: str
    target: str
    told: str

    @property
    def category(self) -> str:
        """What kind of failure it is: an error's class, a signal, or a difference."""
        return re.match(r"\w+", self.told).group()

    @property
    def form(self) -> str:
        """What equal failures have in common: the lines, with names and numbers left out."""
        lines = [line for line in self.program.source().splitlines()[1:]]
        text = re.sub(r"-?\b\d+(\.\d+)?\b", "N", "; ".join(line.strip() for line in lines))
        text = re.sub(r"\b[xvck]\d+\b", "a", text)
        way = "compiled" if self.way in ("hybridized", "other_threads") else self.way
        return f"{way} {self.category}: {text}"

    def report(self) -> str:
        """A runnable function, and what is wrong with it."""
        return reproduction(self.program, self.way, self.target, self.told)


def check(
    program: Program, workers: Sequence[Worker], ways: Sequence[str] = WAYS
) -> list[Failure]:
    """Everything that is wrong with a program: all ways on the first target, hybridized on others."""
    calls = [program.arguments, other_inputs(program, numpy.random.default_rng(1))]
    for number, worker in enumerate(workers):
        worker.start(program, calls, _possible(program, ways if number == 0 else ["hybridized"]))
    expected = Expected(program, calls)
    failures = []
    for worker in workers:
        seen = worker.result()
        for way, found in seen.items():
            if told := _told(found, seen.get("eager"), expected):
                failures.append(Failure(program, way, worker.target, told))
    return failures


def _possible(program: Program, ways: Sequence[str]) -> list[str]:
    """A saved program holds copies of what it has outside: writes to them are not seen."""
    return [way for way in ways if way != "loaded" or not program.outside]


def _told(found: Any, eager: Any, expected: Expected) -> str:
    if isinstance(found, tuple):
        return "" if isinstance(eager, tuple) and eager[0] == found[0] else f"{found[0]}: {found[1]}"
    return "; ".join(differences(found, expected, expected.base))


def minimal(failure: Failure, worker: Worker) -> Failure:
    """The same failure of the smallest program found."""
    ways = [failure.way] if failure.way in WAYS else list(WAYS)
    last = failure

    def fails(program: Program) -> bool:
        nonlocal last
        try:
            found = check(program, [worker], ways)
        except Exception:  # no program: a change too many
            return False
        same = [f for f in found if f.category == failure.category]
        last = same[0] if same else last
        return bool(same)

    shrunk(failure.program, fails)
    return last
