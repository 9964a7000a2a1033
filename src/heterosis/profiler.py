"""What a program spends its time on: every operation, the scopes, counters and marks that it sets
itself, and the engine's and the memory's counters beside them.

An operation's time is that of its work, on the thread that does it. Operations are queued: a scope
that does not wait for its results (`wait_to_read`, `npx.waitall`) holds the time of issuing them.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from heterosis import _core
from heterosis.io.atomic import written
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.forks import ReleasedLock

_SWITCHES = (
    "profile_all", "profile_symbolic", "profile_imperative", "profile_memory", "profile_api",
    "contiguous_dump", "aggregate_stats", "continuous_dump",
)  # fmt: skip
_SORTS = {"total": sum, "avg": lambda v: sum(v) / len(v), "min": min, "max": max, "count": len}
_SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}
_MODES = ("symbolic", "imperative", "api", "memory", "all")


@dataclass
class _Profile:
    """What has been recorded, and whether recording goes on."""

    filename: str = "profile.json"
    running: bool = False
    paused: bool = False
    events: list[dict[str, Any]] = field(default_factory=list)
    spans: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # milliseconds
    values: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    lanes: set[int] = field(default_factory=set)  # threads that have been given a name
    lock: ReleasedLock = field(default_factory=ReleasedLock)

    @property
    def active(self) -> bool:
        return self.running and not self.paused

    def add(self, phase: str, name: str, category: str, at: float, **more: Any) -> None:
        """An event of the Chrome trace format; times in microseconds."""
        common = {"pid": os.getpid(), "tid": more.pop("tid", threading.get_native_id())}
        event = {"name": name, "cat": category, "ph": phase, "ts": at, **common, **more}
        with self.lock:
            self.events.append(event)

    def span(self, name: str, category: str, begun: float, ended: float, **more: Any) -> None:
        self.add("X", name, category, begun, dur=ended - begun, **more)
        with self.lock:
            self.spans.setdefault((category, name), []).append((ended - begun) / 1000)

    def count(self, name: str, category: str, value: float) -> None:
        self.add("C", name, category, _now(), args={name: value})
        with self.lock:
            self.values.setdefault((category, name), []).append(value)

    def sample(self) -> None:
        """The engine's and the memory's counters as they are now."""
        engine, memory = _core.engine_counters(), _core.memory_counters()
        self.count("operations run", "engine", engine["executed"] + engine["inlined"])
        self.count("operations outstanding", "engine", engine["outstanding_tasks"])
        self.count("bytes in arrays", "memory", memory["live"])

    def collect(self) -> None:
        """Take over what the core has noted of operations."""
        for name, queued, begun, ended, thread, in_lane in _core.take_profile():
            waited = {"waited": (begun - queued) / 1000}
            kind = "communication" if in_lane else "operator"
            self.span(name, kind, begun / 1000, ended / 1000, tid=thread, args=waited)
            if in_lane and thread not in self.lanes:
                self.lanes.add(thread)
                self.add("M", "thread_name", kind, 0, tid=thread, args={"name": kind})

    def clear(self) -> None:
        _core.take_profile()
        with self.lock:
            self.events, self.spans, self.values, self.lanes = [], {}, {}, set()


_profile = _Profile()


def _now() -> float:
    return time.perf_counter_ns() / 1000


# -- control --------------------------------------------------------------------------------------


def set_config(**options: Any) -> None:
    """Where `dump` writes to: `filename`. MXNet's other options are accepted: all that can be
    recorded always is."""
    known = ("filename", "profile_process", "dump_period", *_SWITCHES)
    for name in options:
        if name not in known:
            raise ArgumentError(f"set_config: no option {name!r}; expected {', '.join(known)}.")
    _profile.filename = os.fspath(options.get("filename", _profile.filename))


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Begin ("run") or end ("stop") recording; queued work is finished first."""
    if state not in ("run", "stop"):
        raise ArgumentError(f"set_state: {state!r}; expected 'run' or 'stop'.")
    if _profile.running != (state == "run"):
        _core.wait_all()
        _profile.sample()
    _profile.running, _profile.paused = state == "run", False
    _core.set_profiling(_profile.active)


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`."""
    _profile.paused = True
    _core.set_profiling(False)


def resume(profile_process: str = "worker") -> None:
    """Record again."""
    _profile.paused = False
    _core.set_profiling(_profile.active)


# -- results --------------------------------------------------------------------------------------


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write what is recorded to the configured file, for chrome://tracing or Perfetto; with
    `finished`, stop recording and forget it."""
    if finished:
        set_state("stop")
    _profile.collect()
    with _profile.lock:
        text = json.dumps({"traceEvents": _profile.events, "displayTimeUnit": "ms"})
    with written(_profile.filename) as file:
        file.write(text.encode())
    if finished:
        _profile.clear()


def dumps(
    reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False
) -> str:
    """How often operations and scopes ran, and their total, least, largest and mean milliseconds;
    the same of counters, with their last value. As a table or as JSON; `sort_by` names a column."""
    for name, given, expected in (("format", format, ("table", "json")),
                                  ("sort_by", sort_by, tuple(_SORTS))):  # fmt: skip
        if given not in expected:
            raise ArgumentError(f"dumps: {name}={given!r}; expected one of {', '.join(expected)}.")
    _profile.collect()
    with _profile.lock:
        spans = _sorted(_profile.spans, sort_by, ascending)
        values = _sorted(_profile.values, sort_by, ascending)
    if reset:
        _profile.clear()
    if format == "json":
        parts = {"Time": _tree(spans, "Total"), "Counters": _tree(values, "Last")}
        return json.dumps(parts | {"Unit": {"Time": "ms"}}, indent=4)
    return _table("Time (ms)", spans, "Total") + _table("Counters", values, "Last")


_Rows = list[tuple[str, str, list[float]]]


def _sorted(found: dict[tuple[str, str], list[float]], by: str, ascending: bool) -> _Rows:
    rows = [(category, name, list(numbers)) for (category, name), numbers in found.items()]
    return sorted(rows, key=lambda row: _SORTS[by](row[2]), reverse=not ascending)


def _summary(numbers: list[float], second: str) -> dict[str, float]:
    total = sum(numbers)
    return {
        "Count": len(numbers),
        second: total if second == "Total" else numbers[-1],
        "Min": min(numbers),
        "Max": max(numbers),
        "Avg": total / len(numbers),
    }


def _tree(rows: _Rows, second: str) -> dict[str, dict[str, dict[str, float]]]:
    tree: dict[str, dict[str, dict[str, float]]] = {}
    for category, name, numbers in rows:
        tree.setdefault(category, {})[name] = _summary(numbers, second)
    return tree


def _table(title: str, rows: _Rows, second: str) -> str:
    columns = ("Count", second, "Min", "Max", "Avg")
    lines = [f"{title:<40}" + "".join(f"{column:>16}" for column in columns)]
    for category, name, numbers in rows:
        summary = _summary(numbers, second)
        shown = (f"{summary[column]:>16.{4 if column != 'Count' else 0}f}" for column in columns)
        lines.append(f"{category + ': ' + name:<40}" + "".join(shown))
    return "\n".join(lines) + "\n"


# -- what programs record -------------------------------------------------------------------------


class Domain:
    """A part of a program; what is made by it carries its name."""

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return self.name

    def new_task(self, name: str) -> Task:
        """A task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: float | None = None) -> Counter:
        """A counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A marker of this domain."""
        return Marker(self, name)


class _Scope:
    """Something with a start and a stop; also for `with`."""

    def __init__(self, name: str, category: str):
        self.name, self._category, self._begun = name, category, None

    _begun: float | None

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Begin."""
        self._begun = _now() if _profile.active else None

    def stop(self) -> None:
        """End: the time since `start` is recorded, if the profiler runs."""
        if self._begun is not None and _profile.active:
            _profile.span(self.name, self._category, self._begun, _now())
            _profile.sample()
        self._begun = None

    def __enter__(self) -> _Scope:  # noqa: PYI034 - typing has no Self in Python 3.10
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Task(_Scope):
    """Work that is done once or many times."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(name, domain.name)


class Frame(_Scope):
    """A round of something that repeats, such as an epoch or a batch."""

    def __init__(self, domain: Domain, name: str):
        super().__init__(name, f"{domain.name},frame")


class Event(_Scope):
    """Work of no domain."""

    def __init__(self, name: str):
        super().__init__(name, "event")


class Counter:
    """A number whose changes are recorded."""

    def __init__(self, domain: Domain, name: str, value: float | None = None):
        self.name, self._category, self.value = name, domain.name, 0.0
        if value is not None:
            self.set_value(value)

    def __str__(self) -> str:
        return self.name

    def set_value(self, value: float) -> None:
        """The number is now `value`."""
        self.value = value
        if _profile.active:
            _profile.count(self.name, self._category, value)

    def increment(self, delta: float = 1) -> None:
        """The number grows."""
        self.set_value(self.value + delta)

    def decrement(self, delta: float = 1) -> None:
        """The number falls."""
        self.set_value(self.value - delta)

    def __iadd__(self, delta: float) -> Counter:  # noqa: PYI034
        self.increment(delta)
        return self

    def __isub__(self, delta: float) -> Counter:  # noqa: PYI034
        self.decrement(delta)
        return self


class Marker:
    """A moment worth remembering."""

    def __init__(self, domain: Domain, name: str):
        self.name, self._category = name, domain.name

    def mark(self, scope: str = "process") -> None:
        """Now; `scope` says how far the mark reaches: global, process, thread, task or marker."""
        if scope not in _SCOPES:
            raise ArgumentError(f"mark: {scope!r}; expected one of {', '.join(_SCOPES)}.")
        if _profile.active:
            _profile.add("i", self.name, self._category, _now(), s=_SCOPES[scope])


# -- names of older versions ----------------------------------------------------------------------


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """`set_config`, as it was called before; `mode` says what MXNet recorded."""
    if mode not in _MODES:
        raise ArgumentError(f"profiler_set_config: mode={mode!r}; expected one of {_MODES}.")
    set_config(filename=filename)


def profiler_set_state(state: str = "stop") -> None:
    """`set_state`, as it was called before."""
    set_state(state)


def dump_profile() -> None:
    """`dump`, as it was called before."""
    dump(finished=True)


_check_members(globals())

__all__ = [
    "Counter",
    "Domain",
    "Event",
    "Frame",
    "Marker",
    "Task",
    "dump",
    "dump_profile",
    "dumps",
    "pause",
    "profiler_set_config",
    "profiler_set_state",
    "resume",
    "set_config",
    "set_state",
]
