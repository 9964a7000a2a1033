"""Some of what `every.py` has all of: whole steps of training, choices and loops, random numbers,
what calls leave behind."""

import numpy
import pytest

from heterosis import autograd, gluon, np
from heterosis.gluon import nn
from heterosis.ops import REGISTRY
from tests.backends.xla.every import EXACT, hybridize, near
from tests.capture.calls import gradients_agree, results_agree
from tests.capture.control_programs import PROGRAMS as CONTROL
from tests.capture.control_programs import SHIFTS, called
from tests.capture.control_programs import agree as control_agrees
from tests.capture.test_random import agree as numbers_agree
from tests.capture.test_random import calls as random_calls
from tests.capture.test_training import steps_agree
from tests.capture.test_writes import PROGRAMS, SHARING, sharing_agrees, writes_agree


@pytest.mark.parametrize("name", ["pad", "take", "layer_norm", "topk", "convolution", "einsum"])
def test_operations(name):
    results_agree(name, "float32", hybridize, max(4, 2 * REGISTRY[name].samples.ulps))


@pytest.mark.parametrize("name", ["take", "pooling", "cumsum"])
def test_gradients_of_operations(name):
    gradients_agree(name, hybridize, max(16, 2 * REGISTRY[name].samples.ulps))


@pytest.mark.lengthy
def test_a_step_with_statistics_states_and_a_schedule():
    steps_agree("adam", {}, hybridize)


def lenet():
    np.random.seed(7)
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 5, padding=2), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2, 2),
        nn.Conv2D(16, 5, activation="relu"), nn.AvgPool2D(2, 2), nn.Flatten(),
        nn.Dense(60, activation="tanh"), nn.Dropout(0.5), nn.Dense(10),
    )  # fmt: skip
    net.initialize()
    net(np.ones((1, 1, 20, 20)))
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.002})
    loss = gluon.loss.SoftmaxCrossEntropyLoss()

    def step(x, y):
        with autograd.record():
            value = loss(net(x), y)
        value.backward()
        trainer.step(len(x))
        return value.mean()

    return net, step


@pytest.mark.lengthy
def test_lenet_learns_the_same():
    """Convolutions, statistics of batches, dropout and Adam as one program of XLA's: the numbers
    that dropout draws are the same bits."""
    rng, found = numpy.random.default_rng(0), []
    batches = [(rng.normal(size=(8, 1, 20, 20)), rng.integers(0, 10, 8)) for _ in range(3)]
    for compile_ in (lambda step: step, hybridize):
        net, step = lenet()
        step = compile_(step)
        np.random.seed(5)
        losses = [float(step(np.array(x), np.array(y))) for x, y in batches]
        found.append((losses, [p.data().asnumpy() for p in net.collect_params().values()]))
    assert step.captures == 1
    (losses, weights), (own_losses, own_weights) = found
    numpy.testing.assert_allclose(own_losses, losses, rtol=2e-6)
    for one, other in zip(own_weights, weights, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)


CHOSEN = ["newton", "beam_search", "a_while_in_a_while", "a_scan_in_a_scan_with_exits",
          "sampled_until_the_end", "writes_in_one_branch"]  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_choices_and_loops(name):
    program = CONTROL[name]
    compiled = hybridize(program.function)
    for shift in SHIFTS[1:3]:
        expected = called(program.function, program, shift)
        control_agrees(program, called(compiled, program, shift), expected)


def test_a_long_loop_is_gone_back_through():
    """Of 100 turns, some are kept at a time."""

    def grown(x):
        while x.sum() < 40:
            x = x * 1.01 + x * x * 0.001
        return x

    found = []
    for function in (grown, hybridize(grown)):
        x = np.array([1.0, 2.0, 3.0])
        x.attach_grad()
        with autograd.record():
            y = function(x)
        y.backward()
        found.append((y.asnumpy(), x.grad.asnumpy()))
    for one, other in zip(*found):
        numpy.testing.assert_allclose(one, other, rtol=1e-4)


ROWS = dict(random_calls())


@pytest.mark.parametrize("name", ["np.uniform", "np.randint", "np.normal", "dropout", "np.gamma"])
def test_random_numbers(name):
    equal = numpy.testing.assert_array_equal if name in EXACT else near
    with autograd.train_mode():
        numbers_agree(ROWS[name], hybridize(ROWS[name]), equal)


@pytest.mark.parametrize("program", PROGRAMS[::4], ids=lambda program: program.__name__)
def test_writes_in_place(program):
    writes_agree(program, hybridize)


@pytest.mark.parametrize("program", SHARING[::3], ids=lambda program: program.__name__)
def test_shared_memory(program):
    sharing_agrees(program, hybridize)
