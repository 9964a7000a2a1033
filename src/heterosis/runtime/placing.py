"""Where arrays are made: on the context that is named, or beside others.

What is here asks for the current context and is given arrays, so its arguments are not checked as
those of public functions, which make what they make where their first array is.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from heterosis import _core
from heterosis.runtime.context import check_context, context_of_device

P = ParamSpec("P")
R = TypeVar("R")

_HERE = nullcontext()  # where one is


def beside(array: _core.ndarray) -> Any:
    """For `with`: what is made inside is on the context of `array`."""
    same = array._device == _core.current_device()
    return _HERE if same else context_of_device(array._device)


def in_main_memory() -> Any:
    """For `with`: what is made inside has an address, whatever the current context is."""
    is_there = _core.current_device() < _core.first_remote
    return _HERE if is_there else context_of_device(0)


def from_device(array: _core.ndarray) -> _core.ndarray:
    """The array, or a copy in main memory of one that is on a device with memory of its own."""
    is_there = array._device < _core.first_remote
    return array if is_there else array.as_in_context(context_of_device(0))


def is_elsewhere(arguments: Sequence[Any]) -> bool:
    """Whether the first of them is an array on another context than the current one."""
    first = arguments[0] if arguments else None
    return isinstance(first, _core.ndarray) and first._device != _core.current_device()


def placed(function: Callable[P, R]) -> Callable[P, R]:
    """A function that gives an array, on the context that its `ctx`, or `device`, names."""
    names = list(inspect.signature(function).parameters)
    name = "ctx" if "ctx" in names else "device"
    at = names.index(name)

    @wraps(function)
    def call(*arguments: P.args, **keywords: P.kwargs) -> R:
        ctx: Any = arguments[at] if len(arguments) > at else keywords.get(name)
        if ctx is None:
            return function(*arguments, **keywords)
        with check_context(ctx):
            made: Any = function(*arguments, **keywords)
        if isinstance(made, _core.ndarray):  # what follows from arrays is where they are
            made = made.as_in_context(ctx)
        return made  # type: ignore[no-any-return]

    return call
