"""How operators get their names in `F`, and the arguments that all of them take."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from heterosis import _core
from heterosis.runtime.arguments import checked, described
from heterosis.runtime.errors import ArgumentTypeError

OPERATORS: dict[str, Callable[..., Any]] = {}


def operator(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function names in `F`; it takes `out`, an array to write to, and `name`, unused."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        titles = names or (function.__name__.rstrip("_"),)
        function.__name__ = function.__qualname__ = titles[0]  # as messages call it
        compute = checked(function)

        @functools.wraps(function)
        def run(*arguments: Any, name: str | None = None, out: Any = None, **keywords: Any) -> Any:
            result = compute(*arguments, **keywords)
            return result if out is None else _written(out, result)

        made = checked(run)
        OPERATORS.update(dict.fromkeys(titles, made))
        return made

    return register


def _written(out: Any, result: Any) -> Any:
    """`out`, with the result in it."""
    if not isinstance(out, _core.ndarray):
        raise ArgumentTypeError(f"out is {described(out)}; expected an array to write to.")
    out[...] = result
    return out


def axes_of(axis: Any, ndim: int, exclude: bool = False) -> tuple[int, ...] | None:
    """The axes that an operator's `axis` means: None and () mean all; `exclude` the others."""
    if axis is None or axis == ():
        return None if not exclude else ()
    chosen = [a % ndim for a in (axis if isinstance(axis, Iterable) else (axis,))]
    if exclude:
        chosen = [a for a in range(ndim) if a not in chosen]
    return tuple(chosen)


def as_sequence(given: Any) -> tuple[Any, ...]:
    """A sequence, for which a number alone stands too."""
    return tuple(given) if isinstance(given, Iterable) else (given,)


def one_or_list(parts: Iterable[Any]) -> Any:
    """An operator with one result gives it alone."""
    parts = list(parts)
    return parts[0] if len(parts) == 1 else parts
