"""Functions, blocks and training through XLA, against what they give as Python runs them."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy
import pytest

import heterosis
from heterosis import autograd, np, npx
from heterosis.gluon import nn
from heterosis.runtime.errors import IndexingError, LinearAlgebraError
from tests.capture.comparison import same, with_gradients
from tests.processes import run_python

hybridize = partial(heterosis.hybridize, backend="xla")


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(8, activation="relu"), nn.Dense(2))
    net.initialize()
    net(np.ones((1, 5)))
    return net


def test_a_block():
    net, x = mlp(), np.random.normal(size=(4, 5))
    wanted = net(x)
    net.hybridize(backend="xla", jit_compile=True)  # as users of TensorFlow say it
    for _ in range(3):
        same(net(x), wanted, 16)


def test_parameters_that_change_are_seen():
    """What is computed from them ahead is computed again."""
    net, x = mlp(), np.random.normal(size=(4, 5))
    net.hybridize(backend="xla")
    net(x)
    net[0].weight.data()[:] *= 2
    net[2].bias.data()[:] = 5
    found = net(x)
    net.hybridize(False)
    same(found, net(x), 16)


def test_parameters_written_through_another_owner_are_seen():
    net, x = mlp(), np.random.normal(size=(4, 5))
    net.hybridize(backend="xla")
    net(x)
    outside = numpy.asarray(net[0].weight.data())
    for factor in (2, 3):
        outside *= factor
        found = net(x).copy()
        same(found, mlp_like(net)(x), 16)


def mlp_like(net):
    """The same network as Python runs it."""
    other = mlp()
    for mine, theirs in zip(other.collect_params().values(), net.collect_params().values()):
        mine.set_data(theirs.data())
    return other


def test_gradients():
    net, x = mlp(), np.random.normal(size=(4, 5))
    parameters = [p.data() for p in net.collect_params().values()]
    wanted = with_gradients(lambda: net(x), parameters)
    net.hybridize(backend="xla")
    for _ in range(2):
        same(with_gradients(lambda: net(x), parameters), wanted, 16)


def test_results_are_arrays_of_their_own():
    """Whoever writes to one changes no other, no operand, and nothing that comes later."""
    twice = hybridize(lambda x: (x + 1, x + 1, x * 1, np.zeros(3), x.copy()))
    x = np.array([1.0, 2.0, 3.0])
    for _ in range(2):
        results = twice(x)
        for i, one in enumerate(results):
            one[:] = -i
        assert [r.tolist() for r in results] == [[-i] * 3 for i in range(5)]
        assert x.tolist() == [1, 2, 3]


def test_operands_written_between_calls_are_seen():
    double, x = hybridize(lambda x: x * 2), np.array([1.0, 2.0])
    for number in range(4):
        x[:] = number
        assert double(x).tolist() == [2 * number] * 2


def test_users_settings_of_jax_stay_as_they_are():
    import jax

    assert hybridize(lambda x: x + 1)(np.array([2**40], dtype="int64")).item() == 2**40 + 1
    assert not jax.config.jax_enable_x64
    assert jax.numpy.arange(3).dtype == "int32"


def test_settings_of_jax_change_nothing():
    import jax

    def scaled(x):
        return (x.astype("int64") + 1) * np.arange(3).reshape(3, 1) / 2, np.matmul(x, x.T)

    x = np.array(numpy.random.default_rng(0).normal(size=(3, 4)))
    wanted = scaled(x)
    with (
        jax.numpy_dtype_promotion("strict"),
        jax.numpy_rank_promotion("raise"),
        jax.default_matmul_precision("bfloat16"),
    ):
        same(hybridize(scaled)(x), wanted, 8)


FORKED = """
import os
import heterosis
from heterosis import np

double = heterosis.hybridize(lambda x: x * 2, backend="xla")
double(np.ones(2))
if os.fork() == 0:
    try:
        double(np.ones(2))
    except heterosis.runtime.errors.UnsupportedError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(double(np.ones(2)).tolist())
"""


@pytest.mark.lengthy
def test_a_forked_process_is_told(tmp_path):
    told, parent = run_python("-W", "ignore", "-c", FORKED, folder=tmp_path).stdout.splitlines()
    assert "was forked from one that has used XLA" in told and "'spawn'" in told
    assert parent == "[2.0, 2.0]"


@pytest.mark.parametrize("layout", ["part", "turned", "every other", "one column", "empty"])
def test_operands_lie_anyhow(layout):
    x = np.arange(12).reshape(3, 4)
    shown = {"part": x[1:], "turned": x.T, "every other": x[:, ::2], "one column": x[:, 1:2],
             "empty": x[:0]}[layout]  # fmt: skip
    assert hybridize(lambda x: x + 1)(shown).tolist() == (shown + 1).tolist()


# -- what fails -----------------------------------------------------------------------------------


def test_an_index_outside_is_told_as_by_the_native_one():
    x, places = np.arange(5), np.array([1, -7])
    told = []
    for backend in ("native", "xla"):
        taken = heterosis.hybridize(lambda x, i: np.take(x, i, mode="raise") * 2, backend=backend)
        assert taken(x, np.array([-1, 2])).tolist() == [8, 4]
        with pytest.raises(IndexingError) as caught:
            taken(x, places).asnumpy()
        told.append(str(caught.value))
        assert taken(x, np.array([-1, 2])).tolist() == [8, 4]
    assert "index -7 is out of bounds" in told[0] and told[0] == told[1]


def test_what_a_function_raises():
    @hybridize
    def checked(x):
        if x.sum() < 0:
            raise KeyError("negative")
        return x + 1

    assert checked(np.ones(2)).tolist() == [2, 2]
    with pytest.raises(KeyError, match="negative"):
        checked(-np.ones(2)).asnumpy()


def test_a_matrix_that_is_singular():
    told = []
    for backend in ("native", "xla"):
        inverse = heterosis.hybridize(np.linalg.inv, backend=backend)
        assert inverse(2 * np.eye(2)).tolist() == [[0.5, 0], [0, 0.5]]
        with pytest.raises(LinearAlgebraError) as caught:
            inverse(np.ones((2, 2))).asnumpy()
        told.append(str(caught.value))
    assert "the matrix is singular" in told[0] and told[0] == told[1]


# -- with everything else that hybridizing knows --------------------------------------------------


def test_open_sizes():
    """One capture serves all; XLA compiles for each."""
    doubled = hybridize(lambda x: (x * 2).sum(axis=0), dynamic=True)
    for count in (3, 5, 4, 3):
        assert doubled(np.ones((count, 2))).tolist() == [2 * count] * 2
    assert doubled.captures == 1


def test_checked_runs():
    checked = hybridize(lambda x: np.exp(x) + x, check=True)
    for _ in range(4):
        assert checked(np.zeros(2)).tolist() == [1, 1]


def test_saved_and_loaded(tmp_path):
    double = hybridize(lambda x: x * 2)
    double(np.ones(3))
    heterosis.save(double, tmp_path / "double")
    loaded = heterosis.load(tmp_path / "double").compiled_by("xla")
    assert loaded(np.ones(3)).tolist() == [2] * 3


def test_prints(capsys):
    @hybridize
    def told(x):
        npx.print("sum", x.sum())
        return x + 1

    for number in (1.0, 2.0):
        told(np.full(2, number))
    assert capsys.readouterr().out.split() == ["sum", "2.0", "sum", "4.0"]


def test_gradients_of_gradients():
    found = []
    for wrap in (lambda function: function, hybridize):
        x = np.array([0.5, -1.0, 2.0])
        x.attach_grad()
        function = wrap(lambda a: np.sin(a) * a * a)
        with autograd.record():
            (slope,) = autograd.grad(function(x), x, create_graph=True)
            head = (slope * slope).sum()
        head.backward()
        found.append(x.grad.asnumpy())
    numpy.testing.assert_allclose(found[1], found[0], rtol=1e-5)


def test_several_threads():
    net = mlp()
    inputs = [np.random.normal(size=(4, 5)) for _ in range(4)]
    wanted = [net(x) for x in inputs]
    net.hybridize(backend="xla")
    with ThreadPoolExecutor(4) as threads:
        for _ in range(5):
            for found, one in zip(threads.map(net, inputs), wanted):
                same(found, one, 16)


def test_an_error_before_the_call():
    """What an operand waits for is raised by whoever reads it: the call does."""
    taken = heterosis.hybridize(lambda x, i: np.take(x, i, mode="raise"))
    x = np.arange(3)
    with pytest.raises(IndexingError):
        hybridize(lambda x: x + 1)(taken(x, np.array([7]))).asnumpy()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint8", "bool"])
def test_element_types(dtype):
    x = np.array([0.5, 1.0, 3.0]).astype(dtype)
    found = hybridize(lambda a: (a * a, a[::-1] + a, a.astype("float32") / 3))(x)
    for one, other in zip(found, (x * x, x[::-1] + x, x.astype("float32") / 3)):
        assert one.dtype == other.dtype and one.tolist() == other.tolist()
