"""Runs one document's cells in one process, as a notebook does: python -m tests.seeds.worker 000"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import traceback
import types
import warnings
from contextlib import redirect_stdout

import heterosis
from heterosis import npx
from heterosis.gluon import hybrid_block
from tests.seeds.documents import ANY, MXNET, cells


def main(document: str) -> None:
    """Print, as JSON, for each cell that is ours what it prints and how it fails."""
    heterosis.install_as_mxnet()
    provide_d2l()
    warnings.filterwarnings("error", message="hybridize: blocks run imperatively")
    namespace = {"__name__": "__main__", "_shell": shell}
    ours = [cell for cell in cells() if cell.document == document and cell.tab in (ANY, MXNET)]
    print(json.dumps({cell.number: run(cell.code, namespace) for cell in ours}))


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
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(code, namespace)  # noqa: S102
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
