"""Writes what editors and type checkers read of names that are made while a program runs.

`python docs/make_stubs.py [--check]`

The operations of `np`, `npx`, `np.linalg` and `npx.image`, the methods of arrays, and MXNet's
operators in `nd` and `sym` are tables, which no editor can look into. The files in
src/heterosis/_stubs say what is in them: signatures and docstrings, from the records. With --check,
nothing is written, and the exit status says whether the files are what the tables say.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any

import numpy

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src" / "heterosis" / "_stubs"
_WIDTH = 100
_MARK = """# Made by docs/make_stubs.py: change the record of an operation, and run it again.
# mypy: allow-any-generics
"""
_ARRAYS = {"Value": "ndarray", "_core.ndarray": "ndarray", "np.ndarray": "ndarray"}
_CONTAINERS = {"Callable", "Iterable", "Iterator", "Mapping", "Sequence"}
_EXTRAS = "*, out: ndarray | None = None"
_EXTRAS_OF_ELEMENTS = f"{_EXTRAS}, where: ArrayLike = True, dtype: DTypeLike | None = None"

_COMBINING = f'''"""Operations that have `at`, as NumPy's ufuncs."""

{_MARK}
from collections.abc import Callable
from heterosis._core import ndarray
from typing import Any, Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R", covariant=True)

class combining(Generic[_P, _R]):
    def __init__(self, function: Callable[_P, _R]) -> None: ...
    def __call__(self, *arguments: _P.args, **keywords: _P.kwargs) -> _R: ...
    def at(self, a: ndarray, indices: Any, b: Any) -> None:
        """`a[indices]` combined with `b`, in place, once for each index: of equal ones all count.
        """
'''


class Names:
    """The annotations of one file, and what it has to import for them."""

    def __init__(self) -> None:
        self._imports: dict[str, set[str]] = {}

    def imported(self, module: str, name: str) -> str:
        self._imports.setdefault(module, set()).add(name)
        return name

    def lines(self) -> str:
        """The imports."""
        return "".join(
            f"from {module} import {', '.join(sorted(names))}\n"
            for module, names in sorted(self._imports.items())
        )

    def annotation(self, text: Any, known: Mapping[str, Any]) -> str:
        """An annotation of a function whose globals are `known`, in words that the file knows."""
        if not isinstance(text, str):
            text = "Any" if text is inspect.Parameter.empty else inspect.formatannotation(text)
        text = _ARRAYS.get(text.removesuffix(" | None"), text.removesuffix(" | None")) + (
            " | None" if text.endswith(" | None") else ""
        )
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            return self.imported("typing", "Any")
        return ast.unparse(_Resolved(self, known).visit(tree))


class _Resolved(ast.NodeTransformer):
    """Puts what aliases stand for in their place, and notes what is to be imported."""

    def __init__(self, names: Names, known: Mapping[str, Any]):
        self._names, self._known = names, known

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        of = self.visit(node.value)
        if ast.unparse(of) == "Any":
            return of
        return ast.Subscript(of, self.visit(node.slice))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        found = self.generic_visit(node)
        parts = ast.unparse(found).split(" | ")
        # What may be one array or several is what the caller knows.
        several = "ndarray" in parts and any(part.startswith("tuple[ndarray") for part in parts)
        return self._name("typing", "Any") if several or "Any" in parts else found

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        text = ast.unparse(node)
        if text in _ARRAYS:
            return self._name("heterosis._core", _ARRAYS[text])
        if text == "numpy.ndarray":
            self._names.imported("numpy.typing", "NDArray")
            return ast.parse(f"NDArray[{self._names.imported('typing', 'Any')}]", mode="eval").body
        module, _, name = text.rpartition(".")
        found = self._known.get(module)
        if not inspect.ismodule(found) or not hasattr(found, name):
            return self._name("typing", "Any")
        return self._name(found.__name__, name)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name in ("ndarray", "Value", "Array"):
            return self._name("heterosis._core", "ndarray")
        if name in ("ArrayLike", "DTypeLike"):
            return self._name("heterosis.typing", name)
        if name in _CONTAINERS:
            return self._name("collections.abc", name)
        found = self._known.get(name)
        if found is None:
            return node if hasattr(builtins, name) else self._name("typing", "Any")
        if isinstance(found, str) or hasattr(found, "__args__"):  # an alias
            return ast.parse(self._names.annotation(found, self._known), mode="eval").body
        if isinstance(found, type) and hasattr(builtins, name):
            return node
        module = getattr(found, "__module__", "")
        if name == "Any" or not isinstance(found, type) or module.startswith("_"):
            return self._name("typing", "Any")
        return self._name(module, name)

    def _name(self, module: str, name: str) -> ast.expr:
        return ast.Name(self._names.imported(module, name))


# -- functions ------------------------------------------------------------------------------------


def operation(names: Names, name: str, record: Any, *, is_method: bool = False) -> str:
    """An operation, as users call it."""
    from heterosis.ops.record import KEY

    known = inspect.unwrap(record.function).__globals__
    shown = [p for p, use in zip(record.parameters, record.uses, strict=True) if use != KEY]
    parameters = [
        (p.name, _taken(names, record, p, known), p.default, p.kind)
        for p in _with_kinds(record, shown)
    ]
    if is_method:
        parameters = parameters[1:]
    returned = names.annotation(record.returns, known) if record.returns else "ndarray"
    names.imported("heterosis._core", "ndarray")
    taken = {p.name for p in record.parameters}
    extras = [
        extra
        for extra in (_EXTRAS_OF_ELEMENTS if _is_of_elements(record) else _EXTRAS).split(", ")[1:]
        if extra.split(":")[0] not in taken and returned == "ndarray"
    ]
    if len(extras) == 3:
        names.imported("heterosis.typing", "ArrayLike")
        names.imported("heterosis.typing", "DTypeLike")
    text = written(name, parameters, extras, returned, record.documentation, is_method=is_method)
    if is_method or record.combine_at is None:
        return text
    return f"@{names.imported('heterosis._stubs.combining', 'combining')}\n{text}"


def _is_of_elements(record: Any) -> bool:
    return isinstance(record.numpy, numpy.ufunc)


def _with_kinds(record: Any, shown: list[Any]) -> Iterator[inspect.Parameter]:
    wanted = {p.name for p in shown}
    return (p for p in record.signature.parameters.values() if p.name in wanted)


def _taken(
    names: Names, record: Any, parameter: inspect.Parameter, known: Mapping[str, Any]
) -> str:
    """What an operation takes for a parameter."""
    if parameter.name == "dtype":
        text = names.imported("heterosis.typing", "DTypeLike")
    elif parameter.annotation is inspect.Parameter.empty:
        text = names.imported("heterosis.typing", "ArrayLike")
    elif parameter.annotation == "Operands":
        text = f"ndarray | {names.imported('collections.abc', 'Sequence')}[ArrayLike]"
        names.imported("heterosis.typing", "ArrayLike")
    else:
        text = names.annotation(parameter.annotation, known)
        text = text.replace("tuple[int, ...]", "Sequence[int]")
        if "Sequence" in text:
            names.imported("collections.abc", "Sequence")
    optional = parameter.default is None and text != "Any" and "None" not in text
    return f"{text} | None" if optional else text


def function(names: Names, name: str, given: Callable[..., Any], *, is_method: bool = False) -> str:
    """A function as it is written."""
    own = inspect.unwrap(given)
    known = getattr(own, "__globals__", {})
    parameters = [
        (p.name, names.annotation(p.annotation, known), p.default, p.kind)
        for p in inspect.signature(own).parameters.values()
    ]
    returned = names.annotation(getattr(own, "__annotations__", {}).get("return", "Any"), known)
    text = inspect.getdoc(own) or ""
    return written(name, parameters[is_method:], [], returned, text, is_method=is_method)


def written(
    name: str, parameters: Iterable[tuple[str, str, Any, Any]], extras: Iterable[str],
    returned: str, text: str, *, is_method: bool,
) -> str:  # fmt: skip
    """The lines of a definition."""
    found, star = (["self"] if is_method else []), False
    for own_name, annotation, default, kind in parameters:
        if kind is inspect.Parameter.KEYWORD_ONLY and not star:
            found.append("*")
            star = True
        star |= kind is inspect.Parameter.VAR_POSITIONAL
        found.append(_parameter(own_name, annotation, default, kind))
    extras = list(extras)
    if extras:
        rest = [found.pop()] if found and found[-1].startswith("**") else []
        found += [*([] if star else ["*"]), *extras, *rest]
    head = f"def {name}({', '.join(found)}) -> {returned}:"
    if len(head) > _WIDTH - 8:
        lines = "".join(f"    {line},\n" for line in found)
        head = f"def {name}(\n{lines}) -> {returned}:"
    return f"{head} ...\n" if not text else f"{head}\n{_documented(text)}"


def _parameter(name: str, annotation: str, default: Any, kind: Any) -> str:
    star = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(
        kind, ""
    )
    end = "" if default is inspect.Parameter.empty else f" = {_default(default)}"
    return f"{star}{name}: {annotation}{end}"


def _default(default: Any) -> str:
    if isinstance(default, str):
        return json.dumps(default)
    is_plain = default is None or isinstance(default, bool | int) or default == ()
    is_literal = is_plain or (isinstance(default, float) and math.isfinite(default))
    return repr(default) if is_literal else "..."


def _documented(text: str) -> str:
    text = text.replace("\\", "\\\\")
    lines = text.splitlines()
    if len(lines) == 1:
        return f'    """{text}"""\n'
    return textwrap.indent(f'"""{text}\n"""', "    ") + "\n"


# -- files ----------------------------------------------------------------------------------------


def file(title: str, names: Names, parts: Iterable[str], before: str = "") -> str:
    body = "\n".join(parts)
    return f'"""{title}"""\n\n{_MARK}\n{names.lines()}\n{before}{body}'


def of_module(module: str, title: str) -> str:
    """The operations that users find in a module."""
    from heterosis.ops.record import REGISTRY

    names = Names()
    found = {
        name: record
        for record in REGISTRY.values()
        if module in record.public
        for name in (record.name, *record.aliases)
    }
    return file(title, names, [operation(names, n, r) for n, r in sorted(found.items())])


def of_operators() -> str:
    """MXNet's operators."""
    from heterosis.mxnet.operators import OPERATORS
    from heterosis.mxnet.operators.table import ROWS

    names, parts = Names(), []
    for name, run in sorted(OPERATORS.items()):
        text = function(names, name, run)
        if name in ROWS and ROWS[name].results == 1:
            names.imported("heterosis._core", "ndarray")
            text = text.replace(") -> Any:", ") -> ndarray:", 1)
        parts.append(text)
    names.imported("typing", "Any")
    return file("MXNet's operators, in `heterosis.nd`.", names, parts)


def of_arrays() -> str:
    """The methods of arrays that the core does not define."""
    from heterosis import np
    from heterosis.ops.record import REGISTRY

    names, parts = Names(), []
    by_operation = {id(record.operation): record for record in REGISTRY.values()}
    native = _declared()
    for name, member in sorted(vars(np.ndarray).items()):
        if name in native or name in ("__module__", "__doc__"):
            continue
        if isinstance(member, property):
            parts.append(_property(names, name, member))
        elif id(member) in by_operation:
            parts.append(operation(names, name, by_operation[id(member)], is_method=True))
        elif callable(member) and hasattr(inspect.unwrap(member), "__code__"):
            parts.append(function(names, name, member, is_method=True))
    body = textwrap.indent("\n".join(parts), "    ")
    names.imported("typing", "Any")
    return file("The methods of arrays.", names, [f"class ArrayMethods:\n{body}"])


def of_symbols() -> str:
    """The methods of symbols that compose operators."""
    from heterosis.symbol import Symbol

    names, parts = Names(), []
    names.imported("typing", "Any")
    names.imported("heterosis.mxnet.symbols.symbol", "Symbol")
    for name, member in sorted(vars(Symbol).items()):
        made = getattr(member, "__module__", "") == "heterosis.mxnet.symbols.composition"
        if callable(member) and made:
            ignored = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            head = f"def {name}(self, *arguments: Any, **keywords: Any) -> Symbol:"
            if name.startswith("__"):
                other = "" if name in ("__neg__", "__abs__") else ", other: Any"
                head = f"def {name}(self{other}) -> Symbol:"
            text = inspect.getdoc(member) if name[0] != "_" else ""
            parts.append(
                f"{head}{ignored}\n{_documented(text)}" if text else f"{head} ...{ignored}\n"
            )
    body = textwrap.indent("\n".join(parts), "    ")
    return file("The methods of symbols.", names, [f"class SymbolMethods:\n{body}"])


def _property(names: Names, name: str, member: property) -> str:
    get = member.fget
    known = get.__globals__
    returned = names.annotation(get.__annotations__.get("return", "Any"), known)
    text = inspect.getdoc(get) or ""
    lines = f"@property\ndef {name}(self) -> {returned}:"
    return f"{lines}\n{_documented(text)}" if text else f"{lines} ...\n"


def _declared() -> set[str]:
    """The members that the core's stub declares by hand."""
    tree = ast.parse((ROOT / "src" / "heterosis" / "_core.pyi").read_text())
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ndarray")
    return {
        getattr(n, "name", None) or getattr(getattr(n, "target", None), "id", "")
        for n in found.body
    }


def of_numpy(module: str, numpy_module: str) -> str:
    """The functions of NumPy's that run on the host, since arrays have none of their own."""
    ours, theirs = importlib.import_module(module), importlib.import_module(numpy_module)
    names, parts = Names(), []
    names.imported("typing", "Any")
    for name in sorted(getattr(theirs, "__all__", ())):
        found = getattr(theirs, name)
        if name in vars(ours) or name.startswith("_") or not callable(found):
            continue
        if isinstance(found, type):
            continue
        text = (inspect.getdoc(found) or "").strip().split("\n\n")
        first = next((t for t in text if t and not t.startswith(f"{name}(")), "").split("\n")[0]
        documentation = f"NumPy's, on the host: {first}".replace('"', "'")
        parts.append(
            f"def {name}(*arguments: Any, **keywords: Any) -> Any:\n{_documented(documentation)}"
        )
    title = f"What `{module}` hands to NumPy {numpy.__version__}."
    return file(title, names, parts)


def files() -> dict[str, str]:
    """The files, by their names."""
    return {
        "__init__.pyi": '"""What editors read of names that are made while a program runs."""\n\n'
        + _MARK,
        "combining.pyi": _COMBINING,
        "np.pyi": of_module("np", "The operations of `heterosis.np`."),
        "np_numpy.pyi": of_numpy("heterosis.np", "numpy"),
        "linalg.pyi": of_module("linalg", "The operations of `heterosis.np.linalg`."),
        "linalg_numpy.pyi": of_numpy("heterosis.np.linalg", "numpy.linalg"),
        "npx.pyi": of_module("npx", "The operations of `heterosis.npx`."),
        "npx_image.pyi": of_module("npx.image", "The operations of `heterosis.npx.image`."),
        "nd.pyi": of_operators(),
        "methods.pyi": of_arrays(),
        "symbols.pyi": of_symbols(),
    }


def _is_checked(name: str, before: str, after: str) -> bool:
    """Whether NumPy is of the version that a file was written with: others have other names."""
    of_numpy = name.endswith("_numpy.pyi")
    return not of_numpy or before.partition("\n")[0] == after.partition("\n")[0]


def main() -> int:
    status = 0
    for name, after in files().items():
        path = FOLDER / name
        before = path.read_text() if path.exists() else ""
        if "--check" not in sys.argv:
            path.write_text(after)
        elif before != after and _is_checked(name, before, after):
            status = 1
            print(f"_stubs/{name} is not what the records say: run python docs/make_stubs.py")
            print(
                "\n".join(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))
            )
    return status


if __name__ == "__main__":
    sys.exit(main())
