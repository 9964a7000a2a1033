"""python -m tests.programs --seconds 3600: hunt for programs that go wrong."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from itertools import count

from tests.programs import coverage, generate, operations
from tests.programs.check import WAYS, WAYS_WITH_GPUS, WAYS_WITH_XLA
from tests.programs.hunt import Hunt
from tests.programs.kinds import KINDS
from tests.programs.process import Worker


def _listed(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--only", type=int, help="the number of the only program, which is shown")
    parser.add_argument("--kinds", type=_listed, default=[], help="of steps, with commas")
    parser.add_argument("--targets", type=_listed, default=[], help="avx512,avx2,fallback")
    parser.add_argument("--xla", action="store_true", help="run them through XLA as well")
    parser.add_argument("--gpus", action="store_true", help="run them on a GPU as well")
    parser.add_argument("--turned", action="store_true", help="channels last, worth it or not")
    parser.add_argument("--coverage", action="store_true", help="tell what of the compiler ran")
    given = parser.parse_args()
    unknown = set(given.kinds).difference(KINDS)
    if unknown:
        parser.error(f"no kind is called {', '.join(sorted(unknown))}: they are {', '.join(KINDS)}")
    return given


def _tell_coverage(worker: Worker) -> None:
    print(*coverage.table(worker.lines), sep="\n")
    missed = sorted({record.name for record in operations.sampled()} - worker.operations)
    print(f"{len(worker.operations)} operations; not reached: {', '.join(missed)}")


def main() -> int:
    """1 if a program failed."""
    given = _arguments()
    traits = {"traced": given.coverage, "turned": given.turned}
    workers = [Worker(target, **traits) for target in given.targets or [None]]
    ways = WAYS_WITH_XLA if given.xla else WAYS_WITH_GPUS if given.gpus else WAYS
    hunt = Hunt(workers, ways=ways)
    if given.only is not None:
        print(generate.program(given.seed, given.only, given.kinds).source())
        return bool(hunt.run(given.seed, given.only, given.kinds))
    with suppress(KeyboardInterrupt):  # what has been seen is told
        for number in count(given.first):
            if hunt.seconds > given.seconds:
                break
            hunt.run(given.seed, number, given.kinds)
    print(hunt.summary())
    for worker in hunt.workers:
        worker.close()
        if given.coverage:
            _tell_coverage(worker)
    return hunt.failed > 0


if __name__ == "__main__":
    sys.exit(main())
