"""Conversions to floats round once: as if there were nothing between the number and the type."""

import random
from fractions import Fraction

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.ir.types import FLOATS, as_type, numpy_dtype

# Bits of the significand, the least exponent of a normal number, the largest number's exponent.
_FORMATS = {
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
    "float32": (24, -126, 127),
    "float64": (53, -1022, 1023),
}


def _nearest(number, dtype):
    """`number` rounded to nearest, ties to even, in exact arithmetic."""
    precision, least, largest = _FORMATS[dtype]
    exact = Fraction(number)
    exponent = max(_exponent(abs(exact)), least) if exact else least
    unit = Fraction(2) ** (exponent - precision + 1)
    rounded = round(exact / unit) * unit  # of two neighbours, Python's round takes the even one
    if abs(rounded) >= Fraction(2) ** (largest + 1):
        return float("inf") if number > 0 else float("-inf")
    return float(rounded)


def _exponent(number):
    found = number.numerator.bit_length() - number.denominator.bit_length()
    return found if Fraction(2) ** found <= number else found - 1


def _halfway(precision, exponents, rng):
    """Numbers halfway between two of `precision` bits, and just beside that."""
    for exponent in exponents:
        for _ in range(6):
            middle = (2 * rng.getrandbits(precision) + 1) * Fraction(2) ** (
                exponent - precision - 1
            )
            for beside in (0, 1, -1):
                yield middle + beside * Fraction(2) ** (exponent - 48)


def _floats(dtype):
    rng = random.Random(3)
    precision, least, largest = _FORMATS[dtype]
    near = [least - precision - 1, *range(least - precision, least + 3), largest - 1, largest]
    halfway = _halfway(precision, [*near, -2, -1, 0, 1, 7], rng)
    found = [float(n) for n in halfway if abs(n) < Fraction(2) ** 1023]
    found += [rng.uniform(-9, 9) for _ in range(50)] + [5e-324, 1e-310, 1e300, 0.0]
    return [sign * n for n in found for sign in (1, -1)]


def _integers(dtype, bits):
    rng = random.Random(4)
    precision = _FORMATS[dtype][0]
    found = {0, 1, 2**bits - 1, 2 ** (bits - 1)}
    for width in range(precision + 1, bits + 1):
        for _ in range(3):
            top = rng.getrandbits(precision) | 1 << (precision - 1)
            middle = (2 * top + 1) << (width - precision - 1)
            found |= {middle, middle + 1, middle - 1}
    return [sign * n for n in sorted(found) if n < 2**bits for sign in (1, -1)]


def _given(have, want):
    if have == "float64":
        return _floats(want)
    if have == "float32":
        return [float(n) for n in numpy.float32(_floats(want)) if numpy.isfinite(n)]
    return _integers(want, 31 if have == "int32" else 63)


_PAIRS = [
    (have, want)
    for want in FLOATS
    for have in ("float64", "float32", "int64", "int32")
    if have != want and (have, want) != ("float32", "float64")
]


@pytest.fixture(scope="module")
def expected():
    known = {}

    def found(have, want):
        if (have, want) not in known:
            numbers = _given(have, want)
            known[have, want] = numbers, [_nearest(n, want) for n in numbers]
        return known[have, want]

    return found


def _check(found, wanted):
    values = found.asnumpy() if isinstance(found, np.ndarray) else numpy.asarray(found)
    numpy.testing.assert_array_equal(values.astype("float64"), wanted)


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("have, want", _PAIRS)
def test_arrays(have, want, expected):
    numbers, wanted = expected(have, want)
    given = numpy.array(numbers, dtype=have)
    x = np.array(given, dtype=have)
    for some in (x, x[: 3 * (len(numbers) // 3)].reshape(-1, 3).T.T[::-1][::-1]):
        _check(some.astype(want), numpy.reshape(wanted[: some.size], some.shape))
        converted = heterosis.hybridize(lambda x: x.astype(want))
        _check(converted(some), numpy.reshape(wanted[: some.size], some.shape))
    _check(np.array(given, dtype=want), wanted)
    with numpy.errstate(all="ignore"):
        _check(as_type(given, want), wanted)


@pytest.mark.main_memory("XLA counts denormal numbers as zeros")
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("want", FLOATS[:3])
def test_python_numbers(want, expected):
    numbers, wanted = expected("float64", want)
    _check(np.array(numbers, dtype=want), wanted)
    zeros = np.zeros((), dtype=want)
    for number, value in list(zip(numbers, wanted, strict=True))[:: len(numbers) // 40]:
        made = [
            np.array(number, dtype=want),
            np.full((), number, dtype=want),
            np.maximum(zeros, number),
        ]
        inside = heterosis.hybridize(lambda z, n: (np.full((), n, dtype=want), np.maximum(z, n)))
        for found in (*made[:2], inside(zeros, number)[0]):
            _check(found, value)
        for found in (made[2], inside(zeros, number)[1]):
            _check(found, max(value, 0.0))


def test_special_numbers():
    special = [numpy.nan, numpy.inf, -numpy.inf, -0.0, 0.0]
    for want in FLOATS:
        for found in (
            np.array(special, dtype="float64").astype(want).asnumpy(),
            as_type(numpy.array(special), want),
        ):
            assert found.dtype == numpy_dtype(want)
            numpy.testing.assert_array_equal(found.astype("float64"), special)
            assert numpy.signbit(found.astype("float64")[2:]).tolist() == [True, True, False]
