"""What rewritten functions call, read and change while they are captured: functions of the user's
are rewritten in turn, and what is changed that was there before is told of, or refused."""

from __future__ import annotations

import abc
import bisect
import contextlib
import functools
import heapq
import inspect
import operator
import os
import random
import types
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import _core
from heterosis.capture import reports
from heterosis.capture.active import active
from heterosis.capture.asked import asked
from heterosis.capture.code_names import CHANGING
from heterosis.capture.definitions import Unwritable
from heterosis.capture.inner import Inner, is_open
from heterosis.capture.lasting import Lasting
from heterosis.capture.replacements import (
    Entered,
    number_attribute,
    number_kind,
    replaced,
    with_callbacks,
)
from heterosis.capture.rewriting import is_rewritten, rewritten
from heterosis.capture.rows import Numbers, Rows, Sized, backwards, enumerated, zipped
from heterosis.capture.tries import Try, suppressing
from heterosis.capture.turns import kind
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray

_MAKERS = (list, dict, set, sorted, deque, iter, reversed, map, filter)
_CHANGERS = (  # of their first argument
    next, setattr, delattr, heapq.heapify, heapq.heappop, heapq.heappush, heapq.heappushpop,
    heapq.heapreplace, bisect.insort_left, bisect.insort_right, random.shuffle, operator.setitem,
    operator.delitem, numpy.copyto, numpy.put, numpy.place, numpy.putmask, numpy.fill_diagonal,
    numpy.put_along_axis, numpy.random.shuffle,
)  # fmt: skip
_SETTERS = frozenset({"__setattr__", "__delattr__", "__setitem__", "__delitem__"})
_CONTEXT_MANAGER = contextlib.contextmanager(lambda: iter(())).__code__
_CONTAINERS = (list, dict, set, bytearray, deque, numpy.ndarray)
_GOING: dict[Any, Callable[..., Any]] = {
    range: Numbers,
    enumerate: enumerated,
    zip: zipped,
    reversed: backwards,
}


class Objects(abc.ABC):
    """What rewritten functions do with objects of Python's."""

    def __init__(self) -> None:
        self._lasting = Lasting(self)

    @abc.abstractmethod
    def negated(self, value: Any) -> Any:
        """What `not value` is."""

    @abc.abstractmethod
    def either(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What `then() if test else otherwise()` is."""

    def called(self, function: Any) -> Any:
        """What is called in place of a function, so that its statements are captured too."""
        if any(function is one for one in _GOING):
            return functools.partial(self._going, function)
        if told := asked(function, active().guards.is_outside):
            active().outermost.once.note(told[0], cure=told[1])
        instead = replaced(function, self) or function
        if any(function is maker for maker in _MAKERS):
            return lambda *given, **named: self.made(instead(*given, **named))
        of = getattr(function, "__objclass__", None)
        is_method = of in _CONTAINERS and function.__name__ in CHANGING  # as in list.append(x, 1)
        is_method |= isinstance(function, types.WrapperDescriptorType) and (
            function.__name__ in _SETTERS
        )
        if is_method or any(function is changer for changer in _CHANGERS):
            return lambda given, *more, **named: function(self.changed(given), *more, **named)
        if isinstance(function, numpy.ufunc) or _is_of_numpy(function):
            return functools.partial(self._by_numpy, function)
        if function is print:
            return functools.partial(reports.print_once, function, active().outermost)
        self._check_method(function)
        found = self.opened(function) if instead is function else instead
        if inspect.isgeneratorfunction(found):  # to go on is to change what it gives
            return lambda *given, **named: self.made(found(*given, **named))
        return found

    def _check_method(self, function: Any) -> None:
        """Tell of a container that a method changes, also with its arguments given before."""
        while isinstance(function, functools.partial):
            function = function.func
        owner, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
        if (isinstance(owner, _CONTAINERS) and name in CHANGING) or (
            isinstance(function, types.MethodWrapperType) and name in _SETTERS
        ):
            self.changed(owner)

    def _by_numpy(self, function: Any, *given: Any, **named: Any) -> Any:
        """What a function of NumPy's gives, which may write to arrays that it is handed."""
        written = named.get("out")
        outs = written if isinstance(written, tuple) else (written,)
        if isinstance(function, numpy.ufunc):
            outs += given[function.nin :]
        elif getattr(function, "__name__", "") == "at":
            outs += given[:1]
        for out in outs:
            if isinstance(out, numpy.ndarray):
                self.changed(out)
        return function(*given, **named)

    def entered(self, context: Any) -> Any:
        """What a `with` enters, and leaves again: by functions that may be the user's."""
        if isinstance(context, contextlib.suppress):
            kinds = vars(context)["_exceptions"]
            one = Try(active(), lambda: kinds, user_line())
            return suppressing(context, one)
        made: Any = getattr(context, "func", None)
        is_generator = isinstance(context, contextlib._GeneratorContextManager)
        if is_generator and _is_users(made) and not is_rewritten(made):
            _left_as_it_is(made, "its generator has been there before")
        enter, leave = (getattr(type(context), name, None) for name in ("__enter__", "__exit__"))
        opened = self.opened(enter), self.opened(leave)
        return context if opened == (enter, leave) else Entered(context, *opened)

    def item(self, owner: Any, key: Any) -> Any:
        """What `owner[key]` is."""
        if owner is os.environ:
            active().outermost.once.note("os.environ is asked for a setting")
        if isinstance(owner, defaultdict) and owner.default_factory and key not in owner:
            self.changed(owner)
        return owner[key]

    def attribute(self, owner: Any, name: str) -> Any:
        """What `owner.name` is; a property of the user's is a function, too."""
        if _is_chosen_number(owner):
            return number_attribute(owner, name)
        found = getattr(type(owner), name, None)
        if type(found) is property and isinstance(found.fget, types.FunctionType):
            opened = self.opened(found.fget)
            if opened is not found.fget:
                return opened(owner)
        if type(found) is functools.cached_property and name not in vars(owner):
            self.changed(owner, name)
            vars(owner)[name] = self.opened(found.func)(owner)
        return getattr(owner, name)

    def _going(self, function: Any, *given: Any, **named: Any) -> Any:
        """What one goes through that `range`, `zip` and the like make."""
        if any(isinstance(one, ndarray | Rows | Numbers) for one in given):
            return self.made(_GOING[function](*given, **named))
        found = self.made(function(*given, **named))
        has_end = function is not range and all(map(ends, given))
        return self.made(Sized(found)) if has_end else found

    def rebound(self, name: str, read: types.FunctionType) -> None:
        """Tell of a variable outside of the function that is set next; `read` reads it."""
        reports.note_rebound(active(), name, read)
        if isinstance(active(), Inner):
            raise noted(
                CaptureError(
                    f"{name}, a variable outside of the function, is set at {user_line()}, within "
                    "a branch or a loop that arrays decide: that would happen at the capture, "
                    "whatever they decide, and never again. Return what you compute."
                )
            )

    def matched(self, subject: Any) -> Any:
        """What `match` looks at."""
        if is_open(subject):
            raise noted(
                CaptureError(
                    f"match at {user_line()}: which case it is depends on an array "
                    f"{kind(subject)}, which is not known yet. Compare with if and elif."
                )
            )
        return subject

    def made(self, container: Any) -> Any:
        """A container that is made here, and which may be changed here."""
        active().made_here[id(container)] = container
        return container

    def same(self, one: Any, other: Any) -> Any:
        """What `one is other` is."""
        trace = active()
        if any(map(_may_be_number, (one, other))):
            return self._same_number(one, other)
        chosen = trace.outermost.chosen_objects
        open_ = id(one) in chosen and id(other) in chosen
        if is_open(one) and is_open(other):
            open_ = not {*trace.may_be(one)}.isdisjoint(trace.may_be(other))
        if open_ and one is not other:
            raise noted(
                CaptureError(
                    f"is at {user_line()}: whether two names stand for one object depends on "
                    "arrays. Compare what they hold, or keep a variable that says it."
                )
            )
        return one is other

    def _same_number(self, one: Any, other: Any) -> Any:
        """The same where one is a number that arrays have chosen: there is one True and one False,
        and nobody knows of how many other numbers."""
        mixed = active().outermost.mixed
        is_mixed = any(getattr(x, "_storage_id", None) in mixed for x in (one, other))
        if not is_mixed and not all(map(active().stands_for_number, (one, other))):
            return False
        kinds = [number_kind(one), number_kind(other)]
        if is_mixed or (bool not in kinds and kinds[0] is kinds[1]):
            raise noted(
                CaptureError(
                    f"is at {user_line()}: whether two objects, one of which is a number that "
                    "arrays have chosen, or may be one, are the same is not known. Compare them, "
                    "a == b."
                )
            )
        return kinds[0] is kinds[1] and active().note_number(one == other)

    def augmented(self, value: Any, method: str) -> None:
        """Tell of `value += ...`, or another operator that some objects do in place."""
        if hasattr(type(value), method):
            self.changed(value)

    def changed(self, given: Any, attribute: str | None = None) -> Any:
        """An object that is about to be changed, or an attribute of it: within a branch or a turn,
        an array or one that was made there. Others would be changed by branches that do not run,
        and once for all turns."""
        trace = active()
        if id(given) in trace.outermost.chosen_objects:
            raise noted(_chosen_changed(given))
        kept = isinstance(given, ndarray | types.ModuleType) or id(given) in trace.made_here
        if isinstance(trace, Inner) and not kept:
            raise noted(
                CaptureError(
                    f"an object of type {type(given).__name__} is changed at {user_line()}, within "
                    "a branch or a loop that arrays decide: that would happen at the capture, "
                    "whatever they decide, and never again. Keep what you compute in variables, "
                    "arrays and numbers, and change the object outside."
                )
            )
        reports.note_changed(trace, given, attribute)
        return given

    # -- functions ------------------------------------------------------------------------------

    def opened(self, function: Any) -> Any:
        """A user's function, rewritten; anything else as it is."""
        if isinstance(function, types.MethodType):
            inside = self.opened(function.__func__)
            return (
                function
                if inside is function.__func__
                else types.MethodType(inside, function.__self__)
            )
        if isinstance(function, functools.partial):
            inside = self.opened(function.func)
            if inside is function.func:
                return function
            return functools.partial(inside, *function.args, **function.keywords)
        if isinstance(function, types.FunctionType):
            if function.__code__ is _CONTEXT_MANAGER and hasattr(function, "__wrapped__"):
                return contextlib.contextmanager(self.opened(function.__wrapped__))
            return (
                self._rewritten(function)
                if active().guards.users.is_function(function)
                else function
            )
        if isinstance(function, type):
            return (
                functools.partial(self._constructed, function) if _is_built(function) else function
            )
        if isinstance(getattr(function, "__self__", None), list) and function.__name__ == "sort":
            return functools.partial(with_callbacks, function, self)
        call = getattr(type(function), "__call__", None)  # noqa: B004 - it may be the user's
        if isinstance(call, types.FunctionType) and active().guards.users.is_function(call):
            return types.MethodType(self.opened(call), function)
        return function

    def _constructed(self, kind: type, /, *given: Any, **named: Any) -> Any:
        """What `kind(...)` is, by its rewritten functions."""
        by = kind.__new__
        made = self.made((self.opened(by) if _is_users(by) else by)(kind, *given, **named))
        if isinstance(made, kind):
            filled_by = _filling(type(made))
            (self.opened(filled_by) if _is_users(filled_by) else filled_by)(made, *given, **named)
        return made

    def _rewritten(self, function: types.FunctionType) -> types.FunctionType:
        """A function, rewritten, if that can be; within a branch or a turn, that has to be."""
        try:
            return rewritten(
                function, self._lasting if inspect.isgeneratorfunction(function) else self
            )
        except Unwritable as error:
            active().outermost.as_they_are[function.__code__] = str(error)
            _left_as_it_is(function, str(error))
            return function


def _is_chosen_number(value: Any) -> bool:
    return isinstance(value, ndarray) and active().stands_for_number(value)


def _may_be_number(value: Any) -> bool:
    """Whether it is a chosen number, or what a choice has joined of a number and an array."""
    return isinstance(value, ndarray) and (
        active().stands_for_number(value) or value._storage_id in active().outermost.mixed
    )


def _chosen_changed(given: Any) -> CaptureError:
    kind_of = type(given).__name__
    return CaptureError(
        f"a {kind_of} is changed at {user_line()} that may be another one as well: which one, "
        "arrays have decided, and one of them is known by another name. Let the choice or the loop "
        f"give a {kind_of} of its own, {kind_of}(...), or change none of them behind it."
    )


def ends(items: Any) -> bool:
    """Whether one knows that going through the items comes to an end."""
    return isinstance(items, Rows | Sized) or hasattr(items, "__len__")


def noted(error: CaptureError) -> CaptureError:
    modes.refusals.note(error)
    return error


def _is_of_numpy(function: Any) -> bool:
    """Whether it is one of NumPy's functions, or `at` of one."""
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or ""
    return isinstance(owner, numpy.ufunc) or str(module).partition(".")[0] == "numpy"


def _is_users(function: Any) -> bool:
    is_function = isinstance(function, types.FunctionType)
    return is_function and active().guards.users.is_function(function)


def _is_built(kind: type) -> bool:
    """Whether a function of the user's makes or fills the objects of a class, as `type` calls it,
    and has a source: those of named tuples and dataclasses have none."""
    makers = (kind.__new__, _filling(kind))
    written = [m for m in makers if _is_users(m) and not m.__code__.co_filename.startswith("<")]
    return bool(written) and type(kind).__call__ is type.__call__


def _filling(kind: type) -> Any:
    return getattr(kind, "__init__")  # noqa: B009 - the class's, and not that of an object


def _left_as_it_is(function: types.FunctionType, why: str) -> None:
    """Refuse a function that is not rewritten, within a branch or a turn."""
    if isinstance(active(), Inner):
        raise noted(
            CaptureError(
                f"{function.__qualname__} is called at {user_line()}, within a branch or a "
                f"loop that arrays decide, and cannot be rewritten: {why}. Nobody sees what "
                "it changes. Call it outside, and hand in what it gives."
            )
        ) from None
