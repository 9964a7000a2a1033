"""What happens once, while a function is captured: told of when the capture ends."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureWarning
from heterosis.runtime.lines import user_frame

if TYPE_CHECKING:
    from heterosis.capture.trace import Trace


class Once:
    """The lines of what a capture does that no later call does again."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], tuple[str, dict[str, Any]]] = {}

    def note(self, what: str) -> None:
        """Something happens now, at the user's line."""
        frame, _ = user_frame()
        place = frame.f_code.co_filename, frame.f_lineno
        self._lines.setdefault(place, (what, frame.f_globals))

    def tell(self) -> None:
        """Warn of each line, once in a process as far as the user's filters say."""
        for (file, line), (what, variables) in self._lines.items():
            warnings.warn_explicit(
                f"{what} while the hybridized function is captured, and not at later calls.",
                CaptureWarning,
                file,
                line,
                module=variables.get("__name__"),
                registry=variables.setdefault("__warningregistry__", {}),
            )


def print_once(show: Callable[..., None], trace: Trace, *values: Any, **named: Any) -> None:
    """`show`, which is `print`, in a function that is captured by `trace`."""
    trace.once.note("this prints")
    _print(functools.partial(show, *values, **named), trace.trial)


def _print(show: Callable[[], None], trial: Trial | None) -> None:
    """Print now, or when it is known that a trial has been possible."""
    if trial is None:
        show()
    else:
        trial.printed.append(show)


class Trial:
    """A part of a capture that may turn out not to be possible: as if nothing had happened then."""

    def __init__(self, trace: Trace):
        self._trace, self._outer = trace, trace.outermost.trial
        self._refusal = modes.refusals.first
        prints = trace.prints
        lists: tuple[list[Any], ...] = (
            trace.calls,
            trace.steps,
            trace.chosen,
            prints.items,
            prints.values,
        )
        self._lengths = [(rows, len(rows)) for rows in lists]
        self._unset = dict(trace.outermost.unset)
        self.printed: list[Callable[[], None]] = []
        trace.outermost.trial = self

    def begin(self) -> None:
        """The part begins, maybe once more."""
        self.printed.clear()

    def end(self) -> None:
        """It has been possible."""
        self._trace.outermost.trial = self._outer
        for show in self.printed:
            _print(show, self._outer)

    def undo(self) -> None:
        """It has not."""
        outermost = self._trace.outermost
        outermost.trial, outermost.unset = self._outer, self._unset
        modes.refusals.first = self._refusal
        for rows, length in self._lengths:
            del rows[length:]
