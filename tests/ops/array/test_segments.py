"""Rows added at places, and segments: what PyTorch gives, gradients of ties, what is refused."""

import numpy
import pytest

from heterosis import autograd, hybridize, np, npx
from heterosis.runtime.errors import ArgumentError, CaptureError, DTypeError, ShapeError
from tests.backends import reference

ROWS = numpy.cos(numpy.arange(14.0)).reshape(7, 2)
IDS = [2, 0, 2, 3, 0, 2, 3]
GIVEN = numpy.arange(1.0, 9.0).reshape(4, 2)

# What torch.zeros(4, 2).scatter_reduce gives in float64 with include_self=False: the rows of the
# segments that there are, and of the gradients of sum(GIVEN * result) the first two.
FIGURES = {
    "segment_sum": (
        [[-0.56164687, -1.90112276], [-0.49271515, 0.82839019], [1.80402425, 1.66134904]],
        [[5, 6], [1, 2]],
    ),
    "segment_mean": (
        [[-0.28082344, -0.95056138], [-0.16423838, 0.27613006], [0.90201212, 0.83067452]],
        [[5 / 3, 2], [0.5, 1]],
    ),
    "segment_max": (
        [[-0.14550003, -0.91113026], [1, 0.54030231], [0.96017029, 0.90744678]],
        [[5, 6], [0, 0]],
    ),
    "segment_min": (
        [[-0.41614684, -0.9899925], [-0.83907153, 0.0044257], [0.84385396, 0.75390225]],
        [[0, 0], [1, 2]],
    ),
}
EMPTY = {"segment_sum": 0, "segment_mean": 0, "segment_max": -numpy.inf, "segment_min": numpy.inf}


@pytest.mark.parametrize("backend", [None, "native", reference.NAME])
@pytest.mark.parametrize("name", FIGURES)
def test_segments_as_in_pytorch(name, backend):
    def call(rows, ids):
        return getattr(npx, name)(rows, ids, num_segments=4)

    call = hybridize(call, backend=backend) if backend else call
    rows, ids = np.array(ROWS, dtype="float64"), np.array(IDS, dtype="int32")
    rows.attach_grad()
    with autograd.record():
        found = call(rows, ids)
        total = (found * np.array(GIVEN, dtype="float64"))[np.array([0, 2, 3])].sum()
    total.backward()
    values, slopes = FIGURES[name]
    numpy.testing.assert_allclose(found.asnumpy()[[0, 2, 3]], values, atol=1e-8)
    numpy.testing.assert_allclose(rows.grad.asnumpy()[:2], slopes, atol=1e-8)
    assert (found[1] == EMPTY[name]).all()


def test_equal_extremes_share_the_gradient():
    rows, ids = np.array([3.0, 3.0, 1.0]), np.array([0, 0, 0], dtype="int64")
    for call, expected in ((npx.segment_max, [0.5, 0.5, 0]), (npx.segment_min, [0, 0, 1])):
        rows.attach_grad()
        with autograd.record():
            found = call(rows, ids, 1)
        found.backward()
        assert rows.grad.tolist() == expected


def test_counts_of_a_known_length():
    x, weights = np.array([1, 3, 1], dtype="int32"), np.array([0.5, 2.0, 1.0])
    call = hybridize(lambda *given: np.bincount(*given, minlength=5))
    for given in ((x,), (x, weights)):
        found, expected = call(*given), np.bincount(*given, minlength=5)
        assert found.dtype == expected.dtype and found.tolist() == expected.tolist()
    weights.attach_grad()
    with autograd.record():
        found = call(x, weights)
    found.backward(np.arange(5.0))
    assert weights.grad.tolist() == [1, 3, 1]
    with pytest.raises(CaptureError, match="depends on those"):
        hybridize(lambda x: np.bincount(x))(x)


def test_rows_are_added_and_written_at_places():
    base, rows = np.zeros((3, 2)), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    places = np.array([[0, 2, 0]], dtype="int64")
    for call, values, slopes in (
        (npx.index_add, [[6, 8], [0, 0], [3, 4]], [1, 1, 1]),
        (npx.index_update, [[5, 6], [0, 0], [3, 4]], [0, 1, 1]),
    ):
        rows.attach_grad()
        with autograd.record():
            found = call(base, places, rows)
        found.backward()
        assert found.tolist() == values and rows.grad[:, 0].tolist() == slopes
    assert not base.any()


IDS_ARRAY = np.array(IDS, dtype="int64")
FAULTS = [
    (ShapeError, "one segment for each row", lambda: npx.segment_sum(np.ones(3), IDS_ARRAY, 4)),
    (DTypeError, r"try segment_ids.astype", lambda: npx.segment_max(np.ones(2), np.ones(2), 4)),
    (ArgumentError, "outside of the range from 0 to 1",
     lambda: npx.segment_mean(np.ones(7), IDS_ARRAY, 2).asnumpy()),
    (ArgumentError, "outside of the range from 0 to 3",
     lambda: npx.segment_min(np.ones(7), IDS_ARRAY - 1, 4).asnumpy()),
    (ArgumentError, "bincount: .* from 0 to 1",
     lambda: hybridize(lambda x: np.bincount(x, minlength=2))(IDS_ARRAY).asnumpy()),
    (IndexError, "out of bounds|out of range",
     lambda: npx.index_add(np.ones(2), np.array([[5]]), np.ones(1)).asnumpy()),
    (ShapeError, "do not broadcast",
     lambda: npx.index_add(np.ones((3, 2)), np.array([[1, 2]]), np.ones((3, 2)))),
]  # fmt: skip


@pytest.mark.parametrize("error, message, call", FAULTS, ids=range(len(FAULTS)))
def test_what_does_not_fit_is_refused(error, message, call):
    with pytest.raises(error, match=message):
        call()


# -- ufuncs' at -----------------------------------------------------------------------------------

START = numpy.arange(1.0, 13.0).reshape(4, 3)
KEYS = {
    "rows": ([0, 2, 0], numpy.arange(9.0).reshape(3, 3) - 4),
    "elements": (([0, 3, 0], [1, 2, 1]), numpy.array([5.0, -1.0, 2.0])),
    "a number": ([1, 1, -1], 3.0),
    "columns": ((slice(None), [0, 0, 2]), numpy.array([1.0, 2.0, 3.0])),
    "a slice": (slice(1, 3), 2.0),
    "one": ((1, 2), 4.0),
    "a mask": (START > 7, 2.0),
}


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("key", KEYS)
def test_at_as_in_numpy(key, name):
    key, value = KEYS[key]
    for dtype in ("float32", "int64"):
        expected = START.astype(dtype)
        given = value if isinstance(value, float) else value.astype(dtype)
        given = int(given) if isinstance(given, float) and dtype == "int64" else given
        getattr(numpy, name).at(expected, key, given)
        found = np.array(START, dtype=dtype)
        getattr(np, name).at(found, key, given)
        numpy.testing.assert_array_equal(found.asnumpy(), expected)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_at_in_programs(name):
    def call(library, x, indices, value):
        x = x * 1
        getattr(library, name).at(x, indices, value)
        getattr(library, name).at(x, 0, 7.0)
        return x

    given = numpy.array([1.0, 2.0, 3.0]), numpy.array([2, 2]), numpy.array([4.0, 0.5])
    expected = call(numpy, *given)
    ours = [np.array(x, dtype=x.dtype.name) for x in given]
    for run in (call, hybridize(call)):
        numpy.testing.assert_array_equal(run(np, *ours).asnumpy(), expected)


def test_gradients_of_at():
    x, value = np.array([1.0, 2.0, 3.0]), np.array([4.0, 0.5])
    x.attach_grad()
    value.attach_grad()
    indices = np.array([2, 2], dtype="int64")

    def call(x, value):
        found = x * 1
        np.subtract.at(found, indices, value)
        np.maximum.at(found, np.array([0]), 5.0)
        return found

    for run in (call, hybridize(call)):
        with autograd.record():
            found = run(x, value)
        found.backward()
        assert found.tolist() == [5, 2, -1.5]
        assert x.grad.tolist() == [0, 1, 1] and value.grad.tolist() == [-1, -1]


AT_FAULTS = [
    (AttributeError, "sin has no `at`: add, maximum", lambda: np.sin.at),
    (
        DTypeError,
        "b is of float, and a, of int32",
        lambda: np.add.at(np.array([1], dtype="int32"), [0], 1.5),
    ),
    (DTypeError, "bool", lambda: np.add.at(np.array([True], dtype="bool"), [0], True)),
    (IndexError, "out of bounds", lambda: np.add.at(np.ones(2), [5], 1.0)),
    (ArgumentError, "expected an np.ndarray", lambda: np.add.at([1.0], [0], 1.0)),
]  # fmt: skip


@pytest.mark.parametrize("error, message, call", AT_FAULTS, ids=range(len(AT_FAULTS)))
def test_what_at_refuses(error, message, call):
    with pytest.raises(error, match=message):
        call()
