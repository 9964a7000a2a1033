"""Many programs, one after the other: what they find, by shrunk form, and what they reach."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from tests.programs import generate
from tests.programs.check import WAYS, Failure, check, minimal
from tests.programs.process import Worker
from tests.programs.program import Program


class Hunt:
    """Runs programs on workers, one for a target, the first of which runs them in all ways."""

    def __init__(
        self,
        workers: Sequence[Worker],
        tell: Callable[[str], None] = print,
        ways: Sequence[str] = WAYS,
    ):
        self.workers, self.tell, self.ways = workers, tell, ways
        self.forms: Counter[str] = Counter()  # of failures
        self.modes: Counter[str] = Counter()  # of programs
        self.kinds: Counter[str] = Counter()  # of steps
        self.failed = 0
        self._begun = time.monotonic()

    @property
    def programs(self) -> int:
        return self.modes.total()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begun

    def run(self, seed: int, number: int, kinds: Sequence[str] = ()) -> list[Failure]:
        """Check one program; of its failures, the first is shrunk and told, unless others were
        alike."""
        program = generate.program(seed, number, kinds)
        self._count(program)
        failures = check(program, self.workers, self.ways)
        self.failed += bool(failures)
        for failure in failures[:1]:
            self._tell(failure)
        return failures

    def _count(self, program: Program) -> None:
        self.modes["second gradient" if program.twice else program.mode] += 1
        self.kinds.update(step.kind for step in program.within())

    def _tell(self, failure: Failure) -> None:
        worker = next(w for w in self.workers if w.target == failure.target)
        small = minimal(failure, worker)
        self.forms[small.form] += 1
        if self.forms[small.form] == 1:
            self.tell(f"\n{small.report()}")

    def summary(self) -> str:
        """Counts: of programs by mode, of steps by kind, of failures by form."""
        rows = [f"{count:6} {form}" for form, count in self.forms.most_common()]
        modes = ", ".join(f"{count} {mode}" for mode, count in self.modes.most_common())
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.kinds.most_common())
        rate = 60 * self.programs / max(self.seconds, 1e-9)
        targets = ", ".join(worker.target or "the best target" for worker in self.workers)
        told = f"{self.programs} programs ({modes}) on {targets}: {self.failed} failed"
        return "\n".join([*rows, f"steps: {kinds}", f"{told}; {rate:.0f} a minute"])
