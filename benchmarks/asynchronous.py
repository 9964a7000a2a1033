"""Asynchronous computation, step by step: python benchmarks/asynchronous.py [--operations N]

Calls return before their results are computed; waiting for one result, or for all, takes the time
of the computation; waiting after every call costs more than waiting once; and however much is
queued, memory stays within its bound, because the front end waits by itself.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy
import runner

from heterosis import _core, np, npx
from heterosis.runtime.settings import EngineBounds, settings

_SIDE, _PRODUCTS, _INCREMENTS = 1000, 10, 10_000
_BOUND = 256 << 20


class Clock:
    """Prints how long each step took since the one before."""

    def __init__(self):
        self.last = time.perf_counter()

    def tell(self, what: str) -> None:
        now = time.perf_counter()
        print(f"{(now - self.last) * 1e3:12.3f} ms  {what}")
        self.last = time.perf_counter()


def products() -> None:
    """Ten products are asked for, then waited for."""
    a = np.array(numpy.random.default_rng(0).normal(size=(_SIDE, _SIDE)))
    (a @ a).sum().wait_to_read()  # compiles
    clock = Clock()
    kept = [a @ a for _ in range(_PRODUCTS)]
    clock.tell(f"{_PRODUCTS} products of {_SIDE} x {_SIDE} matrices are queued")
    npx.waitall()
    clock.tell("npx.waitall(): all of them are computed")
    kept = [a @ a for _ in range(_PRODUCTS)]
    clock.tell("queued once more")
    kept[0].wait_to_read()
    clock.tell("wait_to_read() of the first: one is computed")
    npx.waitall()
    clock.tell("npx.waitall(): so are the others")
    total = (a @ a).sum()
    clock.tell("a product and its sum are queued")
    total.item()
    clock.tell("item() waits by itself")


def increments() -> None:
    """The same additions, waited for one by one and all together."""
    for size in (2, 1 << 16):
        x = np.array(numpy.zeros(size, "float32"))
        (x + 1).wait_to_read()  # compiles
        clock = Clock()
        for _ in range(_INCREMENTS):
            (x + 1).wait_to_read()  # compiles
        clock.tell(f"{_INCREMENTS:,} times x + 1 on {size:,} elements, each waited for")
        for _ in range(_INCREMENTS):
            x + 1
        npx.waitall()
        clock.tell("the same, waited for at the end")


def overfill(operations: int) -> None:
    """Queue far more than fits into memory."""
    settings.bound_engine(EngineBounds(tasks=4096, bytes=_BOUND))
    x = np.array(numpy.ones(1 << 18, "float32"))
    npx.waitall()
    _core.reset_memory_peak()
    _core.reset_engine_peaks()
    clock = Clock()
    for _ in range(operations):
        y = x + 1
    npx.waitall()
    clock.tell(
        f"{operations:,} operations with results of 1 MB each, {operations >> 10:,} GB in all"
    )
    peak, engine = _core.memory_counters()["peak"], _core.engine_counters()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(
        f"{peak >> 20:12,} MB  arrays at most, with a bound of {_BOUND >> 20} MB on queued results"
    )
    print(f"{engine['peak_tasks']:12,} tasks outstanding at most")
    print(f"{resident:12,} MB  resident at most, the whole process")
    assert y[0].item() == 2
    if peak > _BOUND + (8 << 20):
        raise SystemExit("The bound was not kept.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=1_000_000)
    given = parser.parse_args()
    print(runner.heading(), f"threads: {_core.threads()}", sep=", ", end="\n\n")
    products()
    increments()
    overfill(given.operations)


if __name__ == "__main__":
    main()
