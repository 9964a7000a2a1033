"""Special values of elementwise operations, and what the registry's samples do not reach."""

import operator
from functools import partial
from itertools import product

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.ir.types import DTYPES, INTEGERS
from heterosis.runtime.errors import DTypeError, ShapeError

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    -3.0,
    1e30,
    -1e-30,
    numpy.inf,
    -numpy.inf,
    numpy.nan,
]

UNARY = [
    "absolute",
    "ceil",
    "fabs",
    "fix",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "logical_not",
    "nan_to_num",
    "negative",
    "positive",
    "reciprocal",
    "rint",
    "sign",
    "signbit",
    "spacing",
    "sqrt",
    "square",
    "trunc",
]
BINARY = [
    "add",
    "arctan2",
    "copysign",
    "divide",
    "equal",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "heaviside",
    "hypot",
    "less_equal",
    "logaddexp",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "not_equal",
    "power",
    "subtract",
]


def same(got, expected, ulps=2):
    """Equal to `ulps` units, with the same signs of zero."""
    expected = numpy.asarray(expected)
    got = got.asnumpy()
    assert got.shape == expected.shape
    numpy.testing.assert_allclose(got, expected, rtol=ulps * numpy.finfo("float32").eps)
    if got.dtype.kind == "f":
        zeros = (got == 0) & (expected == 0)
        numpy.testing.assert_array_equal(numpy.signbit(got)[zeros], numpy.signbit(expected)[zeros])


@pytest.mark.parametrize("name", UNARY)
def test_unary_on_special_values(name):
    x = numpy.array(SPECIAL, "float32")
    with numpy.errstate(all="ignore"):
        same(getattr(np, name)(np.array(x)), getattr(numpy, name)(x))


@pytest.mark.parametrize("name", BINARY)
def test_binary_on_pairs_of_special_values(name):
    x = numpy.array(SPECIAL, "float32")[:, None]
    y = numpy.array(SPECIAL, "float32")
    with numpy.errstate(all="ignore"):
        same(getattr(np, name)(np.array(x), np.array(y)), getattr(numpy, name)(x, y))


@pytest.mark.parametrize("name", ["modf", "frexp", "divmod"])
def test_two_results(name):
    x = numpy.array(SPECIAL, "float32")
    more = (numpy.float32(1.5),) if name == "divmod" else ()
    with numpy.errstate(all="ignore"):
        expected = getattr(numpy, name)(x, *more)
    got = getattr(np, name)(np.array(x), *map(float, more))
    assert len(got) == 2
    for a, b in zip(got, expected, strict=True):
        assert a.dtype == b.dtype
        same(a, b)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_spacing_knows_the_element_type(dtype):
    x = numpy.array([0.0, 1.0, 1.5, 60000.0, 1e-7, numpy.nan, numpy.inf], dtype)
    with numpy.errstate(all="ignore"):
        same(np.spacing(np.array(x)), numpy.spacing(x))


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "mod", "fmod", "gcd", "lcm", "left_shift"])
def test_integers_at_their_limits(name, dtype):
    limits = numpy.iinfo(dtype)
    few = name in ("lcm", "left_shift")
    x = [0, 1, 7] if few else [limits.min, limits.max, 0, 1, 7]
    y = [1, 2, 3] if few else [1, 2, 3, limits.max]
    x, y = numpy.array(x, dtype)[:, None], numpy.array(y, dtype)
    got = getattr(np, name)(np.array(x), np.array(y)).asnumpy()
    numpy.testing.assert_array_equal(got, getattr(numpy, name)(x, y))


def integers_of_all_sizes(dtype, random, count=3001):
    """As many of few bits as of many, from both ends, those of a size side by side: a vector
    whose elements are all small takes another way."""
    limits = numpy.iinfo(dtype)
    bits = random.integers(limits.min, limits.max, count, dtype, endpoint=True)
    values = bits >> random.integers(0, limits.bits, count, dtype)
    values[::2] = ~values[::2]
    values[: count // 10] = limits.min
    return numpy.sort(values)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "mod", "fmod", "gcd"])
def test_integers_of_all_sizes_and_neighbours_of_multiples(name, dtype):
    random = numpy.random.default_rng(3)
    y = integers_of_all_sizes(dtype, random)
    y[y == 0] = 1
    multiples = y * (integers_of_all_sizes(dtype, random) // y)
    multiples += random.integers(0, 2, len(y), dtype)
    for x in (integers_of_all_sizes(dtype, random), multiples):
        with numpy.errstate(over="ignore"):  # the lowest by -1
            expected = getattr(numpy, name)(x, y)
        got = getattr(np, name)(np.array(x), np.array(y)).asnumpy()
        numpy.testing.assert_array_equal(got, expected)
        got = getattr(np, name)(np.array(x), int(y[5])).asnumpy()
        numpy.testing.assert_array_equal(got, getattr(numpy, name)(x, y[5]))


@pytest.mark.parametrize("wrap", [lambda f: f, heterosis.hybridize], ids=["argument", "in code"])
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "mod"])
def test_integers_divided_by_one_number(name, dtype, wrap):
    """Multiplied by its inverse: multiples of it, and numbers of all sizes. 0 has no inverse."""
    limits = numpy.iinfo(dtype)
    x = integers_of_all_sizes(dtype, numpy.random.default_rng(5), 400)
    divisors = {0, 1, 2, 3, 7, 100, -1, -3, limits.min, limits.max}
    for y in sorted(y for y in divisors if limits.min <= y <= limits.max):
        divide = wrap(partial(getattr(np, name), x2=y))
        with numpy.errstate(all="ignore"):
            for given in (x, x - x % numpy.array(y, dtype)):
                expected = getattr(numpy, name)(given, numpy.array(y, dtype))
                numpy.testing.assert_array_equal(divide(np.array(given)).asnumpy(), expected)


def test_integers_divided_by_zero_give_zero():
    x, zero = np.array([5, -5], "int32"), np.array([0, 0], "int32")
    for name in ("floor_divide", "mod", "fmod"):
        assert getattr(np, name)(x, zero).tolist() == [0, 0]
    lowest = np.array([-(2**31)], "int32")
    assert (lowest // -1).tolist() == [-(2**31)]


def test_the_lowest_of_32_bits_has_an_opposite_in_64():
    lowest = np.full(100, -(2**31), "int64")
    assert set((lowest // np.full(100, -1, "int64")).tolist()) == {2**31}


def test_operators():
    x = numpy.array([[7.5, -7.5, 2.0]], "float32")
    a, i = np.array(x), np.array([5, 6], "int32")
    same(a // 2, x // 2)
    same(2 % a, 2 % x)
    same(a**3, x**3)
    same(+a, x)
    assert (
        (i << 2).tolist() == [20, 24] and (i >> 1).tolist() == [2, 3] and (~i).tolist() == [-6, -7]
    )
    a //= 2
    a **= 2
    same(a, (x // 2) ** 2)


def test_results_have_the_types_of_mxnet():
    i = np.array([4, 9], "int32")
    assert np.sqrt(i).dtype == "float32" and (i / 2).dtype == "float32"
    assert (i**2).dtype == "int32" and (i + 2.5).dtype == "float32"
    assert np.floor(i).dtype == "int32" and np.round(i, -1).dtype == "int32"
    true = np.array([True], "bool")
    assert (true**true).dtype == "int8"
    assert np.float_power(i, 2).dtype == "float64"


def test_round_to_even_and_to_digits():
    x = numpy.array([-2.5, -0.5, 0.5, 1.5, 2.5, 2.345, 1234.5], "float32")
    for decimals in (0, 1, 2, -2):
        same(np.around(np.array(x), decimals), numpy.around(x, decimals))
    assert np.round(np.array([25, 35, 44], "int32"), -1).tolist() == [20, 40, 40]


def test_clip_takes_numbers_arrays_and_none():
    x = numpy.array([-3.0, 0.5, 3.0, numpy.nan], "float32")
    a = np.array(x)
    same(np.clip(a, -1, 1), numpy.clip(x, -1, 1))
    same(a.clip(min=0), numpy.clip(x, 0, None))
    same(np.clip(a, None, np.array([0.0, 0.0, 1.0, 1.0])), numpy.clip(x, None, [0, 0, 1, 1]))
    same(np.clip(a, 1, -1), numpy.clip(x, 1, -1))


def test_nan_to_num_by_number():
    x = np.array([numpy.nan, numpy.inf, -numpy.inf, 1.0])
    assert np.nan_to_num(x, nan=7, posinf=8, neginf=9).tolist() == [7, 8, 9, 1]


@pytest.mark.main_memory("XLA counts denormal numbers as zeros")
def test_ldexp_reaches_every_exponent():
    x = numpy.array([1.0, 1.5, -3.0], "float32")[:, None]
    n = numpy.array([-300, -149, -130, -1, 0, 5, 127, 128, 300], "int64")
    with numpy.errstate(all="ignore"):
        same(np.ldexp(np.array(x), np.array(n)), numpy.ldexp(x, n))
    same(np.ldexp(np.array([2.0]), np.array([0.5])), [2 * 2**0.5])


@pytest.mark.parametrize("wrap", [lambda f: f, heterosis.hybridize], ids=["eager", "hybridized"])
def test_ldexp_is_as_precise_as_its_operands(wrap):
    exponent = np.array([0.5, 2], dtype="float64")
    expected = 1.7 * 2.0 ** exponent.asnumpy()
    for x in (1.7, np.array([1.7], dtype="float64"), np.array(1.7)):
        found = wrap(np.ldexp)(x, exponent)
        assert found.dtype == "float64"
        rounded = expected * float(x) / 1.7 if isinstance(x, np.ndarray) else expected
        numpy.testing.assert_allclose(found.asnumpy(), rounded, 1e-14)
    assert wrap(np.ldexp)(np.ones(1, dtype="float16"), 0.5).dtype == "float16"
    assert wrap(np.ldexp)(np.ones(1), exponent.astype("int64")).dtype == "float32"


_TYPES = [d for d in DTYPES if d != "bfloat16"]
WRITES = {
    "+=": lambda n, x, y: operator.iadd(x, y),
    "|=": lambda n, x, y: operator.ior(x, y),
    "**=": lambda n, x, y: operator.ipow(x, y),
    "/=": lambda n, x, y: operator.itruediv(x, y),
    "<<=": lambda n, x, y: operator.ilshift(x, y),
    "out=": lambda n, x, y: n.add(y, y, out=x),
}


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("name", WRITES)
def test_results_are_of_a_kind_that_the_array_holds(name, dtype):
    """NumPy's rule `same_kind`: signs and fractions are not lost, digits may be."""
    write = WRITES[name]
    wraps = (lambda f: f, heterosis.hybridize)[: 2 if name in ("+=", "out=") else 1]
    for other, wrap in product(_TYPES, wraps):
        run = wrap(lambda x, y: write(np, x, y))
        x, y = numpy.ones(2, dtype), numpy.ones(2, other)
        ours = np.array(x), np.array(y)
        try:
            expected = write(numpy, x, y)
        except TypeError:
            with pytest.raises(DTypeError):
                run(*ours)
        else:
            assert run(*ours).tolist() == expected.tolist()


def test_operands_that_do_not_fit():
    with pytest.raises(DTypeError, match="bitwise_and: needs integers"):
        np.bitwise_and(np.array([1.0]), np.array([1.0]))
    with pytest.raises(DTypeError, match="subtract"):
        np.array([True], "bool") - np.array([True], "bool")
    with pytest.raises(ShapeError, match="do not broadcast"):
        np.power(np.ones((2, 3)), np.ones((2,)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_digamma_at_whole_numbers(dtype):
    """Poles are no numbers, but at the zeros, whose sign tells the side."""
    x = np.array([-1.0, -2.0, -20.0, -1000.0, -1e6, 0.0, -0.0, 1.0], dtype=dtype)
    for function in (npx.digamma, heterosis.hybridize(npx.digamma)):
        found = function(x).asnumpy()
        assert numpy.isnan(found[:5]).all()
        assert found[5:7].tolist() == [-numpy.inf, numpy.inf]
        assert found[7] == pytest.approx(-0.5772156649)
