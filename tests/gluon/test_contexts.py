"""Networks on several contexts: a copy of each parameter on each, and gradients that are sums."""

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, init, npx
from heterosis import np as hnp
from heterosis.gluon import nn
from heterosis.runtime.errors import (
    ArgumentError,
    CaptureError,
    StaleGradientError,
    UninitializedError,
)

pytestmark = pytest.mark.main_memory("they name contexts of their own")
TWO = [npx.cpu(0), npx.cpu(1)]
LOSS = gluon.loss.SoftmaxCrossEntropyLoss()
X = numpy.random.default_rng(0).normal(size=(12, 5)).astype("float32")
Y = (X.sum(1) > 0).astype("int32")


def network(normal=False):
    hnp.random.seed(1)
    net = nn.HybridSequential(prefix="several_")
    with net.name_scope():
        net.add(nn.Dense(8, activation="relu"))
        if normal:
            net.add(nn.BatchNorm())
        net.add(nn.Dense(2))
    return net


def trained(ctx, hybridized, optimizer="adam", normal=False, steps=5, given=5, **options):
    """The losses and the parameters after some steps, on one context or on several."""
    net = network(normal)
    net.initialize(init.Xavier(), ctx=ctx)
    net(hnp.array(X, ctx=ctx[0]))
    for other in ctx[1:]:
        net(hnp.array(X, ctx=other))
    if hybridized:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1}, **options)
    losses = []
    for _ in range(steps):
        xs, ys = (gluon.utils.split_and_load(a, ctx, even_split=False) for a in (X, Y))
        with autograd.record():
            found = [LOSS(net(x), y) for x, y in zip(xs, ys)]
        for loss in found:
            loss.backward()
        trainer.step(len(X))
        losses.append(sum(loss.sum().item() for loss in found) / len(X))
    return net, losses


@pytest.mark.parametrize("hybridized", [False, True], ids=["imperative", "hybridized"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam", "nadam"])
@pytest.mark.parametrize("count", [2, 3])
def test_losses_on_several_contexts_are_those_of_one(hybridized, optimizer, count):
    contexts = [npx.cpu(i) for i in range(count)]
    several, losses = trained(contexts, hybridized, optimizer)
    one, expected = trained([npx.cpu()], hybridized, optimizer)
    numpy.testing.assert_allclose(losses, expected, rtol=1e-5)
    for name, parameter in several.collect_params().items():
        arrays = [array.asnumpy() for array in parameter.list_data()]
        assert [a.ctx for a in parameter.list_data()] == contexts
        assert all((array == arrays[0]).all() for array in arrays)  # to the last bit
        numpy.testing.assert_allclose(
            arrays[0], one.collect_params()[name].data().asnumpy(), rtol=1e-4, atol=1e-6
        )


def test_gradients_of_all_contexts_are_their_sum():
    net = network()
    net.initialize(ctx=TWO)
    parts = gluon.utils.split_and_load(X, TWO)
    with autograd.record():
        sums = [net(x).sum() for x in parts]
    for one in sums:
        one.backward()
    weight = net[1].weight
    own = [g.asnumpy() for g in weight.list_grad()]
    assert not numpy.allclose(*own)
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    trainer.allreduce_grads()
    assert [g.ctx for g in weight.list_grad()] == TWO
    for gradient in weight.list_grad():
        numpy.testing.assert_array_equal(gradient.asnumpy(), own[0] + own[1])
    trainer.update(1)
    numpy.testing.assert_array_equal(*(d.asnumpy() for d in weight.list_data()))


def test_updates_without_the_sum_are_refused():
    net = network()
    net.initialize(ctx=TWO)
    with autograd.record():
        sums = [net(x).sum() for x in gluon.utils.split_and_load(X, TWO)]
    autograd.backward(sums)
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(ArgumentError, match=r"cpu\(0\), cpu\(1\).* allreduce_grads"):
        trainer.update(1)
    with pytest.raises(ArgumentError, match="learn by itself"):
        gluon.Trainer(net.collect_params(), "sgd", kvstore=None)


def test_a_gradient_that_one_context_lacks_is_stale():
    net = network()
    net.initialize(ctx=TWO)
    parts = gluon.utils.split_and_load(X, TWO)
    for part in parts:
        net(part)
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    with autograd.record():
        one = net(parts[0]).sum()
    one.backward()
    with pytest.raises(StaleGradientError):
        trainer.step(1)


def test_parameters_are_found_by_the_context_of_the_input():
    net = network()
    net.initialize(init.Normal(1), ctx=TWO)
    parts = gluon.utils.split_and_load(X, TWO)
    outputs = [net(part) for part in parts]
    assert [y.ctx for y in outputs] == TWO
    weight = net[0].weight
    assert weight.list_ctx() == TWO
    assert [weight.data(ctx).ctx for ctx in TWO] == TWO
    with npx.cpu(1):
        assert weight.data().ctx == npx.cpu(1)
    weight.data(npx.cpu(1))[...] = 0
    assert (weight.data() != 0).any()  # the other one
    with pytest.raises(UninitializedError, match=r"not on cpu\(2\).*on cpu\(0\), cpu\(1\)"):
        weight.data(npx.cpu(2))
    with pytest.raises(UninitializedError, match=r"not on cpu\(2\)"):
        net(hnp.array(X, ctx=npx.cpu(2)))


@pytest.mark.parametrize("hybridized", [False, True], ids=["imperative", "hybridized"])
def test_an_input_elsewhere_is_refused(hybridized):
    net = network()
    net.initialize()
    net(hnp.array(X))
    if hybridized:
        net.hybridize()
    with pytest.raises(ArgumentError, match=r"one array is on cpu\(1\), another on cpu\(0\)"):
        net(hnp.array(X, ctx=npx.cpu(1)))


def test_one_program_is_captured_a_context():
    net = network()
    net.initialize(ctx=TWO)
    net.hybridize()
    for _ in range(3):
        for x in gluon.utils.split_and_load(X, TWO):
            y = net(x)
            assert y.ctx == x.ctx
    net[1].bias.data(TWO[1])[...] += 1
    first, second = (net(hnp.array(X[:6], ctx=ctx)).asnumpy() for ctx in TWO)
    numpy.testing.assert_allclose(second, first + 1, rtol=1e-6)


def test_contexts_inside_of_a_program():
    @heterosis.hybridize
    def made(x):
        return hnp.zeros((2,)), hnp.ones_like(x), x.ctx == npx.cpu(1), hnp.random.uniform(size=2)

    for ctx in (TWO[1], TWO[0], TWO[1]):
        zeros, ones, is_second, drawn = made(hnp.array(X, ctx=ctx))
        assert (zeros.ctx, ones.ctx, drawn.ctx) == (ctx, ctx, ctx)
        assert is_second == (ctx == TWO[1])

    @heterosis.hybridize
    def nothing_given():
        return hnp.arange(3.0) + 1

    for ctx in (TWO[1], TWO[0], TWO[1]):
        with ctx:
            assert nothing_given().ctx == ctx

    @heterosis.hybridize
    def elsewhere(x):
        return hnp.zeros((2,), ctx=npx.cpu(2)) + x.sum()

    with pytest.raises(CaptureError, match=r"cpu\(2\) in a hybridized function.* on cpu\(0\)"):
        elsewhere(hnp.array(X))

    @heterosis.hybridize
    def both(x, y):
        return x + y

    with pytest.raises(ArgumentError, match=r"on cpu\(0\), another on cpu\(1\)"):
        both(hnp.ones(2), hnp.ones(2, ctx=npx.cpu(1)))


def test_moving_a_network(tmp_path):
    net = network()
    net.initialize(ctx=TWO)
    before = net(hnp.array(X, ctx=TWO[1]))
    net.collect_params().reset_ctx([npx.cpu(2), npx.cpu(0)])
    assert net[0].weight.list_ctx() == [npx.cpu(2), npx.cpu(0)]
    numpy.testing.assert_array_equal(net(hnp.array(X, ctx=npx.cpu(2))).asnumpy(), before.asnumpy())
    net.save_parameters(str(tmp_path / "net.params"))
    other = network()
    other.load_parameters(str(tmp_path / "net.params"), ctx=TWO)
    assert [a.ctx for a in other[0].weight.list_data()] == TWO
    numpy.testing.assert_array_equal(other(hnp.array(X, ctx=TWO[1])).asnumpy(), before.asnumpy())


def test_running_statistics_are_averaged_in_files(tmp_path):
    net, _ = trained(TWO, hybridized=True, normal=True, steps=2)
    means = [array.asnumpy() for array in net[1].running_mean.list_data()]
    assert not numpy.allclose(*means)
    net.save_parameters(str(tmp_path / "net.params"))
    saved = npx.load(str(tmp_path / "net.params"))
    (name,) = [name for name in saved if name.endswith("running_mean")]
    numpy.testing.assert_allclose(saved[name].asnumpy(), (means[0] + means[1]) / 2, rtol=1e-6)


def test_copies_and_casts_are_on_all_contexts():
    import copy

    net = network()
    net.initialize(ctx=TWO)
    net(hnp.array(X))
    net.cast("float64")
    twin = copy.deepcopy(net)
    for one in (net, twin):
        arrays = one[0].weight.list_data()
        assert [(a.ctx, a.dtype.name) for a in arrays] == [(c, "float64") for c in TWO]
    net[0].weight.set_data(hnp.zeros((8, 5)))
    assert all((a == 0).all() for a in net[0].weight.list_data())
    assert all((a != 0).any() for a in twin[0].weight.list_data())
    net[0].weight.grad_req = "null"
    assert all(array.grad is None for array in net[0].weight.list_data())


def test_parameters_on_different_contexts_need_trainers_of_their_own():
    first, second = nn.Dense(3, in_units=2), nn.Dense(3, in_units=3)
    first.initialize(ctx=npx.cpu(0))
    second.initialize(ctx=npx.cpu(1))
    parameters = [*first.collect_params().values(), *second.collect_params().values()]
    with pytest.raises(ArgumentError, match=r"on cpu\(0\), and .* on cpu\(1\)"):
        gluon.Trainer(parameters, "sgd")
    trainers = [gluon.Trainer(net.collect_params(), "adam") for net in (first, second)]
    with autograd.record():  # the network lies on two contexts, one part behind the other
        loss = second(first(hnp.ones((4, 2))).as_in_ctx(npx.cpu(1))).sum()
    loss.backward()
    assert first.weight.grad().ctx == npx.cpu(0)
    assert (first.weight.grad() != 0).any()
    for trainer in trainers:
        trainer.step(4)


def test_gradients_go_back_through_copies():
    x = hnp.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        there = (x * x).as_in_ctx(npx.cpu(1))
        y = (there * hnp.array([1.0, 10.0, 100.0], ctx=npx.cpu(1))).copyto(npx.cpu(2)).sum()
    assert y.ctx == npx.cpu(2)
    y.backward()
    assert x.grad.ctx == npx.cpu(0)
    assert x.grad.tolist() == [2.0, 40.0, 600.0]


def test_stores_add_up_over_contexts():
    store = heterosis.kvstore.create("device")
    shape = (2, 3)
    store.init(3, hnp.ones(shape))
    parts = [hnp.full(shape, i + 1.0, ctx=npx.cpu(i)) for i in range(4)]
    store.push(3, parts)
    store.pull(3, out=parts)
    assert [(p.ctx, p[0, 0].item()) for p in parts] == [(npx.cpu(i), 10.0) for i in range(4)]


def test_norms_are_of_all_contexts_together():
    arrays = [hnp.array([3.0]), hnp.array([4.0], ctx=npx.cpu(1))]
    assert gluon.utils.clip_global_norm(arrays, 1.0) == pytest.approx(5.0)
    assert [a.ctx for a in arrays] == TWO
    numpy.testing.assert_allclose([a.item() for a in arrays], [0.6, 0.8], rtol=1e-6)


def test_an_estimator_uses_all_contexts():
    def fitted(contexts):
        net = network()
        net.initialize(init.Xavier(), ctx=contexts)
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        estimator = gluon.contrib.estimator.Estimator(net, LOSS, trainer=trainer, context=contexts)
        data = gluon.data.DataLoader(gluon.data.ArrayDataset(X, Y), batch_size=6)
        estimator.fit(data, epochs=2)
        return net[1].weight.list_data()

    several, one = fitted(TWO), fitted(TWO[:1])
    assert [array.ctx for array in several] == TWO
    for array in several:
        numpy.testing.assert_allclose(array.asnumpy(), one[0].asnumpy(), rtol=1e-5, atol=1e-7)


def test_a_network_from_files_is_on_all_contexts(tmp_path):
    net = network()
    net.initialize()
    net.hybridize()
    expected = net(hnp.array(X)).asnumpy()
    net.export(str(tmp_path / "net"))
    block = gluon.SymbolBlock.imports(
        str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params"), ctx=TWO
    )
    for ctx in TWO:
        found = block(hnp.array(X, ctx=ctx))
        assert found.ctx == ctx
        numpy.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)


def test_contexts_through_xla():
    pytest.importorskip("jax", reason="JAX is not installed: pip install 'heterosis[xla]'")
    net = network()
    net.initialize(ctx=TWO)
    parts = gluon.utils.split_and_load(X, TWO)
    expected = [net(part).asnumpy() for part in parts]
    net.hybridize(backend="xla")
    for part, own in zip(parts, expected):
        found = net(part)
        assert found.ctx == part.ctx
        numpy.testing.assert_allclose(found.asnumpy(), own, rtol=1e-5, atol=1e-6)
    lone = network()
    lone.initialize()
    lone(parts[0])
    lone.hybridize(backend="xla")
    with pytest.raises(ArgumentError, match=r"one array is on cpu\(1\), another on cpu\(0\)"):
        lone(parts[1])


def test_averages_are_applied_on_all_contexts():
    net = network()
    net.initialize(init.Xavier(), ctx=TWO)
    net(hnp.array(X))
    average = gluon.ExponentialMovingAverage(net.collect_params(), decay=0.5)
    before = net[1].weight.data().asnumpy()
    net[1].weight.set_data(before + 1)
    with TWO[1]:
        average.update()
        with average.applied():
            for array in net[1].weight.list_data():
                numpy.testing.assert_allclose(array.asnumpy(), before + 0.5, rtol=1e-6)
    for array in net[1].weight.list_data():
        numpy.testing.assert_allclose(array.asnumpy(), before + 1, rtol=1e-6)


def test_parallel_training_without_gluon():
    """As books teach it: parameters copied to each device, gradients added up by hand."""
    start = [hnp.array(X[:5].T), hnp.zeros(5), hnp.array(X[:5, :2]), hnp.zeros(2)]

    def output(x, w, b, v, c):
        return hnp.dot(npx.relu(hnp.dot(x, w) + b), v) + c

    def on(ctx):
        found = [p.copyto(ctx) for p in start]
        for p in found:
            p.attach_grad()
        return found

    def add_up(arrays):
        for array in arrays[1:]:
            arrays[0][:] += array.copyto(arrays[0].ctx)
        for array in arrays[1:]:
            arrays[0].copyto(array)

    def trained(devices):
        copies = [on(ctx) for ctx in devices]
        for _ in range(4):
            xs, ys = (gluon.utils.split_and_load(a, devices) for a in (X, Y))
            with autograd.record():
                losses = [LOSS(output(x, *p), y).sum() for x, y, p in zip(xs, ys, copies)]
            for loss in losses:
                loss.backward()
            for same in zip(*copies):
                add_up([p.grad for p in same])
            for p in (p for copied in copies for p in copied):
                p -= 0.1 / len(X) * p.grad
        return copies

    for copied in (several := trained(TWO)):
        for mine, own in zip(copied, trained(TWO[:1])[0]):
            numpy.testing.assert_allclose(mine.asnumpy(), own.asnumpy(), rtol=1e-4, atol=1e-6)
    assert [p.ctx for copied in several for p in copied] == [TWO[0]] * 4 + [TWO[1]] * 4
