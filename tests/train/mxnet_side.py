"""What MXNet 1.9.1 says to tests/train/cases.py. Runs in a Python that has it."""

import mxnet as mx

from tests.train.cases import (
    ARRAYS,
    INITIALIZERS,
    LOSSES,
    METRICS,
    OPTIMIZERS,
    SCHEDULERS,
    UPDATES,
    measured,
    updated,
)


def rounded(numbers):
    return [float(f"{float(n):.7g}") for n in numbers]


def elements(array):
    return rounded(array.asnumpy().astype("float64").ravel())


def optimizer(name):
    weights, _ = updated(mx, lambda a: mx.nd.array(a, dtype=a.dtype), name)
    return [elements(w) for w in weights]


def scheduler(name):
    kind, arguments = SCHEDULERS[name]
    rate = getattr(mx.lr_scheduler, kind)(**arguments)
    return rounded(rate(n) for n in UPDATES)


def loss(name):
    """The loss, and the gradient of its sum with respect to the first array."""
    kind, arguments, names = LOSSES[name]
    first, *rest = [mx.nd.array(ARRAYS[n]) for n in names]
    first.attach_grad()
    with mx.autograd.record():
        result = getattr(mx.gluon.loss, kind)(**arguments)(first, *rest)
    result.backward()
    return {"loss": elements(result), "gradient": elements(first.grad)}


def initializer(name):
    kind, arguments, parameter, shape = INITIALIZERS[name]
    array = mx.nd.full(shape, 7.0)
    mx.init.create(kind, **arguments)(mx.init.InitDesc(parameter), array)
    return elements(array)


def answers():
    """All of it, by sections and cases."""
    mx.npx.reset_np()
    return {
        "optimizers": {name: optimizer(name) for name in OPTIMIZERS},
        "schedulers": {name: scheduler(name) for name in SCHEDULERS},
        "losses": {name: loss(name) for name in LOSSES},
        "metrics": {name: rounded(measured(mx, mx.nd.array, name)) for name in METRICS},
        "initializers": {name: initializer(name) for name in INITIALIZERS},
    }
