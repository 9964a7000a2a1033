"""Draws the chart of the first page: python docs/make_chart.py [--check]

The numbers are those of the first table of docs/benchmarks.md, whichever libraries are in it, each
in the fastest way that it has. With --check, nothing is written, and the exit status says whether
the picture shows these numbers.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

DOCS = Path(__file__).parent
PAGE, CHART = DOCS / "benchmarks.md", DOCS / "static" / "home.svg"
_ROW = re.compile(
    r"^\| (?P<name>\S+)(?P<way>.*) (?P<version>\S+) \| (?P<time>[\d.,]+) ±", re.MULTILINE
)
_OWN, _OTHER, _TEXT = "#1a7f5a", "#9aa5b1", "#7a8490"  # the text can be read on white and on black
_WIDTH, _LEFT, _RIGHT, _STEP, _BAR, _TOP = 520, 125, 125, 30, 20, 46  # of narrow screens, too
_TITLES = {"heterosis": "Heterosis", "numpy": "NumPy", "jax": "JAX", "mxnet": "MXNet",
           "onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "tensorflow": "TensorFlow",
           "torch": "PyTorch"}  # fmt: skip


def times() -> dict[str, tuple[float, str]]:
    """Microseconds a call of each library's fastest way, and that way; the fastest first."""
    text = PAGE.read_text()
    table = text[text.index(": one thread\n") :].split("###")[0]
    found: dict[str, tuple[float, str]] = {}
    for row in _ROW.finditer(table):
        time = float(row["time"].replace(",", ""))
        if row["name"] not in found or time < found[row["name"]][0]:
            found[row["name"]] = time, row["way"].strip()
    return dict(sorted(found.items(), key=lambda item: item[1]))


def chart() -> str:
    """The picture."""
    rows = times()
    longest = max(time for time, _ in rows.values())
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    parts = [_line(0, 20, "Microseconds a call: a network of three layers, one row at a time", 15)]
    for i, (name, (time, way)) in enumerate(rows.items()):
        y, length = _TOP + i * _STEP, time * scale
        color = _OWN if name == "heterosis" else _OTHER
        parts += [
            _line(_LEFT - 10, y + 15, _TITLES[name], 14, anchor="end"),
            f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{color}"/>',
            _line(_LEFT + length + 8, y + 15, f"{time:.1f} {way}".strip(), 13),
        ]
    height = _TOP + len(rows) * _STEP
    size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, *parts, "</svg>", ""])


def _line(x: float, y: float, text: str, size: int, anchor: str = "start") -> str:
    font = f'font-family="sans-serif" font-size="{size}" fill="{_TEXT}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y}" {font}>{escape(text)}</text>'


def main() -> int:
    if "--check" not in sys.argv:
        CHART.write_text(chart())
    elif chart() != CHART.read_text():
        print("home.svg does not show the numbers of benchmarks.md: run python docs/make_chart.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
