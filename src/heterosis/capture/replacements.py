"""Functions of Python's that ask what arrays hold, or call what users have written: what is called
in their place while a program is captured."""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from heterosis import _core, np
from heterosis.capture.active import active
from heterosis.capture.control import as_truth
from heterosis.capture.inner import is_open
from heterosis.ir.traced_sizes import is_traced, value_of
from heterosis.ir.types import DEFAULT_FLOAT, is_float
from heterosis.ops.math.cast import copy
from heterosis.ops.math.elementwise import logical_and, logical_or
from heterosis.ops.math.real import ceil, floor, trunc
from heterosis.ops.record import as_users_call
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray


class Flow(Protocol):
    """What statements of rewritten functions have become."""

    def called(self, function: Any) -> Any:
        """What is called in place of a function."""

    def same(self, one: Any, other: Any) -> Any:
        """What `one is other` is."""

    def negated(self, value: Any) -> Any:
        """What `not value` is."""

    def either(self, test: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        """What `then() if test else otherwise()` is."""


class Entered:
    """A context of the user's, whose functions are captured too."""

    def __init__(self, context: Any, enter: Callable[..., Any], leave: Callable[..., Any]):
        self._context, self._enter, self._leave = context, enter, leave

    def __enter__(self) -> Any:
        return self._enter(self._context)

    def __exit__(self, *error: object) -> Any:
        return self._leave(self._context, *error)


def replaced(function: Any, flow: Flow) -> Callable[..., Any] | None:
    """What is called in place of one of Python's functions; None, if that is as it is."""
    found = _REPLACED.get(id(function))
    return None if found is None else functools.partial(found, flow)


def with_callbacks(function: Callable[..., Any], flow: Flow, *given: Any, **named: Any) -> Any:
    """`function`, which calls functions that it is given, or goes through what they give."""

    def opened(one: Any) -> Any:
        gone_through = isinstance(one, type) or hasattr(one, "__iter__")
        return flow.called(one) if callable(one) and not gone_through else one

    return function(*map(opened, given), **{name: opened(one) for name, one in named.items()})


def _extreme(
    function: Callable[..., Any],
    is_better: Callable[[Any, Any], Any],
    flow: Flow,
    *given: Any,
    **named: Any,
) -> Any:
    """What `max` and `min` are, which compare one item after the other."""
    items = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
    if named or len(items) < 2 or not any(map(is_open, items)):
        return with_callbacks(function, flow, *given, **named)
    return functools.reduce(lambda best, item: _better(flow, is_better, best, item), items)


def _better(flow: Flow, is_better: Callable[[Any, Any], Any], best: Any, item: Any) -> Any:
    return flow.either(is_better(item, best), lambda: item, lambda: best)


def _joined(join: Callable[..., Any], stops: bool, _: Flow, given: Any = (), /) -> Any:
    """What `any` and `all` are, which end with the first item whose truth is `stops`."""
    truths = []
    for one in given:
        if is_open(one):
            truths.append(as_truth(one))
        elif bool(one) == stops:
            return stops
    if not truths:
        return not stops
    return active().note_number(functools.reduce(join, truths))


def _is_instance(_: Flow, given: Any, kinds: Any, /) -> bool:
    """What `isinstance` is: an array that stands for a number is one of Python's."""
    return issubclass(number_kind(given), kinds) if _is_number(given) else isinstance(given, kinds)


def _type(_: Flow, *given: Any, **named: Any) -> Any:
    """What `type` is, of one object or of three."""
    if len(given) == 1 and (_is_number(given[0]) or is_traced(given[0])):
        return number_kind(given[0])
    return type(*given, **named)


def _identity(_: Flow, given: Any, /) -> int:
    """What `id` is."""
    if _is_number(given):
        raise modes.refusals.note(
            CaptureError(
                f"id at {user_line()}: a number that arrays have chosen is no object of Python's. "
                "Compare numbers with ==."
            )
        )
    trace = active()
    is_chosen = id(given) in trace.outermost.chosen_objects
    if is_chosen or (is_open(given) and len(trace.may_be(given)) > 1):
        raise modes.refusals.note(
            CaptureError(
                f"id at {user_line()}: which object a name stands for depends on arrays. Compare "
                "what it holds, or keep a variable that says it."
            )
        )
    return id(given)


def _attribute(_: Flow, given: Any, name: str, /, *default: Any) -> Any:
    """What `getattr` is."""
    if not _is_number(given):
        return getattr(given, name, *default)
    if default and not hasattr(number_kind(given), name):
        return default[0]
    return number_attribute(given, name)


def _has_attribute(_: Flow, given: Any, name: str, /) -> bool:
    """What `hasattr` is."""
    return hasattr(number_kind(given) if _is_number(given) else given, name)


def _is_number(given: Any) -> bool:
    """Whether it is an array that stands for a number of Python's."""
    return isinstance(given, ndarray) and active().stands_for_number(given)


def number_kind(number: Any) -> type:
    """What Python takes a number for, which may be an array that stands for one."""
    if not isinstance(number, ndarray):
        return type(value_of(number))
    if is_float(number._dtype_name):
        return float
    return bool if number._dtype_name == "bool" else int


def number_attribute(number: Any, name: str) -> Any:
    """What `number.name` is, of an array that stands for a number: no attribute of arrays."""
    kind = number_kind(number)
    if name == "__class__":
        return kind
    if not hasattr(kind, name):
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
    if name.startswith("__"):
        return getattr(number, name)
    if name in _OF_NUMBERS:
        return _OF_NUMBERS[name](number)
    raise modes.refusals.note(
        CaptureError(
            f"{kind.__name__}.{name} at {user_line()}: of a number that arrays have chosen, this "
            "is not known while a program is captured. Compute it with operators and functions of "
            "np."
        )
    )


_OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "real": lambda number: number + 0,
    "imag": lambda number: number_kind(number + 0)(0),
    "numerator": lambda number: number + 0,
    "denominator": lambda number: 1,
    "conjugate": lambda number: lambda: number + 0,
    "is_integer": lambda number: lambda: number % 1 == 0,
}


def _number(kind: type, flow: Flow, *given: Any, **named: Any) -> Any:
    """What `int`, `float` and `bool` are, of a number that arrays have chosen."""
    if len(given) != 1 or named or not _is_number(given[0]):
        return with_callbacks(kind, flow, *given, **named)
    return given[0].astype(_DTYPES[kind])


def _whole(function: Callable[..., Any], flow: Flow, number: Any, *digits: Any) -> Any:
    """What `round` is, and functions of `math` that give integers, of such a number."""
    if not _is_number(number):
        return with_callbacks(function, flow, number, *digits)
    kind = number_kind(number) if any(d is not None for d in digits) else int
    return active().note_number(_WHOLE[function](number, *digits).astype(_DTYPES[kind]))


_WHOLE: dict[Callable[..., Any], Callable[..., Any]] = {
    round: round,
    math.floor: as_users_call(floor),
    math.ceil: as_users_call(ceil),
    math.trunc: as_users_call(trunc),
}


def _power(_: Flow, base: Any, exp: Any, mod: Any = None) -> Any:
    """What `pow` is."""
    if mod is None or not any(map(_is_number, (base, exp, mod))):
        return pow(base, exp, mod)
    raise modes.refusals.note(
        CaptureError(
            f"pow at {user_line()}: three numbers, and arrays have chosen one of them; expected "
            "numbers that are known while a program is captured. Write base ** exp % mod, where 64 "
            "bits hold the power."
        )
    )


def _array(flow: Flow, given: Any, *more: Any, **named: Any) -> Any:
    """What `np.array` is, of a number that arrays have chosen."""
    if not _is_number(given):
        return np.array(given, *more, **named)
    if not more and named.get("dtype") is None:
        named = {**named, "dtype": DEFAULT_FLOAT}
    return np.array(as_users_call(copy)(given), *more, **named)


_DTYPES = {int: "int64", float: "float64", bool: "bool"}


def _replacing(functions: Sequence[Any]) -> dict[int, Callable[..., Any]]:
    return {id(one): functools.partial(with_callbacks, one) for one in functions}


_CALLING = (
    map, filter, sorted, functools.reduce, itertools.accumulate, itertools.starmap,
    itertools.takewhile, itertools.dropwhile, itertools.filterfalse, itertools.groupby,
    heapq.nlargest, heapq.nsmallest, heapq.merge,
)  # fmt: skip
_REPLACED: dict[int, Callable[..., Any]] = {
    **_replacing(_CALLING),
    id(max): functools.partial(_extreme, max, operator.gt),
    id(min): functools.partial(_extreme, min, operator.lt),
    id(any): functools.partial(_joined, as_users_call(logical_or), True),
    id(all): functools.partial(_joined, as_users_call(logical_and), False),
    id(isinstance): _is_instance,
    id(type): _type,
    id(np.array): _array,
    **{id(one): functools.partial(_whole, one) for one in _WHOLE},
    id(pow): _power,
    id(id): _identity,
    id(getattr): _attribute,
    id(hasattr): _has_attribute,
    id(operator.is_): lambda flow, one, other: flow.same(one, other),
    id(operator.is_not): lambda flow, one, other: flow.negated(flow.same(one, other)),
    **{id(kind): functools.partial(_number, kind) for kind in _DTYPES},
}
