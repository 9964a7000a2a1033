"""The programs of the documents, as files that type checkers read."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?P<mark><!-- (?P<kind>\w+): (?P<name>\S+) -->\n+)?```python\n(?P<code>.*?)```\n"
    r"(?P<output>\n+```output\n(?P<printed>.*?)```\n)?",
    re.DOTALL,
)
_OF_MXNET = re.compile(r"(?:import|from) mxnet")
_RAISED = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception)\b", re.MULTILINE)


def documents():
    """The pages that have programs, by name."""
    paths = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    return {path.stem: path for path in paths if "```python\n" in path.read_text()}


def program(document):
    """The examples of one page in one file, each where it stands there, so that messages name lines
    of the page. Examples that show an error may have errors of types, and `mxnet` need not be
    installed."""
    text, lines = document.read_text(), {}
    for found in _BLOCK.finditer(text):
        if found["kind"] in ("stage", "file"):
            continue
        raises = _RAISED.search(found["printed"] or "")
        for i, line in enumerate(
            found["code"].splitlines(), text.count("\n", 0, found.start("code"))
        ):
            lines[i] = (
                f"{line}  # type: ignore" if line and (raises or _OF_MXNET.match(line)) else line
            )
    return "".join(f"{lines.get(i, '')}\n" for i in range(max(lines, default=0) + 1))
