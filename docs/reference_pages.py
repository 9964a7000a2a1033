"""A page for every operation that users find, made of its record when the site is built.

It has the signature, what each parameter takes, an example that is run, where the gradient comes
from, and what MXNet and ONNX call the operation. The pages, in `docs/functions`, are not kept.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from reference_tables import parameters

from heterosis.runtime.errors import HeterosisError

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "functions"
MODULES = {"np": "np", "linalg": "np.linalg", "npx": "npx", "npx.image": "npx.image"}
_MOST_ELEMENTS = 16  # of all arrays of an example


def page_of(module: str, name: str) -> str:
    """The name of an operation's page."""
    return f"functions/{MODULES[module]}.{name}"


def write() -> None:
    """All pages, anew."""
    from heterosis.ops.record import REGISTRY

    sys.path.insert(0, str(ROOT))  # examples are cases of the tests
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for record in REGISTRY.values():
        for module in record.public:
            if module in MODULES:
                path = ROOT / "docs" / f"{page_of(module, record.name)}.md"
                path.write_text(page(module, record))


def page(module: str, record: Any) -> str:
    """The text of a page."""
    full = f"{MODULES[module]}.{record.name}"
    shown = example(full, record)
    parts = [
        "---\norphan: true\n---",
        f"# `{full}`",
        f"```python\n{full}{parameters(record.signature)}\n```",
        _text(record.documentation),
        _parameters(record),
        "\n".join(f"- {line}" for line in facts(module, record, shown)),
        str(shown or ""),
        "All functions: [Reference](../reference.md)",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _text(documentation: str) -> str:
    """A docstring as Markdown: what stands in backticks stays as it is."""
    pieces = documentation.split("`")
    for i in range(0, len(pieces), 2):
        pieces[i] = pieces[i].replace("*", r"\*").replace("_", r"\_").replace("<", r"\<")
    return "`".join(pieces)


def _parameters(record: Any) -> str:
    from heterosis.ops.record import ARRAY, KEY, SEQUENCE
    from heterosis.runtime.arguments import expectations

    kinds = expectations(record.function).kinds
    rows = []
    for parameter, use in zip(record.parameters, record.uses, strict=True):
        if use == KEY:
            continue
        kind = kinds.get(parameter.name)
        taken = {ARRAY: "an array or a number", SEQUENCE: "a sequence of arrays"}.get(use)
        taken = taken or (kind.text if kind else "see above")
        if parameter.name == "dtype":
            taken = "an element type"
        default = "" if parameter.default is inspect.Parameter.empty else f"`{parameter.default!r}`"
        rows.append(f"| `{parameter.name}` | {taken} | {default} |")
    return "\n".join(["| parameter | takes | default |", "|---|---|---|", *rows]) if rows else ""


def facts(module: str, record: Any, shown: Example | None) -> Iterator[str]:
    """What is known of an operation besides."""
    if record.aliases:
        yield "Also called " + ", ".join(f"`{MODULES[module]}.{n}`" for n in record.aliases) + "."
    if "ndarray" in record.public:
        yield f"Also a method: `x.{record.name}(...)`."
    yield f"Gradient: {_gradient(record, shown)}."
    if "mxnet" in record.names:
        yield f"In MXNet's files: `{record.names['mxnet']}`."
    if "onnx" in record.names:
        yield f"In ONNX: `{record.names['onnx']}`."
    if record.views:
        yield "The result shares the memory of its operand wherever that is possible."


def _gradient(record: Any, shown: Example | None) -> str:
    if shown and not any("float" in dtype for dtype in shown.dtypes):
        return f"none; it gives {' and '.join(dict.fromkeys(shown.dtypes))}"
    if record.stops_gradients:
        return "none; it is there to keep gradients from its operands"
    if record.piecewise_constant:
        return f"zero; {record.piecewise_constant}"
    if record.gradient is not None:
        return "a rule of its own"
    return "follows from the primitives that it is made of"


# -- examples -------------------------------------------------------------------------------------


class Example(NamedTuple):
    """A call, what it prints, and the element types of its results."""

    lines: str
    printed: str
    dtypes: tuple[str, ...]

    def __str__(self) -> str:
        return f"## Example\n\n```python\n{self.lines}\n```\n\n```output\n{self.printed}\n```"


def example(full: str, record: Any) -> Example | None:
    """An example, from the case of the tests that shows most with few numbers."""
    from heterosis.ops.record import KEY

    if record.samples is None or KEY in record.uses:
        return None
    for cases in (record.samples.cases, map(_smaller, record.samples.cases)):
        shown = [case for case in cases if _is_shown(case)]
        for case in sorted(shown, key=_clarity)[:3]:
            # A case with smaller shapes may be none, and not every point has a result.
            with contextlib.suppress(HeterosisError):
                return _run(full, record, case)
    return None


def _clarity(case: Any) -> tuple[int, int, int]:
    return len(case.attributes) > 1, -min(len(list(_shapes(case))), 2), abs(_elements(case) - 6)


def _smaller(case: Any) -> Any:
    """A case with extents of 3 at most: equal ones stay equal."""

    def cut(shape: Any) -> Any:
        if shape is None or isinstance(shape, list):
            return shape and [cut(one) for one in shape]
        return tuple(min(extent, 3) for extent in shape)

    return dataclasses.replace(case, shapes=tuple(map(cut, case.shapes)))


def _shapes(case: Any) -> Iterator[tuple[int, ...]]:
    for shape in case.shapes:
        yield from shape if isinstance(shape, list) else [shape]


def _elements(case: Any) -> int:
    return sum(int(numpy.prod(shape)) for shape in _shapes(case))


def _is_shown(case: Any) -> bool:
    if any(shape is None for shape in _shapes(case)):
        return False
    return 1 < _elements(case) <= _MOST_ELEMENTS and all(map(all, _shapes(case)))


def _run(full: str, record: Any, case: Any) -> tuple[str, str]:
    """The lines of an example, and what they print."""
    from heterosis import np
    from heterosis.ops.record import ARRAY, SEQUENCE
    from tests.ops import harness

    types = record.samples.dtypes
    dtype = "float32" if "float32" in types else types[0]
    arrays, attributes = harness.arguments(record, case, dtype)
    uses = zip(record.parameters, record.uses, strict=True)
    names = [p.name for p, use in uses if use in (ARRAY, SEQUENCE)]
    module = "np, npx" if full.startswith("npx") else "np"
    lines, given = [f"from heterosis import {module}", ""], {}
    for name, array in zip(names, arrays, strict=False):
        lines.append(f"{name} = {_written(array)}")
        given[name] = eval(_written(array), {"np": np})
    first = [p.name for p in record.parameters[: len(given)]]
    shown = [name if first == list(given) else f"{name}={name}" for name in given]
    shown += [f"{name}={value!r}" for name, value in attributes.items()]
    lines.append(f"print({full}({', '.join(shown)}))")
    result = record.operation(**given, **attributes)
    results = result if isinstance(result, tuple | list) else [result]
    dtypes = tuple(str(part.dtype) for part in results)
    return Example("\n".join(lines), "\n".join(map(_printed, results)), dtypes)


def _written(array: Any) -> str:
    if isinstance(array, list):
        return f"[{', '.join(map(_written, array))}]"
    array = numpy.asarray(array)
    if array.dtype.kind == "f":
        array = array.round(1)
    dtype = "" if array.dtype == "float32" else f', dtype="{array.dtype}"'
    return f"np.array({array.tolist() if array.dtype.kind != 'f' else _rounded(array)}{dtype})"


def _rounded(array: numpy.ndarray) -> str:
    text = numpy.array2string(array, separator=", ", formatter={"float_kind": "{:.1f}".format})
    return " ".join(text.split())


def _printed(result: Any) -> str:
    with numpy.printoptions(precision=4, suppress=True):
        return str(result.asnumpy())
