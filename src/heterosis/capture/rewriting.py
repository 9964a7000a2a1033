"""Functions as users write them, made ready for a capture: `if`, `while` and `for` become calls.

What such a statement does cannot be decided while arrays have no elements. So the function's source
is taken as a syntax tree, its branches and bodies become functions inside of it, and the statement
a call of one of the methods of `statements.Flow`. These run it as Python does where it is decided
by what Python knows, and hand it to the capture where an array decides. Lines stay the user's.

First the exits go, see `exits`; what follows such a statement runs where nothing has left. Then the
statements become calls.
"""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import itertools
import linecache
import sys
import textwrap
import tokenize
import types
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from heterosis.capture import behind_loops
from heterosis.capture.exits import leaves, without_exits
from heterosis.capture.syntax import (
    FLOW,
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
    walk,
)
from heterosis.capture.syntax import (
    function as defined,
)
from heterosis.runtime.errors import HeterosisError

_INSIDE, _AROUND = "__inside", "__around"
_NOT_HERE = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith)
# What they see are the variables of the function around them, which are elsewhere then.
_LOOKING = frozenset({"eval", "exec", "locals", "vars", "dir"})


class Unwritable(HeterosisError):
    """The function's source is not known, or has what cannot be rewritten."""


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
    definition = _definition(function)
    behind_loops.find(definition)
    outside = _without_declarations(definition)
    without_exits(definition)
    _Calls(definition, outside).run()
    return _renamed(_compiled(definition, code), code, function.__qualname__)


def _compiled(definition: ast.FunctionDef, like: types.CodeType) -> types.CodeType:
    """The code of a definition, with variables around it as `like` has them."""
    outer = defined(_AROUND, (*like.co_freevars, FLOW), [placed(definition, definition)])
    module = ast.Module([placed(outer, definition)], [])
    flags = like.co_flags & _FUTURE
    whole = compile(
        ast.fix_missing_locations(module), like.co_filename, "exec", flags, dont_inherit=True
    )
    return _inner(_inner(whole, _AROUND), _INSIDE)


_FUTURE = __future__.annotations.compiler_flag


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _renamed(code: types.CodeType, like: types.CodeType, path: str) -> types.CodeType:
    """Code whose parts are known by the name of the function that they have been part of."""
    before = f"{_AROUND}.<locals>.{_INSIDE}"

    def renamed(one: Any) -> Any:
        if not isinstance(one, types.CodeType):
            return one
        changes: dict[str, Any] = {"co_consts": tuple(map(renamed, one.co_consts))}
        if one.co_name == _INSIDE or _is_part(one.co_name):
            changes["co_name"] = like.co_name
        if sys.version_info >= (3, 11):
            names = one.co_qualname.replace(before, path, 1).split(".<locals>.")
            changes["co_qualname"] = ".<locals>.".join(n for n in names if not _is_part(n))
        return one.replace(**changes)

    found: types.CodeType = renamed(code)
    return found


def _is_part(name: str) -> bool:
    """Whether it is the name of a function that a statement, or its body, has become."""
    return name.startswith("__") and name[-1].isdigit()


def _definition(function: types.FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, with the lines of its file; raises `Unwritable` if it has what
    cannot be rewritten, or is not what the function was made of: a file may change. pytest rewrites
    functions too, where they assert: those are found by their names."""
    code = function.__code__
    owner = _class_of(code, function.__qualname__)
    found = [_prepared(node, owner) for node in _named(function)]
    asserts = any(name.startswith("@") for name in (*code.co_names, *code.co_varnames))
    same = found[:1] if asserts else [d for d in found if _are_same(_compiled(d, code), code)]
    if not same:
        raise Unwritable("its source is not what runs: the file has changed since it was read")
    _check(same[0])
    return same[0]


def _named(function: types.FunctionType) -> list[Any]:
    """The definitions that a function may come from."""
    name = function.__code__.co_name
    kind = ast.Lambda if name == "<lambda>" else ast.FunctionDef
    nodes = ast.walk(_source(function))
    return [n for n in nodes if isinstance(n, kind) and getattr(n, "name", name) == name]


def _source(function: types.FunctionType) -> ast.AST:
    """The lines of a function, or of its file, if they are no statements by themselves. `inspect`
    would look through all modules for them."""
    file, first = function.__code__.co_filename, function.__code__.co_firstlineno
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    try:
        try:
            tree = ast.parse(textwrap.dedent("".join(inspect.getblock(lines[first - 1 :]))))
        except (SyntaxError, tokenize.TokenError):
            return ast.parse("".join(lines))
    except SyntaxError:
        tree = ast.Module([], [])
    if not tree.body:
        raise Unwritable("its source cannot be read")
    return ast.increment_lineno(tree, first - 1)


def _prepared(node: Any, owner: str) -> ast.FunctionDef:
    """A definition that can be compiled by itself."""
    if isinstance(node, ast.Lambda):
        given = node.args
        node = placed(defined(_INSIDE, (), [ast.Return(node.body)]), node)
        node.args = given
    node.decorator_list, node.returns = [], None
    node.name = _INSIDE  # not its own: there, that may be the name of a global variable
    _Mangled(owner).visit(node)
    return node  # type: ignore[no-any-return]


def _check(definition: ast.FunctionDef) -> None:
    """Raise if the function has what cannot be rewritten."""
    for node in walk(definition.body):
        if isinstance(node, _NOT_HERE):
            raise Unwritable("it is a generator or a coroutine")
        if isinstance(node, ast.Name) and node.id in _LOOKING:
            raise Unwritable(f"it looks at its own variables, with {node.id}")
        if isinstance(node, ast.While) and node.orelse and names_values(node.test):
            raise Unwritable("it has a while with := and else")
        if leaves(getattr(node, "finalbody", ())):
            raise Unwritable("it leaves a finally")


def _are_same(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether two codes do the same. How the attributes of a module are called is another question:
    it depends on what is imported around the function."""
    return bool(_described(one) == _described(other))


def _described(code: types.CodeType) -> Any:
    steps = [
        (_ALIKE.get(step.opname, step.opname), _operand(step))
        for step in dis.get_instructions(code)
        if step.opname not in _OF_CALLS
    ]
    return code.co_varnames, code.co_freevars, steps


def _operand(step: dis.Instruction) -> Any:
    if isinstance(step.argval, types.CodeType):
        return _described(step.argval)
    return None if "JUMP" in step.opname or step.opname == "FOR_ITER" else repr(step.argval)


_OF_CALLS = frozenset({"CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG"})
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "CALL_METHOD": "CALL", "CALL_FUNCTION": "CALL"}


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


def _class_of(code: types.CodeType, path: str) -> str:
    """The innermost class that code stands in."""
    *outer, _ = getattr(code, "co_qualname", path).split(".")
    followed = zip(outer, [*outer[1:], "."][: len(outer)], strict=True)
    classes = [name for name, after in followed if after != "<locals>"]
    return next((name for name in reversed(classes) if name != "<locals>"), "")


class _Mangled(ast.NodeTransformer):
    """Names that begin with two underscores, as the compiler changes them within a class."""

    def __init__(self, owner: str):
        self._prefix = f"_{owner.lstrip('_')}" if owner.strip("_") else ""

    def _name(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__")
        return f"{self._prefix}{name}" if private and self._prefix else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._name(node.attr)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._name(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._name(node.arg)
        return node


# -- calls -----------------------------------------------------------------------------------------


class _Calls(ast.NodeTransformer):
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
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        return node  # it is rewritten when it is called

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

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
        return located([ast.Expr(call("rebound", ast.Constant(name))) for name in names], statement)

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
        return self._with_blocks(node)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        return self._with_blocks(node)

    def visit_TryStar(self, node: Any) -> ast.AST:
        return self._with_blocks(node)

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

    # -- what is changed ----------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._changed(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._changed(node)

    def _changed(self, node: Any) -> ast.AST:
        """Who sets or deletes a part of an object tells which object it is."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = placed(call("changed", node.value), node.value)
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
            return placed(ast.IfExp(test, body, orelse), node)
        return placed(call("either", test, returning(body), returning(orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if any(map(names_values, node.values[1:])):  # they would set variables of lambdas
            return self.generic_visit(node)
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
            return node
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


def _chained(
    left: ast.expr, operators: Sequence[ast.cmpop], operands: Sequence[ast.expr]
) -> ast.expr:
    """`left < a < b`, where b is computed if the first comparison holds, and a once."""
    first, *others = operators
    right, *more = operands
    if not others:
        return ast.Compare(left, [first], [right])
    pair = ast.Compare(load("__left"), [first], [load("__right")])
    behind = _chained(load("__right"), others, more)
    both = call("all_of", returning(pair), returning(behind))
    return ast.Call(ast.Lambda(arguments(("__left", "__right")), both), [left, right], [])


_COMPOUND = (ast.If, ast.While, ast.Try, ast.Match)
