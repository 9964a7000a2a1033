"""Arrays that a program leaves new elements in take over the memory of its results, where nobody
has the address of either; what else shows them, holds them or waits for them sees no difference."""

import gc

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from tests.core.native import closed_gate, pass_gate

SIZES = {"at once": 8, "queued": 1 << 19}  # elements


def _added(x, y):
    x += y
    return y * 2


def _exchanged(x, y):
    before = x * 1
    x[...] = y * 1
    y[...] = before
    return x.sum()


def _returned_too(x, y):
    made = x + y
    x[...] = made
    return made


def _written_twice(x, y):
    made = x + y
    x[...] = made
    y[...] = made
    return made.sum()


def _of_the_other(x, y):
    x[...] = y
    y += 1
    return x * 2


def _as_it_was(x, y):
    x += y
    x -= y
    return x


def _reversed(x, y):
    x[...] = x[::-1] + y
    y[::-1] = x * 2
    return y


PROGRAMS = [_added, _exchanged, _returned_too, _written_twice, _of_the_other, _as_it_was, _reversed]


def _arrays(count):
    return [np.array(numpy.linspace(low, 1, count, dtype="float32")) for low in (0.5, 0.75)]


def _compiled(function, count):
    compiled = heterosis.hybridize(function, dynamic=False)
    compiled(*_arrays(count))
    return compiled


def _as_numpy(results):
    return [numpy.array(x.asnumpy()) for x in results]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", PROGRAMS)
def test_calls_leave_what_imperative_ones_leave(function, size):
    count = SIZES[size]
    compiled, given, expected = _compiled(function, count), _arrays(count), _arrays(count)
    views = [x[1:] for x in given]
    kept = [(compiled(*given), function(*expected)) for _ in range(5)]
    found = [*given, *views, *(pair[0] for pair in kept)]
    wanted = [*expected, *(x[1:] for x in expected), *(pair[1] for pair in kept)]
    for ours, theirs in zip(_as_numpy(found), _as_numpy(wanted), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share", [numpy.from_dlpack, memoryview], ids=["DLPack", "buffer"])
@pytest.mark.main_memory("others can write there")
def test_who_has_the_address_sees_what_is_written(share, size):
    count = SIZES[size]
    compiled, (x, y) = _compiled(_added, count), _arrays(count)
    before = x.asnumpy()
    shared = share(x)
    compiled(x, y)
    npx.waitall()
    assert numpy.array_equal(numpy.asarray(shared), x.asnumpy())
    del shared
    gc.collect()
    compiled(x, y)
    compiled(x, y)
    numpy.testing.assert_allclose(x.asnumpy(), before + 3 * y.asnumpy(), rtol=1e-6)


@pytest.mark.main_memory("others can write there")
def test_what_was_queued_before_reads_what_stood_there():
    compiled, (x, y) = _compiled(_added, 1 << 19), _arrays(1 << 19)
    before, more = x.asnumpy(), y.asnumpy()
    with closed_gate() as gate:
        pass_gate(gate, x)
        copies = []
        for _ in range(4):
            copies.append(x * 1)
            compiled(x, y)
    for turn, copy in enumerate(copies):
        numpy.testing.assert_allclose(copy.asnumpy(), before + turn * more, rtol=1e-6)
    numpy.testing.assert_allclose(x.asnumpy(), before + 4 * more, rtol=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_gradients_notice_that_an_operand_was_written_to(size):
    compiled, (x, y) = _compiled(_added, SIZES[size]), _arrays(SIZES[size])
    x.attach_grad()
    with autograd.record():
        loss = (x * x).sum()
    with autograd.pause():
        compiled(x, y)
    with pytest.raises(heterosis.runtime.errors.AutogradError):
        loss.backward()


@pytest.mark.parametrize("width", [4, 600])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.main_memory("XLA rounds in another order")
def test_steps_train_as_they_do_imperatively(optimizer, width):
    def trained(step):
        npx.random.seed(1)
        net = gluon.nn.HybridSequential()
        net.add(gluon.nn.Dense(width, activation="relu", in_units=width), gluon.nn.BatchNorm())
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.1})
        x = np.array(numpy.linspace(-1, 1, 6 * width, dtype="float32").reshape(6, width))

        def run(x):
            with autograd.record():
                loss = (net(x) ** 2).mean()
            loss.backward()
            trainer.step(1)
            return loss

        run = step(run)
        losses = [run(x).item() for _ in range(6)]
        return losses, _as_numpy(p.data() for p in net.collect_params().values())

    ours, theirs = trained(heterosis.hybridize), trained(lambda run: run)
    numpy.testing.assert_allclose(ours[0], theirs[0], rtol=1e-4)
    for a, b in zip(ours[1], theirs[1], strict=True):
        numpy.testing.assert_allclose(a, b, rtol=2e-3, atol=1e-5)
