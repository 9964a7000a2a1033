"""How the calling thread runs operations: whether gradients are recorded, and for which purpose."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeAlias, TypeVar

from heterosis import _core
from heterosis.runtime.errors import CaptureError

P = ParamSpec("P")
R = TypeVar("R")
Modes: TypeAlias = tuple[bool, bool, bool, bool]  # as `switch_modes` gives them


def is_recording() -> bool:
    """Whether operations are recorded for `backward`."""
    return _core.is_recording()


def set_recording(on: bool) -> bool:
    """Record operations, or stop; returns how it was before."""
    before = _core.is_recording()
    _core.set_recording(bool(on))
    return before


def is_training() -> bool:
    """Whether layers that behave differently in training, dropout for one, do so."""
    return _core.is_training()


def set_training(on: bool) -> bool:
    """Switch between training and prediction; returns how it was before."""
    before = _core.is_training()
    _core.set_training(bool(on))
    return before


def is_capturing() -> bool:
    """Whether operations become part of a program instead of being run."""
    return _core.is_capturing()


def is_imperative() -> bool:
    """Whether hybridized functions run as Python runs them, with no program."""
    return _core.is_imperative()


def follows() -> bool:
    """Whether somebody is told of operations: then no view may be made behind their back."""
    return _core.is_recording() or _core.is_capturing()


class Refusals(threading.local):
    """The first thing in the present capture that a program cannot have. A function that catches
    the error must not go on as if a program could do what it wanted."""

    first: CaptureError | None = None

    def note(self, error: CaptureError) -> CaptureError:
        """Remember `error`, to be raised."""
        self.first = self.first or error
        return error


refusals = Refusals()


def refuse_in_capture(what: str, cure: str) -> None:
    """Raise if a program is captured: `what` would happen once, and not in every run of it."""
    if is_capturing():
        raise refusals.note(
            CaptureError(
                f"{what} would happen once, while the program is captured, and not at every call "
                f"of the hybridized function. {cure}"
            )
        )


def refuse_python_numbers(what: str) -> None:
    """Raise if a program is captured, in which random numbers that Python draws would be fixed."""
    refuse_in_capture(
        f"{what} draws numbers in Python, which",
        "Call it before the hybridized function, on what that is given.",
    )


class switched:  # noqa: N801 - read as a verb, in `with`
    """Within the block, what is given; behind it, what was so before. For `with`, as often as one
    likes, and for decorating functions."""

    def __init__(
        self,
        recording: bool | None = None,
        training: bool | None = None,
        capturing: bool | None = None,
        imperative: bool | None = None,
    ):
        self._wanted = recording, training, capturing, imperative
        self._before: dict[int, list[Modes]] = {}  # by thread, of the blocks that it is used for

    def __enter__(self) -> None:
        before = _core.switch_modes(*self._wanted)
        self._before.setdefault(threading.get_ident(), []).append(before)

    def __exit__(self, *raised: object) -> None:
        _core.switch_modes(*self._before[threading.get_ident()].pop())

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, run within such a block."""

        @wraps(function)
        def call(*arguments: P.args, **keywords: P.kwargs) -> R:
            with switched(*self._wanted):
                return function(*arguments, **keywords)

        return call
