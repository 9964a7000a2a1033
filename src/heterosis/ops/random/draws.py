"""Random numbers: every element a function of the operation's key and of its own place.

Parameters are numbers or arrays; a result has the shape `size`, or that of the parameters.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TypeAlias

import numpy

from heterosis.ir import views
from heterosis.ir.primitives import random_bits as bits
from heterosis.ir.primitives import random_loops as loops
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import IOTA, Value, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops.bounds import required, within
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.record import Key, operation
from heterosis.ops.rules import broadcast_shapes, cast, wide
from heterosis.ops.samples import NUMBERS, Case, Samples
from heterosis.runtime.errors import ShapeError

Size: TypeAlias = "tuple[int, ...] | None"
random_operation = partial(operation, public=())
counting_operation = partial(random_operation, piecewise_constant="a number of events")

_UNITS = {
    "float16": bits.UNIT_FLOAT16,
    "bfloat16": bits.UNIT_BFLOAT16,
    "float32": bits.UNIT_FLOAT32,
    "float64": bits.UNIT_FLOAT64,
}
_OPEN_UNITS = {"float32": bits.OPEN_UNIT_FLOAT32, "float64": bits.OPEN_UNIT_FLOAT64}


# -- parameters -----------------------------------------------------------------------------------


@operation(
    numpy=lambda x, *_, **__: x,
    public=(),
    samples=Samples([Case((shape,)) for shape in ((), (0,), (37,), (3, 70))], (0, 4), NUMBERS),
)
def distribution_parameter(
    x: Value,
    failure: str = "a parameter of a distribution is out of range.",
    most: float = math.inf,
    above_zero: bool = False,
) -> Value:
    """`x`; the program fails with that message where an element is negative, or more than `most`,
    or NaN; with `above_zero`, also where it is zero."""
    return within(x, 0.0, most, failure, above_low=above_zero)


# -- building blocks ------------------------------------------------------------------------------


def _shape(name: str, size: Size, *parameters: Value) -> tuple[int, ...]:
    """The result's shape: `size`, to which the parameters must broadcast."""
    common = broadcast_shapes(name, [p.shape for p in parameters]) if parameters else ()
    if size is None:
        return common
    if broadcast_shapes(name, [size, common]) != size:
        raise ShapeError(
            f"{name}: parameters of shape {common} do not broadcast to size {size}; "
            f"leave size out, or end it with {common}."
        )
    return size


def _counter(shape: tuple[int, ...], number: int = 0) -> Value:
    """Counters of the elements' blocks `number`."""
    places = apply(IOTA, (), TensorType(shape, "int64"))
    if not number:
        return places
    first = numpy.uint64(number << bits.PLACE_BITS).view("int64")
    return e.add(places, constant(int(first), "int64"))


def _key(key: Value, shape: tuple[int, ...]) -> Value:
    return views.broadcast(cast(key, "int64"), shape)


def _blocks(key: Value, shape: tuple[int, ...], number: int = 0) -> Value:
    """64 random bits an element."""
    return apply(
        bits.RANDOM_BLOCK, (_counter(shape, number), _key(key, shape)), TensorType(shape, "int64")
    )


def _part_of(key: Value, part: int) -> Value:
    """A key of its own for each part of an operation; 0 is the operation's."""
    return _blocks(key, (), (1 << 23) + part) if part else key


def _made(primitive: Elementwise, dtype: str, *blocks: Value) -> Value:
    return apply(primitive, blocks, TensorType(blocks[0].shape, dtype))


def unit(key: Value, shape: tuple[int, ...], dtype: str) -> Value:
    """Uniform from 0 on, below 1, in the type that `dtype` is computed in."""
    return _made(_UNITS[dtype], wide(dtype), _blocks(key, shape))


def open_unit(key: Value, shape: tuple[int, ...], dtype: str, number: int = 0) -> Value:
    """Uniform between 0 and 1, both excluded, in the type that `dtype` is computed in."""
    return _opened(_blocks(key, shape, number), dtype)


def _opened(block: Value, dtype: str) -> Value:
    found = wide(dtype)
    return _made(_OPEN_UNITS[found], found, block)


def standard_normal(key: Value, shape: tuple[int, ...], dtype: str) -> Value:
    """Numbers of mean 0 and deviation 1, in the type that `dtype` is computed in."""
    first = _blocks(key, shape)
    if wide(dtype) == "float64":
        return _made(bits.NORMAL_FLOAT64, "float64", first, _blocks(key, shape, 1))
    return _made(bits.NORMAL_FLOAT32, "float32", first)


def _scaled(x: Value, loc: Value, scale: Value, dtype: str) -> Value:
    """`loc + scale * x`, rounded to `dtype` at the end."""
    loc, scale = cast(loc, x.dtype), cast(scale, x.dtype)
    return cast(e.add(e.multiply(x, scale), loc), dtype)


def standard_exponential(key: Value, shape: tuple[int, ...], dtype: str) -> Value:
    return e.negative(r.log(open_unit(key, shape, dtype)))


# -- continuous distributions ---------------------------------------------------------------------


@random_operation(name="random_uniform")
def uniform(
    low: Value, high: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """From `low` on, below `high`, all equally likely."""
    shape = _shape("uniform", size, low, high)
    first, last = (cast(end, wide(dtype)) for end in (low, high))
    share = unit(key, shape, dtype)
    found = cast(e.add(first, e.multiply(share, e.subtract(last, first))), dtype)
    # Rounding may arrive at `high`, which does not belong to the interval.
    return e.select(e.not_equal(found, cast(high, dtype)), found, cast(low, dtype))


@random_operation(name="random_normal")
def normal(
    loc: Value, scale: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """The normal distribution of mean `loc` and standard deviation `scale`."""
    shape = _shape("normal", size, loc, scale)
    return _scaled(standard_normal(key, shape, dtype), loc, scale, dtype)


@random_operation(name="random_lognormal")
def lognormal(
    mean: Value, sigma: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """Numbers whose logarithms are normal with `mean` and deviation `sigma`."""
    shape = _shape("lognormal", size, mean, sigma)
    standard = standard_normal(key, shape, dtype)
    return cast(r.exp(_scaled(standard, mean, sigma, standard.dtype)), dtype)


@random_operation(name="random_exponential")
def exponential(scale: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """The exponential distribution of mean `scale`."""
    standard = standard_exponential(key, _shape("exponential", size, scale), dtype)
    return cast(e.multiply(standard, cast(scale, standard.dtype)), dtype)


@random_operation(name="random_logistic")
def logistic(
    loc: Value, scale: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """The logistic distribution around `loc`."""
    u = open_unit(key, _shape("logistic", size, loc, scale), dtype)
    return _scaled(e.subtract(r.log(u), r.log1p(e.negative(u))), loc, scale, dtype)


@random_operation(name="random_gumbel")
def gumbel(
    loc: Value, scale: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """The Gumbel distribution, of the largest of many numbers."""
    standard = standard_exponential(key, _shape("gumbel", size, loc, scale), dtype)
    return _scaled(e.negative(r.log(standard)), loc, scale, dtype)


@random_operation(name="random_laplace")
def laplace(
    loc: Value, scale: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """The double exponential distribution around `loc`."""
    shape = _shape("laplace", size, loc, scale)
    block = _blocks(key, shape)
    size_ = e.negative(r.log(_opened(block, dtype)))
    odd = e.not_equal(e.bitwise_and(block, constant(1, "int64")), constant(0, "int64"))
    return _scaled(e.select(odd, size_, e.negative(size_)), loc, scale, dtype)


@random_operation(name="random_cauchy")
def cauchy(size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """The standard Cauchy distribution: the tangent of a random angle."""
    u = open_unit(key, size or (), "float64")  # tails need all its digits
    turn = e.multiply(e.subtract(u, constant(0.5, "float64")), constant(math.pi, "float64"))
    return cast(r.tan(turn), dtype)


@random_operation(name="random_rayleigh")
def rayleigh(scale: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """The length of a vector of two normal numbers."""
    standard = standard_exponential(key, _shape("rayleigh", size, scale), dtype)
    two = constant(2.0, standard.dtype)
    return cast(e.multiply(r.sqrt(e.multiply(standard, two)), cast(scale, standard.dtype)), dtype)


@random_operation(name="random_weibull")
def weibull(a: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """The Weibull distribution of shape `a` and scale 1."""
    standard = standard_exponential(key, _shape("weibull", size, a), dtype)
    return cast(e.power(standard, r.reciprocal(cast(a, standard.dtype))), dtype)


@random_operation(name="random_pareto")
def pareto(a: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """The Pareto distribution of shape `a`, moved to begin at 0 (Lomax)."""
    standard = standard_exponential(key, _shape("pareto", size, a), dtype)
    return cast(r.expm1(e.true_divide(standard, cast(a, standard.dtype))), dtype)


@random_operation(name="random_power")
def power(a: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """Between 0 and 1, with a density that grows as the power `a - 1`."""
    standard = standard_exponential(key, _shape("power", size, a), dtype)
    return cast(r.exp(e.true_divide(e.negative(standard), cast(a, standard.dtype))), dtype)


@random_operation(name="random_triangular")
def triangular(
    left: Value,
    mode: Value,
    right: Value,
    size: Size = None,
    dtype: str = "float32",
    key: Key = None,
) -> Value:
    """Between `left` and `right`, most likely at `mode`."""
    u = open_unit(key, _shape("triangular", size, left, mode, right), dtype)
    left, mode, right = (cast(x, u.dtype) for x in (left, mode, right))
    in_order = e.logical_and(e.less_equal(left, mode), e.less_equal(mode, right))
    in_order = e.logical_and(in_order, e.less(left, right))
    left = required(left, in_order, "triangular: expected left <= mode <= right, and left < right.")
    width, rise = e.subtract(right, left), e.subtract(mode, left)
    below = e.less_equal(e.multiply(u, width), rise)
    up = e.add(left, r.sqrt(e.multiply(e.multiply(u, width), rise)))
    rest = e.multiply(e.multiply(e.subtract(constant(1.0, u.dtype), u), width), width)
    fall = e.true_divide(e.subtract(right, mode), width)
    return cast(e.select(below, up, e.subtract(right, r.sqrt(e.multiply(rest, fall)))), dtype)


# -- gamma and its family -------------------------------------------------------------------------


def log_gamma(key: Value, shape: tuple[int, ...], alpha: Value, part: int = 0) -> Value:
    """Logarithms of gamma variates; `part` tells apart those of one operation."""
    alpha = views.broadcast(cast(alpha, "float64"), shape)
    own = _key(_part_of(key, part), shape)
    return apply(
        loops.LOG_GAMMA_VARIATE, (_counter(shape), own, alpha), TensorType(shape, "float64")
    )


@random_operation(name="random_gamma")
def gamma(
    alpha: Value, scale: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """The gamma distribution of shape `alpha` and `scale`."""
    shape = _shape("gamma", size, alpha, scale)
    standard = r.exp(log_gamma(key, shape, alpha))
    return cast(e.multiply(standard, cast(scale, "float64")), dtype)


@random_operation(name="random_chisquare")
def chisquare(df: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """The sum of the squares of `df` normal numbers."""
    return cast(_chisquare(key, _shape("chisquare", size, df), df), dtype)


def _half(x: Value) -> Value:
    return e.multiply(cast(x, "float64"), constant(0.5, "float64"))


def _chisquare(key: Value, shape: tuple[int, ...], df: Value, part: int = 0) -> Value:
    return e.multiply(r.exp(log_gamma(key, shape, _half(df), part)), constant(2.0, "float64"))


@random_operation(name="random_beta")
def beta(a: Value, b: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """The beta distribution: one gamma variate's share in two."""
    shape = _shape("beta", size, a, b)
    distance = e.subtract(log_gamma(key, shape, b, 1), log_gamma(key, shape, a, 2))
    one = constant(1.0, "float64")
    return cast(r.reciprocal(e.add(one, r.exp(distance))), dtype)


@random_operation(name="random_f")
def f(
    dfnum: Value, dfden: Value, size: Size = None, dtype: str = "float32", key: Key = None
) -> Value:
    """The quotient of two chi-square variates, each divided by its degrees of freedom."""
    shape = _shape("f", size, dfnum, dfden)
    above = e.true_divide(_chisquare(key, shape, dfnum, 1), cast(dfnum, "float64"))
    below = e.true_divide(_chisquare(key, shape, dfden, 2), cast(dfden, "float64"))
    return cast(e.true_divide(above, below), dtype)


@random_operation(name="random_t")
def student_t(df: Value, size: Size = None, dtype: str = "float32", key: Key = None) -> Value:
    """Student's t: a normal number divided by the root of a mean square of `df` others."""
    shape = _shape("standard_t", size, df)
    square = e.true_divide(_chisquare(key, shape, df, 1), cast(df, "float64"))
    return cast(e.true_divide(standard_normal(key, shape, "float64"), r.sqrt(square)), dtype)


# -- whole numbers --------------------------------------------------------------------------------


@random_operation(name="random_integers", piecewise_constant="whole numbers")
def integers(
    low: Value, high: Value, size: Size = None, dtype: str = "int64", key: Key = None
) -> Value:
    """Whole numbers from `low` on, below `high`."""
    shape = _shape("randint", size, low, high)
    low, high = cast(low, "int64"), cast(high, "int64")
    return cast(e.add(whole_below(key, shape, e.subtract(high, low)), low), dtype)


def whole_below(key: Value, shape: tuple[int, ...], bound: Value) -> Value:
    """Whole numbers from 0 on, below `bound`."""
    bound = views.broadcast(cast(bound, "int64"), shape)
    return apply(bits.RANDOM_BELOW, (_blocks(key, shape), bound), TensorType(shape, "int64"))


@random_operation(name="random_bernoulli", piecewise_constant="0 or 1")
def bernoulli(
    prob: Value | None = None,
    logit: Value | None = None,
    size: Size = None,
    dtype: str = "float32",
    key: Key = None,
) -> Value:
    """1 with the probability `prob`, or that whose logarithmic odds are `logit`; else 0."""
    given = logit if prob is None else prob
    assert given is not None, "npx.random has looked at it"
    u = unit(key, _shape("bernoulli", size, given), "float64")
    chance = cast(given, "float64")
    if prob is None:
        one = constant(1.0, "float64")
        chance = r.reciprocal(e.add(one, r.exp(e.negative(chance))))
    return cast(e.less(u, chance), dtype)


def _counts(
    primitive: Elementwise, key: Value, shape: tuple[int, ...], *parameters: Value
) -> Value:
    """Results of a distribution of counts, as float64."""
    ready = [views.broadcast(cast(p, "float64"), shape) for p in parameters]
    operands = (_counter(shape), _key(key, shape), *ready)
    return apply(primitive, operands, TensorType(shape, "float64"))


def counts_binomial(key: Value, shape: tuple[int, ...], part: int, n: Value, p: Value) -> Value:
    """Numbers of successes as float64; `part` tells apart those of one operation."""
    return _counts(loops.BINOMIAL, _part_of(key, part), shape, n, p)


@counting_operation(name="random_poisson")
def poisson(lam: Value, size: Size = None, dtype: str = "int64", key: Key = None) -> Value:
    """How many events happen where `lam` are expected."""
    return cast(_counts(loops.POISSON, key, _shape("poisson", size, lam), lam), dtype)


@counting_operation(name="random_binomial")
def binomial(n: Value, p: Value, size: Size = None, dtype: str = "int64", key: Key = None) -> Value:
    """How many of `n` trials succeed, each with probability `p`."""
    return cast(_counts(loops.BINOMIAL, key, _shape("binomial", size, n, p), n, p), dtype)


@counting_operation(name="random_negative_binomial")
def negative_binomial(
    n: Value, p: Value, size: Size = None, dtype: str = "int64", key: Key = None
) -> Value:
    """How many trials fail before `n` succeed, each with probability `p`."""
    shape = _shape("negative_binomial", size, n, p)
    p = cast(p, "float64")
    odds = e.true_divide(e.subtract(constant(1.0, "float64"), p), p)
    mean = e.multiply(r.exp(log_gamma(key, shape, n, 1)), odds)
    return cast(_counts(loops.POISSON, key, shape, mean), dtype)


@counting_operation(name="random_geometric")
def geometric(p: Value, size: Size = None, dtype: str = "int64", key: Key = None) -> Value:
    """How many trials it takes to succeed once, each with probability `p`."""
    u = open_unit(key, _shape("geometric", size, p), "float64")
    trials = r.ceil(e.true_divide(r.log(u), r.log1p(e.negative(cast(p, "float64")))))
    return cast(e.maximum(trials, constant(1.0, "float64")), dtype)
