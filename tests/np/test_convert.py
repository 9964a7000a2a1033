"""Copies and changes of element type, of every type, from every layout."""

import enum
import itertools

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.ir.types import DTYPES, numpy_dtype
from heterosis.runtime.errors import ArgumentError, DTypeError

VALUES = [0, 1, 2, 3, 100, 5]


@pytest.mark.parametrize("have, want", list(itertools.product(DTYPES, DTYPES)))
def test_astype(have, want):
    source = numpy.array(VALUES).astype(numpy_dtype(have)).reshape(2, 3)
    got = np.array(source).T.astype(want)
    assert got.dtype == numpy_dtype(want)
    numpy.testing.assert_array_equal(got.asnumpy(), source.T.astype(numpy_dtype(want)))


def test_astype_of_what_does_not_fit():
    x = np.array([1.9, -1.9, 300])
    assert x.astype("int32").tolist() == [1, -1, 300]
    assert x.astype("uint8").tolist() == [1, 255, 44]
    assert x.astype("int8").tolist() == [1, -1, 44]


def test_astype_arguments():
    x = np.ones(2)
    assert x.astype("float32", copy=False) is x
    assert x.astype("float32") is not x
    assert x.astype(int).dtype == "int64"
    with pytest.raises(DTypeError):
        x.astype("foo")
    with pytest.raises(TypeError, match="casting"):
        x.astype("int32", casting="safe")


@pytest.mark.parametrize("dtype", DTYPES)
def test_copy_and_assignment(dtype):
    values = numpy.arange(6).reshape(2, 3).astype(numpy_dtype(dtype))
    source = np.array(values)
    copied = source[::-1, ::2].copy()
    target = np.zeros((2, 3), dtype=dtype)
    target[:, 1:] = source[:, :2]
    source[...] = 0
    assert copied.tolist() == values[::-1, ::2].tolist()
    assert target[:, 0].astype("int32").tolist() == [0, 0]
    assert target[:, 1:].tolist() == values[:, :2].tolist()


def test_item():
    x = np.array([[1, 2], [3, 4]], dtype="int32")
    assert x.item(2) == 3
    assert x.item(1, 1) == x.item((1, 1)) == 4
    assert isinstance(x.item(0), int)
    assert x[0, 0].asscalar() == 1
    with pytest.raises(ArgumentError, match="no single number"):
        x.item()


def test_bfloat16_comes_and_goes():
    x = np.array([0.5, 1.25], dtype="bfloat16")
    assert x.tolist() == [0.5, 1.25]
    assert x.asnumpy().dtype == numpy_dtype("bfloat16")
    assert np.array(x.asnumpy()).dtype == numpy_dtype("bfloat16")
    assert np.array([x, x]).shape == (2, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Share(float, enum.Enum):
    HALF = 0.5


class Whole(int):
    pass


@pytest.mark.parametrize("number", [Level.HIGH, Share.HALF, Whole(3)], ids=repr)
@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_numbers_of_derived_classes(number, hybrid, dtype):
    """They are what they are derived from, as in NumPy."""

    def function(np, x, number):
        y = x * 1
        y[:1] = number
        return x * number, number - x, np.maximum(x, number), y

    def of_array(x):
        return function(np, x, number)

    values = numpy.array([1, 5], dtype=dtype)
    expected = function(numpy, values, number.value if isinstance(number, enum.Enum) else 3)
    run = heterosis.hybridize(of_array) if hybrid else of_array
    for ours, theirs in zip(run(np.array(values, dtype=dtype)), expected, strict=True):
        assert ours.tolist() == theirs.tolist()
