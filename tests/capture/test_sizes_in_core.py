"""Sizes never seen are served by the core alone, and only where the program is for them."""

import gc
import weakref

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.capture.compiled import Compiled
from heterosis.gluon import nn
from heterosis.runtime.errors import OutOfMemoryError

pytestmark = pytest.mark.main_memory("XLA compiles for each size")

KNOWN = (40, 33, 50, 20)  # sizes that show what varies, and the ranges of plans
UNSEEN = (34, 41, 22, 49, 37)


def array(*shape, dtype="float32", seed=0):
    return np.array(numpy.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype))


@pytest.fixture
def slow_calls(monkeypatch):
    """Calls that Python was asked for, one after the other."""
    found = []
    wanted = Compiled._found

    def noted(self, key, arrays):
        found.append([array.shape for array in arrays])
        return wanted(self, key, arrays)

    monkeypatch.setattr(Compiled, "_found", noted)
    return found


def warm(function, *inputs_at, sizes=KNOWN):
    """`function`, hybridized, after calls of known sizes."""
    compiled = heterosis.hybridize(function)
    for n in sizes:
        compiled(*(make(n) for make in inputs_at))
    return compiled


def same(found, wanted):
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    numpy.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-5, atol=1e-6)


def network():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(4))
    net.initialize()
    net(np.ones((2, 8)))
    return net


# -- what Python is not asked for -----------------------------------------------------------------

FUNCTIONS = {
    "elementwise": lambda x: np.tanh(x) * 2 + 1,
    "several results": lambda x: (x.sum(axis=0), [x.T, x + 1][1]),
    "a float of the size": lambda x: x.sum(axis=0) / x.shape[0] * (0.5 * x.shape[0] + 1),
    "views": lambda x: x.reshape(2, -1)[1],
    "the input itself": lambda x: (x, x * 2),
    "random numbers": lambda x: npx.dropout(x, 0.5, mode="always"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_unseen_sizes(name, slow_calls):
    function = FUNCTIONS[name]
    compiled = warm(function, lambda n: array(n, 8))
    slow_calls.clear()
    for n in UNSEEN:
        x = array(n, 8, seed=1)
        np.random.seed(n)
        wanted = function(x)
        for _ in range(2):
            np.random.seed(n)
            found = compiled(x)
            pairs = zip(*(r if isinstance(r, tuple) else [r] for r in (found, wanted)), strict=True)
            for one, other in pairs:
                same(one, other)
    assert not slow_calls


def leaves(result):
    if isinstance(result, dict):
        return [list(result), *leaves(list(result.values()))]
    if isinstance(result, list | tuple):
        return [type(result), *(leaf for one in result for leaf in leaves(one))]
    return [result]


def same_results(found, wanted):
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        if isinstance(other, np.ndarray):
            same(one, other)
        else:
            assert type(one) is type(other) and one == other


# A function, and the arguments and keywords of a call for each size.
CALLS = {
    "a float": (lambda x, k: x * k, lambda n: ((array(n, 8), 0.5 + n), {})),
    "an integer": (lambda x, k: x + np.zeros((k, 1, 8)), lambda n: ((array(n, 8), 2 * n), {})),
    "keywords": (lambda x, *, y, k: x * k + y, lambda n: ((array(n),), {"y": array(n), "k": 1.5})),
    "containers": (
        lambda xs, named: xs[0] * named["a"][0] + xs[1],
        lambda n: (([array(n), 3.0 + n], {"a": (array(n), None)}), {}),
    ),
    "a text": (lambda x, how: x + 1 if how == "up" else x - 1, lambda n: ((array(n), "up"), {})),
    "None and bools": (
        lambda x, y, b: x if b and y is None else -x, lambda n: ((array(n), None, True), {})
    ),
    "nested results": (
        lambda x: {"a": x + 1, "b": (x, [x * 2, 3, None, "text"])}, lambda n: ((array(n),), {})
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_all_kinds(name, slow_calls):
    function, call = CALLS[name]
    compiled = heterosis.hybridize(function)
    for n in KNOWN:
        arguments, keywords = call(n)
        compiled(*arguments, **keywords)
    slow_calls.clear()
    for n in (*UNSEEN, *UNSEEN):
        arguments, keywords = call(n)
        same_results(compiled(*arguments, **keywords), function(*arguments, **keywords))
    assert not slow_calls
    assert compiled.captures == 2


@pytest.mark.lengthy
def test_calls_that_look_alike():
    """Each of a pair is told from the other, whichever is known to be served by the core."""

    def function(xs, k=2.0, *, a=1, b=3):
        ordered = [
            value * (i + 1) for i, value in enumerate(xs.values() if type(xs) is dict else xs)
        ]
        return {"sum": sum(ordered) * k + a - 2 * b, "kinds": (type(xs).__name__, type(k).__name__)}

    compiled = heterosis.hybridize(function)
    numbers = (2.0, -0.0, 0.0, 2, True, False, 7, 3, -1, 0, 1, 2.5, 1e300, 2**47, 2**50)
    for n in (*KNOWN, *UNSEEN):
        x, y = array(n), array(n, seed=1)
        calls = [
            *(((container, k), {}) for container in ([x, y], (x, y), [y, x]) for k in numbers),
            *((({"p": x, "q": y},), named) for named in ({"a": 5, "b": 6}, {"b": 6, "a": 5})),
            *((({"q": y, "p": x},), named) for named in ({"a": 6}, {"b": 6}, {})),
            (([x, x], 3.0), {"a": 5}), (([x, y, x],), {}), (([x],), {}),
        ]  # fmt: skip
        for arguments, keywords in calls:
            same_results(compiled(*arguments, **keywords), function(*arguments, **keywords))


def test_several_sizes(slow_calls):
    compiled = warm(
        lambda x, y: (x @ y).sum(), lambda n: array(n, n + 1), lambda n: array(n + 1, 3)
    )
    for n, m in ((9, 4), (5, 11), (30, 60)):
        compiled(array(n, m), array(m, 3))
    slow_calls.clear()
    for n, m in ((10, 5), (6, 12), (31, 61)):
        x, y = array(n, m), array(m, 3)
        numpy.testing.assert_allclose(compiled(x, y).item(), (x @ y).sum().item(), 1e-3, 1e-3)
    assert not slow_calls


def test_what_is_packed_ahead_follows_parameters(slow_calls):
    net = network()
    compiled = warm(lambda x: net(x), lambda n: array(n, 8))
    for step in range(3):
        weight = net[0].weight.data()
        weight[:] = weight * 2 + step
        for n in (step + 35, 41, step + 42):
            same(compiled(array(n, 8)), net(array(n, 8)))


@pytest.mark.lengthy
def test_steps_of_training(slow_calls):
    def trained(compile_):
        net = network()
        for i, parameter in enumerate(net.collect_params().values()):
            parameter.set_data(array(*parameter.shape, seed=i))
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

        def step(x):
            with autograd.record():
                loss = (net(x) ** 2).mean()
            loss.backward()
            trainer.step(x.shape[0])
            return loss

        run = heterosis.hybridize(step) if compile_ else step
        losses = [run(array(n, 8)).item() for n in KNOWN]
        slow_calls.clear()
        losses += [run(array(n, 8)).item() for n in UNSEEN]
        called = len(slow_calls)
        parameters = [p.data().asnumpy() for p in net.collect_params().values()]
        return losses, parameters, trainer.optimizer.num_update, called

    wanted, found = trained(False), trained(True)
    numpy.testing.assert_allclose(found[0], wanted[0], rtol=1e-3)
    for one, other in zip(found[1], wanted[1], strict=True):
        numpy.testing.assert_allclose(one, other, rtol=1e-2, atol=1e-4)
    assert found[2] == wanted[2] == len(KNOWN + UNSEEN)
    assert found[3] == 0


def test_state_outside_is_written(slow_calls):
    total = np.zeros((8,))

    def add(x):
        total[:] = total + x.sum(axis=0)
        return total * 1

    compiled = warm(add, lambda n: array(n, 8))
    slow_calls.clear()
    want = total.asnumpy()
    for n in UNSEEN:
        want = want + array(n, 8).asnumpy().sum(axis=0)
        numpy.testing.assert_allclose(compiled(array(n, 8)).asnumpy(), want, rtol=1e-4, atol=1e-4)
    assert not slow_calls


# -- what it is asked for -------------------------------------------------------------------------


def test_conditions_are_looked_at(slow_calls):
    def function(x):
        return x * 2 if x.shape[0] > 36 else x - 1

    compiled = warm(function, lambda n: array(n, 8))
    for n in (*UNSEEN, 36, 37):
        same(compiled(array(n, 8)), function(array(n, 8)))
    assert compiled.captures <= 4


def test_sizes_that_were_equal_are_one(slow_calls):
    compiled = warm(lambda x, y: x.sum() + y.sum(), lambda n: array(n), lambda n: array(n))
    slow_calls.clear()
    x, y = array(34), array(35)
    numpy.testing.assert_allclose(compiled(x, y).item(), (x.sum() + y.sum()).item(), rtol=1e-5)
    assert slow_calls


@pytest.mark.parametrize("shape", [(1, 8), (0, 8), (34, 9), (34, 1), (34,), (34, 8, 1)])
def test_other_shapes(shape):
    def function(x):
        return x * np.arange(x.shape[-1]) if x.ndim > 1 else x + 1

    compiled = warm(function, lambda n: array(n, 8))
    same(compiled(array(*shape)), function(array(*shape)))


def test_other_types_and_layouts():
    def function(x):
        return (x * 2).sum(axis=0)

    compiled = warm(function, lambda n: array(n, 8))
    for x in (
        array(34, 8, dtype="float64"),
        array(8, 34).T,
        array(70, 8)[::2],
        array(34, 16)[:, ::2],
    ):
        same(compiled(x), function(x))


def test_guards():
    factor = [2.0]
    compiled = warm(lambda x: x * factor[0], lambda n: array(n, 8))
    same(compiled(array(34, 8)), array(34, 8) * 2)
    factor[0] = 3.0
    for n in (35, 34, *UNSEEN):
        same(compiled(array(n, 8)), array(n, 8) * 3)
    factor[0] = 2.0
    for n in (35, 34, *UNSEEN):
        same(compiled(array(n, 8)), array(n, 8) * 2)


def test_modes():
    net = nn.HybridSequential()
    net.add(nn.Dense(8), nn.Dropout(0.5))
    net.initialize()
    net.hybridize()
    for n in KNOWN:
        net(array(n, 8))
    assert (net(array(34, 8)).asnumpy() != 0).all()
    with autograd.train_mode():
        assert (net(array(35, 8)).asnumpy() == 0).any()
    weight = net[0].weight
    with autograd.record():
        loss = net(array(37, 8)).sum()
    loss.backward()
    assert (weight.grad().asnumpy() != 0).any()


def test_arguments_that_share_memory():
    def function(x, y):
        x[:] = x + 1
        return x * y

    compiled = warm(function, lambda n: array(n), lambda n: array(n))
    for n in UNSEEN:
        x, y = array(n), array(n)
        same(compiled(x, x), function(y, y))
        same(x, y)


def test_threads():
    compiled = warm(lambda x: x @ x.T, lambda n: array(n, 8))
    before = npx.settings.threads
    try:
        for threads in (1, 2, 1):
            npx.settings.threads = threads
            for n in UNSEEN:
                same(compiled(array(n, 8)), array(n, 8) @ array(n, 8).T)
    finally:
        npx.settings.threads = before


def test_too_large_is_refused_as_for_a_known_size():
    def function(x):
        return x.reshape(-1, 1) * np.ones((1, 1 << 20))

    compiled = warm(function, lambda n: array(n), sizes=(4, 3, 5, 6))
    limit = npx.settings.memory_limit
    try:
        npx.settings.memory_limit = 1 << 28
        with pytest.raises(OutOfMemoryError, match=r"float32\[200, 1048576\] takes 838,860,800"):
            compiled(array(200))
    finally:
        npx.settings.memory_limit = limit
    assert compiled(array(7)).shape == (7, 1 << 20)


# -- what is known of them ------------------------------------------------------------------------


def test_they_are_among_the_examples(tmp_path):
    net = network()
    compiled = warm(lambda x: net(x), lambda n: array(n, 8))
    for n in UNSEEN:
        compiled(array(n, 8))
    shapes = [call[0][0].shape for call in compiled.examples.values()]
    assert sorted(shapes) == sorted({(n, 8) for n in KNOWN + UNSEEN})
    assert compiled.captures == 2


def test_they_are_kept_by_nothing_but_the_function():
    class Held:
        pass

    def made():
        held = Held()
        held.factor = array(8)
        compiled = warm(lambda x: x * held.factor, lambda n: array(n, 8))
        compiled(array(34, 8))
        return weakref.ref(held)

    known = made()
    gc.collect()
    assert known() is None
