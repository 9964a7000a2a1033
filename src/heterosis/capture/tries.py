"""`try` around branches and turns that arrays decide.

Where an error is raised in the branch that the `try` stands in, or outside of all, Python finds the
handler while the function is captured. Raised in a branch within the `try`, it would be caught
whenever that branch runs: no program can do that, and no handler may run as if it always did.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

if TYPE_CHECKING:
    from heterosis.capture.trace import Trace


class Try(NamedTuple):
    """A `try` whose body runs: what it is captured by, what it catches, and its line."""

    trace: Trace
    kinds: Callable[[], tuple[type[BaseException], ...]]
    line: str


@contextlib.contextmanager
def trying(one: Try) -> Iterator[None]:
    """Within the block, the `try` is open."""
    open_ = one.trace.outermost.tries
    open_.append(one)
    try:
        yield
    finally:
        open_.pop()


@contextlib.contextmanager
def suppressing(context: contextlib.suppress, one: Try) -> Iterator[None]:
    """`context`, which catches as a `try` does."""
    with context, trying(one):
        yield


def handler_of(trace: Trace, kind: type[BaseException]) -> Try | None:
    """The `try` that catches an error of a kind; raises if it stands outside of the branch or turn
    that `trace` captures."""
    one: Try
    for one in reversed(trace.outermost.tries):
        if issubclass(kind, one.kinds()):
            if one.trace is not trace:
                raise caught(kind, one)
            return one
    return None


def caught(kind: type[BaseException], one: Try) -> CaptureError:
    """The refusal of an error that arrays decide on, and that is caught."""
    return modes.refusals.note(
        CaptureError(
            f"{kind.__name__} at {user_line()}: arrays decide whether it is raised, and the try at "
            f"{one.line} catches it: a program has no handlers. Write an if in place of the try, "
            "or a try within the branch or the turn that raises."
        )
    )
