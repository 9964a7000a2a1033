"""How a function is captured: at first as most are, and once more where that finds out what has to
be known before it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from traceback import walk_tb
from types import FunctionType, MethodType
from typing import Any, TypeVar

from heterosis.capture import results, trees
from heterosis.capture.blockers import is_condition, with_users_line, without_inner_frames
from heterosis.capture.captured import Captured
from heterosis.capture.finishing import finish
from heterosis.capture.guards import Guards
from heterosis.capture.open_sizes import OpenExtents, Opening
from heterosis.capture.trace import NeedsTape, Trace, run
from heterosis.ir.calls import collected
from heterosis.ir.program import checked
from heterosis.runtime.errors import (
    ArgumentTypeError,
    CaptureError,
    HeterosisError,
    UnsupportedError,
)

E = TypeVar("E", bound=HeterosisError)


def capture(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    *,
    interrupted: Callable[[Captured], Any] = lambda captured: None,
    opening: Opening | None = None,
) -> Captured:
    """The program that `function` is for arguments like these; for other extents of them too, as
    far as there is an `opening`.

    Where the function raises, `interrupted` is given what it has done until then, if that writes to
    arrays or prints: so have statements that ran before the error, captured or not.
    """
    call = function, arguments, keywords
    way = _Way()
    while True:
        try:
            trace, found = _captured(*call, way, opening)
        except NeedsTape:
            assert not way.taped, "the tape is there"
            way = replace(way, taped=True)
        else:
            if way.merged or not trace.writes_shared():
                break
            _check_unstepped(
                trace,
                "writes to an array that it is given, or finds outside, under two names. Pass "
                "copies.",
            )
            way = replace(way, merged=True)
    trace.once.tell()
    if trace.error is None:
        checked(found.program)
        return found
    if opening is not None:
        _check_unstepped(trace, _CLOSED)
    if found.writes or found.printed:
        interrupted(found)
    if isinstance(trace.error, CaptureError | UnsupportedError):
        trace.error = _explained(trace.error, trace)
    try:
        raise trace.error
    finally:
        trace.error = None  # whose frames hold the arguments


@dataclass(frozen=True)
class _Way:
    """How a function is captured: what has to be known before it runs, and is found out when it
    does. Then it runs once more."""

    merged: bool = False  # arrays that share memory are one, since it writes to some
    taped: bool = False  # the tape is told of what is recorded outside, since it asks for gradients


def _captured(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    way: _Way,
    opening: Opening | None,
) -> tuple[Trace, Captured]:
    name = getattr(function, "__name__", type(function).__name__)
    given = arguments, keywords
    objects = (*trees.objects_in(given), *trees.attributes_in(given))
    guards = Guards([(name, function), *((type(one).__name__, one) for one in objects)])
    extents = OpenExtents(opening) if opening else None
    trace = Trace(name, guards, merged=way.merged, taped=way.taped, extents=extents)
    trace.rewriting = guards.decides
    stand_ins = trees.replaced((arguments, keywords), trace.argument)
    stand_ins = extents.numbers(stand_ins) if extents else stand_ins
    trace.note_given(stand_ins)
    try:
        with collected(trace.calls):
            result = run(trace, lambda *a, **k: _run_user(trace, function, a, k), *stand_ins)
            results.check(result, name, trace.computes)
            return trace, finish(trace, result)
    except NeedsTape:
        _check_unstepped(
            trace,
            "then asks for gradients, and is called while operations are recorded. Call it outside "
            "of autograd.record().",
        )
        raise
    except CaptureError as error:
        if opening is not None:
            _check_unstepped(trace, _CLOSED)
        raise _explained(error, trace) from None
    finally:
        trace.restore()


def _run_user(
    trace: Trace, function: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """What the function returns; a call with other arguments than it takes is refused as Python
    does."""
    try:
        return trace.returned(trace.opened(function)(*arguments, **keywords))
    except TypeError as error:
        frames = error.__traceback__
        if frames is not None and frames.tb_next is None and _is_of_python(function):
            raise ArgumentTypeError(str(error)) from None
        raise


def _is_of_python(function: Any) -> bool:
    """Whether a call of it is one of a function of Python's, which begins with its arguments."""
    if isinstance(function, functools.partial):
        return _is_of_python(function.func)
    call = getattr(type(function), "__call__", None)  # noqa: B004 - it may be the user's
    return isinstance(function, FunctionType | MethodType) or isinstance(call, FunctionType)


class OptimizerStepped(CaptureError):
    """A function would have to run once more that has counted an update of an optimizer."""


_CLOSED = (
    "cannot leave the extents of its arguments open. Hybridize it with dynamic=False: it is then "
    "captured for all extents one by one."
)


def _check_unstepped(trace: Trace, what: str) -> None:
    """Refuse to run a function once more that has counted an update of an optimizer for good."""
    if trace.supply and not trace.take_back():
        raise OptimizerStepped(f"an optimizer steps in the function, which {what}") from None


def _explained(error: E, trace: Trace) -> E:
    """An error that begins with the user's line, without our frames below the user's, and with the
    reason why the function that it comes from has been left as it is."""
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    found = [trace.as_they_are[f.f_code] for f in frames if f.f_code in trace.as_they_are]
    if found and is_condition(error):
        error.args = (f"{error}\n  An if is left as it is here: {found[-1]}.",)
    without_inner_frames(error)
    return with_users_line(error)
