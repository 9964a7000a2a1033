"""Runs the cells of a notebook, in the folder it is called in: run_notebook.py page.ipynb

The exit status says whether they print, and raise, what the notebook shows."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import make_notebooks  # pyright: ignore[reportMissingImports]


def main(path):
    cells = json.loads(Path(path).read_text())["cells"]
    wrong = 0
    for cell, printed, raised in make_notebooks.run(cells):
        expected = make_notebooks.shown(cell)
        if raised != ("raises-exception" in cell["metadata"].get("tags", ())):
            wrong += 1
            print(f"{''.join(cell['source'])}\nraises: {raised}\n{printed}")
        elif printed != expected:
            wrong += 1
            print(f"{''.join(cell['source'])}\nshows {expected!r}, and prints {printed!r}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
