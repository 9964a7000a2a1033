"""Calls of 64 sizes in random order: python benchmarks/sizes.py [MODEL...] [--steady] [--peers]

Batches, or lengths of sequences, from 1 to 64. Per model: how often it is captured and compiled,
how long all first calls take, and what the first call of a size takes beyond the calls that follow
it: the median, and the longest one. With `--peers`, the same calls of `torch.compile(dynamic=True)`
and, where nothing is trained, of ONNX Runtime and OpenVINO with a dynamic extent. With `--steady`:
what a call takes with open extents beside one that is compiled for this size alone, in turns, in
one process. Each contender has a process of its own, and an empty cache. `--into DOCUMENT.md` puts
the table between the document's marks.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy
import runner
import sessions

SIZES = [int(n) for n in numpy.random.default_rng(0).permutation(64) + 1]
_FAR = (20, 64)  # sizes of the steady calls
_LATER = 5  # calls of each size when it is known

# Networks of networks_gluon and networks_torch, and the shape of an input of `n`.
MODELS: dict[str, tuple[str, Callable[[int], tuple[int, ...]]]] = {
    "MLP, batches": ("perceptron", lambda n: (n, 512)),
    "LeNet, batches": ("lenet", lambda n: (n, 1, 28, 28)),
    "ResNet-18 of 64 x 64, batches": ("resnet18", lambda n: (n, 3, 64, 64)),
    "LSTM, lengths": ("lstm", lambda n: (n, 8, 256)),
    "encoder, lengths": ("encoder", lambda n: (1, n, 256)),
}
STEPS = {f"{model.split(',')[0]}, steps of training": model for model in MODELS}
PEERS = ("torch", "onnxruntime", "openvino")
_MARKS = [f"<!-- sizes: {end} -->" for end in ("begin", "end")]


def _input(model: str, n: int) -> numpy.ndarray:
    _, shape = MODELS[STEPS.get(model, model)]
    return numpy.random.default_rng(n).normal(size=shape(n)).astype("float32")


# -- contenders: what calls a size and waits for its result, and how often it was made ------------


@functools.cache
def _network(model: str):
    """The network, the same for all contenders: where parameters lie makes a difference."""
    import heterosis

    heterosis.install_as_mxnet()
    from networks_gluon import NETWORKS

    net = NETWORKS[MODELS[STEPS.get(model, model)][0]]()
    net.initialize()
    net(heterosis.np.array(_input(model, 2)))
    return net


def _heterosis(model: str, dynamic: object):
    import heterosis
    from heterosis import autograd, gluon, npx
    from heterosis.backends.native.compile import object_cache

    net = _network(model)
    if model in STEPS:
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4})

        def step(x):
            with autograd.record():
                loss = (net(x) ** 2).sum()
            loss.backward()
            trainer.step(x.shape[0])
            return loss

        run = heterosis.hybridize(step, dynamic=dynamic)
    else:
        run = heterosis.hybridize(lambda x: net(x), dynamic=dynamic)
    inputs = {n: heterosis.np.array(_input(model, n)) for n in SIZES}
    npx.waitall()
    counters = object_cache.default_cache().counters
    before = counters.compiles  # of what an installation brings, and this one may lack

    def call(n: int) -> None:
        run(inputs[n])
        npx.waitall()

    def counts() -> dict[str, int]:
        return {"captures": run.captures, "compiles": counters.compiles - before}

    return call, counts


def _torch(model: str):
    import torch
    from networks_torch import NETWORKS

    net = NETWORKS[MODELS[STEPS.get(model, model)][0]]()
    inputs = {n: torch.from_numpy(_input(model, n)) for n in SIZES}
    compiled = torch.compile(net.train() if model in STEPS else net.eval(), dynamic=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4)

    def call(n: int) -> None:
        if model not in STEPS:
            with torch.no_grad():
                compiled(inputs[n])
            return
        optimizer.zero_grad()
        found = compiled(inputs[n])
        ((found**2).sum() / n).backward()
        optimizer.step()

    def counts() -> dict[str, int]:
        from torch._dynamo.utils import counters

        graphs = counters["stats"]["unique_graphs"]
        return {"captures": graphs, "compiles": graphs}

    return call, counts


def _write_onnx(model: str, path: str) -> None:
    import torch
    from networks_torch import NETWORKS

    network, shape = MODELS[model]
    axis = shape(0).index(0)  # of the extent that varies
    torch.onnx.export(
        NETWORKS[network]().eval(), (torch.from_numpy(_input(model, 2)),), path,
        input_names=["x"], dynamic_axes={"x": {axis: "n"}}, opset_version=17, dynamo=False,
    )  # fmt: skip


def _session(start: Callable, model: str):
    """One of the runtimes of ONNX, which read what PyTorch has written."""
    run = start(os.environ[_ONNX])
    given = {n: _input(model, n) for n in SIZES}

    def call(n: int) -> None:
        run(given[n])

    return call, lambda: {"captures": 1, "compiles": 1}


CONTENDERS: dict[str, Callable] = {
    "heterosis": lambda model: _heterosis(model, "auto"),
    "torch": _torch,
    "onnxruntime": functools.partial(_session, sessions.onnxruntime_session),
    "openvino": functools.partial(_session, sessions.openvino_session),
}
_ONNX = "HETEROSIS_BENCHMARK_ONNX"  # the file that a runtime reads

# -- workers --------------------------------------------------------------------------------------


def _seconds(call: Callable[[int], None], n: int) -> float:
    start = time.perf_counter()
    call(n)
    return time.perf_counter() - start


def _sizes(model: str, contender: str) -> dict[str, float]:
    """One call of each size, then those that show what each takes when it is known: in the same
    order, since a call after one of another size finds less in the processor's caches."""
    call, counts = CONTENDERS[contender](model)
    first, *later = ({n: _seconds(call, n) for n in SIZES} for _ in range(1 + _LATER))
    steady = {n: statistics.median(each[n] for each in later) for n in SIZES}
    beyond = [first[n] - steady[n] for n in SIZES[2:]]
    return {
        **counts(), "seconds": sum(first.values()), "beyond": statistics.median(beyond),
        "longest": max(beyond),
    }  # fmt: skip


def _steady(model: str, rounds: int) -> dict[str, float]:
    """What calls of known sizes take, those of open extents beside those of closed ones."""
    (is_open, _), (closed, _) = _heterosis(model, "auto"), _heterosis(model, False)
    found = {}
    for n in _FAR:
        for call in (is_open, closed):
            for other in (2, 3, n):  # by now extents are known to vary
                call(other)
        pairs = [(_batch(is_open, n), _batch(closed, n)) for _ in range(rounds)]
        best = [min(times) for times in zip(*pairs, strict=True)]
        found[f"best {n}"] = best[1] / best[0]
        found[f"median {n}"] = statistics.median(two / one for one, two in pairs)
    return found


def _batch(call: Callable[[int], None], n: int) -> float:
    count, taken = 1, 0.0
    while taken < 5e-3:  # so long that the clock is nothing
        count *= 2
        start = time.perf_counter()
        for _ in range(count):
            call(n)
        taken = time.perf_counter() - start
    return taken / count


# -- the parent -----------------------------------------------------------------------------------


def _run(contender: str, model: str, threads: int) -> dict[str, float]:
    """What a worker prints, with an empty cache and, for a runtime of ONNX, the model's file."""
    found = runner.interpreters()
    with tempfile.TemporaryDirectory() as folder:
        environment = runner.environment_of(threads) | {
            "HETEROSIS_CACHE": folder, "TORCHINDUCTOR_CACHE_DIR": folder,
            _ONNX: os.path.join(folder, "model.onnx"),
        }  # fmt: skip

        def worker(name: str) -> str:
            python = found.get(name.split(maxsplit=1)[0], sys.executable)
            command = [python, os.path.abspath(__file__), "--threads", str(threads)]
            return subprocess.check_output(
                [*command, "--work", name, model], env=environment, text=True
            )

        if contender in ("onnxruntime", "openvino"):
            worker("torch onnx")
        return json.loads(worker(contender).splitlines()[-1])


def _work(contender: str, model: str, rounds: int) -> dict[str, float]:
    if contender == "torch onnx":
        _write_onnx(model, os.environ[_ONNX])
        return {}
    return _steady(model, rounds) if contender == "steady" else _sizes(model, contender)


_COLUMNS = {  # what a worker tells: how it stands in the table, and what of its unit it is
    "captures": ("captures", 1), "compiles": ("compilations", 1),
    "seconds": ("all first calls, s", 1), "beyond": ("beyond, ms", 1e3),
    "longest": ("the longest, ms", 1e3),
}  # fmt: skip


def _table(rows: list[tuple[str, str, dict[str, float]]]) -> str:
    """Models and contenders in Markdown, a line each."""
    names = list(rows[0][2])
    heads = [_COLUMNS.get(name, (name, 1))[0] for name in names]
    lines = ["| | contender | " + " | ".join(heads) + " |", "|---|---|" + "---:|" * len(heads)]
    for model, contender, found in rows:
        cells = [f"{found[name] * _COLUMNS.get(name, (name, 1))[1]:.3g}" for name in names]
        lines.append("| " + " | ".join([model, contender, *cells]) + " |")
    return "\n".join(lines)


def _put_into(path: str, table: str) -> None:
    begin, end = _MARKS
    with open(path) as file:
        before, rest = file.read().split(begin)
    _, after = rest.split(end)
    with open(path, "w") as file:
        file.write(f"{before}{begin}\n\n{runner.heading()}\n\n{table}\n\n{end}{after}")


def _contenders(model: str, given: argparse.Namespace) -> list[str]:
    if given.steady:
        return ["steady"]
    peers = [name for name in PEERS if name in runner.interpreters()] if given.peers else []
    return ["heterosis", *(name for name in peers if name == "torch" or model not in STEPS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=[*MODELS, *STEPS])
    parser.add_argument("--steady", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--into", metavar="DOCUMENT.md")
    parser.add_argument("--work", nargs=2, metavar=("CONTENDER", "MODEL"))
    given = parser.parse_args()
    if given.work:
        print(json.dumps(_work(*given.work, given.rounds)))
        return
    print(runner.heading(), end="\n\n")
    rows = []
    for model in given.models:
        for contender in _contenders(model, given):
            found = _run(contender, model, given.threads)
            rows.append((model, contender, found))
            told = ", ".join(f"{name} {value:.4g}" for name, value in found.items())
            print(f"{model}, {contender}: {told}", flush=True)
    print(f"\n{_table(rows)}")
    if given.into:
        _put_into(given.into, _table(rows))


if __name__ == "__main__":
    main()
