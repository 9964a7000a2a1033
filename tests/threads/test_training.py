"""Gradients recorded, and networks trained, by several threads at once."""

import numpy
import pytest

from heterosis import autograd, gluon, np
from heterosis.gluon import nn
from tests.threads.together import together


def test_recording_on_shared_arrays():
    x = np.random.uniform(0.5, 1, (40, 30))

    def run(number):
        for _ in range(10):
            own = np.full((30, 20), 0.1 * (number + 1))
            own.attach_grad()
            with autograd.record():
                y = np.tanh(x @ own).sum()
            assert not autograd.is_recording()
            y.backward()
        return own.grad.asnumpy()

    for number, found in enumerate(together(run)):
        expected = x.asnumpy().T @ (
            1 - numpy.tanh(x.asnumpy() @ numpy.full((30, 20), 0.1 * (number + 1))) ** 2
        )
        numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_some_record_and_some_do_not():
    x = np.ones((3, 3))
    x.attach_grad()

    def run(number):
        for _ in range(100):
            if number % 2:
                with autograd.record():
                    assert (x * 2)._autograd is not None
            else:
                assert (x * 2)._autograd is None

    together(run)


def test_gradients_added_up_by_all():
    """Each gradient is added by one operation: none is lost."""
    x = np.ones((500,))
    x.attach_grad("add")

    def run(_):
        for _ in range(25):
            with autograd.record():
                y = (x * 3).sum()
            y.backward()

    together(run)
    assert x.grad.min().item() == x.grad.max().item() == 8 * 25 * 3


def trained(start, *, hybridized):
    """The weights of a network after some steps."""
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu", in_units=8), nn.Dense(1, in_units=16))
    net.initialize()
    for parameter, values in zip(net.collect_params().values(), start, strict=True):
        parameter.set_data(np.array(values))
    if hybridized:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    loss = gluon.loss.L2Loss()
    x = np.arange(160).reshape(20, 8) / 160
    y = x.sum(axis=1)
    for _ in range(15):
        with autograd.record():
            error = loss(net(x), y)
        error.backward()
        trainer.step(20)
    return [p.data().asnumpy() for p in net.collect_params().values()]


@pytest.mark.parametrize("hybridized", [False, True])
def test_networks_of_their_own(hybridized):
    shapes = (16, 8), (16,), (1, 16), (1,)
    draw = numpy.random.default_rng(5).uniform
    starts = [[draw(-0.3, 0.3, s).astype("float32") for s in shapes] for _ in range(8)]
    expected = [trained(start, hybridized=hybridized) for start in starts]
    found = together(lambda number: trained(starts[number], hybridized=hybridized))
    for one, other in zip(found, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            numpy.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
