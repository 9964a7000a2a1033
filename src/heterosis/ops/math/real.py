"""Functions of real numbers, element by element. Integers become float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir.primitives import real as primitives
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import Value, apply
from heterosis.ir.program import constant as number
from heterosis.ir.types import FLOATS, TensorType, is_float
from heterosis.ops.math.elementwise import (
    BRIEF,
    METHOD,
    Unary,
    absolute,
    add,
    binary,
    equal,
    greater,
    isnan,
    less,
    logical_and,
    maximum,
    multiply,
    negative,
    power,
    real,
    same,
    select,
    square,
    subtract,
    true_divide,
    unary,
)
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_all, cast, floating, result_type, weak, wide
from heterosis.ops.samples import Case, Samples

_PRECISE = ("float32", "float64")


def _real(primitive: Elementwise, documentation: str, **facts: Any) -> Unary:
    """A function of one real number."""
    return unary(primitive, real, documentation, **({"public": METHOD} | facts))


# -- exponentials, logarithms, roots --------------------------------------------------------------

exp = _real(primitives.EXP, "e to the power `x`.")
exp2 = _real(primitives.EXP2, "2 to the power `x`.")
expm1 = _real(primitives.EXPM1, "`exp(x) - 1`, accurate for small `x`.")
log = _real(primitives.LOG, "The natural logarithm.", domain=(0.01, 50))
log2 = _real(primitives.LOG2, "The logarithm to base 2.", domain=(0.01, 50))
log10 = _real(primitives.LOG10, "The logarithm to base 10.", domain=(0.01, 50))
log1p = _real(primitives.LOG1P, "`log(1 + x)`, accurate for small `x`.", domain=(-0.9, 50))
sqrt = _real(primitives.SQRT, "The square root.", domain=(0, 50))


def root(x: Value) -> Value:
    """The square root of a sum of squares: a length, whose gradient at zero counts as zero."""
    zero = equal(x, weak(0.0))
    return select(zero, x, sqrt(select(zero, weak(1.0), x)))


cbrt = _real(primitives.CBRT, "The cube root.")


reciprocal = unary(primitives.RECIPROCAL, real, "`1 / x`.", domain=(0.5, 4), public=METHOD)
rsqrt = _real(primitives.RSQRT, "`1 / sqrt(x)`.", domain=(0.1, 50), public=("npx", "ndarray"))


@operation(
    numpy=lambda x: 1 / numpy.cbrt(x),
    public=("npx", "ndarray"),
    samples=Samples(BRIEF[1], (0.1, 50), dtypes=FLOATS),
)
def rcbrt(x: Value) -> Value:
    """`1 / cbrt(x)`."""
    return reciprocal(cbrt(x))


@operation(
    numpy=numpy.float_power,
    samples=Samples(BRIEF[2], ((0.5, 4), (-3, 3)), dtypes=("int32", "float32", "float64")),
)
def float_power(x1: Value, x2: Value) -> Value:
    """`x1 ** x2` in float64."""
    return power(cast(x1, "float64"), cast(x2, "float64"))


def _pull_log_sum(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    # Smooth where the operands are equal, as the formula with `maximum` is not.
    endless = logical_and(equal(a, b), equal(absolute(a), weak(math.inf)))
    apart = select(endless, weak(0.0), subtract(a, b))
    return multiply(g, sigmoid(apart)), multiply(g, sigmoid(negative(apart)))


@operation(public=(), gradient=_pull_log_sum)
def log_sum(a: Value, b: Value) -> Value:
    """`log(exp(a) + exp(b))` of arrays of one shape and type."""
    apart = add(maximum(a, b), log1p(exp(negative(absolute(subtract(a, b))))))
    # Equal infinities have no difference.
    return select(equal(a, b), add(a, number(math.log(2.0), a.dtype)), apart)


# `absolute`: near zero the larger operand and the logarithm cancel, as they do in NumPy.
@operation(numpy=numpy.logaddexp, samples=Samples(BRIEF[2], dtypes=_PRECISE, absolute=8))
def logaddexp(x1: Value, x2: Value) -> Value:
    """`log(exp(x1) + exp(x2))` without overflow."""
    dtype = floating(result_type(x1, x2))
    a, b = broadcast_all("logaddexp", (cast(x1, dtype), cast(x2, dtype)))
    return log_sum(a, b)


# -- angles ---------------------------------------------------------------------------------------

sin = _real(primitives.SIN, "The sine of an angle in radians.")
cos = _real(primitives.COS, "The cosine of an angle in radians.")
tan = _real(primitives.TAN, "The tangent of an angle in radians.", domain=(-1.5, 1.5))
arcsin = _real(primitives.ARCSIN, "The angle whose sine is `x`.", domain=(-1, 1), aliases=("asin",))
arccos = _real(
    primitives.ARCCOS, "The angle whose cosine is `x`.", domain=(-1, 1), aliases=("acos",)
)
arctan = _real(primitives.ARCTAN, "The angle whose tangent is `x`.", aliases=("atan",))


arctan2 = binary(primitives.ARCTAN2, real, "The angle of the point `(x2, x1)`.", aliases=("atan2",))


hypot = binary(primitives.HYPOT, real, "`sqrt(x1**2 + x2**2)` without overflow.")
sinh = _real(primitives.SINH, "The hyperbolic sine.")
cosh = _real(primitives.COSH, "The hyperbolic cosine.")
tanh = _real(primitives.TANH, "The hyperbolic tangent.")
arcsinh = _real(primitives.ARCSINH, "The inverse of `sinh`.", aliases=("asinh",))
arccosh = _real(primitives.ARCCOSH, "The inverse of `cosh`.", domain=(1, 9), aliases=("acosh",))
arctanh = _real(
    primitives.ARCTANH, "The inverse of `tanh`.", domain=(-0.99, 0.99), aliases=("atanh",)
)


def _turned(x: Value, factor: float) -> Value:
    """`x` times a factor that has the digits of the type that is computed in."""
    dtype = floating(result_type(x))
    x = cast(x, wide(dtype))
    return cast(multiply(x, number(factor, x.dtype)), dtype)


@operation(
    numpy=numpy.degrees,
    public=METHOD,
    aliases=("rad2deg",),
    names={"mxnet": "_npi_degrees"},
    samples=Samples(BRIEF[1], dtypes=("int32", *FLOATS)),
)
def degrees(x: Value) -> Value:
    """An angle in radians, in degrees."""
    return _turned(x, 180.0 / math.pi)


@operation(
    numpy=numpy.radians,
    public=METHOD,
    aliases=("deg2rad",),
    names={"mxnet": "_npi_radians"},
    samples=Samples(BRIEF[1], dtypes=("int32", *FLOATS)),
)
def radians(x: Value) -> Value:
    """An angle in degrees, in radians."""
    return _turned(x, math.pi / 180.0)


# -- rounding -------------------------------------------------------------------------------------


def _rounding(primitive: Elementwise, documentation: str, **facts: Any) -> Unary:
    """Rounding to integers, which leaves integers as they are."""
    facts["piecewise_constant"] = "whole numbers, with steps between"
    dtypes = ("bool", "int8", *FLOATS)
    reference = getattr(numpy, primitive.name)
    return unary(
        primitive, same, documentation,
        reference=reference, domain=(-9, 9), dtypes=dtypes, public=METHOD, **facts,
    )  # fmt: skip


floor = _rounding(primitives.FLOOR, "The greatest integer not above `x`.")
ceil = _rounding(primitives.CEIL, "The least integer not below `x`.")
trunc = _rounding(primitives.TRUNC, "The integer part.", aliases=("fix",))
rint = _rounding(primitives.RINT, "The nearest integer; the even one of two.")

_ROUND_CASES = (*BRIEF[1], *(Case(((3, 70),), {"decimals": d}) for d in (1, -1)))


@operation(
    numpy=numpy.around,
    public=METHOD,
    aliases=("around", "round_"),
    names={"mxnet": "_npi_around"},
    piecewise_constant="multiples of one number, with steps between",
    samples=Samples(_ROUND_CASES, (-60, 60), dtypes=("int32", *_PRECISE)),
)
def round(x: Value, decimals: int = 0) -> Value:
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

copysign = binary(primitives.COPYSIGN, real, "The size of `x1` with the sign of `x2`.")


@operation(
    numpy=numpy.heaviside,
    samples=Samples(BRIEF[2], dtypes=("int32", *FLOATS)),
)
def heaviside(x1: Value, x2: Value) -> Value:
    """0 for negative `x1`, 1 for positive, `x2` at 0."""
    dtype = floating(result_type(x1, x2))
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    zero, one = number(0.0, dtype), number(1.0, dtype)
    step = select(equal(x1, zero), x2, select(greater(x1, zero), one, zero))
    return select(isnan(x1), number(math.nan, dtype), step)


# The distance depends on the precision, so float64 alone can be compared with the reference.
spacing = unary(
    primitives.SPACING,
    real,
    "The distance to the next number away from zero.",
    piecewise_constant="the same for all numbers of one exponent",
    dtypes=("float64",),
)


@operation(numpy=numpy.modf, samples=Samples(BRIEF[1], dtypes=("int32", *_PRECISE)))
def modf(x: Value) -> tuple[Value, Value]:
    """The fraction and the integer part, both with the sign of `x`."""
    x = cast(x, floating(result_type(x)))
    return apply(primitives.FRACTION, (x,), TensorType(x.shape, x.dtype)), trunc(x)


@operation(numpy=numpy.frexp, samples=Samples(BRIEF[1], dtypes=("int32", *_PRECISE)))
def frexp(x: Value) -> tuple[Value, Value]:
    """`(m, e)` with `x == m * 2**e` and `m` from 0.5 up to 1; `e` is int32."""
    x = cast(x, floating(result_type(x)))
    mantissa = apply(primitives.MANTISSA, (x,), TensorType(x.shape, x.dtype))
    return mantissa, apply(primitives.EXPONENT, (x,), TensorType(x.shape, "int32"))


@operation(
    numpy=lambda x1, x2: x1 * 2.0**x2,
    names={"mxnet": "_npi_ldexp"},
    samples=Samples(BRIEF[2], dtypes=("int32", "float32", "float64")),
)
def ldexp(x1: Value, x2: Value) -> Value:
    """`x1 * 2**x2`, exact for integer `x2`."""
    if is_float(x2.dtype):
        dtype = floating(result_type(x1, x2))
        return multiply(cast(x1, dtype), exp2(cast(x2, dtype)))
    x1 = cast(x1, floating(result_type(x1)))
    x1, x2 = broadcast_all("ldexp", (x1, cast(x2, "int64")))
    return apply(primitives.LDEXP, (x1, x2), TensorType(x1.shape, x1.dtype))


# -- special functions and activations ------------------------------------------------------------

NETWORK = ("npx", "ndarray")


def _special(name: str) -> Callable[..., Any]:
    def reference(x: Any) -> Any:
        from scipy import special  # tests alone have it

        return getattr(special, name)(x)

    return reference


erf = _real(primitives.ERF, "The error function.", public=("npx",), reference=_special("erf"))
erfinv = _real(
    primitives.ERFINV,
    "The inverse of the error function.",
    domain=(-0.99, 0.99),
    public=("npx",),
    reference=_special("erfinv"),
)
gamma = _real(
    primitives.GAMMA,
    "The gamma function.",
    domain=(0.5, 5),
    public=("npx",),
    reference=_special("gamma"),
)
gammaln = _real(
    primitives.GAMMALN,
    "The logarithm of the absolute value of the gamma function.",
    domain=(3, 30),
    public=("npx",),
    reference=_special("gammaln"),
)
sigmoid = _real(
    primitives.SIGMOID,
    "`1 / (1 + exp(-x))`.",
    public=NETWORK,
    names={"mxnet": "sigmoid", "onnx": "Sigmoid"},
)


@operation(
    numpy=lambda x: numpy.maximum(x, 0),
    public=NETWORK,
    names={"mxnet": "relu", "onnx": "Relu"},
    samples=Samples(BRIEF[1], dtypes=("int32", *FLOATS)),
    gradient=lambda g, y, x: select(greater(y, weak(0.0)), g, weak(0.0)),
)
def relu(x: Value) -> Value:
    """`x` where it is positive, else 0."""
    return maximum(x, number(0, "int64", weak=True))


@operation(
    numpy=_special("digamma"),
    public=("npx",),
    samples=Samples(BRIEF[1], (0.5, 9), dtypes=_PRECISE, ulps=64, absolute=16),
)
def digamma(x: Value) -> Value:
    """The derivative of `gammaln`."""
    x = cast(x, floating(x.dtype))
    mirrored = less(x, weak(0.5))
    inside = select(mirrored, subtract(weak(1.0), x), x)
    # Where the argument is large the asymptotic series is exact: get there by the recurrence.
    shifted = inside
    lost = number(0.0, x.dtype)
    for _ in range(_DIGAMMA_STEPS):
        lost = add(lost, reciprocal(shifted))
        shifted = add(shifted, weak(1.0))
    inverse = square(reciprocal(shifted))
    series = number(0.0, x.dtype)
    for coefficient in reversed(_DIGAMMA_SERIES):
        series = multiply(inverse, add(series, weak(coefficient)))
    large = subtract(subtract(log(shifted), true_divide(weak(0.5), shifted)), series)
    result = subtract(large, lost)
    # At whole numbers the tangent is zero: what is not used must not be infinite, or its gradient
    # would not be zero.
    turn = select(equal(x, weak(0.0)), x, subtract(x, rint(x)))  # exact, with the zero's sign
    outside = select(mirrored, turn, weak(0.25))
    turned = true_divide(weak(math.pi), tan(multiply(weak(math.pi), outside)))
    mirror = select(mirrored, subtract(result, turned), result)
    has_pole = logical_and(less(x, weak(0.0)), equal(outside, weak(0.0)))
    return select(has_pole, number(math.nan, x.dtype), mirror)


# The Bernoulli numbers B(2n) over 2n: what follows the logarithm in the asymptotic series.
_DIGAMMA_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_DIGAMMA_STEPS = 7
