"""What is read along another loop than the vectors' is read in squares, and every element once."""

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.backends.native.codegen.emit.squares import turned_loads
from heterosis.backends.native.compile.whole import scheduled
from heterosis.capture import capture
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, numpy_dtype

# Squares alone, and what they leave on one side and on both; none at all.
SIDES = [(16, 16), (64, 32), (17, 16), (16, 31), (33, 47), (15, 40), (40, 15), (3, 5), (70, 1)]


def drawn(shape, dtype, seed=0):
    found = numpy.random.default_rng(seed).integers(0, 100, shape)
    return (found % 2 if dtype == "bool" else found).astype(numpy_dtype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SIDES, ids=str)
def test_copies(shape, dtype):
    x = drawn(shape, dtype)
    numpy.testing.assert_array_equal(np.array(x).T.copy().asnumpy(), x.T)
    middle = drawn((2, *shape, 3), dtype)
    for axes in ((0, 2, 1, 3), (3, 2, 1, 0), (0, 3, 2, 1), (2, 3, 0, 1), (1, 2, 0, 3)):
        got = np.array(middle).transpose(axes).copy().asnumpy()
        numpy.testing.assert_array_equal(got, middle.transpose(axes))


def several(x, y, z):
    """Two that are turned, of which one is read twice, one that is not, and one row of each."""
    return np.maximum(x.T, 3) - y.T * z + x[:1].T, (x.T + y.T[:1]).astype("int32")


@pytest.mark.parametrize("shape", SIDES, ids=str)
@pytest.mark.parametrize("types", [("float32",) * 3, ("int8", "float32", "float16")], ids=str)
def test_results_of_several(shape, types):
    x, y, z = (drawn(shape, t, i) for i, t in enumerate(types))
    hybridized = heterosis.hybridize(several)
    arrays = np.array(x), np.array(y), np.array(z.T.copy())
    for got in (several(*arrays), hybridized(*arrays)):
        for g, expected in zip(got, several(x, y, z.T), strict=True):
            numpy.testing.assert_array_equal(g.asnumpy(), expected)


BESIDE = {  # values that are one for each row of the result, or follow from where an element is
    "a column": lambda x, np: x.T + x[:1].T,
    "a column twice": lambda x, np: x.T * x[:1].T - x[1:2].T,
    "a row": lambda x, np: x.T + x[:, 1],
    "a row and a column": lambda x, np: x.T * x[:1].T + x[:, 1],
    "a triangle": lambda x, np: np.tril(x.T),
    "a triangle, turned": lambda x, np: np.triu(x, 3).T,
    "places": lambda x, np: x.T * np.arange(x.shape[1])[:, None] - np.arange(x.shape[0]),
    "a number of each stack": lambda x, np: (
        np.stack([x, x + 1]).transpose(0, 2, 1) * np.arange(2).reshape(2, 1, 1)
    ),
}


@pytest.mark.parametrize("shape", SIDES[:-2], ids=str)
@pytest.mark.parametrize("beside", BESIDE)
def test_what_stands_beside(beside, shape):
    x, function = drawn(shape, "float32"), BESIDE[beside]
    expected = function(x, numpy)
    hybridized = heterosis.hybridize(lambda x: function(x, np))
    for got in (function(np.array(x), np), hybridized(np.array(x))):
        numpy.testing.assert_array_equal(got.asnumpy(), expected)


def test_sizes_that_change():
    hybridized = heterosis.hybridize(lambda x: x.T + 1)
    for shape in [(20, 30), (21, 30), (40, 7), (5, 5), (100, 100), (0, 4), (1, 33), (64, 64)]:
        x = drawn(shape, "float32")
        numpy.testing.assert_array_equal(hybridized(np.array(x)).asnumpy(), x.T + 1)


def test_shares_of_several_threads():
    x = drawn((700, 1003), "float32")
    for axes, shape in (((1, 0), (700, 1003)), ((2, 1, 0), (7, 100, 1003))):
        y = x.reshape(shape)
        got = (np.array(y).transpose(axes) * 2).asnumpy()
        numpy.testing.assert_array_equal(got, y.transpose(axes) * 2)


def test_gaps_and_backward_steps_are_no_squares_and_right():
    x = drawn((66, 70), "float32")
    for view in (numpy.s_[::2, ::3], numpy.s_[::-1], numpy.s_[:, ::-1], numpy.s_[5:50, 7:]):
        got = (np.array(x)[view].T + 1).asnumpy()
        numpy.testing.assert_array_equal(got, x[view].T + 1)


def schedule_of(function, *arrays):
    program = capture(function, arrays, {}).program
    return scheduled(program, [Strided.contiguous(value.shape) for value in program.inputs])


def nest_of(function, *arrays):
    (nest,) = schedule_of(function, *arrays).kernels
    return nest


def test_what_is_read_in_squares():
    x, y = np.ones((40, 50)), np.ones((50, 40))
    turned = turned_loads(nest_of(lambda x, y: x.T + y, x, y))
    assert turned and turned.level == 0
    assert [operand.strides for operand in turned.loads.values()] == [(1, 50)]
    assert turned_loads(nest_of(lambda x: x.reshape(400, 5).T * 2, x)) is None  # no square
    assert turned_loads(nest_of(lambda x: x * 2, x)) is None
