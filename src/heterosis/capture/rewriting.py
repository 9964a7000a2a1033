"""Functions as users write them, made ready for a capture: `if`, `while` and `for` become calls.

What such a statement does cannot be decided while arrays have no elements. So the function's source
is taken as a syntax tree, its branches and bodies become functions inside of it, and the statement
a call of one of the methods of `statements.Flow`. These run it as Python does where it is decided
by what Python knows, and hand it to the capture where an array decides. Lines stay the user's.

First the exits go: `return`, `break` and `continue` become variables that say what happened, and
what follows such a statement runs where nothing has. Then the statements become calls.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
import types
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from heterosis.runtime.errors import HeterosisError

FLOW = "__flow"  # the name of what the calls are methods of
RESULT, RETURNED = "__result", "__returned"
_INSIDE, _AROUND = "__inside", "__around"
_BROKE, _CONTINUED = "__broke", "__continued"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.While)
_NOT_HERE = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef,
             ast.NamedExpr)  # fmt: skip
_UNKNOWN = tuple(getattr(ast, name) for name in ("Match", "TryStar") if hasattr(ast, name))


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
    if isinstance(definition, ast.Lambda):
        given = definition.args
        definition = _function(_INSIDE, (), [ast.Return(definition.body)])
        definition.args = given
    if any(isinstance(node, _NOT_HERE) for node in ast.walk(definition)):
        raise Unwritable(
            f"{function.__qualname__}: generators, coroutines and := are left as they are."
        )
    definition.decorator_list, definition.returns = [], None
    definition.name = _INSIDE  # not its own: there, that may be the name of a global variable
    _check(definition)
    _Mangled(function).visit(definition)
    _without_exits(definition)
    _Calls(definition).run()
    outer = _function(_AROUND, (*code.co_freevars, FLOW), [definition])
    module = ast.Module([outer], [])
    _take_lines(module, definition)
    whole = compile(ast.fix_missing_locations(module), code.co_filename, "exec", dont_inherit=True)
    return _inner(_inner(whole, _AROUND), _INSIDE).replace(co_name=code.co_name)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


def _definition(function: types.FunctionType) -> Any:
    """The syntax tree of a function, with the lines of its file."""
    try:
        lines, first = inspect.getsourcelines(function.__code__)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        raise Unwritable(f"{function.__qualname__}: its source cannot be read.") from None
    ast.increment_lineno(tree, max(first, 1) - 1)
    name = function.__code__.co_name
    kind = ast.Lambda if name == "<lambda>" else ast.FunctionDef
    found = [n for n in ast.walk(tree) if isinstance(n, kind) and getattr(n, "name", name) == name]
    if kind is ast.FunctionDef:
        found = found[:1]
    if len(found) != 1:
        raise Unwritable(f"{function.__qualname__}: one of several functions in its line.")
    return found[0]


def _check(definition: ast.FunctionDef) -> None:
    for node in ast.walk(definition):
        if isinstance(node, _LOOPS) and node.orelse:
            raise Unwritable(f"{definition.name}: a loop with else is left as it is.")
        if isinstance(node, _UNKNOWN):
            raise Unwritable(f"{definition.name}: match, and except*, are left as they are.")
        if isinstance(node, ast.Global | ast.Nonlocal):
            raise Unwritable(
                f"{definition.name}: a function that declares {node.names[0]} is left as it is."
            )


def _take_lines(tree: ast.AST, like: ast.AST) -> None:
    for node in ast.walk(tree):
        if "lineno" in node._attributes and not hasattr(node, "lineno"):
            ast.copy_location(node, like)


class _Mangled(ast.NodeTransformer):
    """Names that begin with two underscores, as the compiler changes them within a class."""

    def __init__(self, function: types.FunctionType):
        owner = ["", *function.__qualname__.split(".")][-2]
        self._prefix = "" if owner in ("", "<locals>") else f"_{owner.lstrip('_')}"

    def _name(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__")
        return f"{self._prefix}{name}" if private and self._prefix else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._name(node.attr)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._name(node.id)
        return node


# -- small pieces of syntax ------------------------------------------------------------------------


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _set(name: str, value: Any) -> ast.Assign:
    return _assign(name, ast.Constant(value))


def _arguments(names: Iterable[str]) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _function(name: str, parameters: Iterable[str], body: Sequence[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, _arguments(parameters), list(body), [])
    if "type_params" in made._fields:  # from Python 3.12 on
        vars(made)["type_params"] = []
    return made


def _lambda(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(_arguments(()), value)


def _call(method: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(_name(FLOW), method, ast.Load()), list(arguments), [])


def _not(value: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), value)


def _any_of(names: Sequence[str]) -> ast.expr:
    """Whether one of these variables is true."""
    found: list[ast.expr] = [_name(name) for name in names]
    return found[0] if len(found) == 1 else ast.BoolOp(ast.Or(), found)


def _walk(statements: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """All nodes but those of functions and classes within."""
    for statement in statements:
        yield statement
        if not isinstance(statement, _SCOPES):
            yield from _walk(ast.iter_child_nodes(statement))


# -- exits -----------------------------------------------------------------------------------------


def _without_exits(definition: ast.FunctionDef) -> None:
    """Let the function return in its last line alone, and no loop be left before its end."""
    exits, body = _Exits(), list(definition.body)
    if not _always_leaves(body):
        body.append(ast.copy_location(ast.Return(None), body[-1]))
    nothing = ast.Attribute(_name(FLOW), "NOTHING", ast.Load())
    first = [_assign(RESULT, nothing), _set(RETURNED, value=False)]
    definition.body = [*first, *exits.block(body, None), ast.Return(_name(RESULT))]


class _Exits:
    """Statements in the making, and how many loops there were."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def block(self, statements: Sequence[ast.stmt], loop: int | None) -> list[ast.stmt]:
        """Statements without exits; `loop` is the number of the loop that they stand in."""
        done: list[ast.stmt] = []
        for i, statement in enumerate(statements):
            rest = statements[i + 1 :]
            if isinstance(statement, ast.Return | ast.Break | ast.Continue):
                return [*done, *self._exit(statement, loop)]
            if isinstance(statement, ast.If) and _leaves(statement):
                return [*done, *self._choice(statement, rest, loop)]
            flags = _flags_of(statement, loop)
            done.append(self._within(statement, loop))
            if flags and rest:
                return [*done, self._guarded(flags, self.block(rest, loop))]
        return done

    def _exit(self, statement: ast.stmt, loop: int | None) -> list[ast.stmt]:
        if isinstance(statement, ast.Return):
            value = statement.value or ast.Constant(None)
            made: list[ast.stmt] = [_assign(RESULT, value), _set(RETURNED, value=True)]
        else:
            name = _BROKE if isinstance(statement, ast.Break) else _CONTINUED
            made = [_set(f"{name}{loop}", value=True)]
        return [ast.copy_location(one, statement) for one in made]

    def _choice(
        self, statement: ast.If, rest: Sequence[ast.stmt], loop: int | None
    ) -> list[ast.stmt]:
        """A choice that may leave: what follows goes into the branch that does not."""
        body, orelse = list(statement.body), list(statement.orelse)
        flags = _flags_of(statement, loop)
        if _always_leaves(body):
            orelse, rest = [*orelse, *rest], []
        elif _always_leaves(orelse):
            body, rest = [*body, *rest], []
        made = ast.If(
            statement.test, self.block(body, loop) or [ast.Pass()], self.block(orelse, loop)
        )
        found: list[ast.stmt] = [ast.copy_location(made, statement)]
        if rest:
            found.append(self._guarded(flags, self.block(rest, loop)))
        return found

    def _guarded(self, flags: Sequence[str], rest: list[ast.stmt]) -> ast.stmt:
        """What follows a statement that may have left, as far as `flags` say."""
        if not rest:
            return ast.Pass()
        return ast.copy_location(ast.If(_not(_any_of(flags)), rest, []), rest[0])

    def _within(self, statement: ast.stmt, loop: int | None) -> ast.stmt:
        if isinstance(statement, _SCOPES):
            return statement
        if isinstance(statement, _LOOPS):
            return self._loop(statement)
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(statement, name, None)
            if isinstance(inner, list) and inner:
                setattr(statement, name, self.block(inner, loop))
        for handler in getattr(statement, "handlers", ()):
            handler.body = self.block(handler.body, loop)
        return statement

    def _loop(self, statement: Any) -> ast.stmt:
        number = next(self._numbers)
        kinds = {type(n) for n in _of_this_loop(statement.body)}
        returns = any(isinstance(n, ast.Return) for n in _walk(statement.body))
        body = self.block(statement.body, number)
        if ast.Continue in kinds:
            body.insert(0, _set(f"{_CONTINUED}{number}", value=False))
        leaving = [f"{_BROKE}{number}"] * (ast.Break in kinds) + [RETURNED] * returns
        statement.body = body
        statement.leaving = leaving  # what ends it, besides its test
        statement.begins = [f"{_BROKE}{number}"] * (ast.Break in kinds)
        return statement  # type: ignore[no-any-return]


def _of_this_loop(statements: Iterable[ast.AST]) -> Iterable[ast.AST]:
    """Nodes that are in no loop, function or class within."""
    for statement in statements:
        yield statement
        if not isinstance(statement, (*_SCOPES, *_LOOPS)):
            yield from _of_this_loop(ast.iter_child_nodes(statement))


def _flags_of(statement: ast.stmt, loop: int | None) -> list[str]:
    """The variables that say whether a statement has left what it stands in."""
    found = {type(node) for node in _of_this_loop([statement])}
    flags = [f"{_BROKE}{loop}"] * (ast.Break in found) + [f"{_CONTINUED}{loop}"] * (
        ast.Continue in found
    )
    returns = any(isinstance(node, ast.Return) for node in _walk([statement]))
    return flags + [RETURNED] * returns


def _leaves(statement: ast.stmt) -> bool:
    inside = any(isinstance(n, ast.Break | ast.Continue) for n in _of_this_loop([statement]))
    return inside or any(isinstance(n, ast.Return) for n in _walk([statement]))


def _always_leaves(statements: Sequence[ast.stmt]) -> bool:
    if not statements:
        return False
    last = statements[-1]
    if isinstance(last, ast.If):
        return _always_leaves(last.body) and _always_leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Break | ast.Continue | ast.Raise)


# -- calls -----------------------------------------------------------------------------------------


class _Calls(ast.NodeTransformer):
    """Statements and expressions that may be decided by arrays, as calls."""

    def __init__(self, definition: ast.FunctionDef):
        self._definition = definition
        self._numbers = itertools.count()

    def run(self) -> None:
        definition = self._definition
        names = _assigned(definition.body)
        definition.body = self._block(definition.body)
        # So that the compiler takes them for variables of this function, without a value.
        unset: list[ast.stmt] = [_set(name, None) for name in names]
        if unset:
            definition.body.insert(0, ast.If(ast.Constant(value=False), unset, []))

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in statements:
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

    # -- statements ---------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> list[ast.stmt]:
        number, names = next(self._numbers), _assigned([*node.body, *node.orelse])
        test = self.visit(node.test)
        functions = [
            self._part(f"__then{number}", (), node.body, names),
            self._part(f"__otherwise{number}", (), node.orelse, names),
        ]
        call = _call("choose", test, *self._state(number, names, functions))
        return _located([*functions, ast.Expr(call)], node)

    def visit_While(self, node: Any) -> list[ast.stmt]:
        number, names = next(self._numbers), _assigned([*node.body])
        names = list(dict.fromkeys([*names, *node.leaving]))
        test = node.test
        if node.leaving:
            test = ast.BoolOp(ast.And(), [*(_not(_name(n)) for n in node.leaving), test])
        functions = [
            _function(f"__test{number}", (), [ast.Return(self.visit(test))]),
            self._part(f"__body{number}", (), node.body, names),
        ]
        call = _call("repeat", *self._state(number, names, functions))
        begins: list[ast.stmt] = [_set(name, value=False) for name in node.begins]
        return _located([*begins, *functions, ast.Expr(call)], node)

    def visit_For(self, node: Any) -> list[ast.stmt]:
        number = next(self._numbers)
        names = _assigned([ast.Assign([node.target], ast.Constant(None)), *node.body])
        names = list(dict.fromkeys([*names, *node.leaving]))
        rows = self.visit(node.iter)
        body = node.body
        left = _any_of(node.leaving) if node.leaving else ast.Constant(value=False)
        target = [ast.Assign([node.target], _name("__item"))]
        functions = [
            self._part(f"__target{number}", ("__item",), target, names, visit=False),
            self._part(f"__body{number}", (), body, names),
            _function(f"__left{number}", (), [ast.Return(self.visit(left))]),
        ]
        call = _call("each", rows, *self._state(number, names, functions))
        begins: list[ast.stmt] = [_set(name, value=False) for name in node.begins]
        return _located([*begins, *functions, ast.Expr(call)], node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        message = _lambda(self.visit(node.msg) if node.msg else ast.Constant(None))
        return ast.copy_location(ast.Expr(_call("check", self.visit(node.test), message)), node)

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        self.generic_visit(node)
        return [ast.copy_location(ast.Expr(_call("raises")), node), node]

    def _part(
        self, name: str, parameters: Sequence[str], body: Sequence[ast.stmt], names: Sequence[str],
        *, visit: bool = True,
    ) -> ast.FunctionDef:  # fmt: skip
        """Statements as a function that sets the variables of the one around it."""
        inside = self._block(body) if visit else list(body)
        declared: list[ast.stmt] = [ast.Nonlocal(list(names))] if names else []
        return _function(name, parameters, [*declared, *(inside or [ast.Pass()])])

    def _state(
        self, number: int, names: Sequence[str], functions: list[ast.FunctionDef]
    ) -> list[ast.expr]:
        """What a call is given: the functions, and those that read and set the variables."""
        parts: list[ast.expr] = [_name(function.name) for function in functions]
        read: list[ast.expr] = [_call("value", _lambda(_name(name))) for name in names]
        functions.append(_function(f"__get{number}", (), [ast.Return(ast.Tuple(read, ast.Load()))]))
        write: list[ast.stmt] = [ast.Nonlocal(list(names))] if names else []
        for i, name in enumerate(names):
            item = ast.Subscript(_name("__values"), ast.Constant(i), ast.Load())
            unset = ast.Compare(
                _name(name), [ast.Is()], [ast.Attribute(_name(FLOW), "UNSET", ast.Load())]
            )
            write += [
                _assign(name, item),
                ast.If(unset, [ast.Delete([ast.Name(name, ast.Del())])], []),
            ]
        functions.append(_function(f"__set{number}", ("__values",), write or [ast.Pass()]))
        texts = ast.Tuple([ast.Constant(name) for name in names], ast.Load())
        get, put = _name(f"__get{number}"), _name(f"__set{number}")
        return [*parts, _call("variables", get, put, texts)]

    # -- what is changed ----------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._changed(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        return self._changed(node)

    def _changed(self, node: Any) -> ast.AST:
        """Who sets or deletes a part of an object tells which object it is."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            node.value = ast.copy_location(_call("changed", node.value), node.value)
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

    def _made(self, node: Any) -> ast.AST:
        """What a branch has made itself, it may change."""
        self.generic_visit(node)
        return ast.copy_location(_call("made", node), node)

    # -- expressions --------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test, body, orelse = (self.visit(n) for n in (node.test, node.body, node.orelse))
        return ast.copy_location(_call("either", test, _lambda(body), _lambda(orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        method = "all_of" if isinstance(node.op, ast.And) else "any_of"
        values = [_lambda(self.visit(value)) for value in node.values]
        return ast.copy_location(_call(method, *values), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            return ast.copy_location(_call("negated", node.operand), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        names = [f"__operand{i}" for i in range(len(node.ops) + 1)]
        pairs = [
            _lambda(ast.Compare(_name(a), [op], [_name(b)]))
            for op, a, b in zip(node.ops, names, names[1:], strict=False)
        ]
        whole = ast.Lambda(_arguments(names), _call("all_of", *pairs))
        return ast.copy_location(ast.Call(whole, [node.left, *node.comparators], []), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "super" and not node.args:  # the compiler knows what it means by where it stands
            first = (*self._definition.args.posonlyargs, *self._definition.args.args)[0]
            node.args = [_name("__class__"), _name(first.arg)]
        if name in ("super", "locals", "vars", "dir"):
            return node
        node.func = ast.copy_location(_call("called", node.func), node.func)
        return node


def _located(made: Sequence[Any], like: ast.AST) -> list[Any]:
    return [ast.copy_location(one, like) for one in made]


def _assigned(statements: Iterable[ast.AST]) -> list[str]:
    """The variables that statements set, in order."""
    found: dict[str, None] = {}
    for node in _names_in(statements):
        found[node] = None
    return list(found)


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
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if not isinstance(node, _SCOPES):
            yield from _names_in(ast.iter_child_nodes(node))
