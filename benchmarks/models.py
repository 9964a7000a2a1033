"""Inference of whole models: python benchmarks/models.py [--models resnet50 bert ...]

Each is hybridized, beside PyTorch (imperative, and as frozen TorchScript), ONNX Runtime and
OpenVINO; all have the same weights and must give the same outputs. `peak` is the time that the
model's matrix products and convolutions would take at the rate of multiply-and-adds in registers.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os

import runner
import sessions
from networks import Case, hybridized, place, run_script, written

CASES = {
    "mlp1": Case("MLP 512-256-128-2, batch 1", "perceptron", (1, 512)),
    "mlp64": Case("MLP 512-256-128-2, batch 64", "perceptron", (64, 512)),
    "lenet1": Case("LeNet, batch 1", "lenet", (1, 1, 28, 28)),
    "lenet64": Case("LeNet, batch 64", "lenet", (64, 1, 28, 28)),
    "googlenet": Case("GoogLeNet, 96 x 96", "googlenet", (1, 3, 96, 96)),
    "resnet18": Case("ResNet-18, 224 x 224", "resnet18", (1, 3, 224, 224)),
    "resnet50": Case("ResNet-50, 224 x 224", "resnet50", (1, 3, 224, 224)),
    "mobilenet": Case("MobileNetV2, 224 x 224", "mobilenet", (1, 3, 224, 224)),
    "lstm1": Case("LSTM, 35 x 1 x 256", "lstm", (35, 1, 256)),
    "lstm32": Case("LSTM, 35 x 32 x 256", "lstm", (35, 32, 256)),
    "encoder": Case("encoder, 4 layers, 64 x 256", "encoder", (1, 64, 256)),
    "bert": Case("BERT-base, 128 words", "bert", (1, 128), words=30522),
}
_OPERATIONS = "operations.json"


@contextlib.contextmanager
def prepare(models):
    """What the workers need, in a folder: parameters, counts of operations, ONNX files."""
    with written("models", models) as counts:
        with open(place(_OPERATIONS), "w") as file:
            json.dump(counts, file)
        found = runner.interpreters()
        if "torch" in found:
            run_script([found["torch"]], "networks_torch.py", ["models", *models])
        yield


# Every function returns (version, start, wait, to_numpy); start() gives the function to call.


def _nothing():
    pass


def heterosis(model):
    import heterosis

    heterosis.install_as_mxnet()
    from networks_gluon import loaded

    case = CASES[model]
    return hybridized(loaded(case.network), case)


def torch(script, model):
    import torch
    from networks_torch import loaded

    torch.set_grad_enabled(False)
    case = CASES[model]
    net, x = loaded(case.network).eval(), torch.from_numpy(case.input())

    def start():
        run = torch.jit.freeze(torch.jit.trace(net, x)) if script else net
        return lambda: run(x)

    return torch.__version__, start, _nothing, lambda y: y.numpy()


def session(runtime, model):
    version, start, to_numpy = runtime(place(model + ".onnx"), CASES[model].input())
    return version, start, _nothing, to_numpy


CONTENDERS = {
    "heterosis": heterosis,
    "torch eager": functools.partial(torch, False),
    "torch script": functools.partial(torch, True),
    "onnxruntime": functools.partial(session, sessions.onnxruntime),
    "openvino": functools.partial(session, sessions.openvino),
}


def measure(contender: str, model: str) -> dict:
    """Seconds a call, and until the first result, and a number that follows from the outputs."""
    title = CASES[model].title
    if contender == runner.PEAK:
        return _measure_peak(model)
    return runner.sample(title, *CONTENDERS[contender](model))


def _measure_peak(model: str) -> dict:
    import peak

    with open(place(_OPERATIONS)) as file:
        count = json.load(file)[model]
    seconds = count * peak.seconds_an_operation(int(os.environ["OMP_NUM_THREADS"]))
    return {"version": "", "cases": {CASES[model].title: (seconds, None)}}


if __name__ == "__main__":
    runner.main(
        __file__, measure, contenders=(*CONTENDERS, runner.PEAK), models=tuple(CASES),
        prepare=prepare,
    )  # fmt: skip
