"""The native back end and XLA's side by side: python benchmarks/xla.py [--models mlp1 resnet18 ...]

One process runs both, in turns; the time of a call is the median over all of them, until its
results are there. Both have the same values, and results are compared.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from functools import partial

import numpy

import heterosis
from heterosis import autograd, gluon, np, npx

heterosis.install_as_mxnet()
from networks import Case
from networks_gluon import NETWORKS

BACK_ENDS = ("native", "xla")
CASES = {
    "mlp1": Case("MLP 512-256-128-2, batch 1", "perceptron", (1, 512)),
    "mlp64": Case("MLP 512-256-128-2, batch 64", "perceptron", (64, 512)),
    "lenet1": Case("LeNet, batch 1", "lenet", (1, 1, 28, 28)),
    "lenet64": Case("LeNet, batch 64", "lenet", (64, 1, 28, 28)),
    "googlenet": Case("GoogLeNet, 96 x 96", "googlenet", (1, 3, 96, 96)),
    "mobilenet": Case("MobileNetV2, 224 x 224", "mobilenet", (1, 3, 224, 224)),
    "resnet18": Case("ResNet-18, 224 x 224", "resnet18", (1, 3, 224, 224)),
    "resnet50": Case("ResNet-50, 224 x 224", "resnet50", (1, 3, 224, 224)),
    "lstm1": Case("LSTM, 35 x 1 x 256", "lstm", (35, 1, 256)),
    "lstm32": Case("LSTM, 35 x 32 x 256", "lstm", (35, 32, 256)),
    "encoder": Case("encoder, 4 layers, 64 x 256", "encoder", (1, 64, 256)),
}
STEPS = {
    "mlp": Case("step: MLP, batch 64", "perceptron", (64, 512)),
    "lenet": Case("step: LeNet, batch 64", "lenet", (64, 1, 28, 28)),
    "resnet": Case("step: ResNet-18, batch 8, 224 x 224", "resnet18", (8, 3, 224, 224)),
}
_SECONDS, _MOST_CALLS = 1.5, 300  # of a case


def network(case: Case, seed: int = 3):
    np.random.seed(seed)
    net = NETWORKS[case.network]()
    net.initialize(heterosis.init.Xavier())
    x = np.array(case.input())
    net(x)
    return net, x


def inference(case: Case, backend: str):
    """A function to call, without arguments."""
    net, x = network(case)
    net.hybridize(backend=backend)
    return lambda: net(x)


def training(case: Case, backend: str):
    """A whole step as one program, as a function without arguments that gives the loss."""
    net, x = network(case)
    y = np.array(numpy.random.default_rng(2).integers(0, 2, len(x)))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1e-4, "momentum": 0.9})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()

    @partial(heterosis.hybridize, backend=backend)
    def step(x, y):
        with autograd.record():
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(len(x))
        return loss.mean()

    return lambda: step(x, y)


def seconds(call) -> float:
    begun = time.perf_counter()
    call()
    npx.waitall()
    return time.perf_counter() - begun


def compared(make, case: Case) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of the first call, and of the later ones."""
    calls, first, results = {}, {}, {}
    for backend in BACK_ENDS:
        calls[backend] = make(case, backend)
        begun = time.perf_counter()
        results[backend] = calls[backend]().asnumpy()
        first[backend] = time.perf_counter() - begun
    own, other = (results[backend] for backend in BACK_ENDS)
    numpy.testing.assert_allclose(other, own, rtol=1e-3, atol=1e-3 * numpy.abs(own).max())
    times: dict[str, list[float]] = {backend: [] for backend in BACK_ENDS}
    end = time.perf_counter() + _SECONDS
    while len(times["xla"]) < _MOST_CALLS and (time.perf_counter() < end or len(times["xla"]) < 3):
        for backend in BACK_ENDS:
            times[backend].append(seconds(calls[backend]))
    return first, {backend: statistics.median(rows) for backend, rows in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[*CASES, *STEPS])
    chosen = parser.parse_args().models
    print("| | native | XLA | XLA / native | first call: native | XLA |\n|---|---|---|---|---|---|")
    for name in chosen:
        case = CASES.get(name) or STEPS[name]
        first, later = compared(inference if name in CASES else training, case)
        own, other = (1e3 * later[backend] for backend in BACK_ENDS)
        row = f"{own:.3g} ms | {other:.3g} ms | {other / own:.2g}"
        print(f"| {case.title} | {row} | {first['native']:.2g} s | {first['xla']:.2g} s |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
