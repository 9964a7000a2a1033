"""Indexing by arrays, lists and masks: forms, values that are written, and faults."""

import numpy
import pytest

import heterosis
from heterosis import _core, autograd, np, npx
from heterosis.runtime.errors import IndexingError, ShapeError

KEYS = [
    [0, 2],
    [[0, 1], [2, -1]],
    ([0, 1], [1, -1]),
    (slice(None), [1, 0]),
    (0, slice(None), [1, 0]),
    (slice(None), 1, [0, 1]),
    ([0], slice(1, 3), [1]),
    (Ellipsis, [1]),
    ([0, 1], Ellipsis, None),
    (None, [1], slice(None, None, 2)),
    numpy.array([True, False, True]),
    ([True, False, True], slice(1, None)),
    (numpy.array([[True, False], [False, True], [True, True]]), 1),
    (slice(None), numpy.array([[True, False, True], [False, False, True]])),
    numpy.int64(1),
    (numpy.int32(1), numpy.array([0, 1])),
    True,
    False,
    (True, [0, 1]),
    (range(2), 1),
    [],
    (numpy.zeros((0, 2), "int64"), 0),
    ((0, 1), (1, 0), (2, 2)),
    (numpy.array([[0], [1]]), numpy.array([[0, 1]])),
]


def cube():
    values = numpy.arange(18, dtype="float32").reshape(3, 2, 3)
    return values, np.array(values)


def _asarray(key):
    parts = key if isinstance(key, tuple) else (key,)
    ours = [np.array(p) if isinstance(p, numpy.ndarray) else p for p in parts]
    return tuple(ours) if isinstance(key, tuple) else ours[0]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("convert", [lambda key: key, _asarray], ids=["given", "arrays"])
def test_reads_and_writes_as_numpy(key, convert):
    values, x = cube()
    got = x[convert(key)]
    numpy.testing.assert_array_equal(got.asnumpy(), values[key])
    assert got.shape == values[key].shape
    x[convert(key)] = -1
    values[key] = -1
    numpy.testing.assert_array_equal(x.asnumpy(), values)


PLAIN = [
    numpy.int8(-1), (numpy.int64(1), slice(None), numpy.uint8(2)), (Ellipsis, numpy.int32(0)),
    slice(numpy.int64(0), numpy.int64(2)), (None, numpy.int64(2), None),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS + PLAIN, ids=str)
def test_recorded_and_captured_as_imperatively(key):
    values, x = cube()
    x.attach_grad()
    with autograd.record():
        got = x[key]
    got.backward()
    numpy.testing.assert_array_equal(got.asnumpy(), values[key])
    counts = numpy.zeros_like(values)
    numpy.add.at(counts, key, 1)
    numpy.testing.assert_array_equal(x.grad.asnumpy(), counts)

    @heterosis.hybridize
    def program(x):
        y = x * 1
        y[key] = y[key] + 1
        return x[key], y

    part, changed = program(x)
    numpy.testing.assert_array_equal(part.asnumpy(), values[key])
    values[key] += 1
    numpy.testing.assert_array_equal(changed.asnumpy(), values)


def test_arrays_of_floats_are_indices_too():
    values, x = cube()
    numpy.testing.assert_array_equal(x[np.array([0, 2])].asnumpy(), values[[0, 2]])
    x[np.array([1.0])] = 0
    assert x[1].asnumpy().max() == 0


def test_a_chosen_part_of_a_view_is_written_into_its_base():
    values, x = cube()
    x.transpose()[1:, [0]][...] = 5  # a copy: nothing is written
    numpy.testing.assert_array_equal(x.asnumpy(), values)
    part = x.transpose()[1:]
    part[:, [0]] = 5
    values.T[1:, [0]] = 5
    numpy.testing.assert_array_equal(x.asnumpy(), values)


@pytest.mark.parametrize(
    "value", [[1, 2, 3], numpy.array([[7], [8]]), numpy.float64(2.5), True, [[[4]]]], ids=str
)
def test_written_values_are_repeated_and_converted(value):
    values, x = cube()
    values = values.astype("int32")
    x = x.astype("int32")
    x[[0, 2]] = value
    values[[0, 2]] = value
    numpy.testing.assert_array_equal(x.asnumpy(), values)


def test_of_equal_places_the_last_counts():
    x = np.zeros(4)
    x[[1, 1, 2]] = np.array([1, 2, 3])
    assert x.tolist() == [0, 2, 3, 0]
    x[[1, 1]] += 10
    assert x.tolist() == [0, 12, 3, 0]


def test_the_array_itself_as_value_and_as_index():
    x = np.array([2, 0, 1], dtype="int64")
    x[[0, 1]] = x[1:]
    assert x.tolist() == [0, 1, 1]
    x[x] = 5
    assert x.tolist() == [5, 5, 1]


def test_masks_write_one_value_and_many():
    values, x = cube()
    x[x > 8] = 0.5
    values[values > 8] = 0.5
    numpy.testing.assert_array_equal(x.asnumpy(), values)
    x[x == 0.5] = np.arange(9)
    values[values == 0.5] = numpy.arange(9)
    numpy.testing.assert_array_equal(x.asnumpy(), values)
    y = np.array([1, 2, 3], dtype="int32")
    y[np.array([True, False, True], dtype=bool)] = 2.9
    assert y.tolist() == [2, 2, 2]


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2), (0, 0, 3)])
def test_masks_without_elements_choose_nothing(shape):
    values, x = cube()
    mask = numpy.zeros(shape, dtype=bool)
    assert x[np.array(mask)].shape == values[mask].shape
    x[np.array(mask)] = 7
    numpy.testing.assert_array_equal(x.asnumpy(), values)


def test_large_selections_run_in_the_engine():
    values = numpy.random.default_rng(1).random((500, 40)).astype("float32")
    places = numpy.random.default_rng(2).integers(-500, 500, 3000)
    x = np.array(values)
    numpy.testing.assert_array_equal(x[np.array(places)].asnumpy(), values[places])
    x[np.array(places)] = 3
    values[places] = 3
    numpy.testing.assert_array_equal(x.asnumpy(), values)


@pytest.fixture(params=["at once", "queued"])
def engine(request):
    limit = _core.inline_nanoseconds()
    if request.param == "queued":
        _core.set_inline_nanoseconds(-1.0)
    yield request.param
    _core.set_inline_nanoseconds(limit)


OUTSIDE = [
    ([3], r"index 3 .* axis 0 .* \(3, 2, 3\)"),
    ([0, -4], r"index -4 .* axis 0 .* expected -3 <= index < 3"),
    ((slice(None), 0, [1, 7]), r"index 7 .* axis 2 .* \(3, 2, 3\)"),
]


@pytest.mark.parametrize("key, message", OUTSIDE, ids=str)
@pytest.mark.parametrize("as_arrays", [False, True])
def test_indices_outside(key, message, as_arrays, engine):
    values, x = cube()
    parts = key if isinstance(key, tuple) else (key,)
    if as_arrays:
        parts = tuple(np.array(p) if isinstance(p, list) else p for p in parts)
    with pytest.raises(IndexingError, match=message):
        x[parts].wait_to_read()
    with pytest.raises(IndexingError, match=message):
        x[parts] = 1
    numpy.testing.assert_array_equal(x.asnumpy(), values)


FAULTS = [
    (([0, 1, 2, 0],) * 4, IndexingError, "too many indices"),
    ((Ellipsis, [0], Ellipsis), IndexingError, "one ellipsis"),
    ("a", IndexingError, "cannot index"),
    (1.5, IndexingError, "cannot index"),
    ([0.5], IndexingError, "cannot index"),
    (numpy.array([True, False]), IndexingError, "mask of shape"),
    (([0, 1], [0, 1, 1]), ShapeError, "do not broadcast"),
    ((5, [0]), IndexingError, "index 5"),
]


@pytest.mark.parametrize("key, error, message", FAULTS, ids=str)
def test_keys_that_cannot_be(key, error, message):
    values, x = cube()
    with pytest.raises(error, match=message):
        x[key]
    with pytest.raises(error, match=message):
        x[key] = 1
    numpy.testing.assert_array_equal(x.asnumpy(), values)


def test_values_that_do_not_fit():
    _, x = cube()
    with pytest.raises(ShapeError, match=r"\(4,\) do not broadcast"):
        x[[0, 1]] = np.zeros(4)


@pytest.mark.lengthy
def test_an_axis_without_elements():
    x = np.zeros((0, 3))
    assert x[[]].shape == (0, 3)
    with pytest.raises(IndexingError, match="no elements"):
        x[np.array([0])]


def test_places_of_nonzero_elements():
    values = numpy.array([[0, 2, 0], [1, 0, 3]], "float32")
    x = np.array(values)
    for got, expected in ((np.nonzero(x), values.nonzero()), (np.where(x), numpy.where(values))):
        assert isinstance(got, tuple)
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == "int64"
            numpy.testing.assert_array_equal(a.asnumpy(), b)
    assert np.flatnonzero(x).tolist() == [1, 3, 5]
    assert np.argwhere(x).tolist() == [[0, 1], [1, 0], [1, 2]]
    assert np.where(x > 1, x, 0).tolist() == [[0, 2, 0], [0, 0, 3]]


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
@pytest.mark.parametrize("shape", [(64, 64), (3, 50, 40), (5000,)], ids=str)
def test_large_masks_of_several_dimensions(shape, share):
    """So many places that our kernels find them: in keys of their own and beside others."""
    rng = numpy.random.default_rng(3)
    truths = rng.random(shape) < share
    values = rng.random((*shape, 2)).astype("float32")
    x, mask = np.array(values), np.array(truths)
    turned = np.array(values.transpose(*reversed(range(values.ndim)))).T
    for found in (x[mask], x[truths], x[mask,], turned[mask], x[mask, :]):
        numpy.testing.assert_array_equal(found.asnumpy(), values[truths])
    numpy.testing.assert_array_equal(x[mask, 1].asnumpy(), values[truths, 1])
    for a, b in zip(np.nonzero(mask), truths.nonzero(), strict=True):
        assert a.dtype == "int64"
        numpy.testing.assert_array_equal(a.asnumpy(), b)
    changed, ours = values.copy(), x.copy()
    changed[truths], ours[mask] = values[truths] * 2, x[mask] * 2
    numpy.testing.assert_array_equal(ours.asnumpy(), changed)
    x.attach_grad()
    with autograd.record():
        y = (x[mask] * 3).sum()
    y.backward()
    wanted = 3 * numpy.repeat(truths[..., None], 2, -1)
    numpy.testing.assert_array_equal(x.grad.asnumpy(), wanted)


def test_a_large_mask_that_does_not_fit():
    with pytest.raises(IndexingError, match="a mask of shape \\(64, 65\\) cannot select"):
        np.zeros((64, 64))[np.ones((64, 65), dtype="bool")]


def test_take_outside(engine):
    x = np.arange(4)
    with pytest.raises(IndexingError, match="index 9 is out of bounds for axis 0"):
        np.take(x, np.array([0, 9])).wait_to_read()
    assert np.take(x, np.array([-9, 9]), mode="clip").tolist() == [0, 3]
    assert np.take(x, np.array([-1, 9]), mode="wrap").tolist() == [3, 1]
    npx.waitall()


def test_rows_of_different_lengths_cannot_index():
    with pytest.raises(IndexingError, match="rows have different lengths"):
        np.ones((2, 3))[[[1, 2], [3]]]
