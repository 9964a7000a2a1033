"""Networks as libraries, beside hybridized calls: python benchmarks/libraries.py [MODEL...]

Per model: whether the library gives the same bits, what a call takes hybridized and from the
library, in turns, both from Python and with one thread (or `--threads`), the size of the file, and
what of it is not parameters.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time

from models import CASES
from networks import Case

GPT = Case("small GPT, 64 characters", "gpt", (1, 64), words=65)
MODELS = {name: CASES[name] for name in ("mlp1", "resnet50", "bert", "lstm1", "encoder")} | {
    "gpt": GPT
}
_TARGET = 1.0  # seconds of calls for each of both


def _network(case: Case):
    """The network with parameters, and its input."""
    import heterosis

    heterosis.install_as_mxnet()
    from networks_gluon import NETWORKS

    net = NETWORKS[case.network]()
    net.initialize()
    given = case.input()
    x = heterosis.np.array(given, dtype=given.dtype)
    net(x)
    return net, x


def _library(path: str):
    """What opens the library as programs without Heterosis do."""
    front_end = os.path.join(os.path.dirname(__file__), "..", "frontends", "python")
    sys.path.insert(0, front_end)
    from heterosis_library import Library

    return Library(path)


def _took(call, times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - begin) / times


def _in_turns(calls) -> list[float]:
    """The median seconds of each."""
    times = max(1, int(_TARGET / 10 / max(_took(call, 2) for call in calls)))
    found = [[_took(call, times) for call in calls] for _ in range(10)]
    return [statistics.median(column) for column in zip(*found)]


def measured(case: Case, threads: int, timed: bool) -> list[str]:
    """The cells of a model's row."""
    import heterosis
    from heterosis import npx

    npx.settings.threads = threads
    net, x = _network(case)
    parameters = sum(p.data().size * 4 for p in net.collect_params().values())
    run = heterosis.hybridize(lambda x: net(x))
    expected = run(x).asnumpy()
    with tempfile.TemporaryDirectory() as folder:
        path, _ = heterosis.export(net, os.path.join(folder, "model"), x, threads=threads)
        size, library = os.path.getsize(path), _library(path)
        given = x.asnumpy()
        if library(given).tobytes() != expected.tobytes():
            raise SystemExit(f"{case.title}: the library gives other numbers")
        cells = [f"{size / 1e6:.2f} MB", f"{(size - parameters) / 1e3:+,.0f} kB"]
        if timed:
            ours, its = _in_turns([lambda: (run(x), npx.waitall()), lambda: library(given)])
            cells = [f"{ours * 1e3:.3f} ms", f"{its * 1e3:.3f} ms", f"{its / ours:.3f}", *cells]
    return [case.title, *cells]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sizes", action="store_true", help="files alone, nothing timed")
    arguments = parser.parse_args()
    if unknown := set(arguments.models) - MODELS.keys():
        parser.error(f"there is no {', '.join(unknown)}; expected some of {', '.join(MODELS)}")
    timed = [] if arguments.sizes else ["hybridized", "library", "ratio"]
    heads = ["", *timed, "file", "beyond its parameters"]
    print("|", " | ".join(heads), "|")
    print("|" + "---|" * len(heads))
    for name in arguments.models or MODELS:
        row = measured(MODELS[name], arguments.threads, not arguments.sizes)
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
