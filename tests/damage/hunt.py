"""Damaged files in a process of their own, which is started again when one of them has ended it."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """What came of all files."""

    files: int = 0
    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    peaks: dict[str, int] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def note(self, facts: dict[str, Any]) -> None:
        """Take in what came of one file."""
        kind, outcome = facts["kind"], facts["outcome"]
        self.files += 1
        self.outcomes[kind][outcome] += 1
        self.peaks[kind] = max(self.peaks.get(kind, 0), facts.get("peak", 0))
        if outcome in ("foreign", "crash", "hang"):
            self.failures.append(facts)

    def text(self) -> str:
        """A table by kind, and the failures."""
        names = ("read", "refused", "no room", "foreign", "crash", "hang")
        lines = [f"{'kind of file':34}" + "".join(f"{n:>9}" for n in names) + f"{'peak MB':>9}"]
        for kind, found in self.outcomes.items():
            row = "".join(f"{found[n]:9,}" for n in names)
            lines.append(f"{kind:34}{row}{self.peaks[kind] >> 20:9,}")
        total: Counter[str] = sum(self.outcomes.values(), Counter())
        row = "".join(f"{total[n]:9,}" for n in names)
        lines.append(
            f"{f'{self.files:,} files':34}{row}{max(self.peaks.values(), default=0) >> 20:9,}"
        )
        for facts in self.failures:
            head = f"{facts['number']} {facts['kind']}, {facts['damage']}: {facts['outcome']}"
            lines.append(f"\n{head}\n{facts['said']}")
        return "\n".join(lines)


def hunt(first: int, count: int, program: Sequence[str] = ("-m", "tests.damage.child")) -> Report:
    """Read the damaged files of `count` numbers, from `first` on, by a program for Python.

    Ctrl-C ends it with the report so far.
    """
    report = Report()
    end = first + count
    with tempfile.NamedTemporaryFile() as progress, suppress(KeyboardInterrupt):
        while first < end:
            progress.truncate(0)
            first = _round(report, program, first, end - first, progress.name)
    return report


def _round(report: Report, program: Sequence[str], first: int, count: int, progress: str) -> int:
    """One process; the number after the last one that it came to."""
    from tests.damage.child import case

    command = [sys.executable, *program, str(first), str(count), progress]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=_environment()
        ) as child,
    ):
        assert child.stdout is not None
        try:
            for line in child.stdout:
                report.note(json.loads(line))
        except KeyboardInterrupt:
            child.kill()
            raise
        code = child.wait()
        errors.seek(0)
        said = errors.read()
    with open(progress, "rb") as file:
        place = file.read(8)
    if code == 0:
        return first + count
    if not place:
        raise RuntimeError(f"the process ended with {code} before the first file:\n{said}")
    (number,) = struct.unpack("<q", place)
    kind, damage = case(number)
    outcome = "hang" if "Timeout" in said else "crash"
    report.note({"number": number, "kind": kind, "damage": damage, "outcome": outcome,
                 "said": f"exit {code}\n{said[-4000:]}"})  # fmt: skip
    return number + 1


def _environment() -> dict[str, str]:
    paths = [os.path.abspath(path) for path in sys.path]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"}
