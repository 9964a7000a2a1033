"""Trainer: steps, stale gradients, states in files."""

import numpy
import pytest

from heterosis import autograd, gluon, init, kvstore, np, optimizer
from heterosis.gluon import nn
from heterosis.runtime.errors import ArgumentError, FormatError, UnsupportedError


@pytest.fixture
def net():
    layer = nn.Dense(1, in_units=2)
    layer.initialize(init.One())
    return layer


def backward(net, x=((1.0, 2.0),)):
    with autograd.record():
        y = net(np.array(x)).sum()
    y.backward()


def test_a_step(net):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "wd": 0.0})
    backward(net)
    trainer.step(2)
    assert net.weight.data().asnumpy().tolist() == [[0.75, 0.5]]
    assert net.bias.data().asnumpy().tolist() == [-0.25]
    trainer.set_learning_rate(0.1)
    assert trainer.learning_rate == trainer.optimizer.learning_rate == 0.1


def test_gradients_can_be_changed_between(net):
    trainer = gluon.Trainer(
        net.collect_params(), optimizer.SGD(learning_rate=1.0, wd=0.0), update_on_kvstore=False
    )
    backward(net)
    trainer.allreduce_grads()
    net.weight.grad()[:] = 0
    trainer.update(1)
    assert net.weight.data().asnumpy().tolist() == [[1, 1]]


def test_stale_gradients(net):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0, "wd": 0.0})
    with pytest.raises(UserWarning, match=r"'dense0_bias', 'dense0_weight'.*ignore_stale_grad"):
        trainer.step(1)
    backward(net)
    trainer.step(1)
    net.collect_params().zero_grad()
    with pytest.raises(UserWarning):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    assert net.weight.data().asnumpy().tolist() == [[0, -1]]


def test_frozen_parameters_stay(net):
    net.bias.grad_req = "null"
    net.weight.lr_mult = 2.0
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "wd": 0.0})
    backward(net)
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[0, -1]]
    assert net.bias.data().asnumpy().tolist() == [0]


def test_states_in_files(net, tmp_path):
    path = str(tmp_path / "states")
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    backward(net)
    trainer.step(1)
    trainer.save_states(path)
    kept = net.weight.data().copy()
    backward(net)
    trainer.step(1)
    expected = net.weight.data().asnumpy()
    net.weight.set_data(kept)
    other = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.7})
    other.load_states(path)
    assert other.learning_rate == 0.1
    backward(net)
    other.step(1)
    numpy.testing.assert_array_equal(net.weight.data().asnumpy(), expected)


@pytest.mark.parametrize("length", [0, 7, 60, -1])
def test_truncated_states_are_refused(net, tmp_path, length):
    path = tmp_path / "states"
    trainer = gluon.Trainer(net.collect_params(), "adam")
    backward(net)
    trainer.step(1)
    trainer.save_states(path)
    path.write_bytes(path.read_bytes()[:length])
    before = trainer.updater.states
    with pytest.raises(FormatError, match=r"states: .*cut off.*Nothing has been loaded"):
        trainer.load_states(path)
    assert trainer.updater.states is before


def test_a_store_of_ones_own_is_given_the_gradients(net):
    class Doubling(kvstore.KVStoreBase):
        def broadcast(self, key, value, out, priority=0):
            out[0][:] = value

        def pushpull(self, key, value, out=None, priority=0):
            value[0][:] = 2 * value[0]

    trainer = gluon.Trainer(
        net.collect_params(), "sgd", {"learning_rate": 0.5, "wd": 0.0}, kvstore=Doubling()
    )
    backward(net)
    trainer.step(1)
    assert net.weight.data().asnumpy().tolist() == [[0, -1]]


def test_wrong_arguments(net):
    with pytest.raises(ArgumentError, match="collect_params"):
        gluon.Trainer([1, 2], "sgd")
    with pytest.raises(ArgumentError, match="optimizer_params"):
        gluon.Trainer(net.collect_params(), optimizer.SGD(), {"wd": 1})
    with pytest.raises(UnsupportedError):
        gluon.Trainer(net.collect_params(), "sgd", kvstore="dist_async")
    with pytest.raises(RuntimeError, match="has not been initialized"):
        gluon.Trainer(nn.Dense(1, in_units=1).collect_params(), "sgd")
    with pytest.raises(ArgumentError, match="update_on_kvstore=False"):
        gluon.Trainer(net.collect_params(), "sgd", update_on_kvstore=True).update(1)


def test_training_fits_a_line():
    np.random.seed(1)
    net = nn.Dense(1)
    net.initialize(init.Normal(0.01))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    x = np.random.normal(size=(64, 2))
    y = np.dot(x, np.array([2.0, -3.4])) + 4.2
    for _ in range(150):
        with autograd.record():
            loss = np.square(net(x).reshape(-1) - y) / 2
        loss.backward()
        trainer.step(64)
    numpy.testing.assert_allclose(net.weight.data().asnumpy(), [[2, -3.4]], atol=0.02)
    numpy.testing.assert_allclose(net.bias.data().asnumpy(), [4.2], atol=0.02)
