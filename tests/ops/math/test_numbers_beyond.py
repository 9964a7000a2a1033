"""Whole numbers that the elements beside them cannot hold: compared as numbers, otherwise refused,
by operations on arrays as in captured programs, where NumPy refuses them too."""

from __future__ import annotations

import operator

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.runtime.errors import ArgumentError

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NUMBERS = (-129, -1, 0, 127, 128, 256, 65536, 2**31, 2**32, 2**63 - 1)
HUGE = (-(2**63) - 1, 2**63, 2**64 - 1, 2**64, 10**30)
COMPARISONS = ("lt", "le", "eq", "ne", "ge", "gt")
ARITHMETIC = ("add", "floordiv", "mod", "and_")


def _outcomes(function, x):
    """What NumPy gives, what we give, and what we give hybridized; None where it is refused."""
    found = []
    for run, given in (
        (function, x),
        (function, np.array(x)),
        (heterosis.hybridize(function), np.array(x)),
    ):
        with numpy.errstate(all="ignore"):
            try:
                found.append(numpy.asarray(run(given)))
            except (OverflowError, ArgumentError):
                found.append(None)
    return found


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", COMPARISONS + ARITHMETIC)
def test_operators_agree_with_numpy(name, dtype):
    apply = getattr(operator, name)
    x = numpy.array([0, 1, 2, 100, 127], dtype=dtype)
    for number in (*NUMBERS, *HUGE):
        if name in COMPARISONS and number in HUGE:  # see below
            continue
        for function in (lambda x, n=number: apply(x, n), lambda x, n=number: apply(n, x)):
            expected, eager, hybridized = _outcomes(function, x)
            if expected is None:
                assert eager is None and hybridized is None, (number, eager, hybridized)
                assert name in ARITHMETIC
            else:
                numpy.testing.assert_array_equal(eager, expected, str(number))
                numpy.testing.assert_array_equal(hybridized, expected, str(number))


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
@pytest.mark.parametrize("name", COMPARISONS)
def test_integers_of_every_type_and_number_are_compared_as_such(name, dtype):
    """int64 and uint64, too, which have no common type but floats, that round; and with numbers
    that no type holds."""
    apply = getattr(operator, name)

    def compared(x, others):
        found = [apply(x, y) for y in (*others, *HUGE)]
        return found + [apply(number, x) for number in HUGE]

    x, others = _extremes(dtype)[:, None], [_extremes(other) for other in INTEGERS]
    # NumPy compares truth values with no number beyond int64.
    expected = compared(x.astype("int64") if dtype == "bool" else x, others)
    ours = np.array(x), [np.array(y) for y in others]
    for found in (compared(*ours), heterosis.hybridize(compared)(*ours)):
        for one, other in zip(found, expected, strict=True):
            numpy.testing.assert_array_equal(one.asnumpy(), other)


def _extremes(dtype):
    if dtype == "bool":
        return numpy.array([False, True])
    limits = numpy.iinfo(dtype)
    near = range(max(limits.min, -2), 3)
    far = [n for n in (2**62 + 1, 2**63, 2**63 + 1) if n <= limits.max]
    return numpy.array([limits.min, *near, *far, limits.max - 1, limits.max], dtype)


X = numpy.array([1, 2, 3], dtype="uint8")

REFUSED = [
    lambda x: np.maximum(x, 300),
    lambda x: np.where(x > 1, x, -1),
    lambda x: np.clip(x, 300, 400),
    lambda x: np.clip(x, None, -1),
    lambda x: np.append(x, 300),
    lambda x: np.tensordot(x, 300, 0),
    lambda x: np.full_like(x, 300),
    lambda x: np.power(x, 300),
    lambda x: np.left_shift(300, x),
]


@pytest.mark.parametrize("function", REFUSED)
@pytest.mark.parametrize("wrap", [lambda f: f, heterosis.hybridize], ids=["eager", "hybridized"])
def test_refused(function, wrap):
    with pytest.raises(ArgumentError, match=r"the number .* beside elements of uint8.* 0 to 255"):
        wrap(function)(np.array(X))


def test_what_the_error_says():
    with pytest.raises(ArgumentError, match=r"add: the number 300 .*\.astype\('int64'\)"):
        np.array(X) + 300
    x = np.array(X)
    with pytest.raises(ArgumentError, match="number -1"):
        x *= -1
    assert x.tolist() == [1, 2, 3]


def _set_first(np, x):
    x = x.copy()
    x[0] = 2**63
    return x


OF_UINT64 = [
    lambda np, x: np.maximum(x, 2**63),
    lambda np, x: np.where(x > 1, x, 2**64 - 1),
    lambda np, x: np.where(np.array([1.0, 0.0, 1.0]), x, 2**63),
    lambda np, x: np.clip(x, 2, 2**64 - 1),
    lambda np, x: np.append(x, np.asarray(x)[:1] + 2**63),
    lambda np, x: np.full_like(x, 2**63),
    lambda np, x: np.full((2,), 2**64 - 1, dtype="uint64"),
    lambda np, x: np.bitwise_xor(2**63, x),
    _set_first,
]


@pytest.mark.parametrize("function", OF_UINT64)
def test_uint64_takes_the_numbers_that_it_holds(function):
    x = X.astype("uint64")
    expected = function(numpy, x)
    for run in (lambda x: function(np, x), heterosis.hybridize(lambda x: function(np, x))):
        found = run(np.array(x)).asnumpy()
        assert found.dtype == expected.dtype
        numpy.testing.assert_array_equal(found, expected)


def test_what_decides_is_no_part_of_the_result():
    chosen, x = np.array([1.0, 0.0, 1.0]), np.array(X).astype("int64")
    for where in (np.where, heterosis.hybridize(np.where)):
        with pytest.raises(ArgumentError, match=r"64 bits with a sign; .* uint64"):
            where(chosen, x, 2**63)


TAKEN = [
    lambda np, x: np.clip(x, -1, 300),
    lambda np, x: np.clip(x, -1, 2),
    lambda np, x: np.clip(x, 2, 300),
]


@pytest.mark.parametrize("function", TAKEN)
def test_taken(function):
    expected = function(numpy, X)
    for run in (lambda x: function(np, x), heterosis.hybridize(lambda x: function(np, x))):
        found = run(np.array(X)).asnumpy()
        assert found.dtype == expected.dtype
        numpy.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("number", [300, -1, 1000])
def test_results_of_floats_take_every_number(number):
    x = np.array(X)
    for run in (np.true_divide, heterosis.hybridize(lambda x, n: x / n)):
        numpy.testing.assert_allclose(run(x, number).asnumpy(), X / number, rtol=1e-6)


def test_another_number_in_the_same_place_is_another():
    x = np.array(X)
    assert [(x < n).tolist()[0] for n in (300, 1, -1, 2, 400)] == [True, False, False, True, True]
    assert [float((x / n)[1]) for n in (1000, 500, 2000)] == pytest.approx([0.002, 0.004, 0.001])


def test_sizes():
    """An extent beside small integers: refused from where they do not hold it, whatever program
    serves the smaller ones."""
    added = heterosis.hybridize(lambda x: x + x.shape[0])
    for count in (2, 3, 4, 200, 255):
        assert added(np.zeros((count,), dtype="uint8")).tolist() == [count] * count
    for count in (256, 300):
        with pytest.raises(ArgumentError, match=f"number {count} beside elements of uint8"):
            added(np.zeros((count,), dtype="uint8"))
    less = heterosis.hybridize(lambda x: x < x.shape[0])
    for count in (2, 3, 4, 200, 256, 300, 512):
        assert less(np.zeros((count,), dtype="uint8")).tolist() == [True] * count
