"""Which lines of the compiler programs reach, and which operations."""

from __future__ import annotations

import inspect
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

import heterosis

_PACKAGE = os.path.dirname(heterosis.__file__)
_COMPILER = tuple(
    os.path.join(_PACKAGE, *folder, "") for folder in (["passes"], ["backends", "native"])
)


class Lines:
    """Notes the lines that run in the compiler's files, and the names of called operations."""

    def __init__(self) -> None:
        self.seen: dict[str, set[int]] = defaultdict(set)
        self.operations: set[str] = set()
        self._record_file = sys.modules["heterosis.ops.record"].__file__

    def start(self) -> None:
        sys.settrace(self._entered)

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file.startswith(_COMPILER):
            self.seen[file].add(frame.f_lineno)
            return self._stepped
        if file == self._record_file and frame.f_code.co_name in ("plan", "traced"):
            self.operations.add(frame.f_locals["self"].name)
        return None

    def _stepped(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.seen[frame.f_code.co_filename].add(frame.f_lineno)
        return self._stepped


def table(seen: Mapping[str, set[int]]) -> Iterator[str]:
    """A line for each file of the compiler: how much of its functions ran, and what did not."""
    for path in _files():
        with open(path, encoding="utf-8") as file:
            wanted = set(_lines(compile(file.read(), path, "exec")))
        if not wanted:
            continue
        missed = sorted(wanted - seen.get(path, set()))
        part = 100 * (len(wanted) - len(missed)) / len(wanted)
        name = os.path.relpath(path, _PACKAGE)
        yield f"{part:5.0f}% of {len(wanted):4} lines {name:48} without {_ranges(missed)}"


def _files() -> Iterator[str]:
    for folder in _COMPILER:
        for path, _, names in sorted(os.walk(folder)):
            yield from (os.path.join(path, name) for name in sorted(names) if name.endswith(".py"))


def _lines(code: CodeType) -> Iterator[int]:
    """The lines of functions: those of modules and classes run at the import."""
    if code.co_flags & inspect.CO_OPTIMIZED:
        yield from (line for _, _, line in code.co_lines() if line and line != code.co_firstlineno)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _lines(constant)


def _ranges(lines: list[int]) -> str:
    found: list[list[int]] = []
    for line in lines:
        if found and line == found[-1][1] + 1:
            found[-1][1] = line
        else:
            found.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found) or "none"
