"""The hunt: `python -m tests.bad_calls --count 100000`."""

from __future__ import annotations

import argparse
import collections
import contextlib
import resource
import time

from tests.bad_calls import calls
from tests.bad_calls.child import Report, reports


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many calls")
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=3, help="calls shown for each place")
    options = parser.parse_args()
    began = time.monotonic()
    kinds: collections.Counter[str] = collections.Counter()
    places: dict[str, list[Report]] = collections.defaultdict(list)
    with contextlib.suppress(KeyboardInterrupt):  # what has been found until then is shown
        for report in reports(options.first, options.count, options.seed):
            kinds[report.kind] += 1
            if report.kind not in (calls.FINE, calls.OURS, calls.PYTHONS):
                places[report.place].append(report)
    _print(places, options.examples)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"{sum(kinds.values())} calls in {time.monotonic() - began:.0f} s: {dict(kinds)}")
    print(f"peak memory of a process: {peak} MiB")
    raise SystemExit(bool(places))


def _print(places: dict[str, list[Report]], examples: int) -> None:
    for place, found in sorted(places.items(), key=lambda item: -len(item[1])):
        print(f"{len(found)} at {place}")
        for report in found[:examples]:
            print(f"    {report.text}\n        {report.error}")


if __name__ == "__main__":
    main()
