"""Measuring how long programs take."""

from __future__ import annotations

import time
from itertools import accumulate

from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError


class Timer:
    """A stopwatch that keeps the seconds of every run; it starts when it is made.

    Operations are queued: call `npx.waitall()` before `stop` to count the work itself.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self.start()

    def start(self) -> None:
        """Begin a run."""
        self._begun = time.perf_counter()

    def stop(self) -> float:
        """End the run; its seconds."""
        self.times.append(time.perf_counter() - self._begun)
        return self.times[-1]

    def avg(self) -> float:
        """The mean of all runs' seconds."""
        if not self.times:
            raise ArgumentError("Timer.avg: no run has ended; call stop() first.")
        return self.sum() / len(self.times)

    def sum(self) -> float:
        """All runs' seconds together."""
        return sum(self.times)

    def cumsum(self) -> list[float]:
        """The seconds up to the end of each run."""
        return list(accumulate(self.times))


class Benchmark:
    """`with Benchmark("words"):` prints the words and the seconds that the block took.

    Operations are queued: end the block with `npx.waitall()` to count the work itself.
    """

    def __init__(self, description: str = "Done"):
        self.description = description

    def __enter__(self) -> Benchmark:  # noqa: PYI034 - typing has no Self in Python 3.10
        self.timer = Timer()
        return self

    def __exit__(self, *error: object) -> None:
        print(f"{self.description}: {self.timer.stop():.4f} sec")


_check_members(globals())

__all__ = ["Benchmark", "Timer"]
