"""The way from choices and loops, as users call them, to the capture that takes them over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from heterosis.runtime.errors import ArgumentError

Function = Callable[..., Any]


class Captured(Protocol):
    """Choices and loops of a program that is being captured; states and rows are lists."""

    def opened(self, function: Function) -> Function:
        """A user's function, whose statements are captured too."""

    def made(self, container: Any) -> Any:
        """A list that is made for a turn, which may change it."""

    def cond(self, pred: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What one of two functions gives."""

    def foreach(
        self, body: Function, rows: Sequence[Any], states: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        """What `body(rows, states)` gives besides new states, as rows, and the last states."""

    def while_loop(
        self, condition: Function, body: Function, states: Sequence[Any], most: int | None
    ) -> tuple[Any, list[Any]]:
        """What `body(*states)` gives besides new states, as rows, zeros behind the last turn, and
        the last states."""

    def run(self, function: Callable[[], Any]) -> Any:
        """What a function gives, captured although nothing else is."""

    def print(self, values: Sequence[Any], ends: dict[str, Any]) -> None:
        """Print values, at every run."""


_captured: list[Captured] = []


def set_capture(captured: Captured) -> None:
    """Let a capture take choices and loops over."""
    _captured[:] = [captured]


def captured() -> Captured:
    """What takes over while a program is captured."""
    return _captured[0]


def check_unbounded(most: int | None, outputs: Any) -> None:
    """Refuse outputs of turns that nobody knows the number of."""
    if most is None and listed(outputs):
        raise ArgumentError(
            "while_loop: func gives outputs, and without a bound there is no array for them; give "
            "max_iterations, or return an empty list and the variables."
        )


def listed(given: Any) -> list[Any]:
    """Arrays of which there may be one, several or none, as a list."""
    if given is None:
        return []
    return list(given) if isinstance(given, list | tuple) else [given]
