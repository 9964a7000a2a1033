"""Optimisers against MXNet's numbers, their states as bytes, and what they ask of programs."""

import numpy
import pytest

import heterosis
from heterosis import lr_scheduler, np, npx, optimizer
from heterosis.ops.training import optimizers as rules
from heterosis.runtime.errors import ArgumentError, FormatError
from tests.train.cases import OPTIMIZERS, SCHEDULERS, UPDATES, gradients, updated
from tests.train.stored import answers


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_as_in_mxnet(name):
    weights, _ = updated(heterosis, np.array, name)
    tolerance = 2e-3 if name.startswith("half") else 5e-6
    for ours, theirs in zip(weights, answers("optimizers")[name]):
        numpy.testing.assert_allclose(ours.asnumpy().ravel(), theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_schedules_as_in_mxnet(name):
    kind, arguments = SCHEDULERS[name]
    rate = getattr(lr_scheduler, kind)(**arguments)
    numpy.testing.assert_allclose([rate(n) for n in UPDATES], answers("schedulers")[name], 1e-6)


def continued(optimizer_, states, weights):
    """Weights after one more step, by an optimiser that starts from saved states."""
    updater = optimizer.get_updater(optimizer_)
    updater.set_states(states)
    weights = [w.copy() for w in weights]
    updater([0, 1], [np.array(g) for g in gradients(9)], weights)
    return [w.asnumpy() for w in weights]


RESUMED = ["sgd momentum", "adam", "nadam", "lars scheduled", "lbsgd", "scheduled", "half adam"]


@pytest.mark.parametrize("name", RESUMED)
def test_training_goes_on_from_saved_states(name):
    weights, updater = updated(heterosis, np.array, name)
    states = updater.get_states(dump_optimizer=True)
    _, other = updated(heterosis, np.array, name)
    later = continued(other.optimizer, states, weights)
    updater([0, 1], [np.array(g) for g in gradients(9)], weights)
    for ours, resumed in zip(weights, later):
        numpy.testing.assert_array_equal(ours.asnumpy(), resumed)


@pytest.mark.parametrize("damage", [lambda b: b[:40], lambda b: b"", lambda b: b"\x80\x04junk" * 9])
def test_damaged_states_change_nothing(damage):
    _, updater = updated(heterosis, np.array, "adam")
    before, states = updater.states, updater.get_states(dump_optimizer=True)
    with pytest.raises(FormatError):
        updater.set_states(damage(states))
    assert updater.states is before


def test_states_of_another_optimizer_are_refused():
    _, adam = updated(heterosis, np.array, "adam")
    _, sgd = updated(heterosis, np.array, "sgd momentum")
    with pytest.raises(FormatError, match=r"Adam.*SGD"):
        sgd.set_states(adam.get_states(dump_optimizer=True))
    assert sgd.optimizer.num_update == 4


def test_a_new_rate_compiles_nothing():
    weight, updater = np.ones(10), optimizer.get_updater(optimizer.Adam())
    updater(0, np.ones(10), weight)
    known = rules.adam_update.plans
    for rate in (1, 0.5, 1e-3):
        updater.optimizer.set_learning_rate(rate)
        updater.optimizer.rescale_grad = rate
        updater(0, np.ones(10), weight)
    assert rules.adam_update.plans == known


def test_langevin_noise_has_the_rate_as_variance():
    npx.random.seed(5)
    weight = np.zeros(40000)
    optimizer.get_updater(optimizer.SGLD(learning_rate=0.04))(0, np.ones(40000), weight)
    assert abs(weight.mean().item() + 0.02) < 0.005 and abs(weight.std().item() - 0.2) < 0.005


def test_multipliers_of_parameters_and_names():
    class Parameter:
        lr_mult, wd_mult = 2.0, 0.5

    made = optimizer.SGD(learning_rate=0.1, wd=0.2, param_dict={0: Parameter()})
    assert made._get_lrs([0, 1]) == [0.2, 0.1] and made._get_wds([0, 1]) == [0.1, 0.2]
    named = optimizer.SGD(wd=1.0, param_idx2name={0: "a_weight", 1: "a_bias", 2: "a_gamma"})
    assert named._get_wds([0, 1, 2]) == [1.0, 0.0, 1.0]


@optimizer.register
class Halving(optimizer.Optimizer):
    """One of the user's own, for one parameter at a time."""

    def create_state(self, index, weight):
        return np.zeros(weight.shape)

    def update(self, index, weight, grad, state):
        self._update_count(index)
        state += 1
        weight[:] -= self._get_lr(index) * grad / 2


@optimizer.register
class Listing(optimizer.SGD):
    """One of the user's own, for lists of at most two parameters."""

    aggregate_num = 2

    def update_multi_precision(self, index, weight, grad, state):
        assert isinstance(index, list) and len(index) <= 2
        super().update_multi_precision(index, weight, grad, state)


@pytest.mark.parametrize("name, left", [("halving", 0.95), ("Listing", 0.9)])
def test_optimizers_of_ones_own(name, left):
    updater = optimizer.get_updater(optimizer.create(name, learning_rate=0.1))
    weights = [np.ones(2), np.ones(3), np.ones(1)]
    updater([0, 1, 2], [np.ones(w.shape) for w in weights], weights)
    assert all(abs(w[0].item() - left) < 1e-6 for w in weights)
    assert updater.optimizer.num_update == 1


def test_schedulers_and_rates_that_disagree():
    schedule = lr_scheduler.FactorScheduler(3, base_lr=0.5)
    with pytest.warns(UserWarning, match="base_lr"):
        made = optimizer.Adam(lr_scheduler=schedule)
    assert made.learning_rate == 0.001
    with pytest.raises(UserWarning, match="lr_scheduler"):
        made.set_learning_rate(1)


BAD = {
    "unknown": (lambda: optimizer.create("adamm"), "adamm.*known are.*adam"),
    "names": (lambda: optimizer.SGD(param_idx2name=["a"]), "param_idx2name"),
    "step": (lambda: lr_scheduler.FactorScheduler(0), "step=0"),
    "factor": (lambda: lr_scheduler.FactorScheduler(1, 2), "factor=2"),
    "steps": (lambda: lr_scheduler.MultiFactorScheduler([3, 2]), "growing list"),
    "mode": (lambda: lr_scheduler.LRScheduler(warmup_mode="x"), "'linear' or 'constant'"),
    "warmup": (lambda: lr_scheduler.LRScheduler(0.1, warmup_begin_lr=1), "start lower"),
    "updates": (lambda: lr_scheduler.PolyScheduler(1.5), "max_update is 1.5; expected an integer"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    make, message = BAD[name]
    with pytest.raises(ArgumentError, match=message):
        make()
