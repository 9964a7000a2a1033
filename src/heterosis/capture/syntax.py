"""Pieces of syntax trees: small statements and expressions, and the names in larger ones."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

FLOW = "__flow__"  # the name of what the calls are methods of; classes leave such names alone
RESULT, RETURNED = "__result", "__returned"
BROKE, CONTINUED = "__broke", "__continued"
FLAGS = (
    RETURNED,
    BROKE,
    CONTINUED,
)  # how variables are called that say what happened
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.While)


# -- what is made ----------------------------------------------------------------------------------


def load(name: str) -> ast.Name:
    """The value of a variable."""
    return ast.Name(name, ast.Load())


def assign(name: str, value: ast.expr) -> ast.Assign:
    """`name = value`."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


def assign_constant(name: str, value: Any) -> ast.Assign:
    """The same for an object."""
    return assign(name, ast.Constant(value))


def arguments(names: Iterable[str]) -> ast.arguments:
    """Parameters."""
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def function(name: str, parameters: Iterable[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
    """The definition of a function."""
    made = ast.FunctionDef(name, arguments(parameters), list(body), [])
    if "type_params" in made._fields:  # from Python 3.12 on
        vars(made)["type_params"] = []
    return made


def returning(value: ast.expr) -> ast.Lambda:
    """`lambda: value`."""
    return ast.Lambda(arguments(()), value)


def of_flow(name: str) -> ast.Attribute:
    """An attribute of what the calls are methods of."""
    return ast.Attribute(load(FLOW), name, ast.Load())


def call(method: str, *given: ast.expr) -> ast.Call:
    """A call of one of the methods."""
    return ast.Call(of_flow(method), list(given), [])


def negated(value: ast.expr) -> ast.expr:
    """`not value`."""
    return ast.UnaryOp(ast.Not(), value)


def any_of(names: Sequence[str]) -> ast.expr:
    """Whether one of these variables is true."""
    found: list[ast.expr] = [load(name) for name in names]
    return found[0] if len(found) == 1 else ast.BoolOp(ast.Or(), found)


def placed(made: _Node, like: ast.AST) -> _Node:
    """What is made, in the first line of `like`: the last one of a name is what Python takes for
    the line of a call."""
    ast.copy_location(made, like)
    if hasattr(made, "lineno"):
        vars(made).update(end_lineno=made.lineno, end_col_offset=vars(made)["col_offset"])
    return made


def located(made: Sequence[Any], like: ast.AST) -> list[Any]:
    """The same for several."""
    return [placed(one, like) for one in made]


# -- what is found ---------------------------------------------------------------------------------


def walk(statements: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """All nodes but those of functions and classes within."""
    for statement in statements:
        yield statement
        if not isinstance(statement, SCOPES):
            yield from walk(ast.iter_child_nodes(statement))


def of_this_loop(statements: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Nodes that are in the body of no loop, function or class within."""
    for statement in statements:
        yield statement
        if isinstance(statement, LOOPS):
            yield from of_this_loop(statement.orelse)
        elif not isinstance(statement, SCOPES):
            yield from of_this_loop(ast.iter_child_nodes(statement))


def assigned(statements: Iterable[ast.AST]) -> list[str]:
    """The variables that statements set, in order."""
    return list(dict.fromkeys(_names_in(statements)))


def _names_in(statements: Iterable[ast.AST]) -> Iterable[str]:
    for node in statements:
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name).split(".")[0] for alias in names)
            case ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
        if isinstance(node, COMPREHENSIONS):
            named = (n.target for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            yield from _names_in(named)
        elif not isinstance(node, SCOPES):
            yield from _names_in(ast.iter_child_nodes(node))


def declared(statements: Iterable[ast.AST]) -> list[str]:
    """The variables of other functions, and of the module, that statements may set."""
    found = (n for n in walk(statements) if isinstance(n, ast.Global | ast.Nonlocal))
    return list(dict.fromkeys(name for node in found for name in node.names))


def names_values(tree: ast.AST) -> bool:
    """Whether there is a `:=`."""
    return any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree))
