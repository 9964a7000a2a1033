"""Networks exported here and read by MXNet, and the other way: the largest differences.

`HETEROSIS_MXNET_PYTHON=... python -m tests.mxnet.symbols.roundtrip [layers | zoo | NAME ...]`
prints the table.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy

from heterosis import gluon, np
from tests.differential.mxnet_process import MXNetProcess
from tests.mxnet.symbols import peer
from tests.mxnet.symbols.cases import architectures, layers

Case = tuple[str, str, tuple]


def ask(mxnet: MXNetProcess, task: str, cases: Sequence[Case], folder: Path) -> None:
    """Let MXNet export into the folder, or import from it."""
    mxnet.call("tests.mxnet.symbols.peer", "in_mxnet", task, cases, str(folder))


def run_here(task: str, cases: Sequence[Case], folder: Path) -> None:
    """Export or import ourselves."""
    for case in cases:
        peer.keep(peer.TASKS[task], case, str(folder), gluon, np.array)


def arrays(folder: Path, name: str) -> list[numpy.ndarray] | str:
    """Stored results, or the error."""
    failure = folder / f"{name}.txt"
    if failure.exists():
        return failure.read_text()
    with numpy.load(folder / f"{name}.npz") as stored:
        return [stored[key] for key in stored.files]


def difference(a: list[numpy.ndarray] | str, b: list[numpy.ndarray] | str) -> float | str:
    """The largest difference, as a part of the largest number; or what went wrong."""
    for found in (a, b):
        if isinstance(found, str):
            return found
    a, b = a[: len(b)], b[: len(a)]  # the last states of a recurrent layer, or not
    if [x.shape for x in a] != [x.shape for x in b]:
        return f"shapes {[x.shape for x in a]} and {[x.shape for x in b]}"
    if [x.dtype for x in a] != [x.dtype for x in b]:
        return f"element types {[x.dtype for x in a]} and {[x.dtype for x in b]}"
    return max((_distance(x, y) for x, y in zip(a, b, strict=True)), default=0.0)


def _distance(x: numpy.ndarray, y: numpy.ndarray) -> float:
    if not x.size:
        return 0.0
    x, y = (numpy.nan_to_num(part.astype("float64")) for part in (x, y))
    return float(abs(x - y).max() / max(abs(x).max(), 1e-30))


# The shapes of zeros to begin with: the states of a recurrent layer are inputs of its symbol.
STATES = {
    "rnn.RNN(3)": [[1, 2, 3]],
    "rnn.RNN(3, activation='relu')": [[1, 2, 3]],
    "rnn.RNN(3, 2, activation='tanh', layout='NTC', bidirectional=True)": [[4, 2, 3]],
    "rnn.LSTM(3)": [[1, 2, 3]] * 2,
    "rnn.LSTM(3, layout='NTC')": [[1, 2, 3]] * 2,
    "rnn.LSTM(3, 2, bidirectional=True)": [[4, 2, 3]] * 2,
    "rnn.LSTM(4, projection_size=2)": [[1, 2, 2], [1, 2, 4]],
    "rnn.GRU(3)": [[1, 2, 3]],
    "rnn.GRU(3, 2, bidirectional=True)": [[4, 2, 3]],
    "rnn.GRU(3, 2, layout='NTC')": [[2, 2, 3]],
}


def _reading(cases: Sequence[Case]) -> list[Case]:
    return [(n, json.dumps(STATES.get(e, [])), s) for n, e, s in cases]


def compare(
    mxnet: MXNetProcess, cases: Sequence[Case], folder: Path
) -> list[tuple[str, float | str, float | str]]:
    """For each case: how far MXNet is from what we exported, and we from what it exported."""
    ours, theirs = folder / "ours", folder / "theirs"
    for made in (ours, theirs):
        made.mkdir()
    run_here("write", cases, ours)
    ask(mxnet, "write", cases, theirs)
    found = {"ours": {}, "theirs": {}}
    for side, place in (("ours", ours), ("theirs", theirs)):
        for name, _, _ in cases:
            found[side][name] = arrays(place, name)
    readable = {s: [c for c in cases if isinstance(found[s][c[0]], list)] for s in found}
    ask(mxnet, "read", _reading(readable["ours"]), ours)
    run_here("read", _reading(readable["theirs"]), theirs)
    return [
        (
            name,
            difference(found["ours"][name], arrays(ours, name)),
            difference(found["theirs"][name], arrays(theirs, name)),
        )
        for name, _, _ in cases
    ]


def _shown(value: float | str) -> str:
    return value[:300].replace("\n", " ") if isinstance(value, str) else f"{value:.1e}"


def main(wanted: Sequence[str]) -> None:
    known = {"layers": layers(), "zoo": architectures()}
    everything = [case for cases in known.values() for case in cases]
    chosen = [c for c in everything if c[0] in wanted or not wanted]
    chosen += [case for part in wanted for case in known.get(part, [])]
    print(f"{'network':<44} {'ours in MXNet':>14} {'MXNet in ours':>14}")
    with closing(MXNetProcess()) as mxnet:
        for case in chosen:
            with tempfile.TemporaryDirectory() as folder:
                ((name, there, here),) = compare(mxnet, [case], Path(folder))
            print(f"{name[:44]:<44} {_shown(there):>14} {_shown(here):>14}", flush=True)


if __name__ == "__main__":
    sys.setrecursionlimit(20_000)  # the deepest architectures are compiled recursively
    threading.stack_size(512 * 2**20)
    work = threading.Thread(target=main, args=(sys.argv[1:],))
    work.start()
    work.join()
