"""Tables that are made of the code when the site is built.

`{operations} np` lists the registered operations that users find in `np`, `{members} module` the
public names of a module, both with what their docstrings say first. `{primitives}` lists what
programs are made of.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

_HIDDEN = {"self", "key"}  # parameters that users do not give


class Operations(Directive):
    """The operations of one module, by name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from reference_pages import page_of

        from heterosis.ops.record import REGISTRY

        module = self.arguments[0]
        rows = []
        for record in sorted(REGISTRY.values(), key=lambda record: record.name):
            if module not in record.public:
                continue
            names = ", ".join((record.name, *record.aliases))
            call = f"{names}{parameters(record.signature)}"
            method = [nodes.emphasis("", " Also a method.")] if "ndarray" in record.public else []
            target = f"{page_of(module, record.name)}.html"
            linked = nodes.reference("", "", *_code(call), refuri=target, internal=True)
            rows.append(([linked], _text(record.documentation) + method))
        return [_table(("Operation", "What it gives"), (45, 55), rows)]


class Members(Directive):
    """The public names of one module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        rows = []
        for name in _public_names(module):
            value = getattr(module, name)
            if not inspect.ismodule(value):
                text = inspect.getdoc(value) if callable(value) else ""
                rows.append((_code(name + _call(value)), _text(text or _kind(value))))
        return [_table(("Name", "What it is"), (45, 55), rows)]


class Classes(Directive):
    """The exceptions of one module, with what they are besides."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module = importlib.import_module(self.arguments[0])
        rows = []
        for name, value in vars(module).items():
            if inspect.isclass(value) and value.__module__ == module.__name__:
                also = ", ".join(base.__name__ for base in value.__bases__)
                rows.append((_code(name), _code(also), _text(inspect.getdoc(value))))
        return [_table(("Error", "Is also", "What it says"), (24, 26, 50), rows)]


class Primitives(Directive):
    """The primitives, with what is known of each."""

    def run(self) -> list[nodes.Node]:
        from heterosis.autograd.listing import COLUMNS
        from heterosis.ir.listing import listing

        heads, *rows = listing(COLUMNS)
        shown = [
            ([*_code(name), *_text(f" {family}")], _text(attributes), *map(_text, further))
            for name, family, attributes, *further in rows
        ]
        heads = ("Primitive, family", *(head.capitalize() for head in heads[2:]))
        return [_table(heads, (18, 24, 10, 10, 38), shown)]


def _public_names(module: Any) -> Sequence[str]:
    named = getattr(module, "__all__", None)
    return named or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _call(value: Any) -> str:
    """The parameters of what can be called, classes by those of their constructors."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, BaseException)):
        return ""
    try:
        return parameters(inspect.signature(value))
    except ValueError:  # native code that does not tell
        return "(...)"


def parameters(signature: inspect.Signature) -> str:
    """A signature without annotations."""
    shown = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for name, parameter in signature.parameters.items()
        if name not in _HIDDEN
    ]
    text = str(inspect.Signature(shown))
    return re.sub(r"<[\w.]+ ([\w.]+)[^>]*>", r"\1", text)  # <function relu at 0x...>


def _kind(value: Any) -> str:
    return f"One `{type(value).__name__}`."


# -- docutils -------------------------------------------------------------------------------------


def _code(text: str) -> list[nodes.Node]:
    return [nodes.literal(text, text)]


def _text(documentation: str) -> list[nodes.Node]:
    """The first paragraph of a docstring; what stands in backticks is code."""
    paragraph = " ".join(documentation.split("\n\n", maxsplit=1)[0].split())
    make: tuple[Callable[[str], nodes.Node], ...] = (nodes.Text, lambda t: nodes.literal(t, t))
    return [make[i % 2](part) for i, part in enumerate(paragraph.split("`")) if part]


def _table(
    heads: Sequence[str], widths: Sequence[int], rows: Iterable[Sequence[list[nodes.Node]]]
) -> nodes.table:
    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=width) for width in widths]
    group += nodes.thead("", _row([[nodes.Text(head)] for head in heads]))
    group += nodes.tbody("", *map(_row, rows))
    return nodes.table("", group, classes=["reference"])


def _row(cells: Iterable[list[nodes.Node]]) -> nodes.row:
    entries = [nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells]
    return nodes.row("", *entries)


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("operations", Operations)
    app.add_directive("members", Members)
    app.add_directive("errors", Classes)
    app.add_directive("primitives", Primitives)
    return {"parallel_read_safe": True}
