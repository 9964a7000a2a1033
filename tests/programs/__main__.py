"""python -m tests.programs --seconds 3600: hunt for programs that go wrong."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.programs import generate
from tests.programs.check import Failure, check, minimal
from tests.programs.process import Worker


class Hunt:
    """Programs one after the other, and their failures by shrunk form."""

    def __init__(self, workers: Sequence[Worker]):
        self.workers = workers
        self.forms: Counter[str] = Counter()
        self.programs = self.failed = 0

    def run(self, seed: int, number: int, kinds: Sequence[str]) -> None:
        """Check one program."""
        self.programs += 1
        failures = check(generate.program(seed, number, kinds), self.workers)
        self.failed += bool(failures)
        for failure in failures[:1]:
            self._tell(failure)

    def _tell(self, failure: Failure) -> None:
        worker = next(w for w in self.workers if w.target == failure.target)
        small = minimal(failure, worker)
        self.forms[small.form] += 1
        if self.forms[small.form] == 1:
            print(f"\n{small.report()}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one program of the seed")
    parser.add_argument("--kinds", default="", help="of steps, with commas")
    parser.add_argument("--targets", default="", help="of code generation, with commas")
    given = parser.parse_args()
    hunt = Hunt([Worker(target) for target in given.targets.split(",")])
    kinds = [k for k in given.kinds.split(",") if k]
    if given.only is not None:
        print(generate.program(given.seed, given.only, kinds).source())
        hunt.run(given.seed, given.only, kinds)
        return hunt.failed
    begun, number = time.monotonic(), 0
    while time.monotonic() - begun < given.seconds:
        hunt.run(given.seed, number, kinds)
        number += 1
    for form, count in hunt.forms.most_common():
        print(f"{count:5} {form}")
    taken = time.monotonic() - begun
    print(f"{hunt.programs} programs, {hunt.failed} failed, {60 * number / taken:.0f} a minute")
    return hunt.failed > 0


sys.exit(main())
