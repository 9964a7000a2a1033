"""Texts that are made of arrays while a program is captured.

There are no digits then. A text for people, which is printed, logged or the message of an error,
shows the type of an array; any other one would be baked into the program, and is refused.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import os
import sys
from collections.abc import Iterator
from types import FrameType

from heterosis.capture.reach import Users
from heterosis.np import text
from heterosis.runtime.lines import PACKAGE

# Functions, and methods, that hand a text to people and give nothing back.
_SHOWING = frozenset((
    "print", "pprint", "pp", "warn", "debug", "info", "warning", "error", "critical", "exception",
    "log",
))  # fmt: skip
# They show the variables of functions that run: a look at an array changes nothing.
_LOOKING = frozenset((
    "pdb", "bdb", "pydevd", "_pydevd_bundle", "debugpy", "ptvsd", "pudb", "IPython", "_pytest",
))  # fmt: skip
_CAPTURE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TEXTS = text.__file__
_USERS = Users(frozenset())


def is_shown() -> bool:
    """Whether the text that is asked for now is one for people: the user's nearest line says so."""
    for frame in _callers():
        file, module = frame.f_code.co_filename, str(frame.f_globals.get("__name__", ""))
        if file.startswith(_CAPTURE) or file == _TEXTS:
            continue
        if file.startswith(PACKAGE) or module.partition(".")[0] in _LOOKING:
            return True
        lines = linecache.getlines(file, frame.f_globals) if _USERS.is_module(module) else []
        if lines:
            return any(_holds(node, frame) for node in _showing("".join(lines)))
    return False


def _callers() -> Iterator[FrameType]:
    frame = sys._getframe(2)
    while frame.f_back is not None:
        yield frame
        frame = frame.f_back


def _holds(node: ast.expr | ast.stmt, frame: FrameType) -> bool:
    """Whether what a frame computes now is a part of `node`."""
    first = node.lineno, node.col_offset
    last = node.end_lineno or 0, node.end_col_offset or 0
    line, column = frame.f_lineno, None
    if sys.version_info >= (3, 11):
        at = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
        line, _, column, _ = next(at)
    if column is None:  # the line has to do
        return first[0] <= line <= last[0]
    return first <= (line, column) < last


@functools.lru_cache(maxsize=8)
def _showing(source: str) -> list[ast.expr | ast.stmt]:
    """The parts of a file that show texts to people."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return []
    calls = [n for n in nodes if isinstance(n, ast.Call) and _name(n.func) in _SHOWING]
    messages = [n.msg for n in nodes if isinstance(n, ast.Assert) and n.msg]
    return [*calls, *messages, *(n for n in nodes if isinstance(n, ast.Raise))]


def _name(function: ast.expr) -> str:
    """The last name of what is called."""
    return getattr(function, "attr", getattr(function, "id", ""))


def install() -> None:
    """Let arrays ask before they become texts."""
    text.set_shown(is_shown)
