"""Arrays in a GPU's memory: what those in main memory are, but that nobody has their address."""

import io
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, npx
from heterosis import np as hnp
from heterosis.backends import named, register
from heterosis.runtime import errors
from tests.gpus import needs_gpus

pytestmark = needs_gpus
X = numpy.arange(12.0, dtype="float32").reshape(3, 4)


@pytest.fixture
def x():
    return hnp.array(X, ctx=npx.gpu(0))


def equal(found, expected, ctx=None):
    """Whether the array has these elements, and is on the context, `gpu(0)` if none is named."""
    assert found.ctx == (ctx or npx.gpu(0))
    numpy.testing.assert_array_equal(found.asnumpy(), expected)


def test_they_are_counted():
    assert npx.num_gpus() >= 1
    with pytest.raises(errors.UnsupportedError, match=r"gpu\(99\).*num_gpus\(\) is \d+"):
        hnp.ones(2, ctx=npx.gpu(99))


def test_copies_cross(x):
    equal(x, X)
    equal(x.as_in_ctx(npx.cpu()), X, npx.cpu())
    equal(x.copyto(npx.cpu(1)), X, npx.cpu(1))
    assert x.as_in_ctx(npx.gpu(0)) is x
    equal(x.T[1:, ::-1].as_in_ctx(npx.cpu()), X.T[1:, ::-1], npx.cpu())
    here = hnp.zeros((3, 4))
    here[...] = x
    equal(here, X, npx.cpu())
    x[1:] = hnp.ones((2, 4))
    equal(x, numpy.concatenate([X[:1], numpy.ones((2, 4))]))


@pytest.mark.skipif(npx.num_gpus() < 2, reason="there is one GPU")
def test_copies_cross_between_gpus(x):
    there = x.as_in_ctx(npx.gpu(1))
    equal(there + 1, X + 1, npx.gpu(1))
    with pytest.raises(errors.ArgumentError, match=r"gpu\(0\), another on gpu\(1\)"):
        x + there
    there[0] = x[1]
    assert there[0].tolist() == X[1].tolist()


VIEWS = {
    "rows": lambda a: a[1:],
    "columns": lambda a: a[:, 1:3],
    "steps": lambda a: a[::2, ::3],
    "backwards": lambda a: a[::-1],
    "turned": lambda a: a.T,
    "turned part": lambda a: a.T[1:3, 1:],
    "row": lambda a: a[1],
    "element": lambda a: a[1, 2, ...],
    "new axis": lambda a: a[:, None, 1:],
    "reshaped": lambda a: a.reshape(2, 6)[1:],
    "nothing": lambda a: a[3:],
    "view of a view": lambda a: a[1:].T[::2][1:],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_memory(x, name):
    view, values = VIEWS[name], X.copy()
    part, expected = view(x), view(values)
    equal(part, expected)
    equal(part * 2 + 1, expected * 2 + 1)
    assert hnp.shares_memory(part, x) == (part.size > 0)
    part += 100
    expected += 100
    equal(x, values)
    part[...] = part[...] * 0.5
    expected[...] = expected[...] * 0.5
    equal(x, values)
    x *= 2
    equal(part, view(values * 2))


def test_overlapping_writes(x):
    values = X.copy()
    x[1:] = x[:-1]
    values[1:] = values[:-1].copy()
    equal(x, values)
    x[:, ::-1] = x
    values[:, ::-1] = values.copy()
    equal(x, values)


def test_written_elements_are_not_those_of_copies(x):
    copy, alias = x.copy(), x.reshape(4, 3)
    lent = numpy.asarray(x)
    x[0] = -1
    equal(copy, X)
    assert alias[0].tolist() == [-1, -1, -1]
    assert (lent == X).all()
    for _ in range(3):  # writes over memory that nobody else has
        x[1, 1] += 1
    assert x[1, 1] == X[1, 1] + 3


def test_results_are_where_operands_are():
    with npx.gpu(0):
        made = hnp.zeros((2,)) + hnp.random.normal(size=2) + hnp.array([1.0, 2.0])
    assert made.ctx == npx.gpu(0)
    here = hnp.ones(2)
    with npx.gpu(0):
        assert (here + 1).ctx == npx.cpu()
    assert (made + 1).ctx == hnp.ones_like(made).ctx == npx.gpu(0)
    with pytest.raises(errors.ArgumentError, match=r"gpu\(0\), another on cpu\(0\)"):
        made + here
    with pytest.raises(errors.ArgumentError, match=r"cpu\(0\).*gpu\(0\)"):
        hnp.add(here, 1, out=made)


def test_random_numbers_are_those_of_main_memory():
    drawn = []
    for ctx in npx.cpu(), npx.gpu(0):
        hnp.random.seed(7)
        drawn.append(hnp.random.uniform(size=(50,), ctx=ctx).asnumpy())
    assert (drawn[0] == drawn[1]).all()


def test_errors_are_raised_when_elements_are_read(x):
    bad = hnp.take(x, hnp.array([7], dtype="int64", ctx=npx.gpu(0)), axis=0, mode="raise")
    after = bad + 1
    for one in bad, after:
        with pytest.raises(errors.IndexingError, match="index 7"):
            one.asnumpy()
    after[...] = 1
    equal(after, numpy.ones((1, 4)))


def test_nobody_else_writes(x):
    assert memoryview(x).readonly and not numpy.asarray(x).flags.writeable
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(b"1234").readinto(x)
    with pytest.raises(ValueError, match="copy=False"):
        x.__array__(copy=False)


def test_pickled_and_saved(x, tmp_path):
    assert pickle.loads(pickle.dumps(x)).tolist() == X.tolist()
    npx.save(str(tmp_path / "x"), {"x": x})
    with npx.gpu(0):
        equal(npx.load(str(tmp_path / "x"))["x"], X, npx.cpu())


def test_gradients_cross():
    x = hnp.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        there = (x * x).as_in_ctx(npx.gpu(0))
        y = (there * hnp.array([1.0, 10.0, 100.0], ctx=npx.gpu(0))).as_in_ctx(npx.cpu()).sum()
    y.backward()
    equal(x.grad, [2.0, 40.0, 600.0], npx.cpu())


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("hybridized", [False, True], ids=["imperative", "hybridized"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_training_is_that_of_main_memory(hybridized, optimizer, count):
    if npx.num_gpus() < count:
        pytest.skip("there is one GPU")

    def losses(contexts):
        hnp.random.seed(3)
        net = gluon.nn.HybridSequential()
        net.add(
            gluon.nn.Conv2D(4, 3, in_channels=1),
            gluon.nn.BatchNorm(in_channels=4),
            gluon.nn.Dense(8, "relu", in_units=4 * 6 * 6),
            gluon.nn.Dense(3, in_units=8),
        )
        net.initialize(ctx=contexts)
        if hybridized:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05})
        rng, found = numpy.random.default_rng(0), []
        loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
        for _ in range(4):
            x = hnp.array(rng.normal(size=(8, 1, 8, 8)).astype("float32"))
            y = hnp.array(rng.integers(0, 3, 8))
            parts = zip(*(gluon.utils.split_and_load(a, contexts) for a in (x, y)), strict=True)
            with autograd.record():
                of_parts = [loss_of(net(a), b).sum() for a, b in parts]
            autograd.backward(of_parts)
            trainer.step(8)
            found.append(sum(float(one) for one in of_parts))
        return found

    expected = losses([npx.cpu(i) for i in range(count)])
    found = losses([npx.gpu(i) for i in range(count)])
    numpy.testing.assert_allclose(found, expected, rtol=2e-5)


def test_a_whole_step_is_one_program():
    net = gluon.nn.Dense(1, in_units=3)
    net.initialize(ctx=npx.gpu(0))
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

    @heterosis.hybridize
    def step(x, y):
        with autograd.record():
            loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        trainer.step(1)
        return loss

    x = hnp.array(numpy.random.default_rng(0).normal(size=(16, 3)), "float32", ctx=npx.gpu(0))
    y = x.sum(1, keepdims=True)
    found = [float(step(x, y)) for _ in range(60)]
    assert found[-1] < found[0] / 20
    assert step.captures <= 2
    assert net.weight.data().ctx == npx.gpu(0)


def test_a_network_moves(tmp_path):
    net = gluon.nn.Dense(2, in_units=4)
    net.initialize()
    here = net(hnp.array(X)).asnumpy()
    net.save_parameters(str(tmp_path / "p"))
    net.collect_params().reset_ctx(npx.gpu(0))
    there = hnp.array(X, ctx=npx.gpu(0))
    numpy.testing.assert_allclose(net(there).asnumpy(), here, rtol=1e-6)
    net.hybridize()
    numpy.testing.assert_allclose(net(there).asnumpy(), here, rtol=1e-6)
    other = gluon.nn.Dense(2, in_units=4)
    other.load_parameters(str(tmp_path / "p"), ctx=npx.gpu(0))
    equal(other.weight.data(), net.weight.data().asnumpy())


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_states_are_loaded_where_their_parameters_are(optimizer, tmp_path):
    def learns():
        with autograd.record():
            loss = (net(hnp.ones((2, 6), ctx=npx.gpu(0))) ** 2).sum()
        loss.backward()
        trainer.step(2)
        return loss.item()

    net = gluon.nn.Dense(4, in_units=6)
    net.initialize(ctx=npx.gpu(0))
    settings = {"momentum": 0.9} if optimizer == "sgd" else {}
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01, **settings})
    learns()
    net.save_parameters(str(tmp_path / "net"))
    trainer.save_states(str(tmp_path / "states"))
    goes_on = [learns(), learns()]
    net.load_parameters(str(tmp_path / "net"))
    trainer.load_states(str(tmp_path / "states"))
    assert [learns(), learns()] == goes_on


def test_a_result_that_has_no_room_is_refused():
    with pytest.raises(errors.OutOfMemoryError, match="takes"):
        hnp.zeros((1 << 60,), ctx=npx.gpu(0))


def test_parts_of_one_memory_are_written_together():
    whole = hnp.zeros((4, 3), ctx=npx.gpu(0))
    hnp.modf(hnp.array([1.5, 2.25, -3.5], ctx=npx.gpu(0)), out=(whole[0], whole[2]))
    assert whole.tolist() == [[0.5, 0.25, -0.5], [0, 0, 0], [1, 2, -3], [0, 0, 0]]


def test_memory_that_results_take_over_is_used_again(x):
    state, seen = x.copy(), x.copy()

    @heterosis.hybridize
    def step(by):
        state[...] = state * 2 + by
        return state.sum()

    expected = X
    for by in 1.0, 2.0, 3.0:
        before = state._elements
        total = step(hnp.array(by, ctx=npx.gpu(0)))
        expected = expected * 2 + by
        equal(state, expected)
        assert total == expected.sum()
        assert not before.is_deleted()  # `before` has them too
    kept = state._alias()
    first = state._elements.unsafe_buffer_pointer()
    step(hnp.array(1.0, ctx=npx.gpu(0)))
    assert state._elements.unsafe_buffer_pointer() == first
    equal(kept, expected * 2 + 1)
    equal(seen, X)


def test_threads_share_arrays(x):
    """Threads that write to an array, and read it, each a row: all writes are there."""
    whole = hnp.zeros((4, 8), ctx=npx.gpu(0))

    def work(row):
        for turn in range(40):
            whole[row] += 1
            assert whole[row].tolist() == [turn + 1] * 8

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert whole.tolist() == [[40] * 8] * 4


def test_other_back_ends_are_refused(x):
    register("elsewhere", lambda: named("native"))
    double = heterosis.hybridize(lambda a: a * 2, backend="elsewhere")
    with pytest.raises(errors.UnsupportedError, match="'elsewhere' computes in main memory"):
        double(x)


def test_everything_is_waited_for(x):
    later = (x @ x.T) * 2
    npx.waitall()
    assert later._elements.is_ready()


def test_a_library_is_for_main_memory(tmp_path):
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(3, in_units=4), gluon.nn.BatchNorm(in_channels=3))
    net.initialize(ctx=npx.gpu(0))
    net.hybridize()
    x = hnp.array(X, ctx=npx.gpu(0))
    expected = net(x).asnumpy()
    library, _ = heterosis.export(net, str(tmp_path / "moved"), x)
    heterosis.save(net, str(tmp_path / "net"))
    assert os.path.getsize(library) > 0
    found = heterosis.load(str(tmp_path / "net"))(hnp.array(X))
    assert found.ctx == npx.cpu()
    numpy.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-5)
