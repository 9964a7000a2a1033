"""Reductions: empty and long ones, NaN, ties, further arguments."""

import subprocess
import sys

import numpy
import pytest

from heterosis import autograd, hybridize, np, npx
from heterosis.ir.types import INTEGERS
from heterosis.runtime.errors import ArgumentError, AxisError, ShapeError
from tests.backends.native.usable_targets import HERE
from tests.processes import run_python

NAN = numpy.nan


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_nothing_has_no_extreme(name):
    with pytest.raises(ShapeError, match=name):
        getattr(np, name)(np.zeros((0, 3)), axis=0)
    assert getattr(np, name)(np.zeros((0, 3)), axis=1).shape == (0,)


@pytest.mark.parametrize("name", ["max", "min", "amax"])
def test_the_extreme_of_what_may_be_nothing_has_an_initial_value(name):
    x, where = numpy.array([1.0, 5.0, 3.0], "float32"), numpy.array([True, False, True])
    with pytest.raises(ArgumentError, match="give a value for `initial`"):
        getattr(np, name)(np.array(x), where=np.array(where))
    expected = getattr(numpy, name)(x, where=where, initial=2)
    assert getattr(np, name)(np.array(x), where=np.array(where), initial=2).item() == expected
    for run in (getattr(np, name), hybridize(lambda x, where: getattr(np, name)(x, where=where))):
        assert run(np.array(x), where=True).item() == getattr(x, name[-3:])()
        with pytest.raises(ArgumentError, match="give a value for `initial`"):
            run(np.array(x), where=False).asnumpy()


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
@pytest.mark.parametrize("name", ["max", "min", "sum", "prod"])
def test_what_where_leaves_out_of_integers_counts_for_nothing(name, dtype):
    x = numpy.array([0, 1, 1] if dtype == "bool" else [3, 100, 7], dtype)
    where = numpy.array([False, True, False])

    def function(n, x, where):
        return getattr(n, name)(x, where=where, initial=1)

    for run in (lambda *a: function(np, *a), hybridize(lambda *a: function(np, *a))):
        assert run(np.array(x), np.array(where)).item() == function(numpy, x, where)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("hybrid", [False, True])
def test_means_of_more_halves_than_a_half_can_count(dtype, hybrid):
    """The sum, and the number of elements, leave the type; the mean and its gradient do not."""
    x = np.full(70_000, 0.5, dtype=dtype)
    x[::2] = 1.5
    x.attach_grad()
    for name, expected in {"mean": 1, "var": 0.25, "std": 0.5}.items():
        function = getattr(np, name)
        found = (hybridize(function) if hybrid else function)(x)
        assert found.dtype == x.dtype and found.item() == expected
    with autograd.record():
        mean = np.mean(x)
    mean.backward()
    assert x.grad[0].item() == pytest.approx(1 / 70_000, 1e-2)
    assert np.mean(x, where=x > 0).item() == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["sum", "prod", "any", "all", "cumsum", "mean", "var"])
def test_empty_reductions_that_have_a_value(name):
    x = numpy.zeros((0, 3), "float32")
    for axis in (0, 1) if name == "cumsum" else (0, 1, None):
        expected = getattr(numpy, name)(x, axis=axis)
        got = getattr(np, name)(np.array(x), axis=axis)
        numpy.testing.assert_array_equal(got.asnumpy(), expected)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "sum", "prod", "cumsum"])
def test_nan_wins(name):
    x = numpy.array([[1, NAN, 3, NAN], [4, 1, 4, 1], [-numpy.inf, NAN, 1, 2]], "float32")
    for axis in (0, 1, None):
        got = getattr(np, name)(np.array(x), axis=axis)
        numpy.testing.assert_array_equal(got.asnumpy(), getattr(numpy, name)(x, axis=axis))


TRUTHS = numpy.array([[True, True, False], [True, True, True]])
OF_TRUTHS = {
    "sum": lambda n, x: n.sum(x, axis=1, dtype="bool"),
    "sum where": lambda n, x: n.sum(x, dtype="bool", where=x, initial=0),
    "method": lambda n, x: x.sum(dtype="bool"),
    "nansum": lambda n, x: n.nansum(x, axis=0, dtype="bool"),
    "prod": lambda n, x: n.prod(x, axis=1, dtype="bool"),
    "cumsum": lambda n, x: n.cumsum(x, axis=1, dtype="bool"),
    "cumprod": lambda n, x: n.cumprod(x, axis=1, dtype="bool"),
    "mean": lambda n, x: n.mean(x, axis=0, dtype="bool"),
    "var": lambda n, x: n.var(x, axis=1, dtype="bool"),
    "std": lambda n, x: n.std(x, dtype="bool"),
    "trace": lambda n, x: n.trace(x, dtype="bool"),
    "einsum": lambda n, x: n.einsum("ij->i", x.astype("bool")),
    "einsum of two": lambda n, x: n.einsum("ij,kj->i", x.astype("bool"), x.astype("bool")),
    "matmul": lambda n, x: n.matmul(x.astype("bool"), x.astype("bool").T),
}


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("name", OF_TRUTHS)
def test_sums_that_are_truth_values_do_not_wrap_around(name, dtype):
    """Two times true is true; it was counted modulo 2."""
    function, x = OF_TRUTHS[name], TRUTHS.astype(dtype)
    if name == "sum where":  # which takes truth values
        x = TRUTHS
    elif name in ("var", "std") and dtype == "bool":
        pytest.skip("NumPy subtracts no truth values")
    expected = function(numpy, x)
    ours = np.array(x)
    assert (x.dtype, expected.dtype) == (ours.dtype, "bool")
    for run in (lambda: function(np, ours), lambda: hybridize(lambda a: function(np, a))(ours)):
        got = run()
        assert got.dtype == "bool"
        numpy.testing.assert_array_equal(got.asnumpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_the_first_of_equals(dtype):
    rng = numpy.random.default_rng(0)
    x = rng.integers(0, 2, (300, 257)).astype(dtype)
    for name in ("argmax", "argmin"):
        for axis in (0, 1, None):
            got = getattr(np, name)(np.array(x), axis=axis)
            numpy.testing.assert_array_equal(got.asnumpy(), getattr(numpy, name)(x, axis=axis))


@pytest.mark.parametrize("name", ["sum", "mean", "var", "max", "argmax", "argmin"])
def test_long_reductions(name):
    """Long enough to be cut into pieces for several threads."""
    x = numpy.random.default_rng(1).normal(3, 1, 200_003).astype("float32")
    got = getattr(np, name)(np.array(x)).item()
    assert got == pytest.approx(getattr(numpy, name)(x.astype("float64")), rel=1e-6)


def test_where_and_initial():
    x = numpy.arange(12, dtype="float32").reshape(3, 4) - 5
    mask = x % 2 == 0
    a, m = np.array(x), np.array(mask)
    for name, initial in (("sum", 10), ("prod", 0.5), ("max", 2), ("min", -9)):
        mine, theirs = getattr(np, name), getattr(numpy, name)
        got = mine(a, axis=1, initial=initial, where=m)
        numpy.testing.assert_allclose(got.asnumpy(), theirs(x, axis=1, initial=initial, where=mask))
    assert np.mean(a, where=m).item() == numpy.mean(x, where=mask)
    assert np.max(np.zeros((0,)), initial=3).item() == 3


def test_types_of_results():
    i = np.array([1, 2, 3], "int8")
    assert i.sum().dtype == "int8" and np.array([True], "bool").sum().dtype == "int64"
    assert i.mean().dtype == "float32" and i.std().dtype == "float32"
    assert i.argmax().dtype == "int64" and i.cumsum().dtype == "int8"
    assert (
        i.sum(dtype="float64").dtype == "float64" and i.mean(dtype=numpy.float64).dtype == "float64"
    )


def test_average():
    x = numpy.arange(6, dtype="float32").reshape(2, 3)
    w = numpy.array([1.0, 2.0, 3.0], "float32")
    got, total = np.average(np.array(x), axis=1, weights=np.array(w), returned=True)
    expected, weights = numpy.average(x, axis=1, weights=w, returned=True)
    numpy.testing.assert_allclose(got.asnumpy(), expected)
    numpy.testing.assert_allclose(total.asnumpy(), weights)
    assert np.average(np.array(x)).item() == 2.5
    for run in (np.average, hybridize(np.average)):
        with pytest.raises(ZeroDivisionError, match="weights of an average add up to 0"):
            run(np.array(x), axis=1, weights=np.array([1.0, -2.0, 1.0])).asnumpy()
    with pytest.raises(ShapeError, match="weights"):
        np.average(np.array(x), axis=0, weights=np.array(w))


@pytest.mark.parametrize("hybrid", [False, True])
def test_the_spread_of_many_numbers_far_from_zero(hybrid):
    """The mean comes first: squares of the numbers themselves would leave nothing of it."""
    x = numpy.random.default_rng(2).normal(1e6, 1, 10**6).astype("float32")
    for name in ("var", "std"):
        function = getattr(np, name)
        found = (hybridize(function) if hybrid else function)(np.array(x)).item()
        assert found == pytest.approx(getattr(x.astype("float64"), name)(), rel=1e-4)


def test_axes_that_do_not_exist():
    with pytest.raises(AxisError, match="out of bounds"):
        np.sum(np.ones((2, 3)), axis=5)
    with pytest.raises(AxisError, match="twice"):
        np.max(np.ones((2, 3)), axis=(0, 0))


def test_softmax_without_overflow():
    x = np.array([[1000.0, 1000.0, -1000.0], [-numpy.inf, 0.0, 0.0]])
    numpy.testing.assert_array_equal(npx.softmax(x).asnumpy(), [[0.5, 0.5, 0], [0, 0.5, 0.5]])
    assert numpy.isfinite(npx.log_softmax(x).asnumpy()[0]).all()


@pytest.mark.parametrize(
    "function, expected", [(npx.softmax, 1.0), (npx.softmin, 1.0), (npx.log_softmax, 0.0)]
)
def test_softmax_of_a_number(function, expected):
    for axis in (-1, 0):
        for run in (function, hybridize(function)):
            x = np.array(3.0)
            x.attach_grad()
            with autograd.record():
                y = run(x, axis=axis, temperature=2.0)
            y.backward()
            assert y.shape == () and y.item() == expected and x.grad.item() == 0
    with pytest.raises(AxisError, match="axis 1 is out of bounds"):
        function(np.array(3.0), axis=1)


def test_softmax_of_nothing():
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    masked = npx.softmax(x, np.array([0, 1], "int32"), use_length=True)
    assert masked.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    with pytest.raises(ShapeError, match="length"):
        npx.softmax(x, use_length=True)


# In a process of its own: what it tests would end it.
_BEHIND = """
import ctypes, mmap, numpy
from heterosis import np
memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None)
libc.mprotect(ctypes.c_void_p(start + mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 0)
for shape in ((5, 3), (7, 33), (3, 1)):
    size = shape[0] * shape[1]
    x = numpy.frombuffer(memory, "float32", size, mmap.PAGESIZE - 4 * size).reshape(shape)
    x[...] = 1
    shared = np.from_dlpack(x)
    for axis in (0, 1):
        print(shared.mean(axis=axis).sum(), shared.std(axis=axis).sum(), np.sin(shared).size)
"""


@pytest.mark.lengthy
def test_nothing_behind_the_last_column_is_read():
    command = [sys.executable, "-c", _BEHIND]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "3.0"


def check_truths(length):
    """One element or none that settles the result, anywhere: what comes behind is not read."""
    drawn = numpy.random.default_rng(length)
    x = numpy.zeros((3, length), bool)
    x[range(2), drawn.integers(length, size=2)] = True
    for y in (x, ~x, numpy.repeat(x, 2, axis=1)[:, ::-2], x.T):
        for axis in (None, 0, 1):
            for name in ("any", "all", "sum", "count_nonzero"):
                got = getattr(np, name)(np.array(y), axis=axis).asnumpy()
                numpy.testing.assert_array_equal(got, getattr(numpy, name)(y, axis=axis))
        both = hybridize(lambda y: (y.any(), y.all(), y.any() & y.all()))(np.array(y))
        assert [b.item() for b in both] == [y.any(), y.all(), y.any() & y.all()]


LENGTHS = [1, 63, 64, 65, 1023, 1025, 4095, 4096, 4097, 8193, 20000]


@pytest.mark.parametrize("length", LENGTHS)
def test_truths(length):
    check_truths(length)


@pytest.mark.parametrize("target", [target.name for target in HERE[1:]])
def test_truths_on_lesser_processors(target, tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_TARGET", target)
    code = f"from {__name__} import *; [check_truths(length) for length in LENGTHS]"
    finished = run_python("-c", code, folder=tmp_path)
    assert finished.returncode == 0, finished.stderr


def check_places(length, dtype):
    """The first of equal ones, and the first NaN, on both sides of what vectors and blocks hold."""
    drawn = numpy.random.default_rng(length)
    x = abs(numpy.round(drawn.normal(0, 2, (2, 3, length)))).astype(dtype)
    x[1, 1] = 1
    if dtype.startswith("float"):
        x[1, 2, drawn.integers(length)] = x[0, 1, length // 2] = NAN
        x[0, 0] = numpy.where(drawn.random(length) < 0.5, 0.0, -0.0)
    whole, along = ((None, False), (None, True)), ((-1, False), (2, True), (1, False))
    for axis, keepdims in (*whole, *along, (0, True), (-3, False)):
        for name in ("argmax", "argmin"):
            for y in (x, x[..., ::-1], x.T):
                got = getattr(np, name)(np.array(y), axis=axis, keepdims=keepdims)
                expected = getattr(numpy, name)(y, axis=axis, keepdims=keepdims)
                numpy.testing.assert_array_equal(got.asnumpy(), expected)


PLACED = [1, 63, 127, 128, 129, 200, 256, 4095, 4096, 4097, 9000]


@pytest.mark.parametrize("length", PLACED)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "uint64", "float16", "float64"])
def test_places_of_extremes(dtype, length):
    check_places(length, dtype)


@pytest.mark.parametrize("target", [target.name for target in HERE[1:]])
def test_places_of_extremes_on_lesser_processors(target, tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_TARGET", target)
    code = f"from {__name__} import *; [check_places(n, 'float32') for n in PLACED]"
    finished = run_python("-c", code, folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
