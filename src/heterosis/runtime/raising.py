"""Exceptions that programs of users raise when they run: as text, and made of it again.

What a program fails with is a text, in compiled code and in files as well. One of these carries an
exception behind the message: the name of its class, and arguments.
"""

from __future__ import annotations

import builtins
import json
from typing import Any
from weakref import WeakValueDictionary

from heterosis.runtime.errors import ArgumentError

_MARK = "\x1f"  # around what describes the exception
_SIGN = "_raised_by_a_program"
_PLAIN = str | int | float | bool | None

# Classes of users' exceptions that this process has come upon. A text names no other ones, but for
# those of Python: it may come from a file.
_classes: WeakValueDictionary[str, type[Exception]] = WeakValueDictionary()


def told(message: str, error: Exception | type[Exception]) -> str:
    """A message that carries an exception, or one of a class."""
    kind = error if isinstance(error, type) else type(error)
    given = () if isinstance(error, type) else error.args
    name = f"{kind.__module__}:{kind.__qualname__}"
    _classes[name] = kind
    arguments = [one if isinstance(one, _PLAIN) else str(one) for one in given]
    carried = json.dumps([name, arguments]).replace("{}", "{\\u007d")  # no gap for a number
    return f"{message}{_MARK}{carried}{_MARK}"


def is_told(message: str) -> bool:
    """Whether a message carries an exception."""
    return _MARK in message


def exception(message: str) -> Exception:
    """The exception that a message carries, with the message as a note."""
    before, carried, behind = message.split(_MARK)
    text = before + behind
    try:
        error = _made(*json.loads(carried))
    except Exception:  # noqa: BLE001 - a class of users may do anything when it is made
        return ArgumentError(text)
    vars(error)[_SIGN] = True
    if hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note(text)
    return error


def is_raised(error: BaseException) -> bool:
    """Whether a program has raised an exception, as its user wrote."""
    return _SIGN in vars(error)


def _made(name: str, arguments: list[Any]) -> Exception:
    kind = _class(name)
    try:
        return kind(*arguments)
    except TypeError:  # its constructor takes other arguments than it keeps
        error = kind.__new__(kind)
        error.args = tuple(arguments)
        return error


def _class(name: str) -> type[Exception]:
    module, _, path = name.partition(":")
    found: Any = _classes.get(name)
    if found is None and module == "builtins":
        found = getattr(builtins, path)
    if not (isinstance(found, type) and issubclass(found, Exception)):
        raise ArgumentError(f"{name} is no class of exceptions that is known here.")
    return found
