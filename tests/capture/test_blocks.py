"""Hybridized blocks in all the ways that blocks are used."""

import copy
import pickle
import threading

import numpy
import pytest

from heterosis import autograd, gluon, init, np, npx
from heterosis.gluon import nn, rnn
from heterosis.runtime.errors import HeterosisError
from tests.capture.comparison import same, with_gradients


def _array(*shape, dtype="float32", seed=0):
    return np.array(numpy.random.default_rng(seed).normal(size=shape), dtype=dtype)


def _mlp(width=4, **keywords):
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu", **keywords), nn.Dense(width))
    net.initialize(init.Normal(0.5))
    return net


def _eager(net, *inputs, **keywords):
    """What the block gives without capture, which it is left with behind that."""
    net.hybridize(False)
    found = net(*inputs, **keywords)
    net.hybridize()
    return found


# -- structures -----------------------------------------------------------------------------------


class _Mixed(gluon.HybridBlock):
    """Several inputs, one of which may be None, in structures; results of all kinds."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Dense(3), nn.Dense(3)

    def forward(self, x, pair, mask=None, *, scale=1.0):
        a, (b, more) = pair
        y = self.left(x) * scale + self.right(a) - b
        if mask is not None:
            y = y * mask
        return y, [None, x, {"sum": (y.sum(), more), "mask": mask}]


@pytest.mark.parametrize("mask", [None, "given"])
def test_structures_and_none(mask):
    net = _Mixed()
    net.initialize()
    x, a, b = _array(2, 4), _array(2, 5, seed=1), _array(2, 3, seed=2)
    mask = None if mask is None else _array(2, 3, seed=3)
    wanted = net(x, (a, [b, "text"]), mask, scale=2.0)
    net.hybridize()
    for _ in range(2):
        y, (nothing, same_x, rest) = net(x, (a, [b, "text"]), mask, scale=2.0)
        same(y, wanted[0])
        same(rest["sum"][0], wanted[1][2]["sum"][0])
        assert nothing is None and same_x is x and rest["sum"][1] == "text"
        assert rest["mask"] is mask
    assert net._compiled.captures == 1


class _Old(gluon.HybridBlock):
    """Own parameters, handed in by name."""

    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.inner = nn.Dense(4)
            self.weight = self.params.get("weight", shape=(4,), allow_deferred_init=True)
            self.fixed = self.params.get_constant("fixed", numpy.arange(4, dtype="float32"))

    def hybrid_forward(self, F, x, y=None, weight=None, fixed=None):
        z = self.inner(F.np.tanh(x)) * weight + fixed
        return z if y is None else F.np.where(y > 0, z, F.npx.relu(z))


@pytest.mark.lengthy
@pytest.mark.parametrize("second", [False, True])
def test_parameters_by_name(second):
    net = _Old()
    net.initialize(init.Normal(0.5))
    inputs = [_array(2, 3), *([_array(2, 4)] if second else [])]
    wanted = with_gradients(lambda: net(*inputs), inputs)
    net.hybridize()
    same(with_gradients(lambda: net(*inputs), inputs), wanted)


def test_shared_parameters():
    net = nn.HybridSequential()
    first = nn.Dense(4, in_units=4)
    net.add(first, nn.Dense(4, in_units=4, params=first.params), first)
    net.initialize(init.Normal(0.5))
    x = _array(2, 4)

    def gradients():
        return with_gradients(lambda: net(x), [x]), first.weight.grad().copy()

    wanted = gradients()
    net.hybridize()
    same(gradients(), wanted)


@pytest.mark.lengthy
def test_children_only():
    net, x = _mlp(), _array(3, 5)
    wanted = with_gradients(lambda: net(x), [x])
    net[0].hybridize()
    same(with_gradients(lambda: net(x), [x]), wanted)
    assert net[0]._compiled.captures == 1 and net._compiled is None
    net.hybridize()
    same(with_gradients(lambda: net(x), [x]), wanted)


def test_blocks_that_are_not_hybrid_around_those_that_are():
    class Outer(gluon.Block):
        def __init__(self):
            super().__init__()
            self.first, self.second = _mlp(), _mlp()

        def forward(self, x):
            y = self.first(x)
            return self.second(y) if y.sum().item() > 1e9 else self.second(-y)

    net, x = Outer(), _array(3, 5)
    wanted = with_gradients(lambda: net(x), [x])
    net.hybridize()
    same(with_gradients(lambda: net(x), [x]), wanted)
    assert net.first._compiled.captures == net.second._compiled.captures == 1


# -- shapes and types -----------------------------------------------------------------------------


@pytest.mark.lengthy
def test_deferred_shapes_at_the_first_hybridized_call():
    net, x = nn.HybridSequential(), _array(2, 3, 8, 8)
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Flatten(), nn.Dense(5), nn.LayerNorm())
    net.initialize(init.Normal(0.5))
    net.hybridize()
    x.attach_grad()
    with autograd.record():
        found = net(x) ** 3  # the sum of what is normalised has no gradient
    found.backward()
    assert net[3].weight.shape == (5, 4 * 36) and net[3].weight.grad().asnumpy().any()
    same(net(x), _eager(net, x), 16)


def test_deferred_recurrent_layers():
    net, x = rnn.LSTM(4, 2), _array(3, 2, 5)
    net.initialize()
    net.hybridize()
    same(net(x), _eager(net, x), 16)
    states = net.begin_state(batch_size=2)
    found, wanted = net(x, states), _eager(net, x, states)
    same(found[0], wanted[0], 16)
    same(found[1], wanted[1], 16)


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_element_types(dtype):
    net = _mlp()
    net.cast(dtype)
    x = _array(3, 5, dtype=dtype)
    wanted = with_gradients(lambda: net(x), [x])
    net.hybridize()
    same(with_gradients(lambda: net(x), [x]), wanted, 16)


def test_cast_behind_the_first_call():
    net, x = _mlp(), _array(3, 5)
    net.hybridize()
    net(x)
    net.cast("float64")
    found = net(x.astype("float64"))
    assert found.dtype == "float64"
    same(found, _eager(net, x.astype("float64")))


def test_other_shapes_and_back():
    net = _mlp()
    net.hybridize()
    for rows in (3, 1, 7, 3, 0):
        x = _array(rows, 5)
        same(net(x), _eager(net, x), 16)


# -- parameters that change -----------------------------------------------------------------------


def test_loaded_parameters_are_used(tmp_path):
    other, net, x = _mlp(), _mlp(), _array(3, 5)
    other(x)
    other.save_parameters(str(tmp_path / "p.params"))
    net.hybridize()
    net(x)
    net.load_parameters(str(tmp_path / "p.params"))
    same(net(x), other(x))


@pytest.mark.lengthy
@pytest.mark.parametrize("kind, options", [("sgd", {"momentum": 0.9}), ("adam", {})])
def test_training(kind, options):
    def trained(hybrid):
        np.random.seed(1)
        net = nn.HybridSequential()
        net.add(nn.Dense(8, activation="tanh"), nn.BatchNorm(), nn.Dropout(0.2), nn.Dense(3))
        net.initialize(init.Normal(0.5))
        net(_array(6, 5))  # draws the first parameters
        loss = gluon.loss.SoftmaxCELoss()
        if hybrid:
            net.hybridize()
            loss.hybridize()
        trainer = gluon.Trainer(net.collect_params(), kind, {"learning_rate": 0.1, **options})
        found = []
        for step in range(4):
            x, y = _array(6, 5, seed=step), np.array([0, 1, 2, 0, 1, 2])
            with autograd.record():
                value = loss(net(x), y)
            value.backward()
            trainer.step(6)
            found += [value.copy(), net(x)]
        return found + [p.data() for p in net.collect_params().values()]

    same(trained(True), trained(False), 256)


@pytest.mark.parametrize("request_", ["add", "null"])
def test_requests_of_gradients(request_):
    net, x = _mlp(), _array(3, 5)
    net(x)

    def gradients():
        for p in net.collect_params().values():
            p.zero_grad()
        net[0].weight.grad_req = request_
        for _ in range(2):
            with autograd.record():
                y = net(x)
            y.backward()
        parameters = [p for p in net.collect_params().values() if p.grad_req != "null"]
        return [p.grad().copy() for p in parameters]

    wanted = gradients()
    net.hybridize()
    same(gradients(), wanted, 16)


@pytest.mark.lengthy
def test_gradients_of_gradients():
    net, x = _mlp(), _array(3, 5)

    def penalty():
        x.attach_grad()
        with autograd.record():
            y = np.tanh(net(x)).sum()
            (g,) = autograd.grad(y, [x], create_graph=True)
            z = (g * g).sum()
        z.backward()
        return g, x.grad.copy(), net[1].weight.grad().copy()

    wanted = penalty()
    net.hybridize()
    same(penalty(), wanted, 64)


# -- copies, threads, hooks -----------------------------------------------------------------------


def test_a_copy_has_its_own_parameters():
    net, x = _mlp(), _array(3, 5)
    net.hybridize()
    before = net(x).copy()
    twin = copy.deepcopy(net)
    for p in twin.collect_params().values():
        p.set_data(np.zeros(p.shape))
    assert not twin(x).asnumpy().any()
    same(net(x), before)
    for p in net.collect_params().values():
        p.set_data(np.ones(p.shape))
    assert not twin(x).asnumpy().any()
    fresh = pickle.loads(pickle.dumps(net))
    same(fresh(x), net(x))
    fresh = copy.deepcopy(_mlp())
    fresh.hybridize()
    same(fresh(x), _eager(fresh, x))


def test_several_threads_call_one_block():
    net, inputs = _mlp(), [_array(rows, 5, seed=rows) for rows in range(1, 7)]
    wanted = [net(x) for x in inputs]
    net.hybridize()
    found = [None] * len(inputs)

    def work(i):
        for _ in range(20):
            found[i] = net(inputs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(inputs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(found, wanted, 16)


def test_threads_with_modes_of_their_own():
    net, x = nn.HybridSequential(), _array(4, 5)
    net.add(nn.Dense(3), nn.Dropout(0.5), nn.BatchNorm())
    net.initialize(init.Normal(0.5))
    wanted = net(x)
    net.hybridize()
    errors = []

    def train():
        for _ in range(10):
            with autograd.record():
                y = (net(x) * 0).sum()
            y.backward()

    def predict():
        finite = [np.isfinite(net(x)).all() for _ in range(20)]
        errors.extend("not finite" for each in finite if not each)

    threads = [threading.Thread(target=f) for f in (train, predict, predict)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and net(x).shape == wanted.shape
    assert net._compiled.captures == 2


def test_hooks_of_the_hybridized_block_run_at_every_call():
    net, x = _mlp(), _array(3, 5)
    seen = []
    net.register_forward_pre_hook(lambda block, given: seen.append(("before", given[0] is x)))
    net.register_forward_hook(lambda block, given, found: seen.append(("behind", found.shape)))
    net.hybridize()
    for _ in range(2):
        net(x)
    assert seen == [("before", True), ("behind", (3, 4))] * 2


def test_errors_are_those_of_eager_calls_and_leave_the_block_usable():
    net, x = _mlp(), _array(3, 5)
    net.hybridize()
    same(net(x), _eager(net, x))
    for bad in (_array(3, 6), np.ones((3, 5), dtype="int32")):
        try:
            wanted = _eager(net, bad)
        except HeterosisError as error:
            with pytest.raises(type(error)):
                net(bad)
        else:
            same(net(bad), wanted, 16)
    same(net(x), _eager(net, x))


@pytest.mark.lengthy
def test_zeros_and_states_made_inside():
    class Steps(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.cell = rnn.GRUCell(4)

        def forward(self, x):
            state = [np.zeros((x.shape[0], 4))]
            for i in range(x.shape[1]):
                y, state = self.cell(x[:, i], state)
            return npx.softmax(y), state

    net, x = Steps(), _array(2, 3, 5)
    net.initialize(init.Normal(0.5))
    wanted = with_gradients(lambda: net(x), [x])
    net.hybridize()
    same(with_gradients(lambda: net(x), [x]), wanted, 32)
