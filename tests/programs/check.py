"""Run a program in all ways, tell what differs, and shrink what fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tests.programs import gradients
from tests.programs.comparison import differences
from tests.programs.generate import other_inputs
from tests.programs.meaning import Expected
from tests.programs.process import Worker
from tests.programs.program import Program
from tests.programs.report import reproduction
from tests.programs.shrink import shrunk

WAYS = ("eager", "hybridized", "loaded", "other_threads")

# What capture refuses, and says so.
REFUSED = (
    "share memory, and the program writes to it",
    "which a program cannot follow",
    "are read while the program is captured",
    "is written to while operations are recorded",
    "is written to through a view while operations are recorded",
)
KNOWN = ("what changes with result",)


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
        if self.category.endswith("Error"):
            return f"{way} {re.sub(r'/tmp[^:]*|[0-9, ]+', ' ', self.told[:160])}"
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
    try:
        expected = Expected(program, calls)
    except Exception:  # with other elements it is no program
        expected = Expected(program, calls[:1])
    failures = []
    for worker in workers:
        seen = worker.result()
        if "process" in seen and len(ways) > 1:
            seen = {way: worker.run(program, calls, [way]).get(way, seen["process"]) for way in _possible(program, ways)}
        for way, found in seen.items():
            if told := _told(found, seen.get("eager"), expected):
                failures.append(Failure(program, way, worker.target, told))
    return failures


def _possible(program: Program, ways: Sequence[str]) -> list[str]:
    """A saved program holds copies of what it has outside: writes to them are not seen."""
    writes = any(step.is_write for step in program.steps) and program.outside
    writes = writes or program.mode != "plain"
    return [way for way in ways if way != "loaded" or not writes]


def _told(found: Any, eager: Any, expected: Expected) -> str:
    if isinstance(found, tuple):
        if any(part in found[1] for part in REFUSED):
            return ""
        return "" if isinstance(eager, tuple) and eager[0] == found[0] else f"{found[0]}: {found[1]}"
    against = expected.base
    if not all(step.known for step in expected.program.steps):
        if not isinstance(eager, list):
            return ""
        against = eager[: len(expected.base)]
    told = list(differences(found[: len(expected.base)], expected, against))
    if not told and expected.program.mode != "plain":
        told = list(gradients.wrong(expected.program, expected.calls, found))
        if not told and isinstance(eager, list):
            told = list(gradients.unlike(found, eager))
    if told and any(part in told[0] for part in KNOWN):
        return ""
    return "; ".join(told)


def minimal(failure: Failure, worker: Worker) -> Failure:
    """The same failure of the smallest program found."""
    ways = ["eager", failure.way] if failure.way in WAYS[1:] else [failure.way]
    ways = ways if failure.way in WAYS else list(WAYS)
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
