"""Functions of real numbers, element by element. Integers become float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy

from heterosis.codegen import elementwise as lower
from heterosis.codegen import mathematics
from heterosis.codegen.builder import Function, constant
from heterosis.codegen.builder import Value as Emitted
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import Value, apply
from heterosis.ir.program import constant as number
from heterosis.ir.types import FLOATS, TensorType, is_float
from heterosis.ops.adjoint import elementwise_adjoint, piecewise_constant
from heterosis.ops.elementwise import (
    BRIEF,
    METHOD,
    absolute,
    add,
    binary,
    equal,
    greater,
    less,
    logical_and,
    maximum,
    multiply,
    negative,
    power,
    real,
    same,
    select,
    sign,
    square,
    subtract,
    true_divide,
    unary,
)
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_all, cast, floating, lowered, result_type
from heterosis.ops.samples import Case, Samples

_PRECISE = ("float32", "float64")


def _number(value: float) -> Value:
    """A constant of whatever float type it meets."""
    return number(value, "float64", weak=True)


def _real(name: str, documentation: str, cost: float, **facts: Any) -> Any:
    """A function of one real number that `mathematics` has under the same name."""
    lowering = lowered(getattr(mathematics, name))
    facts = {"public": METHOD} | facts
    return unary(name, lowering, real, documentation, cost=cost, **facts)


# -- exponentials, logarithms, roots --------------------------------------------------------------

exp = _real("exp", "e to the power `x`.", 14.0, pull=lambda g, y, x: multiply(g, y))
exp2 = _real(
    "exp2",
    "2 to the power `x`.",
    14.0,
    pull=lambda g, y, x: multiply(g, multiply(y, _number(math.log(2.0)))),
)
expm1 = _real(
    "expm1",
    "`exp(x) - 1`, accurate for small `x`.",
    24.0,
    pull=lambda g, y, x: multiply(g, add(y, _number(1.0))),
)
log = _real(
    "log", "The natural logarithm.", 18.0, domain=(0.01, 50), pull=lambda g, y, x: true_divide(g, x)
)
log2 = _real(
    "log2",
    "The logarithm to base 2.",
    18.0,
    domain=(0.01, 50),
    pull=lambda g, y, x: true_divide(g, multiply(x, _number(math.log(2.0)))),
)
log10 = _real(
    "log10",
    "The logarithm to base 10.",
    18.0,
    domain=(0.01, 50),
    pull=lambda g, y, x: true_divide(g, multiply(x, _number(math.log(10.0)))),
)
log1p = _real(
    "log1p",
    "`log(1 + x)`, accurate for small `x`.",
    22.0,
    domain=(-0.9, 50),
    pull=lambda g, y, x: true_divide(g, add(x, _number(1.0))),
)
sqrt = _real(
    "sqrt", "The square root.", 6.0, domain=(0, 50), pull=lambda g, y, x: true_divide(g, add(y, y))
)


def root(x: Value) -> Value:
    """The square root of a sum of squares: a length, whose gradient at zero counts as zero."""
    zero = equal(x, _number(0.0))
    return select(zero, x, sqrt(select(zero, _number(1.0), x)))


cbrt = _real(
    "cbrt",
    "The cube root.",
    20.0,
    pull=lambda g, y, x: true_divide(g, multiply(_number(3.0), square(y))),
)


def _inverse(f: Function, dtype: str, x: Emitted) -> Emitted:
    return f.div(constant(x.type, 1.0), x)


reciprocal = unary(
    "reciprocal",
    _inverse,
    real,
    "`1 / x`.",
    cost=4.0,
    domain=(0.5, 4),
    public=METHOD,
    pull=lambda g, y, x: negative(multiply(g, square(y))),
)
rsqrt = _real(
    "rsqrt",
    "`1 / sqrt(x)`.",
    8.0,
    domain=(0.1, 50),
    reference=lambda x: 1 / numpy.sqrt(x),
    pull=lambda g, y, x: multiply(g, multiply(_number(-0.5), multiply(y, square(y)))),
    public=("npx", "ndarray"),
)


@operation(
    numpy=lambda x: 1 / numpy.cbrt(x),
    public=("npx", "ndarray"),
    samples=Samples(BRIEF[1], (0.1, 50), dtypes=FLOATS),
)
def rcbrt(x):
    """`1 / cbrt(x)`."""
    return reciprocal(cbrt(x))


@operation(
    numpy=numpy.float_power,
    samples=Samples(BRIEF[2], ((0.5, 4), (-3, 3)), dtypes=("int32", "float32", "float64")),
)
def float_power(x1, x2):
    """`x1 ** x2` in float64."""
    return power(cast(x1, "float64"), cast(x2, "float64"))


# `absolute`: near zero the larger operand and the logarithm cancel, as they do in NumPy.
@operation(numpy=numpy.logaddexp, samples=Samples(BRIEF[2], dtypes=_PRECISE, absolute=8))
def logaddexp(x1, x2):
    """`log(exp(x1) + exp(x2))` without overflow."""
    dtype = floating(result_type(x1, x2))
    a, b = broadcast_all("logaddexp", (cast(x1, dtype), cast(x2, dtype)))
    apart = add(maximum(a, b), log1p(exp(negative(absolute(subtract(a, b))))))
    # Equal infinities have no difference.
    return select(equal(a, b), add(a, number(math.log(2.0), dtype)), apart)


# -- angles ---------------------------------------------------------------------------------------

sin = _real(
    "sin", "The sine of an angle in radians.", 40.0, pull=lambda g, y, x: multiply(g, cos(x))
)
cos = _real(
    "cos",
    "The cosine of an angle in radians.",
    40.0,
    pull=lambda g, y, x: negative(multiply(g, sin(x))),
)
tan = _real(
    "tan",
    "The tangent of an angle in radians.",
    50.0,
    domain=(-1.5, 1.5),
    pull=lambda g, y, x: multiply(g, add(square(y), _number(1.0))),
)
arcsin = _real(
    "arcsin",
    "The angle whose sine is `x`.",
    30.0,
    domain=(-1, 1),
    pull=lambda g, y, x: true_divide(g, sqrt(subtract(_number(1.0), square(x)))),
)
arccos = _real(
    "arccos",
    "The angle whose cosine is `x`.",
    30.0,
    domain=(-1, 1),
    pull=lambda g, y, x: negative(true_divide(g, sqrt(subtract(_number(1.0), square(x))))),
)
arctan = _real(
    "arctan",
    "The angle whose tangent is `x`.",
    30.0,
    pull=lambda g, y, x: true_divide(g, add(square(x), _number(1.0))),
)


def _pull_arctan2(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    share = true_divide(g, add(square(a), square(b)))
    return multiply(share, b), negative(multiply(share, a))


arctan2 = binary(
    "arctan2",
    lowered(mathematics.arctan2),
    real,
    "The angle of the point `(x2, x1)`.",
    cost=40.0,
    pull=_pull_arctan2,
)


def _pull_hypot(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    length = select(equal(y, _number(0.0)), _number(1.0), y)
    return multiply(g, true_divide(a, length)), multiply(g, true_divide(b, length))


hypot = binary(
    "hypot",
    lowered(mathematics.hypot),
    real,
    "`sqrt(x1**2 + x2**2)` without overflow.",
    cost=12.0,
    pull=_pull_hypot,
)
sinh = _real("sinh", "The hyperbolic sine.", 30.0, pull=lambda g, y, x: multiply(g, cosh(x)))
cosh = _real("cosh", "The hyperbolic cosine.", 30.0, pull=lambda g, y, x: multiply(g, sinh(x)))
tanh = _real(
    "tanh",
    "The hyperbolic tangent.",
    20.0,
    pull=lambda g, y, x: multiply(g, subtract(_number(1.0), square(y))),
)
arcsinh = _real(
    "arcsinh",
    "The inverse of `sinh`.",
    40.0,
    pull=lambda g, y, x: true_divide(g, sqrt(add(square(x), _number(1.0)))),
)
arccosh = _real(
    "arccosh",
    "The inverse of `cosh`.",
    40.0,
    domain=(1, 9),
    pull=lambda g, y, x: true_divide(g, sqrt(subtract(square(x), _number(1.0)))),
)
arctanh = _real(
    "arctanh",
    "The inverse of `tanh`.",
    40.0,
    domain=(-0.99, 0.99),
    pull=lambda g, y, x: true_divide(g, subtract(_number(1.0), square(x))),
)


def _scaled(factor: float) -> Callable[..., Emitted]:
    return lambda f, dtype, x: f.mul(x, constant(x.type, factor))


degrees = unary(
    "degrees",
    _scaled(180.0 / math.pi),
    real,
    "An angle in radians, in degrees.",
    pull=lambda g, y, x: multiply(g, _number(180.0 / math.pi)),
    public=METHOD,
    aliases=("rad2deg",),
)
radians = unary(
    "radians",
    _scaled(math.pi / 180.0),
    real,
    "An angle in degrees, in radians.",
    pull=lambda g, y, x: multiply(g, _number(math.pi / 180.0)),
    public=METHOD,
    aliases=("deg2rad",),
)

# -- rounding -------------------------------------------------------------------------------------


def _rounding(name: str, documentation: str, **facts: Any) -> Any:
    """Rounding to integers, which leaves integers as they are."""
    rounded = getattr(mathematics, name)

    def lowering(f: Function, dtype: str, x: Emitted) -> Emitted:
        return rounded(f, x) if is_float(dtype) else x

    dtypes = ("bool", "int8", *FLOATS)
    facts = {"public": METHOD, "domain": (-9, 9), "dtypes": dtypes} | facts
    facts["piecewise_constant"] = "whole numbers, with steps between"
    return unary(name, lowering, same, documentation, keeps=True, **facts)


floor = _rounding("floor", "The greatest integer not above `x`.")
ceil = _rounding("ceil", "The least integer not below `x`.")
trunc = _rounding("trunc", "The integer part.", aliases=("fix",))
rint = _rounding("rint", "The nearest integer; the even one of two.")

_ROUND_CASES = (*BRIEF[1], *(Case(((3, 70),), {"decimals": d}) for d in (1, -1)))


@operation(
    numpy=numpy.around,
    public=METHOD,
    aliases=("around", "round_"),
    names={"mxnet": "_npi_around"},
    piecewise_constant="multiples of one number, with steps between",
    samples=Samples(_ROUND_CASES, (-60, 60), dtypes=("int32", *_PRECISE)),
)
def round(x, decimals: int = 0):
    """The nearest number with `decimals` digits behind the point; the even one of two."""
    if not is_float(x.dtype):
        return _rounded_integer(x, decimals)
    if not decimals:
        return rint(x)
    scale = number(10.0 ** abs(decimals), x.dtype)
    if decimals > 0:
        return true_divide(rint(multiply(x, scale)), scale)
    return multiply(rint(true_divide(x, scale)), scale)


def _rounded_integer(x: Value, decimals: int) -> Value:
    if decimals >= 0:
        return rint(x)
    scale = number(10.0**-decimals, "float64")
    return cast(multiply(rint(true_divide(cast(x, "float64"), scale)), scale), x.dtype)


# -- parts of a float -----------------------------------------------------------------------------

copysign = binary(
    "copysign",
    lambda f, dtype, a, b: f.intrinsic("copysign", a, b),
    real,
    "The size of `x1` with the sign of `x2`.",
    pull=lambda g, y, a, b: (multiply(g, multiply(sign(a), sign(y))), None),
)


def _pull_heaviside(g: Value, y: Value, a: Value, b: Value) -> tuple[None, Value]:
    return None, select(equal(a, _number(0.0)), g, _number(0.0))


heaviside = binary(
    "heaviside",
    lower.heaviside,
    real,
    "0 for negative `x1`, 1 for positive, `x2` at 0.",
    cost=3.0,
    pull=_pull_heaviside,
)
# The distance depends on the precision, so float64 alone can be compared with the reference.
spacing = unary(
    "spacing",
    lower.spacing,
    real,
    "The distance to the next number away from zero.",
    piecewise_constant="the same for all numbers of one exponent",
    dtypes=("float64",),
    by_type=True,
)
_FRACTION = Elementwise("fraction", lower.fraction, cost=3.0)
_LDEXP = Elementwise("ldexp", lower.ldexp, cost=8.0)
_MANTISSA = Elementwise("mantissa", lower.mantissa, cost=8.0)
_EXPONENT = Elementwise("exponent", lower.exponent, cost=8.0)
elementwise_adjoint(_FRACTION, lambda g, y, x: g)
elementwise_adjoint(_LDEXP, lambda g, y, x1, x2: (apply(_LDEXP, (g, x2), g.type), None))
piecewise_constant(_EXPONENT)


@partial(elementwise_adjoint, _MANTISSA)
def _pull_mantissa(g: Value, y: Value, x: Value) -> Value:
    """By the power of two that the mantissa was divided by; zero, which has none, is kept."""
    zero = equal(x, _number(0.0))
    return select(zero, g, true_divide(multiply(g, y), select(zero, _number(1.0), x)))


@operation(numpy=numpy.modf, samples=Samples(BRIEF[1], dtypes=("int32", *_PRECISE)))
def modf(x):
    """The fraction and the integer part, both with the sign of `x`."""
    x = cast(x, floating(result_type(x)))
    return apply(_FRACTION, (x,), TensorType(x.shape, x.dtype)), trunc(x)


@operation(numpy=numpy.frexp, samples=Samples(BRIEF[1], dtypes=("int32", *_PRECISE)))
def frexp(x):
    """`(m, e)` with `x == m * 2**e` and `m` from 0.5 up to 1; `e` is int32."""
    x = cast(x, floating(result_type(x)))
    mantissa = apply(_MANTISSA, (x,), TensorType(x.shape, x.dtype))
    return mantissa, apply(_EXPONENT, (x,), TensorType(x.shape, "int32"))


@operation(
    numpy=lambda x1, x2: x1 * 2.0**x2,
    names={"mxnet": "_npi_ldexp"},
    samples=Samples(BRIEF[2], dtypes=("int32", "float32", "float64")),
)
def ldexp(x1, x2):
    """`x1 * 2**x2`, exact for integer `x2`."""
    x1 = cast(x1, floating(result_type(x1)))
    if is_float(x2.dtype):
        return multiply(x1, exp2(cast(x2, x1.dtype)))
    x1, x2 = broadcast_all("ldexp", (x1, cast(x2, "int64")))
    return apply(_LDEXP, (x1, x2), TensorType(x1.shape, x1.dtype))


# -- special functions and activations ------------------------------------------------------------

NETWORK = ("npx", "ndarray")


def _special(name: str) -> Callable[..., Any]:
    def reference(x: Any) -> Any:
        from scipy import special  # tests alone have it

        return getattr(special, name)(x)

    return reference


erf = _real(
    "erf",
    "The error function.",
    30.0,
    public=("npx",),
    reference=_special("erf"),
    pull=lambda g, y, x: multiply(
        g, multiply(_number(2.0 / math.sqrt(math.pi)), exp(negative(square(x))))
    ),
)
erfinv = _real(
    "erfinv",
    "The inverse of the error function.",
    60.0,
    domain=(-0.99, 0.99),
    public=("npx",),
    reference=_special("erfinv"),
    pull=lambda g, y, x: multiply(g, multiply(_number(math.sqrt(math.pi) / 2.0), exp(square(y)))),
)
gamma = _real(
    "gamma",
    "The gamma function.",
    80.0,
    domain=(0.5, 5),
    public=("npx",),
    reference=_special("gamma"),
    pull=lambda g, y, x: multiply(g, multiply(y, digamma(x))),
)
gammaln = _real(
    "gammaln",
    "The logarithm of the absolute value of the gamma function.",
    80.0,
    domain=(3, 30),
    public=("npx",),
    reference=_special("gammaln"),
    pull=lambda g, y, x: multiply(g, digamma(x)),
)
sigmoid = _real(
    "sigmoid",
    "`1 / (1 + exp(-x))`.",
    20.0,
    public=NETWORK,
    names={"mxnet": "sigmoid", "onnx": "Sigmoid"},
    reference=lambda x: 1 / (1 + numpy.exp(-x)),
    pull=lambda g, y, x: multiply(g, multiply(y, subtract(_number(1.0), y))),
)


@operation(
    numpy=lambda x: numpy.maximum(x, 0),
    public=NETWORK,
    names={"mxnet": "relu", "onnx": "Relu"},
    samples=Samples(BRIEF[1], dtypes=("int32", *FLOATS)),
    gradient=lambda g, y, x: select(greater(y, _number(0.0)), g, _number(0.0)),
)
def relu(x):
    """`x` where it is positive, else 0."""
    return maximum(x, number(0, "int64", weak=True))


@operation(
    numpy=_special("digamma"),
    public=("npx",),
    samples=Samples(BRIEF[1], (0.5, 9), dtypes=_PRECISE, ulps=64, absolute=16),
)
def digamma(x):
    """The derivative of `gammaln`."""
    x = cast(x, floating(x.dtype))
    mirrored = less(x, _number(0.5))
    inside = select(mirrored, subtract(_number(1.0), x), x)
    # Where the argument is large the asymptotic series is exact: get there by the recurrence.
    shifted = inside
    lost = number(0.0, x.dtype)
    for _ in range(_DIGAMMA_STEPS):
        lost = add(lost, reciprocal(shifted))
        shifted = add(shifted, _number(1.0))
    inverse = square(reciprocal(shifted))
    series = number(0.0, x.dtype)
    for coefficient in reversed(_DIGAMMA_SERIES):
        series = multiply(inverse, add(series, _number(coefficient)))
    large = subtract(subtract(log(shifted), true_divide(_number(0.5), shifted)), series)
    result = subtract(large, lost)
    # At whole numbers the tangent is zero: what is not used must not be infinite, or its gradient
    # would not be zero.
    turn = select(equal(x, _number(0.0)), x, subtract(x, rint(x)))  # exact, with the zero's sign
    outside = select(mirrored, turn, _number(0.25))
    turned = true_divide(_number(math.pi), tan(multiply(_number(math.pi), outside)))
    mirror = select(mirrored, subtract(result, turned), result)
    has_pole = logical_and(less(x, _number(0.0)), equal(outside, _number(0.0)))
    return select(has_pole, number(math.nan, x.dtype), mirror)


# The Bernoulli numbers B(2n) over 2n: what follows the logarithm in the asymptotic series.
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_DIGAMMA_STEPS = 7
