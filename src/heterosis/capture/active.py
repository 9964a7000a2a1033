"""The capture that a thread is in, and what the rest of the package tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from heterosis.runtime import modes, raising
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

if TYPE_CHECKING:
    from heterosis.capture.trace import Trace


class _Current(threading.local):
    trace: Trace | None = None


current = _Current()


def active() -> Trace:
    """The capture that this thread is in."""
    assert current.trace is not None, "capturing is only switched on while there is a trace"
    return current.trace


_rewriting: list[Callable[[Any], Any]] = []


def set_rewriting(rewrite: Callable[[Any], Any]) -> None:
    """`rewrite(function)` gives a user's function whose statements a capture takes over."""
    _rewriting[:] = [rewrite]


def rewrite(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function, its statements taken over."""
    found: Callable[..., Any] = _rewriting[0](function)
    return found


def opened(function: Callable[..., Any]) -> Callable[..., Any]:
    """A user's function as the capture that is active runs it."""
    return current.trace.opened(function) if current.trace is not None else function


def depend_on(value: Any, *names: str) -> None:
    """Let the program that is being captured, if any, hold only while these attributes of an
    object stay what they are when the capture ends."""
    if current.trace is not None and modes.is_capturing():
        current.trace.guards.depend_on(value, *names)


def depend_on_all(value: Any) -> None:
    """The same for all attributes of an object, unless what the program reads of it is known."""
    if current.trace is not None and modes.is_capturing():
        current.trace.guards.depend_on_all(value)


def written_where(array: Any, version: int) -> Any | None:
    """What says, in a program that is being captured, whether an array has been written to since it
    had this version; None if it has in any case."""
    if current.trace is None or not modes.is_capturing():
        return None
    return current.trace.written_where(array, version)


def require(truth: Any, error: Exception) -> None:
    """Let the program that is being captured raise an error in runs where a truth does not hold."""
    active().check(truth, raising.told(f"raised at {user_line()}", error))


@contextmanager
def scope(prefix: str) -> Iterator[None]:
    """Within the block, captured steps belong to the block with this prefix."""
    trace = current.trace
    before = trace.scope if trace else ""
    try:
        if trace:
            trace.scope = prefix
        yield
    finally:
        if trace:
            trace.scope = before


def supplied(make: Callable[[], Sequence[float]], first: Sequence[float]) -> list[Any]:
    """For the program that is being captured: numbers that `make()` gives anew for every run."""
    return active().supplied(make, first)


def count_from(counter: Callable[[], Callable[[], None] | None]) -> None:
    """Tell the capture of an optimizer that is about to count an update: `counter()` gives what
    sets it back to what it has counted until then, if anything does."""
    active().outermost.supply.count_from(counter)


def noting(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, whose refusals are remembered: they end the capture, whoever catches them."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except CaptureError as error:
            modes.refusals.note(error)
            raise

    return call
