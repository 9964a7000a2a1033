"""Training steps compiled whole, and gradients through hybridized calls."""

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np
from heterosis.gluon import nn
from heterosis.ir.program import Program
from heterosis.lr_scheduler import FactorScheduler
from heterosis.runtime.errors import CaptureError

OPTIMIZERS = [
    ("sgd", {"learning_rate": 0.1}),
    ("sgd", {"momentum": 0.9, "wd": 0.01, "clip_gradient": 0.5}),
    ("sgd", {"lr_scheduler": lambda: FactorScheduler(step=2, factor=0.5, base_lr=0.1)}),
    ("adam", {}),
    ("nadam", {}),
    ("adagrad", {}),
    ("rmsprop", {"centered": True}),
    ("ftrl", {}),
    ("lamb", {}),
]


def _batch(seed):
    random = numpy.random.default_rng(seed)
    return np.array(random.normal(size=(8, 6))), np.array(random.integers(0, 4, 8))


def _step(optimizer, settings):
    np.random.seed(3)
    net = nn.HybridSequential(prefix="net_")
    # Parameters are updated in the order of their names, as in MXNet, and Nadam's schedule depends
    # on it: names that count the layers of a process would put dense10 ahead of dense9.
    with net.name_scope():
        net.add(nn.Dense(8, activation="relu", in_units=6), nn.BatchNorm(in_channels=8))
        net.add(nn.Dropout(0.3), nn.Dense(4, in_units=8))
    net.initialize()
    made = {name: value() if callable(value) else value for name, value in settings.items()}
    trainer = gluon.Trainer(net.collect_params(), optimizer, made)
    loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def step(x, y):
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(len(x))
        return value.mean()

    return net, step


def _values(net):
    return [p.data().asnumpy() for p in net.collect_params().values()]


@pytest.mark.lengthy
@pytest.mark.parametrize("optimizer, settings", OPTIMIZERS)
def test_a_whole_training_step_as_one_program(optimizer, settings):
    steps_agree(optimizer, settings, heterosis.hybridize)


def steps_agree(optimizer, settings, hybridize):
    """Steps leave the same weights captured by `hybridize`, and are captured once."""
    found = []
    for compile_ in (lambda step: step, hybridize):
        net, step = _step(optimizer, settings)
        step = compile_(step)
        np.random.seed(5)
        losses = [float(step(*_batch(i))) for i in range(4)]
        found.append((losses, _values(net)))
    assert step.captures == 1
    (losses, weights), (own_losses, own_weights) = found
    numpy.testing.assert_allclose(own_losses, losses, rtol=1e-5)
    for a, b in zip(own_weights, weights, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_gradients_can_be_looked_at_after_a_compiled_step():
    net, step = _step("sgd", {})
    _, same = _step("sgd", {})
    heterosis.hybridize(step)(*_batch(0))
    gradient = net[0].weight.grad().asnumpy()
    assert gradient.any() and net[0].weight.has_fresh_grad
    del same


def test_an_optimizer_that_supplies_other_numbers_is_refused():
    np.random.seed(3)
    net = nn.Dense(4, in_units=6)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"clip_gradient": 0.5})

    @heterosis.hybridize
    def step(x):
        with autograd.record():
            value = net(x).sum()
        value.backward()
        trainer.step(len(x))
        return value

    x, _ = _batch(0)
    step(x)
    trainer.optimizer.clip_gradient = None
    with pytest.raises(CaptureError, match="Hybridize the training step again"):
        step(x)


def test_an_optimizer_written_in_python_is_refused():
    @heterosis.optimizer.register
    class HalfSteps(heterosis.optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            self._update_count(index)
            weight[...] = weight - grad * 0.5

    _, step = _step("halfsteps", {})
    step(*_batch(0))
    with pytest.raises(CaptureError, match="HalfSteps computes its update in Python"):
        heterosis.hybridize(step)(*_batch(0))


def _programs(compiled):
    alike = compiled._programs.values()
    return [program for programs in alike for program in programs if program.kept.kept]


def test_backward_computes_no_product_again():
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.Dense(8, activation="relu"), nn.Dense(4))
    net.initialize()
    net.hybridize()
    with autograd.record():
        y = net(_batch(0)[0])
    y.backward()
    (program,) = _programs(net._compiled)
    (derivative,) = program.kept._derivatives.values()
    nodes = Program(derivative.inputs, derivative.outputs).nodes()
    products = [node for node in nodes if node.primitive.name == "matmul"]
    assert len(products) == 5  # two a layer; the first layer's input wants no gradient


@pytest.mark.lengthy
def test_gradients_of_gradients():
    weight = np.array(numpy.random.default_rng(1).normal(size=(6, 3)))
    weight.attach_grad()

    def penalty(x):
        return np.tanh(x @ weight) ** 3

    def second(function, x):
        with autograd.record():
            (first,) = autograd.grad(function(x), [weight], create_graph=True)
            total = (first**2).sum()
        total.backward()
        return weight.grad.asnumpy()

    x = _batch(2)[0]
    wanted = second(penalty, x)
    numpy.testing.assert_allclose(second(heterosis.hybridize(penalty), x), wanted, rtol=1e-4)


def test_gradients_taken_inside():
    @heterosis.hybridize
    def slope(x):
        y = x * 1
        y.attach_grad()
        with autograd.record():
            z = (y**3).sum()
        z.backward()
        return y.grad

    for i in range(2):
        x, _ = _batch(i)
        numpy.testing.assert_allclose(slope(x).asnumpy(), 3 * x.asnumpy() ** 2, rtol=1e-5)


def test_variables_as_arguments_keep_their_gradient_outside():
    @heterosis.hybridize
    def loss(x):
        with autograd.record():
            y = (x * x).sum()
        y.backward()
        return y

    x = np.ones((3,))
    x.attach_grad()
    with pytest.raises(CaptureError, match="attach_grad"):
        loss(x)
