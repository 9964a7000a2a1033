"""How often numbers occur, and which elements are not zero."""

import numpy
import pytest

from heterosis import np
from heterosis.ops.array.counting import roomy, true_places
from heterosis.runtime.errors import ArgumentError
from tests.backends.native.usable_targets import HERE
from tests.processes import run_python

LENGTHS = [0, 1, 1023, 1024, 1025, 4095, 4096, 4097, 4160, 20001]


def check_places(length):
    """None, few, many, all; in what is no row of its own, and of types that are no truth values."""
    drawn = numpy.random.default_rng(length)
    for share in (0, 1e-3, 0.03, 0.5, 0.97, 1):
        truths = drawn.random(length) < share
        (expected,) = numpy.nonzero(truths)
        for x in (truths, truths.astype("float32"), numpy.repeat(truths, 2)[::-2][::-1]):
            for found in (*np.nonzero(np.array(x)), np.flatnonzero(np.array(x))):
                assert found.dtype == "int64"
                numpy.testing.assert_array_equal(found.asnumpy(), expected)
        if length % 5 == 0:
            found = np.flatnonzero(np.array(truths.reshape(5, -1))).asnumpy()
            numpy.testing.assert_array_equal(found, expected)
        numbers = numpy.arange(length)
        chosen = np.array(numbers)[np.array(truths)].asnumpy()
        numpy.testing.assert_array_equal(chosen, expected)


def check_numbers(length):
    """Few that occur often, and many; tables of both kinds, and lengths that are asked for."""
    drawn = numpy.random.default_rng(length)
    for highest in (1, 3, 100, 4095, 4096, 5000):
        for dtype in ("uint8", "int32", "uint32", "int64"):
            x = drawn.integers(0, min(highest, 200) if dtype == "uint8" else highest, length)
            x = x.astype(dtype)
            for least in (0, 50, 9000):
                found = np.bincount(np.array(x), minlength=least)
                expected = numpy.bincount(x, minlength=least)
                assert found.dtype == expected.dtype
                numpy.testing.assert_array_equal(found.asnumpy(), expected)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("check", [check_places, check_numbers])
def test_counting(check, length):
    check(length)


@pytest.mark.parametrize("target", [target.name for target in HERE[1:]])
def test_counting_on_lesser_processors(target, tmp_path, monkeypatch):
    monkeypatch.setenv("HETEROSIS_TARGET", target)
    code = f"from {__name__} import *; check_places(4160); check_numbers(4097)"
    finished = run_python("-c", code, folder=tmp_path)
    assert finished.returncode == 0, finished.stderr


def test_nan_is_not_zero():
    x = np.array([0.0, numpy.nan, -0.0, 1.0] * 2000)
    assert np.nonzero(x)[0][:4].tolist() == [1, 3, 5, 7]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_negative_numbers_are_not_counted(dtype):
    x = numpy.ones(3000, dtype)
    x[2999] = -1
    with pytest.raises(ArgumentError, match="negative"):
        np.bincount(np.array(x))


@pytest.mark.parametrize("room", [0, 1, 7, 63, 64, 65, 100, 333, 600])
def test_no_more_places_than_there_is_room_for(room):
    truths = numpy.random.default_rng(0).random(1000) < 0.5
    (places,) = numpy.nonzero(truths)
    expected = numpy.concatenate([places, numpy.zeros(room, int)])[:room]
    if room > len(places):
        expected[len(places) :] = 0
    found = true_places(np.array(truths), room)
    numpy.testing.assert_array_equal(found.asnumpy(), expected)


def test_few_lengths_have_room_for_all():
    lengths = {roomy(count) for count in range(100_000)}
    assert len(lengths) < 60
    assert all(count <= roomy(count) <= max(1.25 * count, count + 64) for count in range(100_000))


@pytest.mark.parametrize("shape", [(0,), (1023,), (1024,), (40, 50), (5000,)])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float32"])
def test_different_elements(dtype, shape):
    drawn = numpy.random.default_rng(0)
    for highest in (1, 2, 100, 2**31 - 1):
        x = drawn.integers(0, highest, shape).astype(dtype)
        for y in (x, x[::-1], x.T):
            found, expected = np.unique(np.array(y)), numpy.unique(y)
            assert found.dtype == expected.dtype
            numpy.testing.assert_array_equal(found.asnumpy(), expected)
    for found, expected in zip(
        np.unique(np.array(x), return_counts=True), numpy.unique(x, return_counts=True), strict=True
    ):
        numpy.testing.assert_array_equal(found.asnumpy(), expected)
