"""`python -m tests.damage --count 100000`: damaged files by the hundred thousand, and a report."""

from __future__ import annotations

import argparse
import signal
import sys

from tests.damage.child import SECONDS
from tests.damage.hunt import hunt


def main() -> int:
    """Hunt, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.damage", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many files")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    report = hunt(given.first, given.count)
    print(report.text())
    print(f"\n{len(report.failures)} failures; at most {SECONDS} s were given to each file.")
    return int(bool(report.failures))


if __name__ == "__main__":
    sys.exit(main())
