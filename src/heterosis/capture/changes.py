"""Why a call needs a program of its own: in what it differs from the call before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from heterosis.capture import trees
from heterosis.capture.signatures import by_name, leaves, parameters_of
from heterosis.capture.turns import another, kind

Call = tuple[tuple[Any, ...], dict[str, Any]]

_MODES = ("training mode", "recording", "threads", "device")


def of_modes(before: Sequence[Any], now: Sequence[Any]) -> str | None:
    """The first mode that is another one, if there is any."""
    for name, one, other in zip(_MODES, before, now, strict=False):
        if one != other:
            return f"{name} ({one} before, {other} now)"
    return None


def of_arguments(function: Callable[..., Any], before: Call, now: Call) -> str | None:
    """The first argument that is of another kind, or another value, if there is any."""
    parameters = parameters_of(function)
    old, new = (by_name(parameters, *call) for call in (before, now))
    known = dict(_leaves(old))
    for name, leaf in _leaves(new):
        if name not in known:
            return f"{name} is {kind(leaf)}, and was not among the arguments before"
        if trees.description(known[name]) != trees.description(leaf):
            return f"{name} ({kind(known[name])} before, {another(known[name], leaf)} now)"
        del known[name]
    if known:
        return f"{next(iter(known))} is no longer among the arguments"
    for name in new:  # containers of other classes, or none
        if name in old and type(old[name]) is not type(new[name]):
            return f"{name} ({kind(old[name])} before, {kind(new[name])} now)"
    return None


def _leaves(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is no container among the arguments, by the names of parameters."""
    return (pair for name, tree in given.items() for pair in leaves(tree, name))
