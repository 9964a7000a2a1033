"""What loops over rows leave behind: the variables that are used there, and the lists that turns
append to.

A turn runs once while a loop is captured, whatever the number of rows. So a list gets the rows of
what all turns have appended when the loop is over, which is right if nobody looks at the list
before: it is a new one, that only this function knows, and is named there for appending alone.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from heterosis.capture.syntax import LOOPS, declared, walk

Place = tuple[int, int]


def find(definition: Any) -> None:
    """Note with each `for` the names that are used outside of it, `used`, and those of the lists
    that turns append to, `appended`; and with each statement that does so, `appends`."""
    loops = [node for node in walk(definition.body) if isinstance(node, ast.For)]
    if not loops:
        return
    function = _Function(definition)
    for loop in loops:
        vars(loop)["used"] = function.used_outside(loop)
        vars(loop)["appended"] = function.appended(loop)


class _Function:
    """Where the variables of a function are named."""

    def __init__(self, definition: Any):
        self._definition = definition
        self._uses = _uses(definition)
        self._enclosing = dict(_enclosing(definition.body, (definition,)))
        self._new = dict(self._new_lists())
        self._appends = {
            id(statement.value.func.value): statement for statement in _appends(definition.body)
        }
        self._declared = declared(definition.body)
        self._names: dict[str, list[ast.Name]] = {}
        for node in ast.walk(definition):
            if isinstance(node, ast.Name):
                self._names.setdefault(node.id, []).append(node)

    def used_outside(self, loop: ast.For) -> set[str]:
        """The variables that are used outside of a loop."""
        is_repeated = len(self._enclosing[id(loop)]) > 1  # what it uses may be from the time before
        inside: Counter[str] = Counter() if is_repeated else _uses(loop)
        return {name for name, uses in self._uses.items() if uses > inside[name]}

    def appended(self, loop: ast.For) -> list[str]:
        """Lists that nobody can look at while the loop turns, which appends to them."""
        found = []
        for statement in _appends(loop.body):
            name = statement.value.func.value.id
            if name not in found and self._is_filled_only(name, loop):
                found.append(name)
            if name in found:
                vars(statement)["appends"] = True
        return found

    def _is_filled_only(self, name: str, loop: ast.For) -> bool:
        made = [node for node in self._names[name] if not isinstance(node.ctx, ast.Load)]
        places = {id(self._new.get(id(node))) for node in made}
        if not made or len(places) > 1 or not all(id(node) in self._new for node in made):
            return False
        if name in self._declared:
            return False
        around = [*self._enclosing[id(loop)], loop]
        where = self._new[id(made[0])]
        if where not in around or any(_begin(node) > _begin(loop) for node in made):
            return False
        outermost = around[around.index(where) + 1]  # of the loops that the list is filled in
        return all(
            id(node) in self._appends or node in made or _begin(node) > _end(outermost)
            for node in self._names[name]
        )

    def _new_lists(self) -> Iterator[tuple[int, Any]]:
        """The names that get a list which is made there, with the function or loop that each is a
        statement of."""
        loops = (node for node in walk(self._definition.body) if isinstance(node, LOOPS))
        for where in (self._definition, *loops):
            for statement in where.body:
                if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                    for target, value in _pairs(statement.targets[0], statement.value):
                        if isinstance(target, ast.Name) and isinstance(value, ast.List):
                            yield id(target), where


def _pairs(target: ast.expr, value: ast.expr) -> Iterable[tuple[ast.expr, ast.expr]]:
    """What is assigned to what, as far as one can see."""
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple):
        return [(target, value)]
    starred = any(isinstance(one, ast.Starred) for one in (*target.elts, *value.elts))
    return [] if starred else zip(target.elts, value.elts, strict=False)


def _enclosing(
    statements: Iterable[ast.AST], around: Sequence[ast.AST]
) -> Iterator[tuple[int, Sequence[ast.AST]]]:
    """The loops, each with the function and the loops that it stands in."""
    for node in statements:
        if isinstance(node, LOOPS):
            yield id(node), around
            yield from _enclosing(ast.iter_child_nodes(node), (*around, node))
        else:
            yield from _enclosing(ast.iter_child_nodes(node), around)


def _uses(tree: ast.AST) -> Counter[str]:
    """How often variables are read, or deleted."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            found[node.id] += 1
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] += 1
    return found


def _appends(statements: Iterable[ast.AST]) -> Iterator[Any]:
    return filter(_is_append, walk(statements))


def _is_append(node: Any) -> bool:
    """Whether it is a statement `name.append(value)`."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(), "append"), [_], [])):
            return True
    return False


def _begin(node: Any) -> Place:
    return node.lineno, node.col_offset


def _end(node: Any) -> Place:
    return node.end_lineno, node.end_col_offset
