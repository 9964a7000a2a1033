"""Sizes beside numbers and arrays of NumPy's: captured programs compute with them as Python
does."""

import numpy
import pytest

import heterosis
from heterosis import np

PROGRAMS = {
    "an array times a size": lambda x: x.sum() * np.array(numpy.arange(3) * x.shape[0]),
    "a float times a size": lambda x: x * float(numpy.float64(0.5) * x.shape[0]),
    "a size times a float": lambda x: x * (x.shape[0] * numpy.float64(0.5)),
    "a narrow float times a size": lambda x: x * (numpy.float32(0.1) * x.shape[0]),
    "an integer times a size": lambda x: x[: numpy.int64(2) * x.shape[0] // 4],
    "an array below a size": lambda x: x * (2 if (numpy.arange(6) < x.shape[0]).all() else 3),
    "a size above an integer": lambda x: x * (2 if x.shape[0] > numpy.int32(6) else 3),
    "an integer that is a size": lambda x: x * (2 if numpy.int64(6) == x.shape[0] else 3),
    "a size minus an array": lambda x: x * float((x.shape[0] - numpy.ones(1)).sum()),
    "a root": lambda x: x * float(numpy.sqrt(x.shape[0])),
    "a root of a quotient": lambda x: x / numpy.sqrt(x.shape[0] / 3),
    "the larger one": lambda x: x * int(numpy.maximum(x.shape[0], 6)),
    "a sum of both": lambda x: x * numpy.add(x.shape[0], 2.5),
    "a mean": lambda x: x * numpy.mean([x.shape[0], 3]),
    "a product of a shape": lambda x: x * int(numpy.prod(x.shape)),
    "a reduction": lambda x: x * int(numpy.add.reduce(x.shape)),
    "a shape of integers": lambda x: x.reshape(*numpy.array(x.shape), 1),
    "indices from behind": lambda x: x[[0, -2, -4]],
    "an array of indices": lambda x: x[numpy.array([3, -1])],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_with_numbers_of_numpys(name):
    function = PROGRAMS[name]
    compiled = heterosis.hybridize(function)
    for count in (4, 5, 9, 4, 6, 7):
        x = np.array(numpy.arange(count) + 1.0)
        ours, theirs = compiled(x).asnumpy(), function(x).asnumpy()
        assert ours.shape == theirs.shape
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-6)


RETURNED = {
    "a shape": lambda x: numpy.array(x.shape),
    "a shape and more": lambda x: numpy.array([x.shape[0], 2]) * 3,
    "a fraction": lambda x: numpy.asarray(x.shape[0] * 0.5),
    "fractions": lambda x: numpy.array([x.shape[0] / 2, 0.5]),
    "filled": lambda x: numpy.full(2, x.shape[0]),
    "a range": lambda x: numpy.arange(x.shape[0]),
    "a part of a range": lambda x: numpy.arange(1.0, x.shape[0], 2),
    "joined": lambda x: numpy.concatenate([numpy.arange(2), [x.shape[0]]]),
    "sums": lambda x: numpy.cumsum([x.shape[0], 1]),
    "a product": lambda x: numpy.prod(x.shape),
}


@pytest.mark.parametrize("name", RETURNED)
def test_arrays_of_numpys_hold_the_sizes_of_the_call(name):
    function = RETURNED[name]
    compiled = heterosis.hybridize(function)
    for count in (4, 5, 9, 4, 6, 7):
        x = np.ones(count)
        ours, theirs = compiled(x), function(x)
        assert ours.dtype == theirs.dtype and ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("index", [-5, 4])
def test_indices_outside_are_refused_at_every_size(index):
    compiled = heterosis.hybridize(lambda x: x[[0, index]])
    for count in (7, 9, 8):
        compiled(np.ones(count))
    with pytest.raises(IndexError, match=f"index {index} is out of bounds for axis 0"):
        compiled(np.ones(4))
