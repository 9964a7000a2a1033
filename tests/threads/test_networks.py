"""Networks and functions called by several threads at once, first calls among them."""

import contextlib
import threading
from typing import ClassVar

import numpy
import pytest

import heterosis
from heterosis import initializer, np, npx
from heterosis.gluon import HybridBlock, nn
from tests.threads.together import THREADS, together


def mlp(**first):
    net = nn.HybridSequential()
    net.add(nn.Dense(32, activation="relu", **first), nn.Dense(16, activation="tanh"), nn.Dense(4))
    return net


@heterosis.initializer.register
class Counting(initializer.Initializer):
    """Remembers which parameters it has drawn."""

    drawn: ClassVar[list[str]] = []

    def _init_weight(self, name, data):
        self.drawn.append(name)
        data[...] = np.random.uniform(-1, 1, data.shape)

    _init_bias = _init_weight


class OwnRule(HybridBlock):
    """A block with a shape rule of its own."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.scale = self.params.get(
                "scale", shape=(0,), init=Counting(), allow_deferred_init=True
            )

    def infer_shape(self, x):
        self.scale.shape = (x.shape[-1],)

    def hybrid_forward(self, F, x, scale):
        return x * scale


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("make", [mlp, OwnRule])
def test_first_calls_at_once_initialise_once(make, hybridized):
    for _ in range(5):
        Counting.drawn.clear()
        net = make()
        net.initialize(Counting())
        if hybridized:
            net.hybridize()
        x = np.random.uniform(-1, 1, (2, 8))
        found = together(lambda _, net=net, x=x: net(x).asnumpy())
        expected = net(x).asnumpy()
        for one in found:
            numpy.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
        assert len(set(Counting.drawn)) == len(Counting.drawn)


def test_gradients_of_first_calls_at_once():
    net = mlp()
    net.initialize()
    x = np.random.uniform(-1, 1, (2, 8))

    def run(_):
        with heterosis.autograd.record():
            y = net(x)
        return y._autograd is not None

    assert all(together(run))


def test_one_hybridized_network():
    net = mlp(in_units=64)
    net.initialize()
    inputs = [np.random.uniform(-1, 1, (3, 64)) for _ in range(THREADS)]
    expected = [net(x).asnumpy() for x in inputs]
    net.hybridize()

    def run(number):
        return [net(inputs[number]).asnumpy() for _ in range(200)]

    for found, one in zip(together(run), expected, strict=True):
        for result in found:
            numpy.testing.assert_allclose(result, one, rtol=1e-5, atol=1e-6)


def test_batches_of_all_sizes():
    net = mlp(in_units=16)
    net.initialize()
    x = np.random.uniform(-1, 1, (64, 16))
    expected = net(x).asnumpy()
    net.hybridize()

    def run(number):
        for step in range(40):
            rows = 1 + (7 * number + 5 * step) % 64
            found = net(x[:rows]).asnumpy()
            numpy.testing.assert_allclose(found, expected[:rows], rtol=1e-5, atol=1e-6)

    together(run)


def test_a_function_is_captured_once():
    for _ in range(5):
        function = heterosis.hybridize(lambda x, k: np.tanh(x) * k)
        x = np.ones((5, 7))
        found = together(lambda _, f=function, x=x: f(x, 3).asnumpy())
        assert function.captures == 1
        for one in found:
            numpy.testing.assert_allclose(one, 3 * numpy.tanh(x.asnumpy()), rtol=1e-6)


def test_methods_compiled_at_once():
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        @heterosis.hybridize
        def times(self, x):
            return x * self.factor

    scaled = [Scaled(i) for i in range(3)]
    x = np.ones(4)
    for found in together(lambda _: [one.times(x).asnumpy().tolist() for one in scaled]):
        assert found == [[0.0] * 4, [1.0] * 4, [2.0] * 4]
    assert [one.times.captures for one in scaled] == [1, 1, 1]


@heterosis.hybridize
def total(xs, named):
    return sum(xs) + named["one"]


def beside(change, body):
    """What `body` gives in all threads while another one changes something."""
    done = threading.Event()

    def run():
        while not done.is_set():
            change()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        return together(body)
    finally:
        done.set()
        thread.join()


def test_containers_whose_items_others_replace():
    one, two = np.ones(3), np.full((3,), 2.0)
    given, named = [one, two], {"one": one}
    total(given, named)

    def change():
        given[:] = [two, one]
        named["one"] = two
        given[:] = [one, two]
        named["one"] = one

    for found in beside(change, lambda _: [total(given, named)[0].item() for _ in range(200)]):
        assert set(found) <= {4.0, 5.0}


def test_containers_whose_sizes_others_change():
    """As in any loop of Python's over them, this may be an error; it is never more than that."""
    one, two = np.ones(3), np.full((3,), 2.0)
    given, named = [one, two], {"one": one}
    total(given, named)

    def change():
        given.append(two)
        named["other"] = two
        given.pop()
        del named["other"]

    def run(_):
        for _ in range(200):
            with contextlib.suppress(Exception):
                total(given, named).wait_to_read()

    beside(change, run)
    assert total(given, named)[0].item() == 4


def test_what_a_function_reads_is_what_it_was_at_some_time():
    class Model:
        factor = 1.0

    @heterosis.hybridize
    def scaled(x):
        return x * Model.factor

    x = np.ones(3)

    def run(number):
        if number == 0:
            for step in range(60):
                Model.factor = 1.0 + step % 3
            return []
        return [scaled(x)[0].item() for _ in range(60)]

    for found in together(run):
        assert set(found) <= {1.0, 2.0, 3.0}


def test_weights_that_others_set():
    """Packed weights are those of one moment."""
    net = nn.Dense(64, in_units=64, use_bias=False)
    net.initialize("zeros")
    net.hybridize()
    x = np.ones((4, 64))
    net(x)

    def run(number):
        if number == 0:
            for step in range(200):
                net.weight.set_data(np.full((64, 64), float(step)))
            return []
        return [net(x) for _ in range(100)]

    for found in together(run):
        for one in found:
            assert one.min().item() == one.max().item()
            assert one[0, 0].item() % 64 == 0


def test_a_function_that_writes_is_called_by_one_at_a_time():
    count, lock = np.zeros(20_000), threading.Lock()

    @heterosis.hybridize
    def step(x):
        count[...] += x
        return x * 2

    x = np.ones(20_000)

    def run(_):
        for _ in range(100):
            with lock:
                step(x)

    together(run)
    assert count.min().item() == count.max().item() == THREADS * 100


def test_callers_that_keep_to_a_thread_each():
    net = mlp()
    net.initialize()
    x = np.random.normal(size=(256, 300))
    expected = net(x).asnumpy()
    net.hybridize()
    net(x)
    before = npx.settings.threads
    npx.settings.threads, npx.settings.intra_op_threads = 2, 1
    try:
        for found in together(lambda _: [net(x).asnumpy() for _ in range(20)]):
            for one in found:
                numpy.testing.assert_allclose(one, expected, rtol=1e-5, atol=1e-6)
    finally:
        npx.settings.threads, npx.settings.intra_op_threads = before, 1024
