"""Runs the examples of the documents: python docs/make_examples.py [--check] [document ...]

The fenced `python` blocks of a document run in order, in a process and an empty folder of its own,
and the `$` lines of `console` blocks between them. What an example prints goes into the `output`
block behind it, with the error that it ends with as the last line; a console block holds it itself.
Without an output block, an example prints what it likes but raises nothing. A block below
`<!-- file: name -->` is written to that file instead of being run; blocks below
`<!-- stage: name -->` are those of make_tour.py. A picture `static/name.png` that a page shows, and
an example draws as `name.png`, is kept.

With --check, nothing is written, and the exit status says whether the outputs are what this version
prints.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback
from difflib import unified_diff
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
_WIDTH = 100
BLOCK = re.compile(
    r"(?P<mark><!-- (?P<kind>\w+): (?P<name>\S+) -->\n+)?"
    r"```(?P<language>python|console)\n(?P<code>.*?)```\n"
    r"(?P<output>\n+```output\n(?P<printed>.*?)```\n)?",
    re.DOTALL,
)


class Session:
    """Examples that run in order and share a namespace."""

    def __init__(self) -> None:
        self.examples = 0
        self.module = ModuleType("__main__")
        # What an example defines is looked up here by pickle, and by worker processes.
        sys.modules["__main__"] = self.module

    def run(self, code: str) -> tuple[str, bool]:
        """What an example prints, and whether it ends with an error."""
        self.examples += 1
        name = f"example_{self.examples}.py"  # errors name it, and its lines
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        printed, failed = io.StringIO(), False
        with contextlib.redirect_stdout(printed):
            try:
                exec(compile(code, name, "exec", dont_inherit=True), self.module.__dict__)  # noqa: S102
            except Exception as error:  # noqa: BLE001 - errors are shown, as Python would
                failed = True
                print(_wrapped("".join(traceback.format_exception_only(error))), end="")
        return printed.getvalue(), failed


class Page:
    """One document."""

    def __init__(self, document: Path):
        self.name = document.stem
        self.text = document.read_text()
        self.session = Session()

    def written(self) -> str:
        """The text with every output as this version prints it."""
        return BLOCK.sub(self._block, self.text)

    def _block(self, found: re.Match[str]) -> str:
        if found["kind"] == "stage":
            return found[0]
        if found["kind"] == "file":
            Path(found["name"]).write_text(found["code"])
            return found[0]
        if found["language"] == "console":
            return f"{found['mark'] or ''}```console\n{console(found['code'])}```\n"
        printed, failed = self.session.run(found["code"])
        if found["output"] is None:
            if failed:
                raise SystemExit(f"{self.name}.md: an example fails:\n{found['code']}\n{printed}")
            return found[0]
        return found[0].removesuffix(found["output"]) + f"\n```output\n{printed}```\n"


def console(code: str) -> str:
    """The commands of a console block, each with what it prints."""
    folder = os.path.dirname(sys.executable)
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    lines = []
    for command in re.findall(r"^\$ (.*)$", code, re.MULTILINE):
        done = subprocess.run(
            command, shell=True, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        lines.append(f"$ {command}\n{done.stdout}")
    return "".join(lines)


def _wrapped(message: str) -> str:
    """A message in lines that fit on a page; its own line ends are kept."""
    lines = []
    for line in message.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        lines += textwrap.wrap(
            line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _keep_pictures(text: str, made: Path, folder: Path) -> None:
    """Put the pictures that a page shows, and its examples have drawn, where it looks for them."""
    for name in re.findall(r"\]\((static/[\w.]+)\)", text):
        if (made / Path(name).name).exists():
            shutil.copy(made / Path(name).name, folder / name)


def make(document: Path, check: bool) -> None:
    """Write or check one document; ends the process with a status."""
    page = Page(document)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        after = page.written()
        os.chdir(ROOT)
        if not check:
            _keep_pictures(after, Path(folder), document.parent)
    if not check:
        document.write_text(after)
    elif after != page.text:
        name = os.path.relpath(document, ROOT)
        print(f"{name} is not what this version does: run python docs/make_examples.py {name}")
        lines = page.text.splitlines(), after.splitlines()
        print("\n".join(unified_diff(*lines, name, "this version", lineterm="")))
        sys.exit(1)


def main() -> int:
    """Write or check documents, each in a process of its own; the exit status."""
    given = [argument for argument in sys.argv[1:] if argument != "--check"]
    documents = [Path(name).resolve() for name in given] or DOCUMENTS
    status = 0
    for document in documents:
        process = multiprocessing.get_context("spawn").Process(
            target=make, args=(document, "--check" in sys.argv)
        )
        process.start()
        process.join()
        status |= process.exitcode != 0
    return status


if __name__ == "__main__":
    sys.exit(main())
