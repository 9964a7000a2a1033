"""Hybridizes one model and calls it once; prints what that took as JSON. See compiling.py."""

from __future__ import annotations

import dataclasses
import json
import sys
import time

from heterosis import autograd, np, npx
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.whole import parts
from heterosis.backends.native.schedule.arena import Memory, memory
from heterosis.capture.attempts import capture
from heterosis.capture.captured import Outside
from heterosis.gluon import nn
from heterosis.gluon.model_zoo import vision
from heterosis.ir.strided import Strided


def _mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2))
    return net


def _lenet():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 5, padding=2, activation="sigmoid"), nn.AvgPool2D(2, 2))
    net.add(nn.Conv2D(16, 5, activation="sigmoid"), nn.AvgPool2D(2, 2), nn.Flatten())
    net.add(nn.Dense(120, activation="sigmoid"), nn.Dense(84, activation="sigmoid"), nn.Dense(10))
    return net


class _Chain(nn.HybridBlock):
    """The same operations again and again."""

    def __init__(self, *operations, times):
        super().__init__()
        self.operations, self.times = operations, times

    def forward(self, x):
        for _ in range(self.times):
            for operation in self.operations:
                x = operation(x)
        return x


class _Gradient(nn.HybridBlock):
    """What a network's result changes by with a parameter that is added to its input."""

    def __init__(self, net):
        super().__init__()
        self.net, self.added = net, self.params.get("added", shape=(8, 16))

    def forward(self, x):
        with autograd.record():
            y = self.net(x + self.added.data())
        return autograd.grad(y, self.added.data())


def _chain():
    return _Chain(
        np.tanh, lambda x: x * 1.01, lambda x: x + 0.1, np.sin, lambda x: np.maximum(x, -1.0),
        times=400,
    )  # fmt: skip


MODELS = {
    "MLP 1": (_mlp, (1, 512)),
    "MLP 64": (_mlp, (64, 512)),
    "LeNet 1": (_lenet, (1, 1, 28, 28)),
    "ResNet-18": (vision.resnet18_v1, (1, 3, 224, 224)),
    "ResNet-50": (vision.resnet50_v1, (1, 3, 224, 224)),
    "MobileNetV2": (vision.mobilenet_v2_1_0, (1, 3, 224, 224)),
    "2,000 operations": (_chain, (8, 16)),
    "their gradient": (lambda: _Gradient(_chain()), (8, 16)),
    "500 times softmax": (lambda: _Chain(npx.softmax, times=500), (8, 16)),
}


def _first_call(net, x) -> dict[str, float]:
    """Seconds from `hybridize` to the end of the first call, and until its result is there."""
    counters = object_cache.default_cache().counters
    compiled = counters.compile_seconds
    wall, processor = time.perf_counter(), time.process_time()
    net.hybridize()
    net(x)
    processor, called = time.process_time() - processor, time.perf_counter() - wall
    npx.waitall()
    result = time.perf_counter() - wall
    llvm = counters.compile_seconds - compiled
    return {"wall": called, "processor": processor, "result": result, "llvm": llvm}


def planned(net, x) -> tuple[int, Memory]:
    """How many kernels a call runs, and what is known of their memory."""
    captured = capture(net, (x,), {})
    program = captured.program
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    parameters = [i for i, s in enumerate(captured.sources) if isinstance(s, Outside)]
    (called, *_), _ = parts(program, layouts, parameters, {})
    found = called.scheduled()
    return len(found.kernels), memory(found)


def _memory(net, x) -> dict[str, int]:
    kernels, found = planned(net, x)
    return {"kernels": kernels} | dataclasses.asdict(found)


def main() -> None:
    make, shape = MODELS[sys.argv[1]]
    net = make()
    net.initialize()
    x = np.ones(shape)
    net(x)  # shapes, and the eager operations' own code
    npx.waitall()
    print(json.dumps(_first_call(net, x) | _memory(net, x)))


if __name__ == "__main__":
    main()
