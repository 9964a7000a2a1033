"""Programs whose extents stay open: captured once, compiled once, right at every size."""

import collections
import json
import math

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.backends.native.compile.object_cache import default_cache
from heterosis.gluon import nn, rnn
from heterosis.runtime.errors import HeterosisError

SIZES = (5, 7, 33, 2, 64, 3, 16)


def arrays(shapes, seed=0):
    """Floats of these shapes, as NumPy has them."""
    generator = numpy.random.default_rng(seed)
    return [generator.normal(size=shape).astype("float32") for shape in shapes]


def check(function, shapes_at, sizes=SIZES, *, captures=2, rtol=1e-5, dynamic="auto"):
    """Compare `function` hybridized with itself at every size; gives the hybridized one."""
    compiled = heterosis.hybridize(function, dynamic=dynamic)
    for n in sizes:
        given = [np.array(a) for a in arrays(shapes_at(n), seed=n)]
        expected, found = function(*given), compiled(*given)
        again = compiled(*given)
        pairs = zip(flat(expected), flat(found), flat(again), strict=True)
        for want, got, second in pairs:
            assert got.shape == want.shape and got.dtype == want.dtype
            numpy.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=rtol, atol=1e-6)
            assert (second.asnumpy() == got.asnumpy()).all()
    assert compiled.captures <= captures, list(compiled.captures_why)
    return compiled


def flat(results):
    return results if isinstance(results, tuple | list) else [results]


def left(n, x):
    """What operators give of a size and an array."""
    return [n / x, n // x, n % x, n - x, n * x, n**x, n & x, n | x, n ^ x, n >> x, n > x, n == x]


OPEN = {
    "elementwise": (lambda x, y: np.tanh(x * 2 + y), lambda n: [(n, 16), (16,)]),
    "sums": (lambda x: (x.sum(), x.sum(axis=0), x.mean(axis=1), x.max(axis=1)), lambda n: [(n, 9)]),
    "size as a number": (lambda x: x / x.shape[0] + x.size, lambda n: [(n, 3)]),
    "size on the left": (lambda x: x.shape[0] / (abs(x) + 1) - (x.size - x), lambda n: [(n, 3)]),
    "size on the left, of integers": (
        lambda x: left(x.shape[0], np.arange(1, 6, dtype="int32")), lambda n: [(n,)]
    ),
    "size on the left, of bytes": (
        lambda x: left(x.shape[0] + 1, np.array([1, 2, 3], dtype="uint8")), lambda n: [(n,)]
    ),
    "half a size": (lambda x: (x.shape[0] / 2) * x - x / (x.shape[0] * 0.5), lambda n: [(n, 3)]),
    "softmax": (lambda x: npx.softmax(x), lambda n: [(n, 11)]),
    "softmax along": (lambda x: npx.softmax(x, axis=0), lambda n: [(n, 11)]),
    "product": (lambda x, w: np.dot(x, w), lambda n: [(n, 8), (8, 12)]),
    "product along": (lambda x, w: np.dot(x, w), lambda n: [(6, n), (n, 12)]),
    "products": (lambda x, y: np.matmul(x, y), lambda n: [(3, n, 8), (3, 8, n)]),
    "transpose": (lambda x: x.T + 1, lambda n: [(n, 4)]),
    "reshape": (lambda x: x.reshape(-1, 2) * 2, lambda n: [(n, 4)]),
    "reshape by sizes": (lambda x: x.reshape(x.shape[0] * 2, 2) * 2, lambda n: [(n, 4)]),
    "flatten": (lambda x: x.reshape(-1) + 1, lambda n: [(n, 4)]),
    "concatenate": (lambda x, y: np.concatenate((x, y)) * 2, lambda n: [(n, 3), (4, 3)]),
    "stack": (lambda x, y: np.stack((x, y), axis=1), lambda n: [(n, 3), (n, 3)]),
    "broadcast": (lambda x: np.broadcast_to(x, (4, x.shape[0], 3)) + 1, lambda n: [(n, 3)]),
    "expand": (lambda x: np.expand_dims(x, 1) - x, lambda n: [(n,)]),
    "arange": (lambda x: np.arange(x.shape[0]) * x, lambda n: [(n,)]),
    "zeros": (lambda x: np.zeros((x.shape[0], 2)) + np.ones_like(x), lambda n: [(n, 2)]),
    "two sizes": (lambda x: (x + 1).reshape(-1).sum() + x, lambda n: [(n, 3 * n)]),
    "slice": (lambda x: x[1:] * 2 - x[:-1], lambda n: [(n + 1, 3)]),
    "slice to a size": (lambda x, y: x[: y.shape[0]] + y, lambda n: [(n + 3, 2), (n, 2)]),
    "row": (lambda x: x[0] + x[-1], lambda n: [(n, 3)]),
    "variance": (lambda x: np.var(x, axis=0) + np.std(x), lambda n: [(n, 3)]),
    "where": (lambda x: np.where(x > 0, x, -x * 2), lambda n: [(n, 3)]),
    "cumsum": (lambda x: np.cumsum(x, axis=0), lambda n: [(n, 3)]),
    "take": (lambda x: np.take(x, np.array([0, 1]), axis=0), lambda n: [(n, 3)]),
    "split": (lambda x: np.split(x, 2, axis=1), lambda n: [(n, 4)]),
    "tile": (lambda x: np.tile(x, (2, 1)), lambda n: [(n, 4)]),
    "one_hot": (lambda x: npx.one_hot(x * 0 + 1, 4), lambda n: [(n,)]),
    "pad": (lambda x: np.pad(x, ((1, 2), (0, 0))), lambda n: [(n, 4)]),
    "argmax": (lambda x: np.argmax(x, axis=1), lambda n: [(n, 4)]),
    "sort": (lambda x: np.sort(x, axis=0), lambda n: [(n, 4)]),
    "half": (lambda x: x[: x.shape[0] // 2] + 1, lambda n: [(2 * n, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_open_extents_are_right_at_every_size(name):
    function, shapes = OPEN[name]
    check(function, shapes)


# -- layers ---------------------------------------------------------------------------------------


def dense():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(8, activation="tanh"), nn.Dense(3))
    return net


def convolutions():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 3, padding=1, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(2, 2),
        nn.Conv2D(8, 3, strides=2), nn.GlobalAvgPool2D(), nn.Dense(4),
    )  # fmt: skip
    return net


class Recurrent(nn.HybridBlock):
    def __init__(self, layer):
        super().__init__()
        self.recurrent, self.dense = layer, nn.Dense(5, flatten=False)

    def forward(self, x):
        return self.dense(self.recurrent(x))


class Attention(nn.HybridBlock):
    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Dense(width, flatten=False) for _ in range(3))
        self.norm = nn.LayerNorm()

    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, length, self.heads, width // self.heads).transpose(0, 2, 1, 3)

    def forward(self, x):
        query, key, value = (self.split(f(x)) for f in (self.query, self.key, self.value))
        weights = npx.softmax(np.matmul(query, key.transpose(0, 1, 3, 2)) / 3)
        return self.norm(x + np.matmul(weights, value).transpose(0, 2, 1, 3).reshape(x.shape))


LAYERS = {
    "dense, over batches": (dense, lambda n: (n, 12)),
    "convolutions, over batches": (convolutions, lambda n: (n, 2, 12, 12)),
    "convolutions, over heights": (convolutions, lambda n: (2, 2, n + 11, 12)),
    "LSTM, over lengths": (lambda: Recurrent(rnn.LSTM(8, input_size=6)), lambda n: (n, 3, 6)),
    "GRU, over batches": (lambda: Recurrent(rnn.GRU(8, input_size=6)), lambda n: (4, n, 6)),
    "attention, over lengths": (Attention, lambda n: (2, n, 16)),
    "attention, over batches": (Attention, lambda n: (n, 5, 16)),
}


def block(make, shape):
    np.random.seed(3)
    net = make()
    net.initialize()
    net(np.ones(shape))
    return net


@pytest.mark.lengthy
@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_right_at_every_size(name):
    make, shape = LAYERS[name]
    net = block(make, shape(4))
    inputs = {n: np.array(arrays([shape(n)], seed=n)[0]) for n in SIZES}
    expected = {n: net(x).asnumpy() for n, x in inputs.items()}
    net.hybridize(dynamic="auto")
    for n, x in inputs.items():
        for _ in range(2):
            numpy.testing.assert_allclose(net(x).asnumpy(), expected[n], rtol=2e-5, atol=2e-6)
    most = 5 if "heights" in name else 3  # pooling depends on whether they are even
    assert net._compiled.captures <= most, list(net._compiled.captures_why)


def test_shapes_completed_by_the_first_call_fix_what_they_are_made_of():
    net = dense()
    net.initialize()
    net.hybridize(dynamic=True)
    for n in SIZES:
        assert net(np.ones((n, 12))).shape == (n, 3)
    assert net[0].weight.shape == (16, 12)
    assert net._compiled.captures == 1, list(net._compiled.captures_why)


def test_extents_that_happen_to_be_equal_are_told_apart_later():
    compiled = heterosis.hybridize(lambda x, w: np.dot(x, w * 2), dynamic=True)
    w = np.ones((4, 3))
    for n in (4, 5, 6, 7, 9):
        assert compiled(np.ones((n, 4)), w).tolist() == [[8.0] * 3] * n
    assert compiled.captures <= 2, list(compiled.captures_why)


def test_a_call_that_raises_closes_nothing():
    def function(x):
        if x.shape[0] == 7:
            raise KeyError("seven")
        return x + 1

    compiled = heterosis.hybridize(function, dynamic=True)
    for n in (7, 5, 7, 8, 2):
        if n == 7:
            with pytest.raises(KeyError, match="seven"):
                compiled(np.ones((n,)))
        else:
            assert compiled(np.ones((n,))).tolist() == [2.0] * n
    assert not any("no extents stay open" in why for why in compiled.captures_why)


@pytest.mark.lengthy
def test_two_axes_vary():
    net = block(Attention, (2, 4, 16))
    inputs = [
        np.array(arrays([(b, t, 16)])[0]) for b, t in ((2, 4), (3, 7), (5, 9), (8, 3), (9, 9))
    ]
    expected = [net(x).asnumpy() for x in inputs]
    net.hybridize(dynamic="auto")
    for x, want in zip(inputs, expected, strict=True):
        numpy.testing.assert_allclose(net(x).asnumpy(), want, rtol=2e-5, atol=2e-6)
    assert net._compiled.captures <= 3, list(net._compiled.captures_why)


# -- training -------------------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("inside", [True, False], ids=["step hybridized", "recorded outside"])
def test_training_is_the_same_at_every_size(inside, optimizer):
    losses = []
    for hybridized in (False, True):
        net = block(dense, (4, 12))
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1, "wd": 1e-3})
        loss_of = gluon.loss.L2Loss()

        def step(x, y, net=net, trainer=trainer, loss_of=loss_of):
            with autograd.record():
                loss = loss_of(net(x), y).mean()
            loss.backward()
            trainer.step(1)
            return loss

        run = step
        if hybridized and inside:
            run = heterosis.hybridize(step, dynamic="auto")
        elif hybridized:
            net.hybridize(dynamic="auto")
        found = []
        for n in SIZES:
            x, y = map(np.array, arrays([(n, 12), (n, 3)], seed=n))
            found.append(run(x, y).item())
        losses.append(found)
        captures = (run if inside else net._compiled).captures if hybridized else 0
        assert captures <= 3
    numpy.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)


def of_parts(x, w):
    y = np.tanh(x * w)
    return y[: x.shape[0] // 2].sum(axis=1), (y**2).sum() / x.shape[0]


def of_views(x, w):
    return x.T, x.reshape(-1) * 2, (x @ w).T


def branching(x, w):
    y = x * w if (x * w).sum() > 0 else x - w
    return (y * y).sum(axis=0)


RECORDED = {
    "one result": (lambda x, w: (np.exp(x * w) ** 2).sum(), [(4,)]),
    "results that receive nothing": (of_parts, [(4,)]),
    "results that are views": (of_views, [(4, 3)]),
    "choices": (branching, [(4,)]),
    "products": (lambda x, w: npx.softmax(x @ w, axis=0) @ w.T, [(4, 5)]),
    "writes": (lambda x, w: x.__iadd__(1) * w, [(4,)]),
    "draws": (lambda x, w: x * np.random.uniform(size=x.shape) * w, [(4,)]),
}


@pytest.mark.parametrize("name", RECORDED)
def test_gradients_that_are_recorded_outside(name):
    function, weights = RECORDED[name]
    compiled = heterosis.hybridize(function)
    w = [np.array(a) for a in arrays(weights)]
    for one in w:
        one.attach_grad()
    for n in (*SIZES, *SIZES):
        found = []
        for run in (function, compiled):
            x = np.array(arrays([(n, 4)], seed=n)[0])
            if name != "writes":
                x.attach_grad()
            np.random.seed(n)
            with autograd.record():
                results = flat(run(x, *w))
                last = results[-1].sum()
            last.backward()
            found.append(
                [*results, *(one.grad for one in w), *([x.grad] if x.grad is not None else [])]
            )
        for want, got in zip(*([a.asnumpy() for a in one] for one in found), strict=True):
            numpy.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    assert compiled.captures <= 4, list(compiled.captures_why)


def test_gradients_of_gradients_that_are_recorded_outside():
    compiled = heterosis.hybridize(lambda x: (x**3).sum() * x.shape[0])
    for n in SIZES:
        x = np.array(arrays([(n,)], seed=n)[0])
        x.attach_grad()
        with autograd.record():
            (first,) = autograd.grad(compiled(x), [x], create_graph=True)
            second = (first**2).sum()
        second.backward()
        values = x.asnumpy().astype("float64")
        numpy.testing.assert_allclose(first.asnumpy(), 3 * n * values**2, rtol=1e-5)
        numpy.testing.assert_allclose(x.grad.asnumpy(), 36 * n**2 * values**3, rtol=1e-4)


@pytest.mark.lengthy
def test_gradients_at_sizes_never_seen_compile_nothing():
    net = block(dense, (4, 12))
    net.hybridize()
    counters = default_cache().counters
    for n in (4, 7, 30, 9, 5, 3, 64, 40):
        before = counters.compiles
        with autograd.record():
            loss = (net(np.ones((n, 12))) ** 2).sum()
        loss.backward()
    assert counters.compiles == before


def test_fractions_of_sizes_where_operations_are_recorded():
    weight = np.ones((3,))
    weight.attach_grad()

    def step(x):
        with autograd.record():
            loss = (np.tanh(x * weight) ** 2).sum() * (x.shape[0] / 3) / (x.shape[0] * 0.5)
        loss.backward()
        return loss

    run = heterosis.hybridize(step, dynamic=True)
    for n in SIZES:
        x = np.array(arrays([(n, 3)], seed=n)[0])
        found, want = [(f(x).item(), weight.grad.asnumpy()) for f in (run, step)]
        numpy.testing.assert_allclose(found[0], want[0], rtol=1e-5)
        numpy.testing.assert_allclose(found[1], want[1], rtol=1e-5)
    assert run.captures == 1, list(run.captures_why)


@pytest.mark.lengthy
def test_gradients_of_few_filters_are_sums_over_any_number_of_images():
    net = nn.Conv2D(3, 3, in_channels=2)
    net.initialize()

    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        return loss

    run, weight = heterosis.hybridize(step, dynamic=True), net.weight
    for n in SIZES:
        x = np.array(arrays([(n, 2, 9, 9)], seed=n)[0])
        found, want = [(f(x).item(), weight.grad().asnumpy()) for f in (run, step)]
        numpy.testing.assert_allclose(found[0], want[0], rtol=1e-5)
        numpy.testing.assert_allclose(found[1], want[1], rtol=1e-4, atol=1e-4)
    assert run.captures == 1, list(run.captures_why)


@pytest.mark.lengthy
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "lars", "rmsprop", "ftrl"])
def test_gradients_are_scaled_by_the_size_of_the_batch(optimizer):
    losses = []
    for dynamic in (None, "auto", True):
        net = block(dense, (4, 12))
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})

        def step(x, net=net, trainer=trainer):
            with autograd.record():
                loss = (net(x) ** 2).sum()
            loss.backward()
            trainer.step(x.shape[0])
            return loss

        run = step if dynamic is None else heterosis.hybridize(step, dynamic=dynamic)
        losses.append([run(np.array(arrays([(n, 12)], seed=n)[0])).item() for n in SIZES])
        assert dynamic is None or run.captures <= 3, list(run.captures_why)
        assert type(trainer._optimizer.rescale_grad) is float
    numpy.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    numpy.testing.assert_allclose(losses[0], losses[2], rtol=1e-5)


# -- decisions ------------------------------------------------------------------------------------


def test_the_first_size_keeps_the_program_that_was_made_for_it():
    compiled = heterosis.hybridize(lambda x: x * 2 + 1)
    x = np.ones((4, 3))
    compiled(x)
    (first,) = (program for alike in compiled._programs.values() for program in alike)
    for n in (5, 6, 4, 9, 4):
        compiled(np.ones((n, 3)))
    kept = [program for alike in compiled._programs.values() for program in alike]
    assert first in kept and first.values is None
    assert [program.values for program in kept].count(None) == 1
    served = {call[0][0].shape[0] for call in compiled.examples.values()}
    assert served == {4, 5, 6, 9}  # the last two without Python
    assert compiled.captures == 2


def test_a_decision_on_a_size_is_a_condition():
    taken = []

    def function(x):
        if x.shape[0] > 3:
            taken.append("large")
            return x * 2
        taken.append("small")
        return x + 1

    compiled = heterosis.hybridize(function, dynamic=True)
    for n in (8, 2, 9, 3, 4, 100):
        x = np.ones((n,))
        assert (compiled(x).asnumpy() == (2.0)).all()
        assert compiled(x * 3).asnumpy()[0] == (6.0 if n > 3 else 4.0)
    assert taken == ["large", "small"]


DECISIONS = {
    "equal": lambda x: x * 2 if x.shape[0] == 8 else x * 3,
    "divisible": lambda x: x * 2 if x.shape[0] % 4 == 0 else x * 3,
    "turns of a loop": lambda x: sum((x * i for i in range(x.shape[0])), start=x),
    "length": lambda x: x * len(x),
    "in a list": lambda x: x * (2 if x.shape[0] in [4, 8] else 3),
    "in a dictionary": lambda x: x * {4: 2, 8: 5}.get(x.shape[0], 3),
    "shape in a dictionary": lambda x: x * {(4,): 2, (8,): 5}.get(x.shape, 3),
    "in a set": lambda x: x * (2 if x.shape[0] in {4, 8} else 3),
    "fractions of steps": lambda x: np.arange(0, x.shape[0], 0.5) + x.sum(),
    "a root of what may be negative": lambda x: x * abs((x.shape[0] - 4.5) ** 0.5),
    "bits": lambda x: x * (2 if x.shape[0] & 4 else 3),
    "detached": lambda x: x.detach() * (2 if x.detach().shape[0] > 4 else 3),
    "copied": lambda x: x * (2 if np.copy(x).shape[0] > 4 else 3),
    "length of a list": lambda x: x * len(list(x)),
    "unpacked": lambda x: sum([*x]) + x,
    "transposed": lambda x: x * (2 if x.T.shape[0] > 4 else 3),
    "numpy of the shape": lambda x: x * int(numpy.prod(x.shape)),
    "size": lambda x: x * (2 if x.size > 4 else 3) + x.nbytes,
    "truth": lambda x: x * 2 if x[4:].size else x,
    "rows": lambda x: sum(row.sum() for row in x) + x,
    "a text": lambda x: x * float(str(x.shape[0])),
    "in a float": lambda x: x * (1.0 / x.shape[0]),
    "root": lambda x: x * x.shape[0] ** 0.5,
    "of a result": lambda x: x * (2 if x[1:].shape[0] > 4 else 3),
    "broadcast": lambda x: x + np.ones((8,)) if x.shape[0] == 8 else x,
    "minimum": lambda x: x[: min(x.shape[0], 5)] * 2,
    "index": lambda x: x[min(x.shape[0] - 1, 4)] + x,
    "power": lambda x: x * 2 ** x.shape[0],
    "bool": lambda x: x * 2 if x.shape[0] - 4 else x,
    "square": lambda x: x * (x.shape[0] ** 2),
}


@pytest.mark.parametrize("name", DECISIONS)
@pytest.mark.parametrize("dynamic", ["auto", True], ids=["seen", "said"])
def test_no_program_runs_for_sizes_that_it_does_not_hold_for(name, dynamic):
    function = DECISIONS[name]
    compiled = heterosis.hybridize(function, dynamic=dynamic)
    for n in (8, 5, 4, 12, 8, 6, 3, 2, 1, 16, 4):
        x = np.array(arrays([(n,)], seed=n)[0])
        numpy.testing.assert_allclose(
            compiled(x).asnumpy(), function(x).asnumpy(), rtol=2e-5, atol=1e-6
        )


def test_an_index_outside_is_refused_at_the_size_that_has_it_not():
    compiled = heterosis.hybridize(lambda x: x[4] * 2, dynamic=True)
    assert compiled(np.arange(8.0)).item() == 8.0
    with pytest.raises(HeterosisError, match="out of bounds"):
        compiled(np.arange(4.0))


def test_an_index_that_is_an_array_names_the_size_of_the_call():
    compiled = heterosis.hybridize(lambda x, i: np.take(x, i, axis=0, mode="raise"), dynamic=True)
    index = np.array([0, 5], dtype="int64")
    assert compiled(np.arange(8.0), index).tolist() == [0.0, 5.0]
    with pytest.raises(HeterosisError, match=r"-4 <= index < 4"):
        compiled(np.arange(4.0), index).wait_to_read()


def test_what_fixes_an_extent_can_be_read():
    compiled = heterosis.hybridize(lambda x: x * len(range(x.shape[0])), dynamic=True)
    compiled(np.ones(5))
    assert any("n0 == 5 at" in why and "test_sizes.py" in why for why in compiled.captures_why)


def test_numbers_that_are_returned_are_those_of_the_call():
    def function(x):
        n = x.shape[0]
        return x * 2, n, {"half": n / 2, "list": [n + 1, x.shape]}, str(n), math.floor(n / 2)

    compiled = heterosis.hybridize(function, dynamic=True)
    for n in (*SIZES, *SIZES):
        found, expected = compiled(np.ones((n, 2))), function(np.ones((n, 2)))
        assert found[1:] == expected[1:]
        assert [type(one) for one in found] == [type(one) for one in expected]
        assert type(found[2]["half"]) is float and type(found[2]["list"][0]) is int


def test_named_axes_stay_open():
    compiled = heterosis.hybridize(lambda x, y: x @ y, dynamic={"x": (0,)})
    for n in SIZES:
        assert compiled(np.ones((n, 4)), np.ones((4, 3))).tolist() == [[4.0] * 3] * n
    assert compiled.captures == 1
    with pytest.raises(HeterosisError, match="there is no argument 'z'"):
        heterosis.hybridize(lambda x: x, dynamic={"z": (0,)})(np.ones(3))


# -- memory ---------------------------------------------------------------------------------------


def test_writes_into_arguments():
    def function(x, y):
        x[1:] += y[:-1]
        return x * 2

    compiled = heterosis.hybridize(function, dynamic="auto")
    for n in SIZES:
        (a, b), (c, d) = (list(map(np.array, arrays([(n, 3), (n, 3)], seed=n))) for _ in range(2))
        assert (compiled(a, b).asnumpy() == function(c, d).asnumpy()).all()
        assert (a.asnumpy() == c.asnumpy()).all()
    assert compiled.captures <= 3


def test_results_that_are_views_share_memory():
    compiled = heterosis.hybridize(lambda x: (x[1:], x.reshape(-1)), dynamic="auto")
    for n in SIZES:
        x = np.zeros((n, 2))
        part, flat_one = compiled(x)
        part[...] = 1
        assert flat_one.tolist() == [0.0, 0.0] + [1.0] * (2 * n - 2)
        assert x.sum().item() == 2 * n - 2


def test_a_changed_parameter_is_seen_at_all_sizes():
    net = block(dense, (4, 12))
    net.hybridize(dynamic="auto")
    for n in SIZES:
        net(np.ones((n, 12)))
    net[2].weight.data()[:] = 0
    net[2].bias.data()[:] = 1
    for n in SIZES:
        assert net(np.ones((n, 12))).tolist() == [[1.0] * 3] * n


def test_arrays_with_gaps_keep_their_extents():
    compiled = heterosis.hybridize(lambda x: x.sum(axis=1), dynamic=True)
    for n in SIZES:
        x = np.array(arrays([(4, n)])[0])
        numpy.testing.assert_allclose(compiled(x.T).asnumpy(), x.asnumpy().sum(0), rtol=1e-5)


def test_random_numbers_have_the_shapes_of_the_call():
    def function(x):
        return x + np.random.uniform(size=x.shape)

    compiled = heterosis.hybridize(function, dynamic="auto")
    for n in SIZES:
        np.random.seed(n)
        found = compiled(np.zeros((n, 3))).asnumpy()
        np.random.seed(n)
        assert (found == function(np.zeros((n, 3))).asnumpy()).all()
    assert compiled.captures <= 3, list(compiled.captures_why)


def test_choices_and_loops():
    def function(x):
        y = x
        while y.sum() < 100:
            y = y * 2 + 1
        if y.max() > 60:
            y = y - x.shape[0]
        return y

    check(function, lambda n: [(n, 3)], captures=3)


def test_equal_parts_have_one_extent():
    """Each turn hands on a part in place of another one."""

    def program(x):
        first, _, last = np.split(x, 3)

        def body(i, part):
            return [], [i + 1, np.tanh(part) + last]

        return npx.while_loop(lambda i, part: (i < 3) & (part.sum() < 9), body, [0, first])[1][1]

    check(program, lambda n: [(3 * n,)])


@pytest.mark.lengthy
def test_an_optimizer_does_not_count_a_step_twice():
    net = block(dense, (4, 12))
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(1)
        assert json.dumps(x.shape[0]) == "5"  # which takes no size
        return loss

    compiled = heterosis.hybridize(step, dynamic=True)
    for count in range(1, 4):
        compiled(np.ones((5, 12)))
        assert trainer._optimizer.num_update == count
    assert any("no extents stay open" in why for why in compiled.captures_why)


def test_an_optimizer_of_the_users_is_not_asked_twice():
    class Own(heterosis.optimizer.SGD):
        """May remember more than its updates' number."""

    net = block(dense, (4, 12))
    trainer = gluon.Trainer(net.collect_params(), Own(learning_rate=0.1))

    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(1)
        assert json.dumps(x.shape[0]) == "5"  # which takes no size
        return loss

    with pytest.raises(HeterosisError, match="dynamic=False"):
        heterosis.hybridize(step, dynamic=True)(np.ones((5, 12)))


# -- what is left behind --------------------------------------------------------------------------


class Kept:
    width = None
    items: list


def plain_numbers(tree):
    """Whether all that it holds are integers and floats that Python has made."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple | set | collections.deque):
        return all(map(plain_numbers, tree))
    return type(tree) in (int, float)


def set_attribute(kept, x):
    if kept.width is None:  # which is meant to happen once: nothing is told
        kept.width = x.shape[0]
    return x * kept.width


def append(kept, x):
    kept.items.append([x.shape, x.shape[0] / 2])
    return x * 2


LEFT = {
    "an attribute": (set_attribute, None, lambda kept: kept.width),
    "a list": (append, list, lambda kept: kept.items),
    "a dictionary": (
        lambda kept, x: (kept.items.setdefault("first", x.shape), x + 1)[1],
        dict, lambda kept: kept.items,
    ),
    "a set": (
        lambda kept, x: (kept.items.add(x.shape[0]), x + 1)[1], set, lambda kept: kept.items
    ),
    "a deque": (
        lambda kept, x: (kept.items.append(x.size), x + 1)[1],
        collections.deque, lambda kept: kept.items,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
@pytest.mark.filterwarnings("ignore::heterosis.runtime.errors.CaptureWarning")
def test_no_size_is_left_behind_in_what_is_changed(name):
    function, container, left = LEFT[name]
    kept, other = Kept(), Kept()
    if container is not None:
        kept.items, other.items = container(), container()
    compiled = heterosis.hybridize(lambda x: function(kept, x), dynamic=True)
    for n in (5, 6, 7):
        x = np.array(arrays([(n,)], seed=n)[0])
        assert (compiled(x).asnumpy() == function(other, x).asnumpy()).all()
        assert left(kept) and plain_numbers(left(kept))


@pytest.mark.filterwarnings("ignore::heterosis.runtime.errors.CaptureWarning")
def test_no_size_is_left_behind_in_variables():
    count = 0

    def function(x):
        nonlocal count
        count = x.shape[0]
        return x + 1

    heterosis.hybridize(function, dynamic=True)(np.ones(4))
    assert count == 4 and type(count) is int


def test_a_function_that_changes_what_it_reads_runs_once_a_call():
    calls = []

    def function(x):
        calls.append(len(calls))
        return x * len(calls)

    compiled = heterosis.hybridize(function)
    with pytest.warns(heterosis.runtime.errors.CaptureWarning):
        found = [compiled(np.ones(n))[0].item() for n in (3, 4, 5, 6)]
    assert found == [1.0, 2.0, 3.0, 4.0] and calls == [0, 1, 2, 3]


TYPES = {
    "type of a size": lambda x: x + 1 if type(x.shape[0]) is int else x - 1,
    "type of a float": lambda x: x + 1 if type(x.shape[0] / 2) is float else x - 1,
    "among types": lambda x: x + 1 if type(x.size) in (int, bool) else x - 1,
    "of arguments": lambda x: x + [type(n) for n in x.shape].count(int),
    "a pattern": lambda x: x + matched(x.shape[0]),
    "attributes": lambda x: x + x.shape[0].real + x.shape[0].bit_length() + (x.size / 2).real,
}


def matched(n):
    match n:
        case int():
            return 1
    return 2


@pytest.mark.parametrize("name", TYPES)
def test_sizes_are_taken_for_numbers_of_pythons(name):
    check(TYPES[name], lambda n: [(n, 3)], captures=len(SIZES), dynamic=True)
