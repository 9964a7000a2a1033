"""Statements and expressions that arrays may decide, as calls of the methods of `statements.Flow`.

Branches and bodies become functions inside of the function that they stand in.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from heterosis.capture.syntax import (
    SCOPES,
    any_of,
    arguments,
    assign,
    assign_constant,
    assigned,
    call,
    load,
    located,
    names_values,
    negated,
    of_flow,
    placed,
    returning,
)
from heterosis.capture.syntax import (
    function as defined,
)


class Calls(ast.NodeTransformer):
    """Statements and expressions that may be decided by arrays, as calls.

    `outside` are variables of other functions, or of the module, that the function may set.
    """

    def __init__(self, definition: ast.FunctionDef, outside: dict[str, Any]):
        self._definition, self._outside = definition, outside
        self._numbers = itertools.count()

    def run(self) -> None:
        definition = self._definition
        names = self._own(definition.body)
        definition.body = self._block(definition.body)
        # So that the compiler takes them for variables of this function, without a value.
        unset: list[ast.stmt] = [assign_constant(name, None) for name in names]
        if unset:
            definition.body.insert(0, ast.If(ast.Constant(value=False), unset, []))
        definition.body[:0] = self._declarations(self._outside)

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in statements:
            made += self._told_of(statement)
            found = self.visit(statement)
            made += found if isinstance(found, list) else [found]
        return made

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """It is rewritten when it is called, but for what runs where it is defined."""
        self._decorators(node)
        self._defaults(node.args)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._defaults(node.args)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Functions within do not see the variables of a class: its statements stay."""
        self._decorators(node)
        told = Told(self._definition, {})
        node.bases = [told.visit(one) for one in node.bases]
        node.keywords = [told.visit(one) for one in node.keywords]
        node.body = [told.visit(one) for one in node.body]
        return node

    def _decorators(self, node: ast.FunctionDef | ast.ClassDef) -> None:
        visited = map(self.visit, node.decorator_list)
        node.decorator_list = [placed(call("called", one), one) for one in visited]

    def _defaults(self, given: ast.arguments) -> None:
        given.defaults = [self.visit(one) for one in given.defaults]
        given.kw_defaults = [one and self.visit(one) for one in given.kw_defaults]

    # -- variables ----------------------------------------------------------------------------

    def _own(self, statements: Sequence[ast.AST]) -> list[str]:
        """The function's own variables that statements set."""
        return [name for name in assigned(statements) if name not in self._outside]

    def _declarations(self, names: Iterable[str]) -> list[ast.stmt]:
        kinds = {name: self._outside.get(name, ast.Nonlocal) for name in names}
        return [kind([name]) for name, kind in kinds.items()]

    def _told_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """What tells that a statement is about to set variables of others."""
        if not self._outside or isinstance(statement, (*SCOPES, *_COMPOUND)):
            return []
        names = [name for name in assigned([statement]) if name in self._outside]
        return located(
            [
                ast.Expr(call("rebound", ast.Constant(name), returning(load(name))))
                for name in names
            ],
            statement,
        )

    # -- statements ---------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        number, names = next(self._numbers), self._own([*node.body, *node.orelse])
        test = self.visit(node.test)
        functions = [
            self._part(f"__then{number}", (), node.body),
            self._part(f"__otherwise{number}", (), node.orelse),
        ]
        made = call("choose", test, *self._state(number, names, functions))
        return located([*functions, ast.Expr(made)], node)

    def visit_While(self, node: Any) -> list[ast.stmt]:
        number, names = next(self._numbers), self._own(node.body)
        names = list(dict.fromkeys([*names, *node.leaving]))
        test = node.test
        if node.leaving:
            test = ast.BoolOp(ast.And(), [*(negated(load(n)) for n in node.leaving), test])
        functions = [
            defined(f"__test{number}", (), [ast.Return(self.visit(test))]),
            self._part(f"__body{number}", (), node.body),
        ]
        made = call("repeat", *self._state(number, names, functions))
        begins: list[ast.stmt] = [assign_constant(name, value=False) for name in node.begins]
        return located([*begins, *functions, ast.Expr(made)], node)

    def visit_For(self, node: Any) -> list[ast.stmt]:
        number = next(self._numbers)
        target: ast.stmt = ast.Assign([node.target], load("__item"))
        names = list(dict.fromkeys([*self._own([target, *node.body]), *node.leaving]))
        left = any_of(node.leaving) if node.leaving else ast.Constant(value=False)
        rows = self.visit(node.iter)
        functions = [
            self._part(f"__target{number}", ("__item",), located([target], node)),
            self._part(f"__body{number}", (), node.body),
            defined(f"__left{number}", (), [ast.Return(self.visit(left))]),
        ]
        texts: list[ast.expr] = [ast.Constant(name) for name in names if name in node.used]
        used = ast.Tuple(texts, ast.Load())
        filled = ast.Tuple([load(name) for name in node.appended], ast.Load())
        made = call("each", rows, *self._state(number, names, functions), used, filled)
        begins: list[ast.stmt] = [assign_constant(name, value=False) for name in node.begins]
        return located([*begins, *functions, ast.Expr(made)], node)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        node.subject = placed(call("matched", node.subject), node.subject)
        return self._with_blocks(node)

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.body = self._block(node.body)
        node.guard = node.guard and self.visit(node.guard)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        node.items = [self.visit(item) for item in node.items]
        for item in node.items:
            item.context_expr = placed(call("entered", item.context_expr), item.context_expr)
        return self._with_blocks(node)

    def visit_Try(self, node: Any) -> ast.AST:
        if node.handlers:
            everything: list[ast.expr] = [load("BaseException")]
            kinds = [h.type or everything[0] for h in node.handlers]
            catches = returning(ast.Tuple(copy.deepcopy(kinds), ast.Load()))
            self._with_blocks(node)
            context = ast.withitem(call("trying", catches))
            node.body = located([ast.With([context], node.body)], node)
            return node  # type: ignore[no-any-return]
        return self._with_blocks(node)

    def visit_TryStar(self, node: Any) -> ast.AST:
        return self.visit_Try(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.type = node.type and self.visit(node.type)
        node.body = self._block(node.body)
        return node

    def _with_blocks(self, node: Any) -> ast.AST:
        for name in ("body", "orelse", "finalbody"):
            if getattr(node, name, None):
                setattr(node, name, self._block(getattr(node, name)))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.visit(part)
        if isinstance(node, ast.Match):
            node.subject = self.visit(node.subject)
        return node  # type: ignore[no-any-return]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """A variable of another function cannot have an annotation, which nobody reads here."""
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        made: ast.stmt = ast.Pass()
        if node.value is not None:
            made = ast.Assign([node.target], self.visit(node.value))
        return placed(made, node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if hasattr(node, "appends"):
            appended: Any = node.value
            value = self.visit(appended.args[0])
            node.value = placed(call("append", appended.func.value, value), node.value)
            return node
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        if not __debug__:
            return placed(ast.Pass(), node)
        message = returning(self.visit(node.msg) if node.msg else of_flow("NOTHING"))
        return placed(ast.Expr(call("check", self.visit(node.test), message)), node)

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        self.generic_visit(node)
        error = returning(node.exc or of_flow("NOTHING"))
        return [placed(ast.Expr(call("raises", error)), node), node]

    def _part(
        self, name: str, parameters: Sequence[str], body: Sequence[ast.stmt]
    ) -> ast.FunctionDef:
        """Statements as a function that sets the variables of the one around it."""
        names = assigned(body)
        inside = self._block(body)
        return defined(name, parameters, [*self._declarations(names), *(inside or [ast.Pass()])])

    def _state(
        self, number: int, names: Sequence[str], functions: list[ast.FunctionDef]
    ) -> list[ast.expr]:
        """What a call is given: the functions, and those that read and set the variables."""
        parts: list[ast.expr] = [load(function.name) for function in functions]
        read: list[ast.expr] = [call("value", returning(load(name))) for name in names]
        functions.append(defined(f"__get{number}", (), [ast.Return(ast.Tuple(read, ast.Load()))]))
        write: list[ast.stmt] = [ast.Nonlocal(list(names))] if names else []
        for i, name in enumerate(names):
            item = ast.Subscript(load("__values"), ast.Constant(i), ast.Load())
            unset = ast.Compare(load(name), [ast.Is()], [of_flow("UNSET")])
            write += [
                assign(name, item),
                ast.If(unset, [ast.Delete([ast.Name(name, ast.Del())])], []),
            ]
        functions.append(defined(f"__set{number}", ("__values",), write or [ast.Pass()]))
        texts = ast.Tuple([ast.Constant(name) for name in names], ast.Load())
        get, put = load(f"__get{number}"), load(f"__set{number}")
        return [*parts, call("variables", get, put, texts)]

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name):
            return node
        method = ast.Constant(_IN_PLACE[type(node.op)])
        tells = ast.Expr(call("augmented", load(node.target.id), method))
        return [placed(tells, node), node]

    # -- what is changed ----------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self._changed(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        return placed(call("attribute", node.value, ast.Constant(node.attr)), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self._changed(node)
        sliced = any(isinstance(part, ast.Slice | ast.Starred) for part in ast.walk(node.slice))
        if not isinstance(node.ctx, ast.Load) or sliced:
            return node
        return placed(call("item", node.value, node.slice), node)

    def _changed(self, node: Any) -> ast.AST:
        """Who sets or deletes a part of an object tells which object it is."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            name = [ast.Constant(node.attr)] if isinstance(node, ast.Attribute) else []
            node.value = placed(call("changed", node.value, *name), node.value)
        return node  # type: ignore[no-any-return]

    def visit_List(self, node: ast.List) -> ast.AST:
        return self._made(node) if isinstance(node.ctx, ast.Load) else self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        return self._made(node)

    def visit_Set(self, node: ast.Set) -> ast.AST:
        return self._made(node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._made(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return self._made(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self._made(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._made(node)

    def _made(self, node: Any) -> ast.AST:
        """What a branch has made itself, it may change."""
        self.generic_visit(node)
        return placed(call("made", node), node)

    # -- expressions --------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        parts = (node.test, node.body, node.orelse)
        test, body, orelse = (self.visit(part) for part in parts)
        if names_values(node):  # it would become a variable of the lambda
            return placed(ast.IfExp(call("decided", test), body, orelse), node)
        return placed(call("either", test, returning(body), returning(orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if any(map(names_values, node.values[1:])):  # they would set variables of lambdas
            self.generic_visit(node)
            *deciding, last = node.values
            node.values = [*(placed(call("decided", one), one) for one in deciding), last]
            return node
        method = "all_of" if isinstance(node.op, ast.And) else "any_of"
        first, *others = map(self.visit, node.values)
        values = map(returning, (load("__first"), *others))
        whole = ast.Lambda(arguments(["__first"]), call(method, *values))
        return placed(ast.Call(whole, [first], []), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return placed(call("negated", node.operand), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        chained = len(node.ops) > 1 and not names_values(node)
        self.generic_visit(node)
        if not chained:
            return _identity(node) if _is_identity(node) else node
        return placed(_chained(node.left, node.ops, node.comparators), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "super" and not node.args:  # the compiler knows what it means by where it stands
            first = (*self._definition.args.posonlyargs, *self._definition.args.args)[0]
            node.args = [load("__class__"), load(first.arg)]
        if name == "super":
            return node
        node.func = placed(call("called", node.func), node.func)
        return node


class Told(Calls):
    """What changes objects, and calls of what may: the statements of generators and classes, and
    what decides them, are left as they are."""

    def _with_parts(self, node: Any) -> ast.AST:
        for name in ("test", "target", "iter"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        return self._with_blocks(node)

    def visit(self, node: Any) -> Any:
        """A node of any kind."""
        if isinstance(node, _WITH_PARTS):
            return self._with_parts(node)
        return self.generic_visit(node) if isinstance(node, _LEFT) else super().visit(node)

    def visit_With(self, node: ast.With) -> ast.AST:
        node.items = [self.visit(item) for item in node.items]
        return self._with_blocks(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Classes read annotations."""
        node.value = node.value and self.visit(node.value)
        node.target = self.visit(node.target)
        return node


def _identity(node: ast.Compare) -> ast.expr:
    """`a is b`, which arrays may decide; not so for None."""
    operands = [node.left, *node.comparators]
    if any(isinstance(one, ast.Constant) and one.value is None for one in operands):
        return node
    same = placed(call("same", *operands), node)
    negative = isinstance(node.ops[0], ast.IsNot)
    return placed(call("negated", same), node) if negative else same


def _is_identity(node: ast.Compare) -> bool:
    """Whether it is one comparison, of that kind."""
    return len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot)


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """`left < right`, or another comparison."""
    node = placed(ast.Compare(left, [operator], [right]), left)
    return _identity(node) if _is_identity(node) else node


def _chained(
    left: ast.expr, operators: Sequence[ast.cmpop], operands: Sequence[ast.expr]
) -> ast.expr:
    """`left < a < b`, where b is computed if the first comparison holds, and a once."""
    first, *others = operators
    right, *more = operands
    if not others:
        return _compared(left, first, right)
    pair = _compared(load("__left"), first, load("__right"))
    behind = _chained(load("__right"), others, more)
    both = call("all_of", returning(pair), returning(behind))
    return ast.Call(ast.Lambda(arguments(("__left", "__right")), both), [left, right], [])


_IN_PLACE: dict[type[ast.operator], str] = {
    ast.Add: "__iadd__", ast.Sub: "__isub__", ast.Mult: "__imul__", ast.Div: "__itruediv__",
    ast.FloorDiv: "__ifloordiv__", ast.Mod: "__imod__", ast.Pow: "__ipow__",
    ast.MatMult: "__imatmul__", ast.LShift: "__ilshift__", ast.RShift: "__irshift__",
    ast.BitAnd: "__iand__", ast.BitOr: "__ior__", ast.BitXor: "__ixor__",
}  # fmt: skip
_WITH_PARTS = (ast.If, ast.While, ast.For, ast.Try, ast.Match)
_LEFT = (ast.IfExp, ast.BoolOp, ast.UnaryOp, ast.Compare, ast.Assert, ast.Raise, ast.Expr)
_COMPOUND = (ast.If, ast.While, ast.Try, ast.Match)
