"""What a call made is freed with its last reference: no cycle keeps it until garbage is collected,
for the next call would need new memory, page by page."""

import contextlib
import gc

import pytest

import heterosis
from heterosis import autograd, gluon, np, npx


def nested(x):
    return {"sum": (x + 1, [x * 2])}, x, x[1:]


def branches(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


def turns(x):
    while x.sum() < 100:
        x = x * 2
    return x


def recorded(function):
    def call(x):
        x.attach_grad()
        with autograd.record():
            y = function(x)
        y.backward()
        return x.grad

    return call


def step():
    net = gluon.nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam")

    def call(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(1)
        return loss

    return call


def layer(made):
    made.initialize()
    made.hybridize()
    return made


CALLS = {
    "eager": lambda: lambda x: npx.softmax(x @ x.T) + 1,
    "hybridized": lambda: heterosis.hybridize(lambda x: x * 2 + 1),
    "nested": lambda: heterosis.hybridize(nested),
    "branches": lambda: heterosis.hybridize(branches),
    "turns": lambda: heterosis.hybridize(turns),
    "recurrent": lambda: layer(gluon.rnn.LSTM(4, layout="NTC", input_size=3)),
    "dropout": lambda: layer(gluon.nn.Dropout(0.5)),
    "recorded": lambda: recorded(lambda x: (x * x).sum()),
    "recorded, hybridized": lambda: recorded(heterosis.hybridize(branches)),
    "step": step,
    "compiled step": lambda: heterosis.hybridize(step()),
}


@contextlib.contextmanager
def without_collection():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.lengthy
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.main_memory("JAX leaves some")
def test_calls_leave_no_garbage(name):
    call = CALLS[name]()
    x = np.ones((2, 4, 3) if name == "recurrent" else (4, 3))
    for _ in range(3):
        call(x)
    npx.waitall()
    with without_collection():
        for _ in range(3):
            call(x)
        npx.waitall()
        assert gc.collect() == 0
