"""Contenders that live side by side: each computes for a moment while the others stand still.

Two runs of a minute meet different neighbours; two moments that follow each other do not. A worker
that comes to `runner.seconds_a_call` says so and waits for its turns, each one batch of calls, and
returns the median. Between its turns a worker is stopped with all that it started: threads that
spin in waiting for work would take the processor from whoever computes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence

_TURNS = "HETEROSIS_BENCHMARK_IN_TURNS"  # set in a worker that waits for its turns
_READY, _TURN, _ENOUGH = "READY", "turn", "enough"
_LENGTH = 0.08  # seconds of a turn
_WARMING = 8  # an eighth of it goes by first, unmeasured: caches hold what others computed with


# -- in a worker ----------------------------------------------------------------------------------


def wanted() -> bool:
    """Whether this is a worker that computes in turns."""
    return _TURNS in os.environ


def seconds_in_turns(batch: Callable[[int], float]) -> float:
    """The median time of a call, whose `batch` takes so many seconds for so many calls."""
    count = _calls_of_a_turn(batch)
    found = []
    while _says_next() == _TURN:
        if count >= _WARMING:
            batch(count // _WARMING)
        found.append(batch(count) / count)
    return statistics.median(found)


def _calls_of_a_turn(batch: Callable[[int], float]) -> int:
    if batch(1) < _LENGTH:
        batch(3)
    count = 1
    while (taken := batch(count)) < _LENGTH / 2:
        count = max(2 * count, int(count * _LENGTH / max(taken, 1e-9) / 2))
    return max(1, round(count * _LENGTH / taken))


def _says_next() -> str:
    print(_READY, flush=True)
    return input()


# -- in the parent --------------------------------------------------------------------------------


class Ended(Exception):
    """A worker's process ended without a result; its text is what it printed."""


class _Worker:
    """A process that stands still unless it is told to go on."""

    def __init__(
        self, command: Sequence[str], environment: dict[str, str], processors: Collection[int]
    ) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            command, env=environment | {_TURNS: "1"}, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        os.sched_setaffinity(self._process.pid, processors)

    def goes_on(self, said: str | None, mark: str) -> str | None:
        """Let it compute until it is ready for its turn, or has a result, which is returned."""
        self._signal(signal.SIGCONT)
        if said is not None:
            self._process.stdin.write(said + "\n")
            self._process.stdin.flush()
        printed = []
        for line in self._process.stdout:
            if line.startswith(mark):
                return line[len(mark) :]
            if line.rstrip() == _READY:
                self._stand_still()
                return None
            printed.append(line)
        self._process.wait()
        self._errors.seek(0)
        raise Ended("".join(printed) + self._errors.read())

    def close(self) -> None:
        """End it, with all that it started."""
        with contextlib.suppress(ProcessLookupError):
            self._signal(signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()
        self._errors.close()

    def _stand_still(self) -> None:
        self._signal(signal.SIGSTOP)
        # Its threads stop where they leave the kernel; then the process is said to have stopped.
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def _signal(self, which: signal.Signals) -> None:
        os.killpg(self._process.pid, which)


def results(
    commands: dict[str, Sequence[str]],
    environment: dict[str, str],
    processors: Collection[int],
    mark: str,
    turns: int,
) -> Iterator[tuple[str, str | Ended]]:
    """(name, what its worker printed after the mark) for each, or why there is nothing.

    Everything that they measure has so many turns: one of each worker, and one of each again.
    """
    alive: dict[str, _Worker] = {}
    with contextlib.ExitStack() as stack:

        def advanced(names: Sequence[str], said: str | None) -> Iterator[tuple[str, str | Ended]]:
            """Results of those that have one when each went on."""
            for name in names:
                try:
                    found = alive[name].goes_on(said, mark)
                except Ended as error:
                    found = error
                if found is not None:
                    alive.pop(name).close()
                    yield name, found

        for name, command in commands.items():
            alive[name] = _Worker(command, environment, processors)
            stack.callback(alive[name].close)
            yield from advanced([name], None)
        while alive:
            for _ in range(turns):
                yield from advanced(list(alive), _TURN)
            yield from advanced(list(alive), _ENOUGH)
