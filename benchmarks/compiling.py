"""What hybridizing a model costs: python benchmarks/compiling.py [MODEL...]

Runs `compile_model.py` in fresh processes: with an empty cache of compiled code, and with the one
that this left behind. Time is from `hybridize` to the end of the first call, and to its result:
weights are packed in between.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import runner
from compile_model import MODELS

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compile_model.py")


_TIMES = ("wall", "processor", "result")


def _run(model: str, cache: str) -> dict[str, float]:
    environment = os.environ | {"HETEROSIS_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, _PROGRAM, model]
    return json.loads(subprocess.check_output(command, env=environment, text=True))


def _median(runs: list[dict[str, float]], key: str) -> str:
    return f"{1e3 * statistics.median(run[key] for run in runs):.1f}"


def _row(model: str, rounds: int) -> str:
    cold, warm = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_run(model, cache))
            warm.append(_run(model, cache))
    times = [_median(runs, key) for runs in (cold, warm) for key in _TIMES]
    return " | ".join([model, *times, _median(cold, "llvm"), str(cold[0]["kernels"])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print(runner.heading(), end="\n\n")
    print("Milliseconds, medians: by the clock, of the processor, and until the result is there.\n")
    columns = ("model", "empty cache", "processor", "result")
    columns += ("warm cache", "processor", "result", "LLVM", "kernels")
    print(f"| {' | '.join(columns)} |\n|---|" + "---:|" * (len(columns) - 1))
    for model in given.models:
        print(f"| {_row(model, given.rounds)} |", flush=True)


if __name__ == "__main__":
    main()
