"""Writes the tables of what differs from MXNet into from_gluon.md.

`python docs/make_deviations.py [--check]`

The rows are those of tests/differential/deviations.py; what they give is run. Where no interpreter
with MXNet is named (HETEROSIS_MXNET_PYTHON), what it gives is taken from the page, so that rows
that are new cannot be written. With --check, nothing is written, and the exit status says whether
the page is what both libraries do.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from contextlib import closing
from difflib import unified_diff
from itertools import chain
from pathlib import Path
from typing import Any

import numpy

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the rows are tests

from tests.differential import helpers
from tests.differential.answers import our_answer
from tests.differential.deviations import DEVIATIONS
from tests.differential.expressions import SETUP
from tests.differential.mxnet_process import MXNetProcess, why_not
from tests.mxnet.symbols.operations import LIMITS

PAGE = ROOT / "docs" / "from_gluon.md"
_TABLES = re.compile(r"(?<=<!-- deviations -->\n).*?(?=<!-- end of deviations -->)", re.DOTALL)
_ROW = re.compile(r"^\| (`+.+?`+) \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
_PLAIN = ("float32", "bool")  # element types that need not be told
_SHOWN = 8  # elements of an array; of larger ones the first and the last
_HEAD = "| | MXNet 1.9.1 | here | why |\n|---|---|---|---|\n"


def tables(theirs: Callable[[str], str]) -> str:
    """The tables, with what `theirs` says that MXNet gives for a row's code."""
    made = [
        f"\n#### {heading}\n\n{_HEAD}" + "".join(_row(*row, theirs) for row in rows.items())
        for heading, rows in DEVIATIONS.items()
    ]
    made.append("\n#### Operations in symbols that `export` writes\n\n" + _HEAD + _symbols())
    return f"\n```python\n{arrays()}```\n\n{functions()}{''.join(made)}\n"


def arrays() -> str:
    """What makes the arrays that the rows use."""
    rows = "\n".join(chain(*DEVIATIONS.values()))
    lines = [
        f"{name} = {value}\n"
        for name, value in re.findall(r"^(\w+) = (.*)$", SETUP, re.MULTILINE)
        if re.search(rf"(?<![\w.'\"]){name}(?![\w'\"]| ?=[^=])", rows)
    ]
    return "".join(["import numpy as onp\n\n", *lines])


def functions() -> str:
    """What the functions do that the rows call besides."""
    lines = []
    for name, function in inspect.getmembers(helpers, inspect.isfunction):
        _, *parameters = inspect.signature(function).parameters.values()
        shown_ = ", ".join(str(p).split("=")[0] for p in parameters)
        lines.append(f"- `{name}({shown_})`: {' '.join(function.__doc__.split())}\n")
    return "".join(lines)


def _symbols() -> str:
    """What tests/mxnet/symbols exports, and checks that MXNet does not compute."""
    return "".join(
        f"| `{name}` | fails | as imperatively | MXNet: {limit} |\n"
        for name, limit in LIMITS.items()
    )


def _row(code: str, reason: str, theirs: Callable[[str], str]) -> str:
    cells = _code(code), theirs(code), shown(our_answer(code)), reason
    return f"| {' | '.join(cells)} |\n"


def _code(text: str) -> str:
    return f"`{'; '.join(text.strip().splitlines())}`".replace("|", r"\|")


def shown(answer: dict[str, Any]) -> str:
    """An answer in a cell: values, with the element type where it is not float32."""
    if "raised" in answer:
        return f"raises {answer['raised']}"
    return ", ".join(_part(part) for part in answer["parts"]) or "nothing"


def _part(part: Any) -> str:
    if isinstance(part, str):
        return _code(part)
    if part.dtype.kind == "f" and numpy.isfinite(part).any():  # rounding errors look like zeros
        part = numpy.where(abs(part) < 1e-6 * abs(part[numpy.isfinite(part)]).max(), 0, part)
    number = {"float_kind": lambda number: f"{number:.4g}", "int": str, "bool": str}
    text = numpy.array2string(part, threshold=_SHOWN, edgeitems=2, separator=", ", formatter=number)
    text = re.sub(r"\s+", " ", text)
    shape = "" if 0 < part.size <= _SHOWN else f", of shape {part.shape}"
    return _code(text) + ("" if part.dtype.name in _PLAIN else f" {part.dtype}") + shape


def _from_the_page() -> Callable[[str], str]:
    """What the page says that MXNet gives."""
    stated = {found[1]: found[2] for found in _ROW.finditer(PAGE.read_text())}
    return lambda code: stated.get(_code(code), "not asked")


def main() -> int:
    if why_not():
        after = tables(_from_the_page())
    else:
        with closing(MXNetProcess()) as process:
            after = tables(lambda code: shown(process.answer(code)))
    text = PAGE.read_text()
    page = _TABLES.sub(lambda _: after, text)
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif page != text:
        print("from_gluon.md is not what this version does: run python docs/make_deviations.py")
        print("\n".join(unified_diff(*(t.splitlines() for t in (text, page)), lineterm="", n=0)))
    if "not asked" in after:
        print(why_not())
    return "not asked" in after or ("--check" in sys.argv and page != text)


if __name__ == "__main__":
    sys.exit(main())
