"""Calls as source text, and what becomes of them."""

from __future__ import annotations

import random
import re
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from heterosis import npx
from heterosis.runtime.errors import HeterosisError
from tests.bad_calls.targets import Target
from tests.bad_calls.values import BAD

FINE, OURS, PYTHONS, FOREIGN = "fine", "ours", "python's", "foreign"

# Python's own words at the user's line for a wrong number of arguments.
_COUNT = re.compile(
    r"takes .*argument|missing \d+ required|unexpected keyword|multiple values|positional"
    r"|expected (at least )?\d+ argument"
)


@dataclass(frozen=True)
class Outcome:
    """What a call led to: its kind, and for a foreign error where it was raised and its text."""

    kind: str
    error: str = ""
    place: str = ""


def bad_call(target: Target, chance: random.Random) -> str:
    """A call in which one argument or more is of a kind, range or number that does not fit."""
    given = _good_arguments(target, chance)
    count = 1 if chance.random() < 0.7 else chance.randint(1, max(len(given), 1))
    for position in chance.sample(range(len(given)), min(count, len(given))):
        given[position] = (given[position][0], chance.choice(BAD))
    how = chance.random()
    if how < 0.02:
        given.append(("unknown_keyword", chance.choice(BAD)))
    elif how < 0.04 and given:
        given.pop(chance.randrange(len(given)))
    return f"{target.text}({_written(given)})"


def _good_arguments(target: Target, chance: random.Random) -> list[tuple[str | None, str]]:
    """Names, None for positional ones, and texts; those that may be left out now and then are."""
    texts: Sequence[str] = [argument.good for argument in target.arguments]
    if target.examples and chance.random() < 0.8:
        texts = chance.choice(target.examples)
    given: list[tuple[str | None, str]] = []
    by_name = False
    for argument, text in zip(target.arguments, texts, strict=True):
        if argument.starred and argument.name != "unknown_keyword":
            given += [(None, text)] * chance.randint(0, 2) if not by_name else []
        elif not argument.required and chance.random() < 0.6:
            by_name = True
        elif not argument.starred or chance.random() < 0.05:
            given.append((argument.name if by_name or argument.starred else None, text))
    return given


def _written(given: Sequence[tuple[str | None, str]]) -> str:
    positional = [text for name, text in given if name is None]
    return ", ".join([*positional, *(f"{name}={text}" for name, text in given if name)])


def outcome(text: str, names: dict[str, Any]) -> Outcome:
    """Make the call, and wait for what it queued."""
    try:
        code = compile(text, "<call>", "eval")
    except SyntaxError:  # a keyword twice
        return Outcome(PYTHONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = eval(code, dict(names))
            if hasattr(result, "asnumpy"):
                result.asnumpy()
            npx.waitall()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is judged
            return judged(error)
    return Outcome(FINE)


def judged(error: BaseException) -> Outcome:
    """What kind of error it is. The operating system's words on files are its own."""
    if isinstance(error, HeterosisError):
        return Outcome(OURS, type(error).__name__)
    if isinstance(error, OSError) and not isinstance(error, TimeoutError):
        return Outcome(PYTHONS)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    at_call = len(frames) <= 1 and type(error) is TypeError and _COUNT.search(str(error))
    if at_call:
        return Outcome(PYTHONS)
    own = [f for f in frames if "/heterosis/" in f.filename] or frames
    last = own[-1]
    place = f"{last.filename.rpartition('/heterosis/')[2]}:{last.lineno} {last.name}"
    return Outcome(FOREIGN, f"{type(error).__name__}: {str(error)[:200]}", place)
