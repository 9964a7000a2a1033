"""What the modules of the package import: at their top, when first needed, and by a text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import heterosis

_ROOT = Path(heterosis.__file__).parent
_BY_TEXT = ("import_module", "__import__", "find_spec")


@dataclass(frozen=True)
class Import:
    """One import. `late`: not while the importer is imported; `by_text`: just a text tells."""

    importer: str
    imported: str  # a module, or a package of which it may be any module
    late: bool = False
    by_text: bool = False


@dataclass(frozen=True)
class Unseen:
    """A module is imported that no text of the importer names."""

    importer: str
    argument: str


def _name(file: Path) -> str:
    parts = file.relative_to(_ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {_name(file): file for file in sorted(_ROOT.rglob("*.py"))}


class _Reader(ast.NodeVisitor):
    """Goes through one module."""

    def __init__(self, module: str):
        self.module = module
        is_package = FILES[module].name == "__init__.py"
        self.package = module if is_package else module.rpartition(".")[0]
        self.found: list[Import | Unseen] = []
        self.late = False
        self.tree = ast.parse(FILES[module].read_text())
        self.visit(self.tree)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        before, self.late = self.late, True
        for statement in node.body:
            self.visit(statement)
        self.late = before

    def visit_Lambda(self, node: ast.Lambda) -> None:
        before, self.late = self.late, True
        self.generic_visit(node)
        self.late = before

    def visit_If(self, node: ast.If) -> None:
        test = ast.unparse(node.test)
        if "TYPE_CHECKING" not in test or test.startswith("not "):
            self.generic_visit(node)
            return
        for statement in node.orelse:
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        self._add(*(alias.name for alias in node.names))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        assert not node.level, f"{self.module}: an import that is relative"
        for alias in node.names:
            inside = f"{node.module}.{alias.name}"
            self._add(inside if inside in FILES else str(node.module))

    def visit_Call(self, node: ast.Call) -> None:
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in _BY_TEXT and node.args:
            named = list(self._named(node.args[0]))
            self._add(*named, by_text=True)
            if not named:
                self.found.append(Unseen(self.module, ast.unparse(node.args[0])))
        self.generic_visit(node)

    def _add(self, *names: str, by_text: bool = False) -> None:
        ours = [name for name in names if name in FILES]
        self.found += [Import(self.module, name, self.late, by_text) for name in ours]

    def _named(self, argument: ast.expr) -> Iterator[str]:
        """The modules that an expression may give, as far as texts tell."""
        if isinstance(argument, ast.JoinedStr):
            yield self._beginning(argument).rpartition(".")[0]
        elif isinstance(argument, ast.Constant):
            yield str(argument.value)
        else:
            texts = (n.value for n in ast.walk(self.tree) if isinstance(n, ast.Constant))
            yield from (text for text in texts if isinstance(text, str) and text in FILES)

    def _beginning(self, text: ast.JoinedStr) -> str:
        """What a text begins with, up to what is known at run time alone."""
        known = {"__name__": self.module, "__package__": self.package}
        found = ""
        for piece in text.values:
            if isinstance(piece, ast.Constant):
                found += str(piece.value)
            elif isinstance(piece, ast.FormattedValue) and ast.unparse(piece.value) in known:
                found += known[ast.unparse(piece.value)]
            else:
                return found
        return f"{found}."


def every() -> Iterator[Import | Unseen]:
    """The imports of all modules."""
    for module in FILES:
        yield from _Reader(module).found


def circle(edges: set[tuple[str, str]]) -> list[str]:
    """Names of which each imports the next, and the last one the first; or none."""
    follow: dict[str, list[str]] = {}
    for importer, imported in sorted(edges):
        follow.setdefault(importer, []).append(imported)
    done: set[str] = set()

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        for following in follow.get(name, ()):
            if found := search(following, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in follow if (found := search(name, []))), [])
