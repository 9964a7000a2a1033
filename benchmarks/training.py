"""One step of training: python benchmarks/training.py [--models mlp resnet18 ...]

A step is the forward pass, the loss, the backward pass and an update by SGD (by Adam for the GPT),
and it is waited for.
All start from the same values; the loss after a few steps must be the same. "heterosis hybrid" is
a hybridized network trained imperatively, "heterosis step" the whole step compiled.
"""

from __future__ import annotations

import functools
import math
import time

import numpy
import runner
from networks import Case, values_of, written

CASES = {
    "mlp": Case("MLP 512-256-128-2, batch 64", "perceptron", (64, 512)),
    "lenet": Case("LeNet, batch 64", "lenet", (64, 1, 28, 28)),
    "lstm": Case("LSTM, 35 x 32 x 256", "language_model", (35, 32, 256)),
    "resnet18": Case("ResNet-18, batch 8, 224 x 224", "resnet18", (8, 3, 224, 224)),
    "gpt": Case("GPT, 4 layers, 32 x 64 x 128", "gpt", (32, 64), words=65),
}
_LABELS = {
    "mlp": (2, 64), "lenet": (10, 64), "lstm": (256, 35 * 32), "resnet18": (1000, 8),
    "gpt": (65, 32 * 64),
}  # fmt: skip
_BY_ADAM = {"gpt"}  # the others are trained by SGD
_RATE, _ADAMS_RATE = 0.01, 0.001
_STEPS_COMPARED = 3


def labels(model: str) -> numpy.ndarray:
    """The classes that the model learns for its input, one after another."""
    classes, count = _LABELS[model]
    return numpy.random.default_rng(2).integers(0, classes, count)


# Every function returns (version, step); a step returns the loss, one number.


def _of_input(array, model):
    """The case's input as an array of a library's; words are int32 in all of them."""
    values = CASES[model].input()
    return array(values, dtype=str(values.dtype))


def _gluon(mxnet, model, how):
    """Gluon, ours and MXNet's: `how` is "eager", "hybrid" or a function that compiles steps."""
    from networks_gluon import loaded

    net = loaded(CASES[model].network)
    x, y = _of_input(mxnet.np.array, model), mxnet.np.array(labels(model))
    if how == "hybrid":
        net(x)  # completes the shapes
        net.hybridize(static_alloc=True, static_shape=True)
    loss_of = mxnet.gluon.loss.SoftmaxCrossEntropyLoss()
    name, rate = ("adam", _ADAMS_RATE) if model in _BY_ADAM else ("sgd", _RATE)
    trainer = mxnet.gluon.Trainer(net.collect_params(), name, {"learning_rate": rate})
    count = y.size

    def step(x, y):
        with mxnet.autograd.record():
            scores = net(x)
            loss = loss_of(scores.reshape((count, scores.shape[-1])), y)
        loss.backward()
        trainer.step(count)
        return loss

    step = how(step) if callable(how) else step

    def step_and_wait():
        loss = step(x, y)
        mxnet.npx.waitall()
        return float(loss.mean())

    return step_and_wait


def heterosis(how, model):
    import heterosis

    heterosis.install_as_mxnet()
    how = heterosis.hybridize if how == "step" else how
    return heterosis.__version__, _gluon(heterosis, model, how)


def mxnet(how, model):
    numpy.bool = numpy.bool_  # MXNet 1.9.1 asks for it, NumPy 1.23 warns of it
    import mxnet

    mxnet.npx.set_np()
    return mxnet.__version__, _gluon(mxnet, model, how)


def torch(compiled, model):
    import torch
    from networks_torch import loaded

    net = loaded(CASES[model].network).train()
    run = torch.compile(net) if compiled else net
    x, y = torch.from_numpy(CASES[model].input()), torch.from_numpy(labels(model))
    loss_of = torch.nn.CrossEntropyLoss()
    if model in _BY_ADAM:
        optimizer = torch.optim.Adam(net.parameters(), lr=_ADAMS_RATE)
    else:
        optimizer = torch.optim.SGD(net.parameters(), lr=_RATE)

    def step():
        optimizer.zero_grad()
        scores = run(x)
        loss = loss_of(scores.reshape(len(y), -1), y)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return torch.__version__, step


def _jax_sgd(arrays, gradients, _state):
    """New parameters, and nothing to remember."""
    return [a - _RATE * g for a, g in zip(arrays, gradients)], None


def _jax_adam(arrays, gradients, state):
    """New parameters, and the means of the gradients, of their squares, and the steps taken."""
    from jax import numpy as jnp

    first, second, count = state or ([0 * a for a in arrays], [0 * a for a in arrays], 0)
    count = count + 1
    first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
    second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients)]
    rate = _ADAMS_RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    moved = zip(arrays, first, second)
    return [a - rate * m / (jnp.sqrt(v) + 1e-8) for a, m, v in moved], (first, second, count)


def jax(model):
    import jax
    from jax import numpy as jnp
    from networks_jax import NETWORKS, Parameters

    network = NETWORKS[CASES[model].network]
    x, y = _of_input(jnp.array, model), jnp.array(labels(model))
    arrays, state = [jnp.array(value) for value in values_of(CASES[model].network)], None
    optimize = _jax_adam if model in _BY_ADAM else _jax_sgd

    def loss_of(arrays, x, y):
        parameters = Parameters(arrays)
        scores = jax.nn.log_softmax(network(parameters, x).reshape(len(y), -1))
        return -scores[jnp.arange(len(y)), y].mean(), parameters.arrays

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def update(arrays, state, x, y):
        (loss, arrays), gradients = jax.value_and_grad(loss_of, has_aux=True)(arrays, x, y)
        return loss, *optimize(arrays, gradients, state)

    def step():
        nonlocal arrays, state
        loss, arrays, state = update(arrays, state, x, y)
        return float(jax.block_until_ready((loss, arrays))[0])

    return jax.__version__, step


CONTENDERS = {
    "heterosis eager": functools.partial(heterosis, "eager"),
    "heterosis hybrid": functools.partial(heterosis, "hybrid"),
    "heterosis step": functools.partial(heterosis, "step"),
    "torch eager": functools.partial(torch, False),
    "torch compile": functools.partial(torch, True),
    "jax jit": jax,
    "mxnet eager": functools.partial(mxnet, "eager"),
    "mxnet hybrid": functools.partial(mxnet, "hybrid"),
}


def measure(contender: str, model: str) -> dict:
    """Seconds a step, and for the first one, and the loss after some steps."""
    version, step = CONTENDERS[contender](model)
    start = time.perf_counter()
    losses = [step()]
    first = time.perf_counter() - start
    losses += [step() for _ in range(_STEPS_COMPARED - 1)]
    assert all(math.isfinite(loss) for loss in losses), losses
    title = CASES[model].title
    seconds = runner.seconds_a_call(step, lambda: None)
    return {"version": version, "cases": {title: (seconds, losses[-1])}, "first": {title: first}}


if __name__ == "__main__":
    runner.main(
        __file__, measure, contenders=tuple(CONTENDERS), threads=(1,), models=tuple(CASES),
        prepare=functools.partial(written, "training"),
    )  # fmt: skip
