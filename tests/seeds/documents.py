"""The code cells of the documents that the project was asked for with."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
VARIABLE = "HETEROSIS_SEEDS"
ANY, MXNET, PYTORCH, TENSORFLOW = "all", "mxnet", "pytorch", "tensorflow"

_FENCED = re.compile(r"^```\{\.python \.input[^}\n]*\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^In \[\d+\]:\n", re.MULTILINE)
_RESULT = re.compile(r"\d+|tensor\(.*\)", re.DOTALL)  # printed, behind one empty line
_TAB = re.compile(r"\A#@tab (\w+)\n")


@dataclass(frozen=True)
class Cell:
    """A code cell: the number of its document, its place there, for whom it is, its lines."""

    document: str
    number: int
    tab: str
    code: str

    def __str__(self) -> str:
        return f"{self.document}-{self.number}-{self.tab}"


def folder() -> Path:
    """Where the documents are: as the environment says, or beside the repository."""
    return Path(os.environ.get(VARIABLE) or ROOT.parent / "shared" / "seeds")


def cells() -> list[Cell]:
    """The cells of all documents; none where the documents are not there."""
    return [cell for path in sorted(folder().glob("[0-9]*_*.txt")) for cell in _cells(path)]


def documents() -> list[str]:
    """The numbers of the documents, also of those without code."""
    return [path.name.partition("_")[0] for path in sorted(folder().glob("[0-9]*_*.txt"))]


def _cells(path: Path) -> list[Cell]:
    text, document = path.read_text("utf-8"), path.name.partition("_")[0]
    found = _fenced(text) or _prompted(text)
    return [Cell(document, n, tab, code) for n, (tab, code) in enumerate(found, 1)]


def _fenced(text: str) -> list[tuple[str, str]]:
    """Cells between fences. Those without a tab are MXNet's."""
    found = []
    for code in _FENCED.findall(text):
        tab = _TAB.match(code)
        found.append((tab.group(1) if tab else MXNET, code))
    return found


def _prompted(text: str) -> list[tuple[str, str]]:
    """Cells behind `In [1]:`, up to two empty lines or to what is no Python.

    They belong to the framework that the document imports, except those in front of the import.
    """
    codes = [_python(rest) for rest in _PROMPT.split(text)[1:]]
    codes = [code for code in codes if code.strip()]
    imports = next(
        (n for n, code in enumerate(codes) if re.search(r"^import", code, re.MULTILINE)), 0
    )
    framework = PYTORCH if "import torch" in text else MXNET
    return [(ANY if n < imports else framework, code) for n, code in enumerate(codes)]


def _python(rest: str) -> str:
    blocks = rest.split("\n\n\n", maxsplit=1)[0].strip().split("\n\n")
    while _RESULT.fullmatch(blocks[-1]):
        blocks.pop()
    for count in range(len(blocks), 0, -1):
        code = "\n\n".join(blocks[:count]) + "\n"
        if _compiles(re.sub(r"^!.*$", "pass", code, flags=re.MULTILINE)):
            return code
    return ""


def _compiles(code: str) -> bool:
    try:
        compile(code, "cell", "exec")
    except SyntaxError:
        return False
    return True
