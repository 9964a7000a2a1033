"""Functions that reshape, join, split and repeat arrays, beyond the registry's samples."""

import math

import numpy
import pytest

from heterosis import hybridize, np, npx
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DTypeError,
    ShapeError,
)


def both(*shape, dtype="float32"):
    values = numpy.arange(numpy.prod(shape)).reshape(shape).astype(dtype)
    return values, np.array(values)


VIEWS = [
    lambda x: x.reshape(4, 3),
    lambda x: x.T,
    lambda x: np.transpose(x),
    lambda x: np.expand_dims(x, 1),
    lambda x: np.flip(x, 0),
    lambda x: np.diagonal(x),
    lambda x: np.split(x, 3)[1],
    lambda x: np.ravel(x),
    lambda x: np.rot90(x),
    lambda x: x.swapaxes(0, 1),
    lambda x: np.atleast_3d(x),
]


@pytest.mark.parametrize("view", VIEWS)
def test_views_share_memory(view):
    _, x = both(3, 4)
    view(x)[...] = -1
    assert x.asnumpy().min() == -1


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 13, 30])
def test_many_arrays_are_joined(axis, count):
    parts = [both(2, 1 + i % 2 if axis else 3) for i in range(count)]
    ours, theirs = [p[1] for p in parts], [p[0] for p in parts]
    got = np.concatenate(ours, axis=axis)
    numpy.testing.assert_array_equal(got.asnumpy(), numpy.concatenate(theirs, axis=axis))
    same = [theirs[0]] * count
    stacked = np.stack([ours[0]] * count, axis=axis)
    numpy.testing.assert_array_equal(stacked.asnumpy(), numpy.stack(same, axis=axis))


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack"])
def test_many_vectors_are_stacked(name):
    values, x = both(3)
    got = getattr(np, name)([x] * 20)
    numpy.testing.assert_array_equal(got.asnumpy(), getattr(numpy, name)([values] * 20))


def test_joined_types_are_promoted():
    got = np.concatenate([np.ones(2, dtype="int32"), np.ones(1, dtype="float16")])
    assert got.dtype == "float16"
    many = [np.ones(1, dtype="int32")] * 14 + [np.ones(1, dtype="float64")]
    assert np.concatenate(many).dtype == "float64"
    assert np.concatenate(([1, 2], [3])).tolist() == [1, 2, 3]
    out = np.zeros(4)
    assert np.concatenate((np.ones(2), np.ones(2)), out=out) is out
    assert out.tolist() == [1, 1, 1, 1]


def test_parts_come_as_lists():
    values, x = both(4, 6)
    for name, sections in (
        ("split", 1),
        ("split", [1, 3]),
        ("array_split", 3),
        ("hsplit", 2),
        ("vsplit", 4),
    ):
        got, expected = getattr(np, name)(x, sections), getattr(numpy, name)(values, sections)
        assert isinstance(got, list)
        for a, b in zip(got, expected, strict=True):
            numpy.testing.assert_array_equal(a.asnumpy(), b)


@pytest.mark.parametrize(
    "arguments",
    [(1,), ([0, 2],), (slice(0, 2),), (-1, 1), ([1, 1], 0), (numpy.array([0, -1]), -1)],
    ids=str,
)
def test_delete(arguments):
    values, x = both(3, 4)
    expected = numpy.delete(values, *arguments)
    numpy.testing.assert_array_equal(np.delete(x, *arguments).asnumpy(), expected)


INSERTS = [
    (1, 9.0),
    (1, numpy.array([8.0, 9.0])),
    (numpy.array([1, 3]), numpy.array([8.0, 9.0])),
    (slice(0, 2), numpy.array([8.0, 9.0])),
    (1, 9.0, 0),
    (-1, numpy.arange(4.0), 0),
    (2, numpy.arange(3.0), 1),
    ([0, 2], numpy.arange(3.0).reshape(3, 1), 1),
    (1, numpy.arange(8.0).reshape(2, 4), 0),
]


@pytest.mark.parametrize("arguments", INSERTS, ids=str)
def test_insert(arguments):
    values, x = both(3, 4)
    ours = [np.array(a) if isinstance(a, numpy.ndarray) else a for a in arguments]
    expected = numpy.insert(values, *arguments)
    numpy.testing.assert_array_equal(np.insert(x, *ours).asnumpy(), expected)


@pytest.mark.parametrize("places", [1.5, [0.5, 1.0], math.nan, numpy.array([0.5])], ids=str)
def test_rows_stand_at_whole_numbers(places):
    _, x = both(3, 4)
    with pytest.raises(IndexError, match=r"delete: got .* expected whole numbers"):
        np.delete(x, places, 0)
    with pytest.raises(IndexError, match=r"insert: got .* expected whole numbers"):
        np.insert(x, places, 9.0, 0)
    assert np.delete(x, np.array([0.0, 2.0]), 0).shape == (1, 4)


@pytest.mark.parametrize(
    "arguments", [(2,), (3, 1), ([1, 0, 2], 0), ([2], 1), (numpy.array([1, 2, 0, 1]), -1)], ids=str
)
def test_repeat(arguments):
    values, x = both(3, 4)
    expected = numpy.repeat(values, *arguments)
    numpy.testing.assert_array_equal(np.repeat(x, *arguments).asnumpy(), expected)


PADS = [
    {"mode": "mean"},
    {"mode": "linear_ramp", "end_values": 3},
    {"mode": "linear_ramp", "end_values": ((1, 2), (3, 4))},
    {"mode": "constant", "constant_values": (1, 2)},
    {"mode": "constant", "constant_values": ((1, 2), (3, 4))},
]


@pytest.mark.parametrize("facts", PADS, ids=str)
def test_pad(facts):
    values, x = both(3, 4)
    expected = numpy.pad(values, ((2, 1), (0, 3)), **facts)
    got = np.pad(x, ((2, 1), (0, 3)), **facts).asnumpy()
    numpy.testing.assert_allclose(got, expected, rtol=1e-6)


def test_differences_with_ends():
    values, x = both(2, 5)
    got = np.diff(x, prepend=1, append=np.ones((2, 2)))
    expected = numpy.diff(values, prepend=1, append=numpy.ones((2, 2)))
    numpy.testing.assert_array_equal(got.asnumpy(), expected)
    got = np.ediff1d(x, to_begin=7, to_end=np.array([1, 2]))
    numpy.testing.assert_array_equal(got.asnumpy(), numpy.ediff1d(values, [1, 2], 7))


def test_any_number_of_arrays():
    assert np.atleast_1d(3).shape == (1,)
    assert [x.shape for x in np.atleast_2d(np.ones(3), np.ones((2, 2)))] == [(1, 3), (2, 2)]
    a, b = np.broadcast_arrays(np.ones((3, 1)), np.ones(2))
    assert a.shape == b.shape == (3, 2)
    (alone,) = np.unravel_index(np.array([1, 3], dtype="int32"), (4,))
    assert alone.dtype == "int32"
    assert [int(i) for i in np.unravel_index(5, (2, 3))] == [1, 2]
    assert np.diag_indices_from(np.ones((2, 2)))[0].tolist() == [0, 1]


def test_coded_shapes():
    x = np.ones((2, 3, 4))
    for codes, shape in (
        ((-2, -2, -1), (2, 3, 4)),
        ((-5, 4), (6, 4)),
        ((-4,), (2, 3, 4)),
        ((-6, 1, 2, -4), (1, 2, 3, 4)),
        ((-6, 2, -1, -5), (2, 1, 12)),
    ):
        assert npx.reshape(x, codes).shape == shape
    assert npx.reshape(np.ones((1, 3)), (-3, -1)).shape == (3,)
    assert npx.reshape(np.ones((8, 3, 3, 3, 4, 4)), (-6, 2, -1, -4)).shape == (2, 4, 3, 3, 3, 4, 4)
    assert npx.reshape(x, (-5, -2), reverse=True).shape == (6, 4)


FAULTS = [
    (lambda x: x.reshape(5), ShapeError, "12 elements of shape"),
    (lambda x: x.reshape(-1, -1), ShapeError, "12 elements of shape"),
    (lambda x: x.reshape(5, -1), ShapeError, "12 elements of shape"),
    (lambda x: np.transpose(x, (0, 0)), AxisError, "name each of them once"),
    (lambda x: np.squeeze(x, 0), ShapeError, "extent 3"),
    (lambda x: np.expand_dims(x, 5), AxisError, "axis 5"),
    (lambda x: np.concatenate([x, np.ones((2, 2))]), ShapeError, "array 1 has shape"),
    (lambda x: np.concatenate([]), ArgumentError, "no arrays"),
    (lambda x: np.stack([x, np.ones(3)]), ShapeError, "one shape"),
    (lambda x: np.split(x, 2), ShapeError, "equal division"),
    (lambda x: np.broadcast_to(x, (3, 3)), ShapeError, "does not broadcast"),
    (lambda x: np.pad(x, 1, mode="fancy"), ArgumentError, "expected one of"),
    (lambda x: np.pad(x, ((1, 1),) * 3), ShapeError, "pad_width"),
    (lambda x: np.tile(x, -1), ArgumentError, "none or more"),
    (lambda x: np.rot90(x, axes=(0, 0)), AxisError, "one dimension"),
    (lambda x: npx.reshape(x, (-3, -1)), ShapeError, "extent 1"),
]


@pytest.mark.parametrize("fault, error, message", FAULTS)
def test_faults(fault, error, message):
    with pytest.raises(error, match=message):
        fault(both(3, 4)[1])


SEQUENCES = [
    np.concatenate,
    np.stack,
    np.vstack,
    np.hstack,
    np.dstack,
    np.column_stack,
    np.linalg.multi_dot,
]


@pytest.mark.parametrize("given", [5, 5.0, None, np.array(1.0), object()])
@pytest.mark.parametrize("join", SEQUENCES)
def test_what_is_no_sequence_of_arrays(join, given):
    with pytest.raises(ArgumentTypeError, match=r"expected a sequence of arrays\.$"):
        join(given)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("join", SEQUENCES)
def test_what_is_no_array_in_a_sequence(join, hybrid):
    run = hybridize(lambda x: join([x, None])) if hybrid else lambda x: join([x, None])
    with pytest.raises(DTypeError, match=r"\[1\] is None; expected an array or a number"):
        run(np.ones((2, 2)))


@pytest.mark.parametrize("turn", ["flip", "rot90"])
def test_an_array_turned_into_itself(turn):
    values, x = both(40, 40)
    getattr(np, turn)(x, out=x)
    assert numpy.array_equal(x.asnumpy(), getattr(numpy, turn)(values))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float32"])
def test_padding_with_means_rounds_as_numpy(dtype):
    for numbers in ([1, 2, 4], [1, 1, 0], [1, 2], [-1, -4], [0, 0, 1]):
        x = numpy.array(numbers).astype(dtype)
        expected = numpy.pad(x, (2, 1), mode="mean")
        got = np.pad(np.array(x), (2, 1), mode="mean").asnumpy()
        numpy.testing.assert_allclose(got, expected, rtol=1e-6)
    with pytest.raises(ShapeError, match=r"axis 0 .* has no elements"):
        np.pad(np.zeros((0, 2), dtype=dtype), ((1, 0), (0, 0)), mode="mean")


def test_no_difference_leaves_an_array_as_it_is():
    values, x = both(3)
    expected = numpy.diff(values, n=0, prepend=9, append=values)
    numpy.testing.assert_array_equal(np.diff(x, n=0, prepend=9, append=x).asnumpy(), expected)
