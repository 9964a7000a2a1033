"""Saved programs whose extents are open: one file for every size that its conditions admit."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.gluon import nn
from heterosis.io.packing import pack, unpack
from heterosis.runtime.errors import ArgumentError, FormatError
from tests.processes import run_python

SIZES = (1, 8, 64, 3, 2, 33)


def floats(*shape, seed=0):
    return numpy.random.default_rng(seed).normal(size=shape).astype("float32")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "program"


def mlp():
    net = nn.HybridSequential()
    net.add(nn.Dense(16, activation="relu"), nn.Dense(4))
    net.initialize()
    net(np.ones((1, 6)))
    return net


def branches(x, y):
    """A choice of arrays', sizes as numbers, views, and a write."""
    z = x @ y
    if z.sum() > 0:
        z = z * 2
    z = z + 1
    z[1:] += 1
    n = x.shape[0]
    return z.reshape(-1) / n + n**0.5, {"last": z[-1], "half": z[: n // 2]}


def test_filters_in_groups_saved_and_called_with_others(path):
    """Groups of filters are a reshape that holds for numbers of filters that they divide."""

    def convolved(x, weight):
        return npx.convolution(x, weight, kernel=(3, 3), num_group=4, no_bias=True)

    x, weights = floats(2, 8, 6, 5), {n: np.array(floats(n, 2, 3, 3, seed=n)) for n in (12, 20)}
    compiled = heterosis.hybridize(convolved, dynamic=True)
    compiled(np.array(x), weights[12])
    heterosis.save(compiled, path)
    loaded = heterosis.load(path)
    for weight in weights.values():
        expected = convolved(np.array(x), weight).asnumpy()
        assert loaded(np.array(x), weight).asnumpy() == pytest.approx(expected, abs=1e-4)
    with pytest.raises(ArgumentError):
        loaded(np.array(x), np.array(floats(10, 2, 3, 3)))


def test_saved_at_one_and_called_at_others(path):
    net = mlp()
    net.hybridize(dynamic=True)
    net(np.ones((1, 6)))
    net.save_program(path)
    loaded = heterosis.load(path)
    assert [str(one) for one in loaded.signatures] == [
        "(x: float32[n0, 6]) -> (output: float32[n0, 4]) where n0 >= 2",
        "(x: float32[1, 6]) -> (output: float32[1, 4])",
    ]
    for n in SIZES:
        x = floats(n, 6, seed=n)
        expected = net(np.array(x)).asnumpy()
        numpy.testing.assert_allclose(loaded(x).asnumpy(), expected, rtol=1e-5, atol=1e-6)
    assert loaded.captures <= 3
    with pytest.raises(ArgumentError, match=r"where n0 >= 2"):
        loaded(floats(3, 5))


@pytest.mark.lengthy
def test_choices_writes_and_numbers_of_sizes(path):
    compiled = heterosis.hybridize(branches, dynamic=True)
    heterosis.save(compiled, path, np.ones((4, 3)), np.ones((3, 5)))
    loaded = heterosis.load(path)
    for n in (4, 7, 6, 20):
        x, y = floats(n, 3, seed=n), floats(3, 5)
        (expected, parts), (found, own) = branches(np.array(x), np.array(y)), loaded(x, y)
        numpy.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)
        for name, want in parts.items():
            numpy.testing.assert_allclose(own[name].asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)

    with pytest.raises(ArgumentError, match=r"n0//2 != 1"):  # half of 2 would be broadcast
        loaded(floats(2, 3), floats(3, 5))


def turns(x):
    """A loop over as many rows as there are, with states of numbers and of the rows' extent."""
    body = lambda row, states: ((row * states[0]), [states[0] + row, states[1] * row])  # noqa: E731
    rows, (first, second) = npx.foreach(body, x, [np.ones(3), x[0] + 1])
    return rows, first, second


def complaint(x):
    """A branch that gives nothing, where the other one gives an array of the size."""

    def failing():
        raise LookupError("too large")

    return x if x.sum() < 100 else failing()


@pytest.mark.parametrize("function", [turns, complaint])
def test_loops_and_errors(function, path):
    heterosis.save(heterosis.hybridize(function), path, np.ones((4, 3)))
    loaded = heterosis.load(path)
    for n in (4, 7, 2, 20):
        x = np.array(floats(n, 3, seed=n))
        pairs = zip(flat(function(x)), flat(loaded(x)), strict=True)
        for want, got in pairs:
            numpy.testing.assert_allclose(got.asnumpy(), want.asnumpy(), rtol=1e-5, atol=1e-6)
    assert loaded.captures == 2
    if function is complaint:
        with pytest.raises(LookupError, match="too large"):
            loaded(np.ones((50, 3))).asnumpy()


def flat(results):
    return results if isinstance(results, tuple) else [results]


def test_only_named_extents_stay_open(path):
    compiled = heterosis.hybridize(lambda x: x * 2, dynamic={"x": (0,)})
    heterosis.save(compiled, path, np.ones((4, 3)))
    loaded = heterosis.load(path)
    assert loaded(np.ones((9, 3))).shape == (9, 3)
    with pytest.raises(ArgumentError, match=r"x: float32\[n0, 3\]"):
        loaded(np.ones((4, 4)))


def test_a_program_saved_again_stays_open(path, tmp_path):
    net = mlp()
    net.hybridize(dynamic=True)
    net.save_program(path, np.ones((3, 6)))
    again = tmp_path / "again"
    heterosis.load(path).save(again)
    assert heterosis.load(again).signatures == heterosis.load(path).signatures
    assert heterosis.load(again)(np.ones((5, 6))).shape == (5, 4)


def test_what_is_fixed_is_refused_for_other_extents(path):
    compiled = heterosis.hybridize(lambda x: x[:8] * len(range(x.shape[1])), dynamic=True)
    heterosis.save(compiled, path, np.ones((9, 3)))
    loaded = heterosis.load(path)
    assert loaded(np.ones((20, 3))).shape == (8, 3)
    for shape in ((9, 4), (5, 3)):
        with pytest.raises(ArgumentError, match="the file has programs for"):
            loaded(np.ones(shape))


EQUAL = {
    "reshape": lambda x, b: b.reshape((1, *x[::2].shape)) * x[::2],
    "product": lambda x, b: b * x[::2],
    "sum of products": lambda x, b: np.dot(b, x[::2]),
    "known before": lambda x, b: (x[::2] + FOUR) * b.reshape(x[::2].shape),
    "known behind": lambda x, b: b * x[::2] * FOUR + b,
    "in turn": lambda x, b: np.concatenate([b, b]) + (x + b[0])[:-1] + np.tile(b, 2),
}
FOUR = np.array(floats(4))


@pytest.mark.parametrize("name", EQUAL)
def test_extents_that_must_be_equal(name, path):
    """Programs are well formed, which the tests have checked, when it is a condition that two
    extents are one, or are a number."""
    compiled = heterosis.hybridize(EQUAL[name], dynamic=True)
    x, b = floats(9 if name == "in turn" else 7), floats(4, seed=1)
    expected = compiled(x, b).asnumpy()
    heterosis.save(compiled, path)
    loaded = heterosis.load(path)
    numpy.testing.assert_array_equal(loaded(x, b).asnumpy(), expected)
    if "known" in name:
        assert "b: float32[4]" in str(loaded.signatures[0])
    else:
        more = (21 if name == "in turn" else 19), 10
        x, b = (floats(n) for n in more)
        given = EQUAL[name](np.array(x), np.array(b)).asnumpy()
        numpy.testing.assert_allclose(loaded(x, b).asnumpy(), given, rtol=1e-5, atol=1e-6)
    with pytest.raises(ArgumentError, match="has programs for"):
        loaded(floats(23), floats(7))


def test_broadcast_extents_are_not_opened(path):
    compiled = heterosis.hybridize(lambda x, y: x + y, dynamic=True)
    heterosis.save(compiled, path, np.ones((1, 3)), np.ones((4, 3)))
    loaded = heterosis.load(path)
    for n in (4, 6):
        assert loaded(np.ones((1, 3)), np.ones((n, 3))).tolist() == [[2.0] * 3] * n


def test_from_another_process(path, tmp_path):
    net = mlp()
    net.hybridize(dynamic=True)
    net(np.ones((1, 6)))
    net.save_program(path)
    code = (
        "import json, numpy, heterosis\n"
        f"f = heterosis.load({str(path)!r})\n"
        f"made = [f(numpy.ones((n, 6), 'float32')).tolist() for n in {SIZES}]\n"
        "print(json.dumps(made))"
    )
    done = run_python("-c", code, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for n, found in zip(SIZES, json.loads(done.stdout), strict=True):
        numpy.testing.assert_allclose(found, net(np.ones((n, 6))).asnumpy(), rtol=1e-5)


@pytest.mark.main_memory("threads begin there")
def test_from_many_threads(path):
    net = mlp()
    net.hybridize(dynamic=True)
    net(np.ones((1, 6)))
    net.save_program(path)
    loaded = heterosis.load(path)
    inputs = [floats(n, 6, seed=i) for i, n in enumerate(SIZES * 8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: loaded(x).asnumpy(), inputs))
    for x, got in zip(inputs, found, strict=True):
        numpy.testing.assert_allclose(got, net(np.array(x)).asnumpy(), rtol=1e-5, atol=1e-6)


# -- what is no such file -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    target = tmp_path_factory.mktemp("small") / "f"
    compiled = heterosis.hybridize(lambda x: (x[2:] / x.shape[0]).reshape(-1), dynamic=True)
    heterosis.save(compiled, target, np.ones((5, 3)))
    return target.read_bytes()


CHANGES = {
    "a condition that runs": lambda sizes: sizes.update(conditions=["__import__('os')"]),
    "a condition of strange names": lambda sizes: sizes.update(conditions=["m > 2"]),
    "a condition too long": lambda sizes: sizes.update(conditions=["n0 > 2" + " + 1" * 5000]),
    "a condition nested deeply": lambda sizes: sizes.update(
        conditions=["(" * 900 + "n0" + ")" * 900]
    ),
    "a power": lambda sizes: sizes.update(conditions=["9**9**9**9 > n0"]),
    "a condition that fails": lambda sizes: sizes.update(conditions=["n0 > 1000"]),
    "a condition that is a number": lambda sizes: sizes.update(conditions=[7]),
    "a size of 1": lambda sizes: sizes["values"].update(n0=1),
    "a size that is a text": lambda sizes: sizes["values"].update(n0="5"),
    "no values": lambda sizes: sizes["values"].clear(),
    "a huge size": lambda sizes: sizes["values"].update(n0=2**60),
}


@pytest.mark.parametrize("name", CHANGES)
def test_strange_sizes_are_refused(name, small, path):
    arrays, facts = unpack(small)
    CHANGES[name](facts["heterosis"]["programs"][0]["sizes"])
    path.write_bytes(pack(arrays, facts))
    with pytest.raises(FormatError, match="Nothing has been loaded"):
        heterosis.load(path)


def test_a_false_statement_of_a_result_is_refused(small, path):
    arrays, facts = unpack(small)
    facts["heterosis"]["programs"][0]["calls"][0]["results"][0][1][0] = {"size": "n0 - 1"}
    path.write_bytes(pack(arrays, facts))
    with pytest.raises(FormatError, match="it gives"):
        heterosis.load(path)


def test_left_out_conditions_harm_nobody(small, path):
    """What operations decide by sizes is asked anew at every capture."""
    arrays, facts = unpack(small)
    facts["heterosis"]["programs"][0]["sizes"]["conditions"] = []
    path.write_bytes(pack(arrays, facts))
    loaded = heterosis.load(path)
    for n in (5, 3, 2, 9):
        assert loaded(np.ones((n, 3))).tolist() == pytest.approx([1 / n] * (3 * (n - 2)))


def test_writing_takes_as_long_as_the_program(path):
    """Each call of the program was looked at from its first node on."""

    def steps(count):
        def function(x):
            for _ in range(count):
                x = x + 1
            return x

        compiled, made = heterosis.hybridize(function), 0

        def profile(frame, event, argument):
            nonlocal made
            made += event == "call"

        compiled(np.ones(3)).wait_to_read()
        sys.setprofile(profile)
        try:
            heterosis.save(compiled, path)
        finally:
            sys.setprofile(None)
        return made

    steps(4)  # what only a first time does
    assert steps(400) < 3 * steps(200)
