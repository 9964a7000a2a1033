"""Attributes of operators as texts, and back."""

from __future__ import annotations

import ast
from typing import Any

from heterosis.runtime.errors import FormatError

_LONGEST = 100_000
_WORDS = {"True": True, "true": True, "False": False, "false": False, "None": None}


def encoded(value: Any) -> str:
    """The text that MXNet reads: lists as tuples, everything else as Python writes it."""
    if isinstance(value, list | tuple):
        items = ", ".join(encoded(item) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    return str(value)


def decoded(text: str) -> Any:
    """The value of a text: True, False, None, a number, a tuple, or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    if text[:1] in ("(", "["):
        return _tuple(text)
    return text


def _tuple(text: str) -> tuple[Any, ...]:
    try:
        if len(text) > _LONGEST:
            raise ValueError(f"{len(text)} characters")
        found = ast.literal_eval(text)
        if not isinstance(found, list | tuple):
            found = (found,)
    except (MemoryError, RecursionError, SyntaxError, ValueError) as error:
        raise FormatError(f"{text[:60]!r} is no list of numbers: {error}") from None
    return _as_tuple(found)


def _as_tuple(found: Any) -> Any:
    return tuple(map(_as_tuple, found)) if isinstance(found, list | tuple) else found
