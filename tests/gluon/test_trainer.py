"""Trainer: steps, stale gradients, states in files."""

import numpy
import pytest

import heterosis
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


class Chooses(nn.HybridBlock):
    """Comes to its second layer where the first gives something positive."""

    def __init__(self):
        super().__init__()
        self.always, self.perhaps = nn.Dense(2, in_units=2), nn.Dense(2, in_units=2)

    def forward(self, x):
        y = self.always(x)
        return self.perhaps(y) if y.sum() > 0 else y


class Repeats(Chooses):
    """Comes to it as long as there is something negative."""

    def forward(self, x):
        y = self.always(x)
        while y.sum() < -1:
            y = self.perhaps(y) * -0.1
        return y


def trained(kind, hybridized: str, inputs, *, ignore: bool):
    """Parameters, their gradients and what is raised, after each of several steps."""
    net = kind()
    net.initialize(init.One())
    options = {"learning_rate": 0.1, "wd": 0.5, "momentum": 0.9}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options)

    def step(x):
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1, ignore_stale_grad=ignore)

    if hybridized == "network":
        net.hybridize()
    elif hybridized == "step":
        step = heterosis.hybridize(step)
    found = []
    for number in inputs:
        try:
            step(np.full((1, 2), number))
            raised = ""
        except UserWarning as error:
            raised = " ".join(str(error).split("'")[::2])  # the names of layers are numbered
        parts = [part for p in net.collect_params().values() for part in (p.data(), p.grad())]
        found.append((raised, numpy.concatenate([part.asnumpy().ravel() for part in parts])))
    return found


@pytest.mark.parametrize("kind", [Chooses, Repeats])
@pytest.mark.parametrize(
    "hybridized, ignore", [("network", False), ("network", True), ("step", False)]
)
def test_what_is_not_come_to_is_as_stale_as_imperatively(kind, hybridized, ignore):
    """Neither zeros nor decay: a variable that no gradient flows to is left as it is."""
    inputs = (1.0, 2.0, 0.5) if kind is Chooses else (-1.0, -2.0, -0.5)
    inputs = (*inputs, -inputs[0])
    expected = trained(kind, "", inputs, ignore=ignore)
    assert bool(expected[-1][0]) != ignore
    for (message, values), (wanted, known) in zip(
        trained(kind, hybridized, inputs, ignore=ignore), expected, strict=True
    ):
        assert message[:50] == wanted[:50]  # of several loops, a captured step names one
        if not (message and hybridized == "step"):  # a captured step that fails changes nothing
            numpy.testing.assert_allclose(values, known, rtol=1e-6)


def test_a_captured_step_does_not_ignore_what_it_may_not_come_to():
    with pytest.raises(UnsupportedError, match=r"ignore_stale_grad.*depends on arrays"):
        trained(Chooses, "step", (1.0,), ignore=True)


@pytest.mark.parametrize("name", ["adam", "ftml"])
def test_a_captured_step_that_fails_is_not_counted(name):
    """Rates and corrections follow from how often parameters have been updated."""
    net = Chooses()
    net.initialize(init.One())
    scheduler = heterosis.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
    options = {"learning_rate": 0.1, "lr_scheduler": scheduler}
    trainer = gluon.Trainer(net.collect_params(), name, options)

    def step(x):
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(1)

    def counts(number, step):
        try:
            step(np.full((1, 2), number))
        except UserWarning:
            assert number < 0
        weight = net.always.weight.data().asnumpy().copy()
        return trainer.optimizer.num_update, trainer.learning_rate, weight

    inputs = (-1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0)
    expected = [counts(number, step) for number in inputs]
    assert [count for count, *_ in expected] == [0, 1, 1, 2, 3, 3, 4]
    net.initialize(init.One(), force_reinit=True)
    scheduler = heterosis.lr_scheduler.FactorScheduler(2, 0.5, base_lr=0.1)
    trainer = gluon.Trainer(net.collect_params(), name, options | {"lr_scheduler": scheduler})
    captured = heterosis.hybridize(step)
    for number, (count, rate, weight) in zip(inputs, expected, strict=True):
        found = counts(number, captured)
        assert found[:2] == (count, rate)
        numpy.testing.assert_allclose(found[2], weight, rtol=1e-6)


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
