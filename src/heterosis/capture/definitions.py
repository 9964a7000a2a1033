"""The definitions that functions come from: their source as a syntax tree, with the lines of the
file."""

from __future__ import annotations
import __future__

import ast
import dis
import inspect
import linecache
import textwrap
import tokenize
import types
from typing import Any

from heterosis.capture.exits import leaves
from heterosis.capture.syntax import FLOW, names_values, placed, walk
from heterosis.capture.syntax import function as defined
from heterosis.runtime.errors import HeterosisError

INSIDE, AROUND = "__inside", "__around"
_NOT_HERE = (ast.Await, ast.AsyncFor, ast.AsyncWith)
# What they see are the variables of the function around them, which are elsewhere then.
_LOOKING = frozenset({"eval", "exec", "locals", "vars", "dir"})
_LOOKING_AT = frozenset({"vars", "dir"})  # an object, if they are given one


class Unwritable(HeterosisError):
    """The function's source is not known, or has what cannot be rewritten."""


def definition_of(function: types.FunctionType) -> ast.FunctionDef:
    """The syntax tree of a function, with the lines of its file; raises `Unwritable` if it has what
    cannot be rewritten, or is not what the function was made of: a file may change. pytest rewrites
    functions too, where they assert: those are found by their names."""
    code = function.__code__
    owner = _class_of(code, function.__qualname__)
    found = [_prepared(node, owner) for node in _named(function)]
    asserts = any(name.startswith("@") for name in (*code.co_names, *code.co_varnames))
    same = found[:1] if asserts else [d for d in found if _are_same(compiled_code(d, code), code)]
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
            block = inspect.getblock(lines[first - 1 :])
            tree = _indented(ast.parse(textwrap.dedent("".join(block))), _margin(block))
        except (SyntaxError, tokenize.TokenError):
            return ast.parse("".join(lines))
    except SyntaxError:
        tree = ast.Module([], [])
    if not tree.body:
        raise Unwritable("its source cannot be read")
    return ast.increment_lineno(tree, first - 1)


def _margin(lines: list[str]) -> int:
    """How far the first line stands from the left."""
    return len(lines[0]) - len(lines[0].lstrip()) if lines else 0


def _indented(tree: ast.Module, margin: int) -> ast.Module:
    """A tree with the columns that it has in its file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg | ast.keyword | ast.alias):
            node.col_offset += margin
            node.end_col_offset = (node.end_col_offset or 0) + margin
    return tree


def _prepared(node: Any, owner: str) -> ast.FunctionDef:
    """A definition that can be compiled by itself."""
    if isinstance(node, ast.Lambda):
        given = node.args
        node = placed(defined(INSIDE, (), [ast.Return(node.body)]), node)
        node.args = given
    node.decorator_list, node.returns = [], None
    node.name = INSIDE  # not its own: there, that may be the name of a global variable
    _Mangled(owner).visit(node)
    return node  # type: ignore[no-any-return]


def _check(definition: ast.FunctionDef) -> None:
    """Raise if the function has what cannot be rewritten."""
    nodes = list(walk(definition.body))
    elsewhere = {id(vars(node).get("func")) for node in nodes if _looks_at_object(node)}
    for node in nodes:
        if isinstance(node, _NOT_HERE):
            raise Unwritable("it is a coroutine")
        if isinstance(node, ast.Name) and node.id in _LOOKING and id(node) not in elsewhere:
            raise Unwritable(f"it looks at its own variables, with {node.id}")
        if isinstance(node, ast.While) and node.orelse and names_values(node.test):
            raise Unwritable("it has a while with := and else")
        if leaves(getattr(node, "finalbody", ())):
            raise Unwritable("it leaves a finally")


def _looks_at_object(node: ast.AST) -> bool:
    """Whether it is a call of `vars` or `dir` for an object."""
    called = node.func if isinstance(node, ast.Call) and node.args else None
    return isinstance(called, ast.Name) and called.id in _LOOKING_AT


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
    if isinstance(step.argval, str):  # maybe the name of a class, with all that it stands in
        return repr(step.argval.rpartition(".<locals>.")[2])
    return None if "JUMP" in step.opname or step.opname == "FOR_ITER" else repr(step.argval)


_OF_CALLS = frozenset({"CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG"})
_ALIKE = {"LOAD_METHOD": "LOAD_ATTR", "CALL_METHOD": "CALL", "CALL_FUNCTION": "CALL"}


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


# -- code ------------------------------------------------------------------------------------------


def compiled_code(definition: ast.FunctionDef, like: types.CodeType) -> types.CodeType:
    """The code of a definition, with variables around it as `like` has them."""
    outer = defined(AROUND, (*like.co_freevars, FLOW), [placed(definition, definition)])
    module = ast.Module([placed(outer, definition)], [])
    flags = like.co_flags & _FUTURE
    whole = compile(
        ast.fix_missing_locations(module), like.co_filename, "exec", flags, dont_inherit=True
    )
    return _inner(_inner(whole, AROUND), INSIDE)


_FUTURE = __future__.annotations.compiler_flag


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)
