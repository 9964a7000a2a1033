"""Writes pages as Jupyter notebooks: python docs/make_notebooks.py [--check]

A page that links to `page.ipynb` beside it is a notebook, too. Its programs are cells, with what
they print as the page shows it; `$` lines of console blocks are `!` lines. Cells that show an error
carry the tag `raises-exception`, so that running all cells goes on behind them.

With --check, nothing is written, and the exit status says whether the notebooks are what the pages
say.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from make_examples import BLOCK, ROOT, Session, console

FOLDER = ROOT / "docs"
_RAISED = re.compile(r"^(?P<name>(?:[\w.]+\.)?\w*(?:Error|Exception)): ", re.MULTILINE)
_TO_ITSELF = r" ·\n[^\n]*\]\({}\.ipynb\)"
_LINK = re.compile(r"\]\(([^)#:]+)\.md\)")


def pages(folder: Path = FOLDER) -> list[Path]:
    """The pages that are notebooks, too."""
    found = sorted([*folder.glob("*.md"), *folder.glob("??/*.md")])
    return [page for page in found if f"]({page.stem}.ipynb)" in page.read_text()]


def notebook(page: Path) -> str:
    """A page as the text of a notebook."""
    document = {
        "cells": list(_cells(page)),
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def _cells(page: Path) -> Iterator[dict[str, Any]]:
    text = re.sub(_TO_ITSELF.format(page.stem), "", page.read_text())
    links = {p.relative_to(FOLDER).as_posix() for p in pages()}

    def link(found: re.Match[str]) -> str:
        target = (page.parent / f"{found[1]}.md").resolve()
        inside = target.is_relative_to(FOLDER) and target.relative_to(FOLDER).as_posix() in links
        return f"]({found[1]}.{'ipynb' if inside else 'md'})"

    text, end, count = _LINK.sub(link, text), 0, 0
    for block in BLOCK.finditer(text):
        yield from _prose(text[end : block.start()])
        end, count = block.end(), count + 1
        yield _program(block, count)
    yield from _prose(text[end:])


def _prose(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def _program(block: re.Match[str], count: int) -> dict[str, Any]:
    code, printed = block["code"], block["printed"] or ""
    if block["language"] == "console":
        command, _, printed = code.removeprefix("$ ").partition("\n")
        if "\n$ " in printed:
            raise SystemExit(f"a console block of a notebook has one command:\n{code}")
        code = f"!{command}"
    raised = _RAISED.search(printed)
    outputs: list[dict[str, Any]] = []
    if shown := printed[: raised.start() if raised else None]:
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(shown, "\n")})
    if raised:
        outputs.append({
            "ename": raised["name"].rpartition(".")[2],
            "evalue": printed[raised.end() :].strip(),
            "output_type": "error",
            "traceback": printed[raised.start() :].splitlines(),
        })  # fmt: skip
    return {
        "cell_type": "code",
        "execution_count": count,
        "metadata": {"tags": ["raises-exception"]} if raised else {},
        "outputs": outputs,
        "source": _lines(code),
    }


def _lines(text: str, end: str = "") -> list[str]:
    return (text.strip("\n") + end).splitlines(keepends=True)


def shown(cell: dict[str, Any]) -> str:
    """What a cell prints and raises, as the notebook has it."""
    texts = []
    for output in cell["outputs"]:
        if output["output_type"] == "error":
            texts += [f"{line}\n" for line in output["traceback"]]
        else:
            texts += output["text"]
    return "".join(texts)


def run(cells: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """Run the programs of a notebook in order: each cell, what it prints, whether it raises."""
    session = Session()
    for cell in cells:
        code = "".join(cell["source"])
        if cell["cell_type"] == "code" and code.startswith("!"):
            yield cell, console(f"$ {code[1:]}\n").partition("\n")[2], False
        elif cell["cell_type"] == "code":
            yield cell, *session.run(f"{code}\n")


def main() -> int:
    """Write or check all notebooks; the exit status."""
    status = 0
    for page in pages():
        path, text = page.with_suffix(".ipynb"), notebook(page)
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            status = 1
            print(f"{path.relative_to(ROOT)} is not what its page says: "
                  "run python docs/make_notebooks.py")  # fmt: skip
    return status


if __name__ == "__main__":
    sys.exit(main())
