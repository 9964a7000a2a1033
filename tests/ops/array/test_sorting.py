"""Sorting, and statistics that begin with it."""

import textwrap

import numpy
import pytest

import heterosis
from heterosis import autograd, np, npx
from heterosis.ir.types import INTEGERS, numpy_dtype
from heterosis.runtime.errors import ArgumentError, ShapeError
from tests.backends.native.usable_targets import HERE
from tests.processes import run_python

NAN, INF = numpy.nan, numpy.inf


@pytest.mark.parametrize("length", [0, 1, 2, 31, 32, 33, 300, 5000])
@pytest.mark.parametrize("dtype", [*INTEGERS, "float32", "float64"])
def test_lengths_on_both_sides_of_every_method(dtype, length):
    x = (numpy.random.default_rng(length).normal(0, 1e5, (3, length))).astype(dtype)
    numpy.testing.assert_array_equal(np.sort(np.array(x)).asnumpy(), numpy.sort(x))
    places = np.argsort(np.array(x)).asnumpy()
    numpy.testing.assert_array_equal(places, numpy.argsort(x, kind="stable"))


LENGTHS = [1, 3, 4, 15, 16, 17, 31, 33, 64, 127, 129, 255, 256, 257, 511, 513, 1000, 4097, 8193]


def _check_rows(dtype, rows, length, seed=0):
    """Random rows, and some in which few elements are different, the extreme ones many times."""
    drawn = numpy.random.default_rng(seed)
    x = drawn.normal(1e4, 2e3, (rows, length)).astype(dtype)
    whole = numpy.issubdtype(dtype, numpy.integer)
    ends = numpy.iinfo(dtype) if whole else None
    few = numpy.array([0, 1, ends.max, ends.min] if whole else [0, 1, INF, -INF, NAN], dtype)
    x[::2] = numpy.where(drawn.random(x[::2].shape) < 0.7, drawn.choice(few, x[::2].shape), x[::2])
    x[3::4].sort(axis=1)
    for y in (x, numpy.ascontiguousarray(x.T).T, numpy.repeat(x, 2, axis=1)[:, ::-2]):
        given = np.array(y)
        # Not by NumPy's quicksort, which with AVX-512 takes NaN of float16 for infinity.
        expected = numpy.sort(y, kind="stable")
        numpy.testing.assert_array_equal(np.sort(given).asnumpy(), expected)
        places = np.argsort(given).asnumpy()
        numpy.testing.assert_array_equal(places, numpy.argsort(y, kind="stable"))


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "uint64", "float16"])
def test_rows_side_by_side(dtype, length):
    """Fewer rows than a vector has lanes, as many, and more; lengths around powers of two."""
    for rows in (1, 4, 8, 16, 21):
        _check_rows(dtype, rows, length)


@pytest.mark.parametrize("target", [target.name for target in HERE[1:]])
def test_rows_side_by_side_on_lesser_processors(target, tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_TARGET", target)
    code = f"""
    from {__name__} import LENGTHS, _check_rows
    for dtype in ("float32", "int64"):
        for length in LENGTHS:
            for rows in (2, 4, 11):
                _check_rows(dtype, rows, length)
    """
    finished = run_python("-c", textwrap.dedent(code), folder=tmp_path)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_last_and_zeros_equal(dtype):
    x = numpy.array([3, NAN, -INF, 0.0, -0.0, INF, -1e-7, NAN, 1], dtype)
    numpy.testing.assert_array_equal(np.sort(np.array(x)).asnumpy(), numpy.sort(x))
    places = np.argsort(np.array(x)).asnumpy()
    numpy.testing.assert_array_equal(places, numpy.argsort(x, kind="stable"))


def test_many_rows_are_shared_out():
    x = numpy.random.default_rng(0).normal(size=(500, 400)).astype("float32")
    numpy.testing.assert_array_equal(np.sort(np.array(x), axis=0).asnumpy(), numpy.sort(x, axis=0))


def test_sort_checks_its_arguments():
    with pytest.raises(ArgumentError, match="kind"):
        np.sort(np.ones(3), kind="bogo")
    with pytest.raises(ValueError, match="axis 2"):
        np.sort(np.ones((2, 3)), axis=2)
    with pytest.raises(ValueError, match="axis 0"):
        np.sort(np.array(3.0), axis=0)
    assert np.sort(np.array(3.0), axis=None).tolist() == [3]


def test_topk_as_in_mxnet():
    x = np.array([[1.0, 4.0, 2.0, 4.0], [0.0, -1.0, 9.0, 3.0]])
    assert npx.topk(x).tolist() == [[1.0], [2.0]]
    values, places = npx.topk(x, k=2, ret_typ="both")
    assert values.tolist() == [[4.0, 4.0], [9.0, 3.0]] and places.tolist() == [[1, 3], [2, 3]]
    assert npx.topk(x, k=1, ret_typ="mask").tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert x.topk(axis=None, k=2, dtype="int32").tolist() == [6, 1]
    assert npx.topk(x, k=0).shape == (2, 4)
    with pytest.raises(ArgumentError, match="k=5"):
        npx.topk(x, k=5)
    with pytest.raises(ArgumentError, match="ret_typ"):
        npx.topk(x, ret_typ="value-ish")


def test_quantiles():
    x = numpy.array([[1.0, 7.0, 3.0, 9.0], [2.0, NAN, 1.0, 0.0]], "float32")
    for q in (0, 50, [25, 75], [[0], [100]]):
        got = np.percentile(np.array(x), np.array(q) if q else q, axis=1)
        with numpy.errstate(invalid="ignore"):
            expected = numpy.percentile(x, q, axis=1)
        numpy.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-6)
    assert np.median(np.array([4.0, 1.0, 2.0, 3.0])).item() == 2.5
    # The mean of the middle two, rounded as their sum is; of the least and largest numbers too.
    for pair in ([0.39651757, -0.37422594], [1e-45, 1e-45], [1e-45, 3e-45], [3e38, 3e38]):
        wanted = numpy.median(numpy.array(pair, "float32").astype("float64")).astype("float32")
        assert np.median(np.array(pair)).asnumpy() == wanted
    with pytest.raises(ShapeError, match="no elements"):
        np.median(np.zeros((0,)))
    with pytest.raises(ArgumentError, match="interpolate"):
        np.quantile(np.ones(3), 0.5, interpolation="cubic")


def test_histograms():
    x = numpy.random.default_rng(3).normal(size=500).astype("float32")
    w = numpy.abs(x)
    cases = ({}, {"bins": 7, "range": (-1, 2)}, {"bins": [-2.0, 0.0, 0.5, 4.0]}, {"density": True})
    for case in cases:
        got, edges = np.histogram(np.array(x), **case)
        expected, bounds = numpy.histogram(x, **case)
        numpy.testing.assert_allclose(edges.asnumpy(), bounds, rtol=1e-5, atol=1e-6)
        numpy.testing.assert_allclose(got.asnumpy(), expected, rtol=1e-5)
    weighted, _ = np.histogram(np.array(x), 5, weights=np.array(w))
    numpy.testing.assert_allclose(
        weighted.asnumpy(), numpy.histogram(x, 5, weights=w)[0], rtol=1e-4
    )
    assert np.histogram(np.array([2.0, 2.0]), 2)[1].tolist() == [1.5, 2.0, 2.5]
    with pytest.raises(ArgumentError, match="0 bins"):
        np.histogram(np.array(x), 0)


@pytest.mark.parametrize("q", [150, -0.5, NAN, [50, 100.5], [[NAN, 50]]])
def test_quantiles_that_do_not_exist(q):
    x = np.array([3.0, 1.0, 2.0])
    for given in (q, np.array(q)):
        for percentile in (np.percentile, heterosis.hybridize(lambda x, q: np.percentile(x, q))):
            with pytest.raises(ArgumentError, match="q of a percentile is NaN or out of its range"):
                percentile(x, given).wait_to_read()
    with pytest.raises(ArgumentError, match="expected 0 <= q <= 1"):
        np.quantile(x, np.array(q) / 100).wait_to_read()


@pytest.mark.parametrize("edges", [[1, -2, 3], [2, 1], [1.0, NAN, 2.0], [NAN, 1.0], [1.0, NAN]])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_histograms_of_edges_that_do_not_increase(edges, dtype):
    x = np.arange(6).reshape(2, 3)
    for known in (edges, tuple(edges), numpy.array(edges)):
        with pytest.raises(ArgumentError, match="histogram's edges decrease"):
            np.histogram(x, known)
    for histogram in (np.histogram, heterosis.hybridize(lambda x, e: np.histogram(x, e))):
        with pytest.raises(ArgumentError, match="histogram's edges decrease"):
            histogram(x, np.array(edges, dtype))[0].asnumpy()


def test_histograms_of_unsigned_and_strided_edges():
    x = np.array([1.0, 2.0, 3.0])
    with pytest.raises(ArgumentError, match="edges decrease"):
        np.histogram(x, np.array([200, 100], "uint8"))[0].asnumpy()
    assert np.histogram(x, np.array([100, 200], "uint8"))[0].tolist() == [0]
    assert np.histogram(x, np.array([1, 0, 2, 0, 3])[::2])[0].tolist() == [1, 2]
    assert np.histogram(x, [1.0, 1.0, 3.0])[0].tolist() == [0, 3]
    with pytest.raises(ArgumentError, match="edges decrease"):
        np.histogram(x, np.array([1, 3, 2], "int64"))[0].asnumpy()


@pytest.mark.parametrize("odd", [NAN, INF, -INF])
def test_histograms_without_a_range(odd):
    x = np.array([1.0, odd, 2.0])
    for i in range(2):
        with pytest.raises(ArgumentError, match="NaN or infinite elements"):
            np.histogram(x, 3)[i].asnumpy()
    assert np.histogram(x, 2, (0, 2))[0].tolist() == [0, 2]
    with pytest.raises(ArgumentError, match="two finite numbers"):
        np.histogram(x, 3, (0, odd))


def test_histograms_of_wrong_shapes():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    for edges in ([[1.0, 2.0]], np.array(3.0), np.zeros(0), numpy.zeros((2, 2))):
        with pytest.raises(ShapeError, match="one dimension and at least one edge"):
            np.histogram(x, edges)
    with pytest.raises(ShapeError, match=r"weights of shape \(2, 2\)"):
        np.histogram(x, 3, weights=np.ones((2, 2)))


def test_gradients_through_edges():
    """The edges are checked on the way to the widths, which have a gradient."""
    edges = np.array([0.5, 1.5])
    edges.attach_grad()
    with autograd.record():
        density, _ = np.histogram(np.array([1.0, 1.0, 3.0]), edges, density=True)
    density.backward()
    assert edges.grad.tolist() == [1.0, -1.0]


def test_what_depends_on_values():
    x = np.array([3, 1, 3, 0], "int32")
    assert np.unique(x).tolist() == [0, 1, 3]
    values, first, inverse, counts = np.unique(x, True, True, True)
    assert values.dtype == "int32" and first.tolist() == [3, 1, 0]
    assert inverse.tolist() == [2, 1, 2, 0] and counts.tolist() == [1, 1, 2]
    assert np.bincount(x, minlength=6).tolist() == [1, 1, 0, 2, 0, 0]
    assert np.bincount(x, np.array([1.0, 2.0, 3.0, 4.0])).dtype == "float32"


SEARCHED = [
    "bool",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


def _wider(dtype):
    """What NumPy orders the elements of a type as: it has no bfloat16 of its own."""
    return "float32" if dtype == "bfloat16" else dtype


def _check_search(row, numbers, length, count):
    """Places before equal elements and behind them, in rows with many that are equal."""
    drawn = numpy.random.default_rng(length)
    few = [0, 1, 3, 100] if row == "bool" or "int" in row else [0, 1, INF, -INF, NAN]
    a = numpy.where(
        drawn.random(length) < 0.5, drawn.choice(few, length), drawn.normal(60, 9, length)
    )
    v = numpy.concatenate(
        [drawn.choice([*a, 1, 2.5], count // 2), drawn.normal(60, 9, count - count // 2)]
    )
    if "int" in numbers or numbers == "bool":
        v = numpy.nan_to_num(v, nan=0, posinf=9, neginf=0)
    a, v = (
        numpy.sort(a.astype(numpy_dtype(row)).astype(_wider(row))),
        v.astype(numpy_dtype(numbers)),
    )
    for side in ("left", "right"):
        got = np.searchsorted(np.array(a, row), np.array(v, numbers), side).asnumpy()
        numpy.testing.assert_array_equal(
            got, numpy.searchsorted(a, v.astype(_wider(numbers)), side)
        )


@pytest.mark.parametrize("length", [0, 1, 2, 3, 8, 17, 511, 512, 513, 5000])
@pytest.mark.parametrize("dtype", SEARCHED)
def test_searches(dtype, length):
    for count in (0, 1, 15, 32, 33, 100):
        _check_search(dtype, dtype, length, count)
    for other in ("uint8", "int64", "float16", "float64"):
        _check_search(dtype, other, length, 40)


@pytest.mark.parametrize("target", [target.name for target in HERE[1:]])
def test_searches_on_lesser_processors(target, tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_TARGET", target)
    code = f"""
    from {__name__} import _check_search
    for dtype in ("float32", "int64"):
        for length in (1, 17, 512, 5000):
            _check_search(dtype, dtype, length, 100)
    """
    finished = run_python("-c", textwrap.dedent(code), folder=tmp_path)
    assert finished.returncode == 0, finished.stderr


def test_searches_take_what_numpy_takes():
    x = numpy.array([1, 2.5, 3], "float32")
    a = np.array(x)
    for v in (3, 2.5, True, [1, 2], numpy.array([[2.5]]), numpy.float64(2.6)):
        numpy.testing.assert_array_equal(np.searchsorted(a, v).asnumpy(), numpy.searchsorted(x, v))
    for row in ([1, 2], x):
        assert np.searchsorted(row, a[1:]).tolist() == numpy.searchsorted(row, x[1:]).tolist()
    assert a.searchsorted(np.array([2.5]), side="right").tolist() == [2]
    assert np.searchsorted(a[::-1], 2.5, sorter=np.array([2, 1, 0], "int64")).item() == 1
    assert heterosis.hybridize(lambda a, v: np.searchsorted(a, v))(a, a).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match="side='middle'"):
        np.searchsorted(a, a, side="middle")
    with pytest.raises(ShapeError, match="one dimension"):
        np.searchsorted(np.ones((2, 2)), a)
