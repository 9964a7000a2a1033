"""Runs one document's cells in one process, as a notebook does: python -m tests.seeds.worker 000"""

from __future__ import annotations

import functools
import io
import json
import re
import subprocess
import sys
import traceback
import types
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout

import heterosis
from heterosis import npx
from heterosis.gluon import hybrid_block
from tests.seeds.documents import ANY, MXNET, PYTORCH, TENSORFLOW, Cell, cells
from tests.seeds.retold import Page, told


def main(document: str) -> None:
    """Print, as JSON, for each cell what it prints and how it fails; those for other frameworks
    are retold."""
    heterosis.install_as_mxnet()
    provide_d2l()
    warnings.filterwarnings("error", message="hybridize: blocks run imperatively")
    namespace = {"__name__": "__main__", "_shell": shell}
    pages = {PYTORCH: Page(shell), TENSORFLOW: Page(shell)}
    found = {}
    for cell in cells():
        if cell.document == document and cell.tab in (ANY, MXNET):
            found[cell.number] = run(cell.code, namespace)
        elif cell.document == document:
            found[cell.number] = done(functools.partial(retell, cell, pages[cell.tab]))
    print(json.dumps(found))


def retell(cell: Cell, page: Page) -> None:
    """Take the steps of a cell for another framework."""
    step = told(cell)
    assert step, f"{cell} is retold nowhere: see retold.py"
    step(page)


def provide_d2l() -> None:
    """The book's helper module, with what the cells take from it."""
    from heterosis.utils import Benchmark, Timer

    d2l, mxnet = types.ModuleType("d2l"), types.ModuleType("d2l.mxnet")
    mxnet.Timer, mxnet.Benchmark, d2l.mxnet = Timer, Benchmark, mxnet
    sys.modules.update({"d2l": d2l, "d2l.mxnet": mxnet})


def run(code: str, namespace: dict) -> dict[str, str]:
    """Run a cell; lines that begin with ! are the shell's."""
    code = re.sub(r"^!(.*)$", lambda line: f"_shell({line.group(1)!r})", code, flags=re.MULTILINE)
    getattr(hybrid_block, "_warned", []).clear()  # it warns once a process, and each cell counts
    return done(lambda: exec(code, namespace))  # noqa: S102


def done(steps: Callable[[], object]) -> dict[str, str]:
    """What the steps print, and how they fail."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            steps()
            npx.waitall()
    except Exception:  # noqa: BLE001
        return {"printed": printed.getvalue(), "error": traceback.format_exc(limit=-3)}
    return {"printed": printed.getvalue(), "error": ""}


def shell(command: str) -> None:
    """Run and print a command; unlike in a notebook its failure is one."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    print(done.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
