"""Making arrays: defaults, shapes, errors."""

import io

import numpy
import pytest

from heterosis import np, npx
from heterosis.ops import REGISTRY
from heterosis.runtime.errors import (
    ArgumentError,
    DTypeError,
    OutOfMemoryError,
    ShapeError,
    UnsupportedError,
)

# What MXNet 1.9.1 makes of these: float32, unless NumPy's elements or `dtype` say otherwise.
DEFAULTS = [
    (lambda: np.array([1, 2]), "float32", (2,)),
    (lambda: np.array(True), "float32", ()),
    (lambda: np.array([[]]), "float32", (1, 0)),
    (lambda: np.array(range(3)), "float32", (3,)),
    (lambda: np.array(None), "float32", ()),
    (lambda: np.array([numpy.float64(1)]), "float32", (1,)),
    (lambda: np.array(numpy.float64(1)), "float64", ()),
    (lambda: np.array(numpy.arange(3)), "int64", (3,)),
    (lambda: np.array(numpy.array([True])), "bool", (1,)),
    (lambda: np.array(numpy.arange(3, dtype="int16")), "int16", (3,)),
    (lambda: np.array(numpy.arange(3, dtype="uint16")), "uint16", (3,)),
    (lambda: np.array(numpy.arange(3, dtype="uint32")), "uint32", (3,)),
    (lambda: np.array(numpy.uint64(2**63)), "uint64", ()),
    (lambda: np.array(numpy.arange(3, dtype="longdouble")), "float64", (3,)),
    (lambda: np.array(np.array([1], dtype="int32")), "int32", (1,)),
    (lambda: np.array([np.array([1, 2]), np.array([3, 4])]), "float32", (2, 2)),
    (lambda: np.array([1, 2], dtype=int), "int64", (2,)),
    (lambda: np.array([1, 2], dtype=float), "float64", (2,)),
    (lambda: np.array([1, 2], ndmin=3), "float32", (1, 1, 2)),
    (lambda: np.zeros(2), "float32", (2,)),
    (lambda: np.zeros((2, 3), "int32"), "int32", (2, 3)),
    (lambda: np.ones([2, 3]), "float32", (2, 3)),
    (lambda: np.ones(numpy.int64(2)), "float32", (2,)),
    (lambda: np.ones(np.array([2, 3], dtype="int32")), "float32", (2, 3)),
    (lambda: np.empty((2, 3), dtype=int), "int64", (2, 3)),
    (lambda: np.empty_like(np.ones(2, dtype="int8")), "int8", (2,)),
    (lambda: np.full(2, 1), "float32", (2,)),
    (lambda: np.full(2, True), "bool", (2,)),
    (lambda: np.full((2, 2), np.array([3, 4], dtype="int32")), "int32", (2, 2)),
    (lambda: np.full_like(np.ones(2, dtype="int32"), 1.5), "int32", (2,)),
    (lambda: np.zeros_like([1, 2]), "float32", (2,)),
    (lambda: np.zeros_like(numpy.ones(2)), "float64", (2,)),
    (lambda: np.arange(3), "float32", (3,)),
    (lambda: np.arange(3, dtype=int), "int64", (3,)),
    (lambda: np.arange(3, 1), "float32", (0,)),
    (lambda: np.linspace(0, 1), "float32", (50,)),
    (lambda: np.logspace(0, 2, 3, dtype="int32"), "int32", (3,)),
    (lambda: np.eye(2, M=0), "float32", (2, 0)),
    (lambda: np.indices((2, 3)), "int32", (2, 2, 3)),
    (lambda: np.hanning(4), "float32", (4,)),
    (lambda: np.genfromtxt(io.StringIO("1 2\n3 4")), "float64", (2, 2)),
    (lambda: np.ndarray((2,), dtype="int32"), "int32", (2,)),
]


@pytest.mark.parametrize("make, dtype, shape", DEFAULTS)
def test_element_types_and_shapes(make, dtype, shape):
    made = make()
    assert isinstance(made, np.ndarray)
    assert (made.dtype, made.shape) == (dtype, shape)


FAULTS = [
    (lambda: np.ones((2, -1)), ShapeError, "negative"),
    (lambda: np.ones(3.5), TypeError, "integers"),
    (lambda: np.zeros("a"), TypeError, "integers"),
    (lambda: np.empty((2.5,)), TypeError, "integers"),
    (lambda: np.ones(2, dtype="foo"), DTypeError, "element type"),
    (lambda: np.ones(2, order="F"), UnsupportedError, "row-major"),
    (lambda: np.ones(2, ctx=npx.gpu(9)), UnsupportedError, "num_gpus"),
    (lambda: np.ones(2, ctx="cpu"), ArgumentError, "context"),
    (lambda: np.array([[1], [2, 3]]), ShapeError, "equal length"),
    (lambda: np.array("abc"), DTypeError, "could not convert"),
    (lambda: np.array({1, 2}), DTypeError, "set"),
    (lambda: np.array(numpy.ones(2, "complex64")), DTypeError, "complex64"),
    (lambda: np.full(2, "a"), DTypeError, "str"),
    (lambda: np.full(2, np.ones(3)), ShapeError, "repeated"),
    (lambda: np.arange(0, 1, 0), ZeroDivisionError, "step"),
    (lambda: np.arange("a"), DTypeError, "numbers"),
    (lambda: np.arange(3, dtype="bool"), TypeError, "3 numbers of bool"),
    (lambda: np.linspace(0, 1, -1), ArgumentError, "points"),
    (lambda: np.indices(2), TypeError, "sequence"),
    (lambda: np.meshgrid(np.ones(2), indexing="no"), ArgumentError, "indexing"),
]


@pytest.mark.parametrize("make, error, words", FAULTS)
def test_faults_name_what_is_wrong(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize("make", [np.ones, np.zeros, np.empty])
@pytest.mark.parametrize("shape", [(1 << 40,), (1 << 40, 1 << 40)])
def test_out_of_memory_leaves_everything_usable(make, shape):
    before = np.arange(3)
    with pytest.raises(OutOfMemoryError) as caught:
        make(shape)
    assert isinstance(caught.value, MemoryError)
    assert (before + 1).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "bounds", [(5,), (1, 7, 2), (5, 0, -2), (0.5, 3), (1, 2, 0.25), (0,), (3, 1), (10, None, 3)]
)
def test_arange_counts_as_numpy_does(bounds):
    expected = numpy.arange(*bounds)
    assert np.arange(*bounds).tolist() == expected.tolist()


def test_arange_of_integers_is_exact():
    assert np.arange(2**53, 2**53 + 3, dtype="int64").tolist() == [2**53, 2**53 + 1, 2**53 + 2]


def test_linspace_ends_at_its_end():
    points, step = np.linspace(0.1, 0.7, 7, retstep=True, dtype="float64")
    assert points.tolist()[-1] == 0.7
    assert step == pytest.approx(0.1)
    assert np.linspace(np.zeros(2), np.ones(2), 3, axis=1).shape == (2, 3)


def test_array_wraps_numbers_beyond_its_type():
    assert np.array([300, -1], dtype="uint8").tolist() == [44, 255]


def test_array_copies_and_asarray_does_not():
    x = np.ones(3)
    copied, same = np.array(x), np.asarray(x)
    x[0] = 5
    assert copied.tolist() == [1, 1, 1]
    assert same is x
    with pytest.raises(ShapeError):
        np.array([1], copy=False)


def test_new_numbers_compile_nothing():
    np.full((2,), 1.5)
    plans = REGISTRY["full"].operation.plans
    np.full((2,), 2.5)
    assert REGISTRY["full"].operation.plans == plans


def test_meshgrid_returns_a_list():
    assert isinstance(np.meshgrid(np.arange(2)), list)
    rows, columns = np.meshgrid(np.arange(2), np.arange(3), indexing="ij")
    assert rows.shape == columns.shape == (2, 3)
    assert np.meshgrid() == []


def test_questions_about_memory():
    x = np.zeros((4, 4))
    assert np.shares_memory(x, x.T)
    assert not np.shares_memory(x[::2], x[1::2])
    assert np.may_share_memory(x[::2], x[1::2])
    assert not np.may_share_memory(x, x.copy())
    assert (np.shape([[1, 2]]), np.ndim(x), np.size(x), np.size(x, 1)) == ((1, 2), 2, 16, 4)
