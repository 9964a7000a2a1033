"""Functions as users write them, made ready for a capture: `if`, `while` and `for` become calls.

What such a statement does cannot be decided while arrays have no elements. So the function's source
is taken as a syntax tree, its branches and bodies become functions inside of it, and the statement
a call of one of the methods of `statements.Flow`. These run it as Python does where it is decided
by what Python knows, and hand it to the capture where an array decides. Lines stay the user's.

First the exits go, see `exits`; what follows such a statement runs where nothing has left. Then the
statements become calls. A generator keeps its statements, and tells of what it changes.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from typing import Any
from weakref import WeakKeyDictionary

from heterosis.capture import behind_loops
from heterosis.capture.definitions import AROUND, INSIDE, Unwritable, compiled_code, definition_of
from heterosis.capture.exits import without_exits
from heterosis.capture.flow_calls import Calls, Told
from heterosis.capture.syntax import FLOW, SCOPES, placed, walk

_codes: WeakKeyDictionary[types.CodeType, types.CodeType | Unwritable] = WeakKeyDictionary()


def rewritten(function: types.FunctionType, flow: Any) -> types.FunctionType:
    """`function` with its statements as calls of methods of `flow`; raises `Unwritable`."""
    code = function.__code__
    if code not in _codes:
        try:
            _codes[code] = _rewritten_code(function)
        except Unwritable as error:
            _codes[code] = error
    found = _codes[code]
    if isinstance(found, Unwritable):
        raise found
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[FLOW] = types.CellType(flow)
    closure = tuple(cells[name] for name in found.co_freevars)
    made = types.FunctionType(
        found, function.__globals__, function.__name__, function.__defaults__, closure
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def _rewritten_code(function: types.FunctionType) -> types.CodeType:
    code = function.__code__
    definition = definition_of(function)
    if inspect.isgeneratorfunction(function):
        Told(definition, _without_declarations(definition)).run()
    else:
        behind_loops.find(definition)
        outside = _without_declarations(definition)
        without_exits(definition)
        Calls(definition, outside).run()
    return _renamed(compiled_code(definition, code), code, function.__qualname__)


def is_rewritten(function: types.FunctionType) -> bool:
    """Whether it is what `rewritten` gives."""
    return function.__code__ in _codes.values()


def _renamed(code: types.CodeType, like: types.CodeType, path: str) -> types.CodeType:
    """Code whose parts are known by the name of the function that they have been part of."""
    before = f"{AROUND}.<locals>.{INSIDE}"

    def name(one: str) -> str:
        names = one.replace(before, path, 1).split(".<locals>.")
        return ".<locals>.".join(n for n in names if not _is_part(n))

    def renamed(one: Any) -> Any:
        if isinstance(one, str) and one.startswith(f"{before}."):  # of a class
            return name(one)
        if not isinstance(one, types.CodeType):
            return one
        changes: dict[str, Any] = {"co_consts": tuple(map(renamed, one.co_consts))}
        if one.co_name == INSIDE or _is_part(one.co_name):
            changes["co_name"] = like.co_name
        if sys.version_info >= (3, 11):
            changes["co_qualname"] = name(one.co_qualname)
        return one.replace(**changes)

    found: types.CodeType = renamed(code)
    return found


def _is_part(name: str) -> bool:
    """Whether it is the name of a function that a statement, or its body, has become."""
    return name.startswith("__") and name[-1].isdigit()


def _without_declarations(definition: ast.FunctionDef) -> dict[str, Any]:
    """The variables of other functions or of the module that a function may set, with what declares
    them; where it does so itself, that is left out."""
    found: dict[str, Any] = {}
    for node in walk(definition.body):
        if isinstance(node, ast.Global | ast.Nonlocal):
            found |= dict.fromkeys(node.names, type(node))
    if found:
        _Undeclared().generic_visit(definition)
    return found


class _Undeclared(ast.NodeTransformer):
    """A function without its declarations; functions within keep theirs."""

    def visit_Global(self, node: ast.Global) -> ast.AST:
        return placed(ast.Pass(), node)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        return placed(ast.Pass(), node)

    def visit(self, node: ast.AST) -> Any:
        return node if isinstance(node, SCOPES) else super().visit(node)
