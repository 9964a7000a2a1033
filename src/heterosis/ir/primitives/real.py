"""Functions of real numbers, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir.primitives import special
from heterosis.ir.primitives.element_types import (
    REAL,
    TWO_REAL,
    ElementTypes,
    alike,
    truth,
)
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.types import FLOATS, is_half

# -- arithmetic, exponentials, logarithms, roots --------------------------------------------------

TRUE_DIVIDE = Elementwise(
    "true_divide",
    types=TWO_REAL,
    meaning=numpy.true_divide,
    exact=True,
    neutral=(None, 1.0),
    about="The quotient.",
)
RECIPROCAL = Elementwise("reciprocal", types=REAL, meaning=numpy.reciprocal, about="1 / x.")
EXP = Elementwise("exp", types=REAL, meaning=numpy.exp, about="e to the power x.")
EXP2 = Elementwise("exp2", types=REAL, meaning=numpy.exp2, about="2 to the power x.")
EXPM1 = Elementwise(
    "expm1", types=REAL, meaning=numpy.expm1, about="exp(x) - 1, accurate for small x."
)
LOG = Elementwise("log", types=REAL, meaning=numpy.log, about="The natural logarithm.")
LOG2 = Elementwise("log2", types=REAL, meaning=numpy.log2, about="The logarithm to base 2.")
LOG10 = Elementwise("log10", types=REAL, meaning=numpy.log10, about="The logarithm to base 10.")
LOG1P = Elementwise(
    "log1p", types=REAL, meaning=numpy.log1p, about="log(1 + x), accurate for small x."
)
SQRT = Elementwise("sqrt", types=REAL, meaning=numpy.sqrt, about="The square root.")
RSQRT = Elementwise("rsqrt", types=REAL, meaning=special.rsqrt, about="1 / sqrt(x).")
CBRT = Elementwise("cbrt", types=REAL, meaning=numpy.cbrt, about="The cube root.")
HYPOT = Elementwise(
    "hypot", types=TWO_REAL, meaning=numpy.hypot, about="sqrt(a**2 + b**2) without overflow."
)

# -- angles and hyperbolic functions --------------------------------------------------------------

SIN = Elementwise("sin", types=REAL, meaning=numpy.sin, about="The sine of an angle in radians.")
COS = Elementwise("cos", types=REAL, meaning=numpy.cos, about="The cosine of an angle in radians.")
TAN = Elementwise("tan", types=REAL, meaning=numpy.tan, about="The tangent of an angle in radians.")
ARCSIN = Elementwise("arcsin", types=REAL, meaning=numpy.arcsin, about="The angle of sine x.")
ARCCOS = Elementwise("arccos", types=REAL, meaning=numpy.arccos, about="The angle of cosine x.")
ARCTAN = Elementwise("arctan", types=REAL, meaning=numpy.arctan, about="The angle of tangent x.")
ARCTAN2 = Elementwise(
    "arctan2", types=TWO_REAL, meaning=numpy.arctan2, about="The angle of the point (b, a)."
)
SINH = Elementwise("sinh", types=REAL, meaning=numpy.sinh, about="The hyperbolic sine.")
COSH = Elementwise("cosh", types=REAL, meaning=numpy.cosh, about="The hyperbolic cosine.")
TANH = Elementwise("tanh", types=REAL, meaning=numpy.tanh, about="The hyperbolic tangent.")
ARCSINH = Elementwise("arcsinh", types=REAL, meaning=numpy.arcsinh, about="The inverse of sinh.")
ARCCOSH = Elementwise("arccosh", types=REAL, meaning=numpy.arccosh, about="The inverse of cosh.")
ARCTANH = Elementwise("arctanh", types=REAL, meaning=numpy.arctanh, about="The inverse of tanh.")

# -- special functions ----------------------------------------------------------------------------

ERF = Elementwise("erf", types=REAL, meaning=special.erf, about="The error function.")
ERFINV = Elementwise("erfinv", types=REAL, meaning=special.erfinv, about="The inverse of erf.")
GAMMA = Elementwise("gamma", types=REAL, meaning=special.gamma, about="The gamma function.")
GAMMALN = Elementwise(
    "gammaln", types=REAL, meaning=special.gammaln, about="The logarithm of the size of gamma."
)
SIGMOID = Elementwise("sigmoid", types=REAL, meaning=special.sigmoid, about="1 / (1 + exp(-x)).")

# -- rounding to integers -------------------------------------------------------------------------


def _rounding(name: str, rounded: Callable[[Any], Any], about: str) -> Elementwise:
    """Leaves integers as they are; NumPy takes some of them by way of floats."""

    def meaning(x: Any) -> Any:
        return rounded(x) if x.dtype.kind == "f" else x

    return Elementwise(name, types=alike(1), meaning=meaning, keeps=True, about=about)


FLOOR = _rounding("floor", numpy.floor, "The greatest integer not above x.")
CEIL = _rounding("ceil", numpy.ceil, "The least integer not below x.")
TRUNC = _rounding("trunc", numpy.trunc, "The integer part.")
RINT = _rounding("rint", numpy.rint, "The nearest integer; the even one of two.")

# -- parts of a float -----------------------------------------------------------------------------


def _exponent(x: Any) -> Any:
    return numpy.where(numpy.isfinite(x), numpy.frexp(x)[1], 0)


# Bits of the mantissa and the exponent of the least normal number.
_NARROW = {"float16": (10, -14), "bfloat16": (7, -126)}


def _spacing(x: Any) -> Any:
    """In the type that `x` has. Of 16 bits, the largest number counts as if there were more."""
    if not is_half(x.dtype.name):
        return numpy.spacing(x)
    mantissa, least = _NARROW[x.dtype.name]
    wide = x.astype("float32")
    exponent = numpy.where(wide == 0, least, numpy.maximum(numpy.frexp(wide)[1] - 1, least))
    unit = numpy.ldexp(numpy.float32(1.0), exponent - mantissa)
    return numpy.where(numpy.isfinite(wide), numpy.copysign(unit, wide), numpy.nan)


def _test(name: str, meaning: Callable[[Any], Any], about: str) -> Elementwise:
    return Elementwise(name, types=truth(1, FLOATS), meaning=meaning, about=about)


ISNAN = _test("isnan", numpy.isnan, "Whether x is NaN.")
ISINF = _test("isinf", numpy.isinf, "Whether x is infinite.")
ISFINITE = _test("isfinite", numpy.isfinite, "Whether x is neither NaN nor infinite.")
SIGNBIT = _test("signbit", numpy.signbit, "Whether x has the negative sign, as -0.0 has.")
COPYSIGN = Elementwise(
    "copysign", types=TWO_REAL, meaning=numpy.copysign, about="The size of a with the sign of b."
)
SPACING = Elementwise(
    "spacing",
    types=REAL,
    meaning=_spacing,
    by_type=True,
    about="The distance to the next number away from zero, with the sign of x; NaN of infinities.",
)
FRACTION = Elementwise(
    "fraction",
    types=REAL,
    meaning=lambda x: numpy.modf(x)[0],
    about="What lies behind the point, with the sign of x; 0 of infinities.",
)
MANTISSA = Elementwise(
    "mantissa",
    types=REAL,
    meaning=lambda x: numpy.frexp(x)[0],
    about="x divided by the power of two that brings it between 1/2 and 1.",
)
EXPONENT = Elementwise(
    "exponent",
    types=ElementTypes((FLOATS,), "int32"),
    meaning=_exponent,
    about="Which power of two `mantissa` divides by; 0 of NaN and infinities.",
)
LDEXP = Elementwise(
    "ldexp",
    types=ElementTypes((FLOATS, ("int64",)), 0),
    meaning=numpy.ldexp,
    about="a * 2**b, rounded once.",
)
