"""The standard's suite, and a line a file: python -m tests.array_api [--examples N] [FILE ...]"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.array_api.suite import VARIABLE, files, folder, outcomes, reasons, run


def main() -> int:
    """Print what the suite says, then the counts of each file."""
    parser = argparse.ArgumentParser(prog="python -m tests.array_api", description=__doc__)
    parser.add_argument("tests", nargs="*", help="files or tests of the suite; all if none")
    parser.add_argument("--examples", type=int, default=20, help="how many inputs a test is given")
    parser.add_argument("--only-counts", action="store_true", help="not what the suite says")
    given = parser.parse_args()
    if not files():
        print(f"the suite is not in {folder()}; {VARIABLE} says where it is")
        return 1
    tests = [f"array_api_tests/{name}" for name in given.tests] or ["array_api_tests"]
    with tempfile.TemporaryDirectory() as place:
        results = Path(place) / "results.json"
        status, text = run(tests, given.examples, results)
        if not given.only_counts or not results.exists():
            print(text)
        if results.exists():
            for name, counted in outcomes(results).items():
                print(f"{name}: {_told(counted)}")
            print(f"all: {_told(sum(outcomes(results).values(), Counter()))}")
            for reason, count in reasons(results).most_common():
                print(f"  {count} {reason}")
    return status


def _told(counted: Counter[str]) -> str:
    return ", ".join(f"{n} {kind}" for kind, n in counted.items())


if __name__ == "__main__":
    sys.exit(main())
