"""Numbers among the arguments: from the second value on, programs hold for all that they admit."""

import math
import time

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.gluon import nn
from heterosis.runtime.errors import HeterosisError

NAN, INFINITY = float("nan"), float("inf")
FLOATS = (2.5, 0.1, 3.7, 2.0, 5.5, -1.5, 7.25, 1e-3, 40.0)
WHOLE = (2, 3, 4, 5, 6, 7, 8, 30)
SPECIAL = (0.0, -0.0, 1.0, INFINITY, -INFINITY, NAN, 0, 1, -1, -7, True)


def outcome(function, *arguments):
    """What a call gives, arrays as their bits, or the class of its error."""
    try:
        found = function(*arguments)
        npx.waitall()
    except (HeterosisError, ValueError, OverflowError, ZeroDivisionError, TypeError) as error:
        return type(error).__name__
    return repr(shown(found))


def shown(found):
    if isinstance(found, dict):
        return {key: shown(value) for key, value in found.items()}
    if isinstance(found, tuple | list):
        return [type(found), *map(shown, found)]
    if isinstance(found, heterosis.np.ndarray):
        return found.dtype, found.asnumpy().tolist()
    return type(found), found


def matched(x, v):
    match v:
        case float():
            return x * v
    return x - v


# Functions, and how often they are captured for FLOATS and for WHOLE; None for any number.
FUNCTIONS = {
    "an operand": (lambda x, v: x * v, 2, 2),
    "on the left": (lambda x, v: v / x - (v - x), 2, 2),
    "arithmetic": (lambda x, v: x * (v * 2 + 1) / v - v // 2 + v % 3, 2, 2),
    "a power": (lambda x, v: x**v + 2.0**-x * v, 2, 2),
    "a slope": (lambda x, v: npx.leaky_relu(x, slope=v), 2, 2),
    "bounds": (lambda x, v: np.clip(x, -v, v), 2, 2),
    "a choice": (lambda x, v: np.where(x > 1, v, x), 2, 2),
    "filled": (lambda x, v: np.full((3,), v) + x[0], 2, 2),
    "compared": (lambda x, v: (x > v) | (x == v), 2, 2),
    "returned": (lambda x, v: (x * v, v, -v, {"half": [v / 2, v]}), 2, 2),
    "its type": (lambda x, v: x * (2 if type(v) is float else 3), 2, 2),
    "matched": (matched, 2, 2),
    "a decision": (lambda x, v: x * v if v > 3 else x / v, 3, 3),
    "equal": (lambda x, v: x * 2 if v == 2 else x * v, 3, 3),
    "a member": (lambda x, v: x * 2 if v in (2.0, 5) else x * v, None, None),
    "a key": (lambda x, v: x * {2.0: 3, 3: 4}.get(v, 5), None, None),
    "math": (lambda x, v: x * math.sqrt(abs(v)), None, None),
    "a text": (lambda x, v: x * float(str(v)), None, None),
    "rounded": (lambda x, v: x * round(v) + math.floor(v), None, None),
    "numpy's": (lambda x, v: x * numpy.float32(v), None, None),
    "an array": (lambda x, v: x + np.array(v), None, None),
    "a root": (lambda x, v: x * ((v - 3) ** 2) ** 0.5, 2, 2),
    "a shape": (lambda x, v: np.zeros((v,)) + x[0] if type(v) is int else x, 2, 2),
    "an extent": (lambda x, v: np.arange(v)[: len(x.shape)] + x[:1], None, None),
    "steps": (lambda x, v: np.arange(0, abs(v), 0.5) if abs(v) < 50 else x, None, None),
    "a slice": (lambda x, v: x[:v] if isinstance(v, int) else x - v, 2, None),
    "turns": (lambda x, v: sum(x for _ in range(v)) if isinstance(v, int) else x, 2, None),
    "a window": (lambda x, v: x.reshape(-1)[::v] if isinstance(v, int) and v else x, 2, None),
    "of a draw": (lambda x, v: npx.dropout(x, p=min(abs(v) / 100, 0.9)) * 0, None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dynamic", ["auto", True, False])
def test_numbers_are_those_of_the_call(name, dynamic):
    function, *_ = FUNCTIONS[name]
    compiled = heterosis.hybridize(function, dynamic=dynamic)
    x = np.array(numpy.random.default_rng(0).uniform(0.1, 3, size=10).astype("float32"))
    for v in (*FLOATS, *SPECIAL, *WHOLE, *FLOATS):
        assert outcome(compiled, x, v) == outcome(function, x, v), v


@pytest.mark.parametrize(
    "name", [name for name, row in FUNCTIONS.items() if row[1:] != (None,) * 2]
)
def test_one_program_serves_all_numbers(name):
    function, *most = FUNCTIONS[name]
    x = np.array(numpy.random.default_rng(0).uniform(0.1, 3, size=10).astype("float32"))
    for values, captures in zip((FLOATS, WHOLE), most, strict=True):
        compiled = heterosis.hybridize(function)
        for v in values:
            compiled(x, v)
        assert captures is None or compiled.captures <= captures, list(compiled.captures_why)


def test_numbers_and_extents_vary_together():
    def function(x, scale, *, rows, options):
        return x[:rows] * scale + options["shift"], x.shape[0] / scale

    compiled = heterosis.hybridize(function)
    for n, scale, rows, shift in (
        (5, 0.5, 2, 1.5), (7, 0.25, 3, 2.5), (9, 2.5, 9, 0.75), (6, 0.1, 4, -1.5), (9, 8.5, 3, 6.5)
    ):  # fmt: skip
        given, named = (np.arange(float(n)), scale), {"rows": rows, "options": {"shift": shift}}
        assert shown(compiled(*given, **named)) == shown(function(*given, **named))
    assert compiled.captures <= 4, list(compiled.captures_why)


def test_a_number_that_happens_to_be_an_extent_is_told_apart():
    compiled = heterosis.hybridize(lambda x, n: x[: x.shape[0] - n] * n)
    for extent, n in ((8, 2), (4, 4), (6, 6), (6, 3), (9, 5), (7, 7)):
        given = np.arange(float(extent)), n
        assert shown(compiled(*given)) == shown(compiled.function(*given))


def test_the_numbers_of_a_call_are_those_of_its_gradient():
    x, w = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.5, 1.0])
    w.attach_grad()

    def function(x, rate):
        return (np.tanh(x * w * rate) ** 2).sum() * rate

    compiled = heterosis.hybridize(function)
    for rate in FLOATS:
        gradients = []
        for run in (function, compiled):
            with autograd.record():
                loss = run(x, rate)
            loss.backward()
            gradients.append(w.grad.asnumpy())
        numpy.testing.assert_allclose(*gradients, rtol=1e-6)
    assert compiled.captures == 2


def test_gradients_inside_of_the_function():
    net = nn.Dense(3, in_units=4)
    net.initialize()

    def step(x, rate):
        with autograd.record():
            loss = (net(x) ** 2).sum() * rate
        loss.backward()
        net.weight.data()[:] -= rate * net.weight.grad()
        return loss

    compiled, start = heterosis.hybridize(step), net.weight.data().copy()
    found = []
    for run in (step, compiled):
        net.weight.set_data(start)
        found.append([run(np.ones((2, 4)), 0.1 / k).item() for k in range(1, 6)])
    numpy.testing.assert_allclose(*found, rtol=1e-5)
    assert compiled.captures == 2, list(compiled.captures_why)


def test_a_rate_of_a_trainer_is_that_of_the_call():
    losses = []
    for hybridized in (False, True):
        np.random.seed(4)
        net = nn.Dense(3, in_units=4)
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0})

        def step(x, rate, net=net, trainer=trainer):
            trainer.set_learning_rate(rate)
            with autograd.record():
                loss = (net(x) ** 2).sum()
            loss.backward()
            trainer.step(1)
            return loss

        run = heterosis.hybridize(step) if hybridized else step
        losses.append([run(np.ones((2, 4)), rate).item() for rate in (0.1, 0.2, 0.01, 0.1, 0.2)])
        assert type(trainer.learning_rate) is float
    numpy.testing.assert_allclose(*losses, rtol=1e-5)


@pytest.mark.main_memory("XLA rounds in another order")
def test_writes_and_random_numbers():
    def function(x, v):
        x += np.random.uniform(size=x.shape) * v
        return x * v

    compiled = heterosis.hybridize(function)
    for v in FLOATS:
        found = []
        for run in (function, compiled):
            np.random.seed(3)
            x = np.ones(4)
            found.append(shown([run(x, v), x]))
        assert found[0] == found[1]
    assert compiled.captures == 2


def test_blocks_take_numbers():
    class Scaled(nn.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(3, in_units=4)

        def forward(self, x, scale, rows=4):
            return self.dense(x)[:rows] * scale

    net = Scaled()
    net.initialize()
    given = [(0.5, 2), (0.75, 3), (2.5, 5), (3.5, 2), (4.5, 4)]
    expected = [net(np.ones((6, 4)), *one).asnumpy() for one in given]
    net.hybridize()
    for one, want in zip(given, expected, strict=True):
        numpy.testing.assert_allclose(net(np.ones((6, 4)), *one).asnumpy(), want, rtol=1e-6)
    assert net._compiled.captures == 2


def test_saved_programs_hold_for_the_numbers_that_were_seen(tmp_path):
    compiled = heterosis.hybridize(lambda x, v: x * v)
    for v in (0.5, 2.5, 3.5):
        compiled(np.ones(3), v)
    heterosis.save(compiled, tmp_path / "program")
    loaded = heterosis.load(tmp_path / "program")
    assert loaded(np.ones(5), 2.5).tolist() == [2.5] * 5
    with pytest.raises(HeterosisError):
        loaded(np.ones(5), 7.5)


def test_a_place_in_an_array_of_fixed_extents():
    """A cache of keys, say, that is written to and read from at another place in every call."""
    weight = np.array(numpy.arange(40.0).reshape(10, 4))

    def function(cache, x, place):
        cache[place : place + x.shape[0]] = x * weight[place]
        return cache[: place + 1].sum(axis=0), cache[place]

    compiled = heterosis.hybridize(function)
    caches = np.zeros((12, 4)), np.zeros((12, 4))
    for place in (2, 3, 4, 8, 5, 9):
        x = np.ones((2, 4)) * place
        assert shown(compiled(caches[0], x, place)) == shown(function(caches[1], x, place))
        assert shown(caches[0]) == shown(caches[1])
    assert compiled.captures == 2, list(compiled.captures_why)
    for place in (0, 1, 11, 10):  # at 11, the two rows do not fit
        given = [(cache, np.ones((2, 4)), place) for cache in caches]
        assert outcome(compiled, *given[0]) == outcome(function, *given[1])


def test_a_number_that_one_use_fixes_and_another_computes_with():
    """The elements of an array made of it hold for one number; others depend on it as if open."""

    def function(x, v):
        return np.array([v, 1 - v]), x * v, x + v / 2, v * 2

    compiled, x = heterosis.hybridize(function), np.ones(3)
    for v in (*FLOATS, *WHOLE, *FLOATS):
        assert outcome(compiled, x, v) == outcome(function, x, v), v


@pytest.mark.slow
def test_a_number_never_seen_costs_no_capture():
    compiled = heterosis.hybridize(lambda x, v: x * v + 1)
    x = np.ones(16)
    for v in FLOATS:
        compiled(x, v)
    start = time.perf_counter()
    for k in range(1000):
        compiled(x, 3.0 + k / 7)
    assert time.perf_counter() - start < 1 and compiled.captures == 2
