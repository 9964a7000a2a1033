"""What the first use of about fifty operations costs: python benchmarks/first_use.py

Runs `fifty_operations.py` in fresh processes: with an empty cache of compiled code, and with the
cache that this left behind.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import runner

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fifty_operations.py")


def _run(cache: str) -> dict:
    start = time.perf_counter()
    environment = os.environ | {"HETEROSIS_CACHE": cache}
    text = subprocess.check_output([sys.executable, _PROGRAM], env=environment, text=True)
    return json.loads(text) | {"process": time.perf_counter() - start}


def _row(label: str, runs: list[dict]) -> str:
    def seconds(key):
        return f"{statistics.median(run[key] for run in runs):.3f}"

    counts = f"{runs[0]['operations']} | {runs[0]['compiles']} | {runs[0]['disk_hits']}"
    times = " | ".join(seconds(k) for k in ("compile_seconds", "disk_seconds", "program"))
    return f"| {label} | {counts} | {times} | {seconds('import')} | {seconds('process')} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    cold, warm = [], []
    for _ in range(given.rounds):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(_run(cache))
            warm.append(_run(cache))
    print(runner.heading(), end="\n\n")
    print("Seconds, medians. Compiling: LLVM and loading. Program: everything after the imports.\n")
    print(
        "| cache | operations | compiled | from disk | compiling | reading | program | import ",
        end="",
    )
    print("| process |\n|---|" + "---:|" * 8)
    print(_row("empty", cold))
    print(_row("warm", warm))


if __name__ == "__main__":
    main()
