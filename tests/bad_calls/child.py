"""A process that makes calls with limited memory and time, and the one that watches over it."""

from __future__ import annotations

import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY = 6 << 30  # bytes of addresses that a process of calls may have
SECONDS = 10  # that a call may take
_CALLS = 4000  # that a process makes
_CHANNEL = 200  # the file descriptor of reports: none that a bad call names
_STARTING = "(starting)"
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Report:
    """One call, and what became of it."""

    number: int
    text: str
    kind: str
    error: str = ""
    place: str = ""


def reports(first: int, count: int, seed: int) -> Iterator[Report]:
    """What becomes of the calls from number `first` on, in as many processes as they need."""
    end = first + count
    while first < end:
        for report in _one_process(first, end, seed):
            first = report.number + 1
            yield report


def _one_process(first: int, end: int, seed: int) -> Iterator[Report]:
    """Until its end; a crash or a hang is the report of the call that it happened in."""
    reader, writer = os.pipe()
    paths = os.pathsep.join(os.path.abspath(path) for path in (_ROOT, *sys.path))
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", __spec__.name, str(first), str(end), str(seed), str(writer)],
            pass_fds=[writer],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": paths},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        os.close(writer)
        with os.fdopen(reader, "rb") as lines:
            started = False
            for report in _watched(process, lines, first):
                started = True
                yield report
        if not started:
            errors.seek(0)
            raise RuntimeError(errors.read().decode(errors="replace")[-2000:])


def _watched(process: subprocess.Popen[bytes], lines: Any, first: int) -> Iterator[Report]:
    number, text = first, _STARTING
    begun = False
    while True:
        ready, _, _ = select.select([lines], [], [], 3 * SECONDS + 60 * (text == _STARTING))
        line = lines.readline() if ready else None
        if line is None:
            process.kill()
        if not line:
            status = process.wait()
            if text != _STARTING and (line is None or begun or status):
                kind = "hang" if line is None else "crash"
                yield Report(number, text, kind, f"status {status}", kind)
            return
        message = json.loads(line)
        begun = len(message) == 2
        if begun:
            number, text = message
        else:
            yield Report(number, text, *message[2:])


def _serve(first: int, end: int, seed: int, writer: int) -> None:
    os.dup2(writer, _CHANNEL)
    channel = os.fdopen(_CHANNEL, "w", buffering=1)
    from tests.bad_calls import calls, targets

    table, names = targets.targets(), targets.namespace()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGALRM, _too_late)
    for number in range(first, min(end, first + _CALLS)):
        chance = random.Random(f"{seed}:{number}")
        text = calls.bad_call(chance.choice(table), chance)
        channel.write(json.dumps([number, text]) + "\n")
        signal.alarm(SECONDS)
        found = calls.outcome(text, names)
        signal.alarm(0)
        channel.write(json.dumps([number, text, found.kind, found.error, found.place]) + "\n")
    channel.flush()
    os._exit(0)


def _too_late(number: int, frame: Any) -> None:
    raise TimeoutError(f"a call took more than {SECONDS} seconds")


if __name__ == "__main__":
    _serve(*map(int, sys.argv[1:5]))
