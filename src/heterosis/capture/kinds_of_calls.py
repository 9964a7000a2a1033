"""How calls differ that no program serves both of: what is told of a function that is captured
again and again."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

_MODES = ("autograd.is_training()", "autograd.is_recording()", "the number of threads")


def difference(before: Hashable, now: Hashable) -> str:
    """What differs first between the keys of two calls: a mode, or an argument."""
    one: Any = before
    other: Any = now
    for name, was, is_now in zip(_MODES, one[1:], other[1:], strict=True):
        if was != is_now:
            return f"{name} ({was} before, {is_now} now)"
    had, has = dict(_arguments(one[0])), dict(_arguments(other[0]))
    for name in had | has:
        if name not in has:
            return f"{name} (not given now)"
        if name not in had:
            return f"{name} (not given before)"
        if had[name] != has[name]:
            texts = _text(had[name]), _text(has[name])
            told = f"{texts[0]} before, {texts[1]} now"
            return f"{name} ({told if texts[0] != texts[1] else f'another, {texts[0]}'})"
    return "arguments of another kind"


def _arguments(description: Any) -> Iterator[tuple[str, Any]]:
    """The arguments of a call, as `trees.description` tells of them."""
    _, (positional, named), _ = description
    for i, one in enumerate(positional[1]):
        yield f"argument {i}", one
    for (_, name), one in named[1]:
        yield f"argument {name}", one


def _text(description: Any) -> str:
    """The description of an argument, for people."""
    match description:
        case (str() as dtype, tuple() as shape, _):
            return f"{dtype}[{', '.join(map(str, shape))}]"
        case (type() as kind, tuple(), _):
            return f"a {kind.__name__}"
        case (type() as kind, value):
            return str(value) if kind is float else repr(value)
    return f"a {type(getattr(description, 'held', description)).__name__}"
