"""Functions without `return`, `break` and `continue`: variables say what has happened, and what
follows such a statement runs where nothing has."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from typing import Any

from heterosis.capture.syntax import (
    BROKE,
    CONTINUED,
    LOOPS,
    RESULT,
    RETURNED,
    SCOPES,
    any_of,
    assign,
    assign_constant,
    load,
    located,
    names_values,
    negated,
    of_flow,
    of_this_loop,
    placed,
    walk,
)

_EXITS = (ast.Return, ast.Break, ast.Continue)


def without_exits(definition: ast.FunctionDef) -> None:
    """Let the function return in its last line alone, and no loop be left before its end."""
    exits, body = _Exits(), list(definition.body)
    if not _always_leaves(body):
        body.append(placed(ast.Return(None), body[-1]))
    first = [assign(RESULT, of_flow("NOTHING")), assign_constant(RETURNED, value=False)]
    definition.body = [*first, *exits.block(body, None), ast.Return(load(RESULT))]


def leaves(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements may leave what they stand in."""
    inside = any(isinstance(n, ast.Break | ast.Continue) for n in of_this_loop(statements))
    return inside or any(isinstance(n, ast.Return) for n in walk(statements))


class _Exits:
    """Statements in the making, and how many loops there were."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def block(self, statements: Sequence[ast.stmt], loop: int | None) -> list[ast.stmt]:
        """Statements without exits; `loop` is the number of the loop that they stand in."""
        done: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            rest = list(statements[i + 1 :])
            if isinstance(statement, _EXITS):
                return [*done, *self._exit(statement, loop)]
            if isinstance(statement, ast.If) and leaves([statement]):
                return [*done, *self._choice(statement, rest, loop)]
            if isinstance(statement, LOOPS) and statement.orelse:
                return [*done, *self._with_else(statement, rest, loop)]
            flags = _flags_of([statement], loop)
            done.append(self._within(statement, loop))
            if flags and rest:
                return [*done, self._guarded(flags, self.block(rest, loop))]
        return done

    def _exit(self, statement: ast.stmt, loop: int | None) -> list[ast.stmt]:
        if isinstance(statement, ast.Return):
            value = statement.value or ast.Constant(None)
            made = [assign(RESULT, value), assign_constant(RETURNED, value=True)]
        else:
            name = BROKE if isinstance(statement, ast.Break) else CONTINUED
            made = [assign_constant(f"{name}{loop}", value=True)]
        return located(made, statement)

    def _choice(
        self, statement: ast.If, rest: Sequence[ast.stmt], loop: int | None
    ) -> list[ast.stmt]:
        """A choice that may leave: what follows goes into the branch that does not."""
        body, orelse = list(statement.body), list(statement.orelse)
        flags = _flags_of([statement], loop)
        if _always_leaves(body):
            orelse, rest = [*orelse, *rest], []
        elif _always_leaves(orelse):
            body, rest = [*body, *rest], []
        made = ast.If(
            statement.test, self.block(body, loop) or [ast.Pass()], self.block(orelse, loop)
        )
        found: list[ast.stmt] = [placed(made, statement)]
        if rest:
            found.append(self._guarded(flags, self.block(rest, loop)))
        return found

    def _guarded(self, flags: Sequence[str], rest: list[ast.stmt]) -> ast.stmt:
        """What follows a statement that may have left, as far as `flags` say."""
        if not rest:
            return ast.Pass()
        return placed(ast.If(negated(any_of(flags)), rest, []), rest[0])

    def _within(self, statement: Any, loop: int | None) -> Any:
        if isinstance(statement, SCOPES):
            return statement
        if isinstance(statement, LOOPS):
            return self._loop(statement)
        flags = _flags_of(getattr(statement, "body", ()), loop)
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list) and inner:
                setattr(statement, name, self.block(inner, loop))
        if isinstance(statement, ast.Try) and statement.orelse and flags:
            statement.orelse = [self._guarded(flags, statement.orelse)]
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            part.body = self.block(part.body, loop)
        return statement

    def _with_else(self, statement: Any, rest: list[ast.stmt], loop: int | None) -> list[ast.stmt]:
        """A loop with `else`, which runs where nothing has left the loop."""
        behind, statement.orelse = statement.orelse, []
        returns = _flags_of([statement], loop)
        made = self._loop(statement)
        if made.begins:  # what says that it was broken
            behind = [placed(ast.If(negated(any_of(made.begins)), behind, []), made)]
        found = self.block([*behind, *rest], loop)
        return [made, self._guarded(returns, found)] if returns else [made, *found]

    def _loop(self, statement: Any) -> Any:
        if isinstance(statement, ast.While) and names_values(statement.test):
            _ask_within(statement)
        number = next(self._numbers)
        kinds = {type(n) for n in of_this_loop(statement.body)}
        returns = any(isinstance(n, ast.Return) for n in walk(statement.body))
        body = self.block(statement.body, number)
        if ast.Continue in kinds:
            body.insert(0, assign_constant(f"{CONTINUED}{number}", value=False))
        leaving = [f"{BROKE}{number}"] * (ast.Break in kinds) + [RETURNED] * returns
        statement.body = body
        statement.leaving = leaving  # what ends it, besides its test
        statement.begins = [f"{BROKE}{number}"] * (ast.Break in kinds)
        return statement


def _ask_within(loop: ast.While) -> None:
    """Let a loop whose test sets variables ask at the beginning of its body."""
    leave = ast.If(negated(loop.test), [placed(ast.Break(), loop.test)], [])
    loop.test = placed(ast.Constant(value=True), loop.test)
    loop.body.insert(0, placed(leave, loop.test))


def _flags_of(statements: Sequence[ast.stmt], loop: int | None) -> list[str]:
    """The variables that say whether statements have left what they stand in."""
    found = {type(node) for node in of_this_loop(statements)}
    flags = [f"{BROKE}{loop}"] * (ast.Break in found) + [f"{CONTINUED}{loop}"] * (
        ast.Continue in found
    )
    returns = any(isinstance(node, ast.Return) for node in walk(statements))
    return flags + [RETURNED] * returns


def _always_leaves(statements: Sequence[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_leaves(last.body) and _always_leaves(last.orelse)
    if isinstance(last, ast.While):
        is_endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
        return is_endless and not any(isinstance(n, ast.Break) for n in of_this_loop(last.body))
    return isinstance(last, (*_EXITS, ast.Raise))
