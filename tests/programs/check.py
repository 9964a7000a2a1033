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
from tests.programs.meaning import Call, Expected, is_sound
from tests.programs.needed import without_idle_refusals
from tests.programs.process import Worker
from tests.programs.program import Program
from tests.programs.report import reproduction
from tests.programs.shrink import shrunk

WAYS = (
    "eager",
    "hybridized",
    "loaded",
    "exported",
    "onnx",
    "other_threads",
    "threads",
    "elsewhere",
    "reference",
)

_COMPILED = ("hybridized", "other_threads", "threads", "elsewhere")

# Those, and some that need JAX, and GPUs or stand-ins.
WAYS_WITH_XLA = (*WAYS, "xla")
WAYS_WITH_GPUS = (*WAYS, "gpu_eager", "gpu_hybridized")

# What is refused in one way of running and not in another, and says so: compiled programs are
# recorded as one, so that `backward` has been at all of them; singular is a question of rounding.
REFUSED = (
    "since backward has been here before",
    "the matrix is singular",
    "share memory, and the program writes to it",
    "which a program cannot follow",
    "More: docs/blockers.md",
    "gradients cannot follow",
    "that was written to after it was used",
    "is written to while operations are recorded",
    "is written to through a view while operations are recorded",
    # An argument keeps what is recorded from a variable that was written to.
    "used after that in what is recorded: its gradient would not reach it",
    # What choices and loops do not take.
    "that may be another one as well",
    "is written to in place, and is another",
    "or what a condition is given, is written to in place",
    "begins with an array, or a part of one, that turns write to by another name",
    "turns write to an array whose rows the loop goes over",
    "turns write to an array that the condition of the loop reads by another name",
    "an array may be a variable, since a branch or a loop",
    "while_loop_back has no gradient",
    "is not set in one branch of the choice",  # behind a `break` or `continue` of another one
    "before a turn and",  # of another shape behind it, in a branch that Python does not enter
    # What is not in ONNX.
    "have no operators in ONNX",
    "What is exported has no Python to raise an error in",
)
NOT_REACHED = "was not computed from variables while operations were recorded"
OF_BRANCHES = (
    "all of them are captured, also those that no call comes to",
    "give arrays of the shapes",
    "in one branch of the choice at",
)
KNOWN: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """What is wrong with a program: the way of running it, the target, and what was seen."""

    program: Program
    way: str
    target: str
    told: str
    flags: str = ""  # of the command that finds it again

    @property
    def category(self) -> str:
        """What kind of failure it is: an error's class, a signal, or a difference."""
        return re.match(r"\w+", self.told).group()

    def is_like(self, other: Failure) -> bool:
        """Whether it is the same failure: of errors, the messages begin with the same words."""
        return self._beginning == other._beginning

    @property
    def _beginning(self) -> str:
        if not self.category.endswith("Error"):
            return self.category
        return re.sub(r"\b[xvck]\d+\b|\d+|\W+", " ", self.told)[:80]

    @property
    def form(self) -> str:
        """What equal failures have in common: the lines, with names and numbers left out."""
        lines = list(self.program.source().splitlines()[1:])
        text = re.sub(r"-?\b\d+(\.\d+)?\b", "N", "; ".join(line.strip() for line in lines))
        text = re.sub(r"\b[xvck]\d+\b", "a", text)
        way = "compiled" if self.way in _COMPILED else self.way
        if self.category.endswith("Error"):
            return f"{way} {re.sub(r'/tmp[^:]*|[0-9, ]+', ' ', self.told[:160])}"
        return f"{way} {self.category}: {text}"

    def report(self) -> str:
        """A runnable function, and what is wrong with it."""
        return reproduction(self.program, self.way, self.target, self.told, self.flags)


def check(program: Program, workers: Sequence[Worker], ways: Sequence[str] = WAYS) -> list[Failure]:
    """Everything that is wrong with a program: all ways on the first target, one on the others."""
    calls = [program.arguments, other_inputs(program, numpy.random.default_rng(1))]
    if program.changes:
        calls.append(program.arguments)  # with the first numbers once more
    if program.refused:
        refused = {n: a for n, a in program.refused.items() if n in program.arguments}
        calls += [{**program.arguments, **refused}, program.arguments]
    ways = _possible(program, ways)
    try:
        expected = Expected(program, calls)
    except Exception:  # noqa: BLE001 - with other elements it is no program
        calls = calls[:1]
        expected = Expected(program, calls)
    for number, worker in enumerate(workers):
        worker.start(program, calls, ways if number == 0 else ["hybridized"])
    seen = _seen(program, workers, calls, ways)
    eager = seen.get(("eager", workers[0].target))
    others = [found for found in seen.values() if not (_is_error(found) and _is_refusal(found))]
    flags = {worker.target: worker.flags for worker in workers}
    unanimous = len({found[0] if _is_error(found) else "" for found in others}) == 1
    return [
        Failure(program, way, target, told, flags[target])
        for (way, target), found in seen.items()
        if (told := _told(found, eager, expected, unanimous=unanimous))
    ]


def _seen(
    program: Program, workers: Sequence[Worker], calls: list[Any], ways: Sequence[str]
) -> dict[tuple[str, str | None], Any]:
    """What was seen, by way and target. Where a process ended, each way is tried by itself."""
    found = {}
    for worker in workers:
        seen = worker.result()
        if "process" in seen and len(ways) > 1:
            alone = {way: worker.run(program, calls, [way]) for way in ways}
            seen = {way: one.get(way, one.get("process")) for way, one in alone.items()}
        found |= {(way, worker.target): one for way, one in seen.items()}
    return found


def _possible(program: Program, ways: Sequence[str]) -> list[str]:
    """The ways that a program can be run in. A saved one holds copies of what it has outside: no
    write or change there is seen. Threads would write to the same arrays there."""
    writes = any(step.is_write for step in program.within()) and program.outside
    saved = program.mode == "plain" and not writes and not program.changes and not program.prints
    # A library takes time to write: those that draw numbers have one, and some of the others.
    exported = saved and not any(step.is_write for step in program.within())
    exported &= len(program.steps) % 8 == 0 or not all(step.known for step in program.within())
    # Where random numbers differ by rounding, what cancels among them differs by more.
    known = all(step.known for step in program.within())
    shared = writes or program.mode == "inside" or program.prints
    exported &= not program.refused
    exported &= not any(_is_linear_algebra(step.text) for step in program.within())
    # Without Python, a call that is refused writes nothing, rather than what comes before.
    saved &= not (program.refused and any(step.is_write for step in program.within()))
    # Nor does a file know of arguments that share their memory.
    apart = all(array.part is None for array in program.arguments.values())
    written = saved and known and (apart or not any(step.is_write for step in program.within()))
    left_out = {
        "loaded": not saved,
        "exported": not exported,
        "onnx": not written or bool(program.refused),
        "reference": not known,
        "threads": shared or not known,
    }
    return [way for way in ways if not left_out.get(way)]


def _is_linear_algebra(text: str) -> bool:
    """Whether a step computes with LAPACK, which libraries do not have."""
    return "linalg" in text or "cofactors" in text


def _is_error(found: Any) -> bool:
    return isinstance(found, tuple)


def _told(found: Any, eager: Any, expected: Expected, *, unanimous: bool) -> str:
    """What is wrong; `unanimous`: no way gives anything, and all for the same reason."""
    if _is_error(found):
        accepted = unanimous and not found[0].startswith("SIG")
        # What no array's decision leads to has no gradient, and a compiled program zeros.
        accepted |= expected.program.has_control and NOT_REACHED in found[1]
        # With other numbers from outside, a branch that is not taken may have no meaning, or give
        # another shape.
        told = found[1] + found[2]
        accepted |= bool(expected.program.changes) and any(part in told for part in OF_BRANCHES)
        return "" if accepted or _is_refusal(found) else f"{found[0]}: {found[1]}"
    against = expected.base
    if not all(step.known for step in expected.program.within()):
        if eager is None or _is_error(eager):
            return ""
        against = eager
    told = list(differences(found, expected, against))
    if told and expected.program.refused:
        told = list(_unlike_idle(found, expected, told))
    if not told and expected.program.mode != "plain":
        if against is expected.base and not expected.program.twice:
            told = list(gradients.wrong(expected.program, expected.calls, found))
        if not told and isinstance(eager, list):
            told = list(gradients.unlike(expected.program, expected.calls, found, eager))
    return "" if told and any(part in told[0] for part in KNOWN) else "; ".join(told)


def _unlike_idle(found: list[Call], expected: Expected, told: list[str]) -> list[str]:
    """What differs if an index that nothing follows from refuses nothing, as in a compiled program:
    what it reads is not computed."""
    if len(expected.calls) == 1:
        return told
    if not all(step.known for step in expected.program.within()):
        return []  # what it would be without them, nobody knows
    program = without_idle_refusals(expected.program, expected.calls)
    if program == expected.program:
        return told
    others = Expected(program, expected.calls)
    return list(differences(found, others, others.base))


def _is_refusal(error: tuple[str, str, str]) -> bool:
    return any(part in error[1] for part in REFUSED)


def minimal(failure: Failure, worker: Worker) -> Failure:
    """The same failure of the smallest program found."""
    ways = list(dict.fromkeys(("eager", "hybridized", failure.way)))
    last = failure

    def fails(program: Program) -> bool:
        nonlocal last
        try:
            if not is_sound(program):
                return False
            found = check(program, [worker], ways)
        except Exception:  # noqa: BLE001 - no program: a change too many
            return False
        same = [f for f in found if f.is_like(failure)]
        last = same[0] if same else last
        return bool(same)

    shrunk(failure.program, fails)
    return last
