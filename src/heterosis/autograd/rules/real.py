"""Derivatives of functions of real numbers."""

from __future__ import annotations

import math

from heterosis.autograd.rules.table import elementwise_adjoints, piecewise_constant
from heterosis.ir.primitives import real as primitives
from heterosis.ir.program import Value, apply
from heterosis.ops.math.elementwise import (
    add,
    equal,
    isinf,
    multiply,
    negative,
    select,
    sign,
    square,
    subtract,
    true_divide,
)
from heterosis.ops.math.real import cos, cosh, digamma, exp, hypot, sin, sinh, sqrt
from heterosis.ops.rules import weak

# -- arithmetic, exponentials, logarithms, roots --------------------------------------------------

elementwise_adjoints(
    {
        primitives.TRUE_DIVIDE: lambda g, y, a, b: (
            true_divide(g, b),
            negative(true_divide(multiply(g, y), b)),
        ),
        primitives.RECIPROCAL: lambda g, y, x: negative(multiply(g, square(y))),
        primitives.EXP: lambda g, y, x: multiply(g, y),
        primitives.EXP2: lambda g, y, x: multiply(g, multiply(y, weak(math.log(2.0)))),
        primitives.EXPM1: lambda g, y, x: multiply(g, add(y, weak(1.0))),
        primitives.LOG: lambda g, y, x: true_divide(g, x),
        primitives.LOG2: lambda g, y, x: true_divide(g, multiply(x, weak(math.log(2.0)))),
        primitives.LOG10: lambda g, y, x: true_divide(g, multiply(x, weak(math.log(10.0)))),
        primitives.LOG1P: lambda g, y, x: true_divide(g, add(x, weak(1.0))),
        primitives.SQRT: lambda g, y, x: true_divide(g, add(y, y)),
        primitives.CBRT: lambda g, y, x: true_divide(g, multiply(weak(3.0), square(y))),
        primitives.RSQRT: lambda g, y, x: multiply(g, multiply(weak(-0.5), multiply(y, square(y)))),
    }
)


# -- angles ---------------------------------------------------------------------------------------


def _arctan2(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    # Squares of small and of large numbers leave the type's range; far away, the slopes are 0.
    length = hypot(a, b)
    far = isinf(length)
    a, b = (select(far, weak(0.0), true_divide(x, length)) for x in (a, b))
    return true_divide(multiply(g, b), length), negative(true_divide(multiply(g, a), length))


def _hypot(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    far = isinf(y)  # beside infinite operands, finite ones count for nothing
    a, b = (select(far, select(isinf(x), sign(x), weak(0.0)), x) for x in (a, b))
    length = select(far, hypot(a, b), y)
    length = select(equal(length, weak(0.0)), weak(1.0), length)
    return multiply(g, true_divide(a, length)), multiply(g, true_divide(b, length))


def _one_less_square(x: Value) -> Value:
    found: Value = subtract(weak(1.0), square(x))
    return found


elementwise_adjoints(
    {
        primitives.SIN: lambda g, y, x: multiply(g, cos(x)),
        primitives.COS: lambda g, y, x: negative(multiply(g, sin(x))),
        primitives.TAN: lambda g, y, x: multiply(g, add(square(y), weak(1.0))),
        primitives.ARCSIN: lambda g, y, x: true_divide(g, sqrt(_one_less_square(x))),
        primitives.ARCCOS: lambda g, y, x: negative(true_divide(g, sqrt(_one_less_square(x)))),
        primitives.ARCTAN: lambda g, y, x: true_divide(g, add(square(x), weak(1.0))),
        primitives.ARCTAN2: _arctan2,
        primitives.HYPOT: _hypot,
        primitives.SINH: lambda g, y, x: multiply(g, cosh(x)),
        primitives.COSH: lambda g, y, x: multiply(g, sinh(x)),
        primitives.TANH: lambda g, y, x: multiply(g, _one_less_square(y)),
        primitives.ARCSINH: lambda g, y, x: true_divide(g, sqrt(add(square(x), weak(1.0)))),
        primitives.ARCCOSH: lambda g, y, x: true_divide(g, sqrt(subtract(square(x), weak(1.0)))),
        primitives.ARCTANH: lambda g, y, x: true_divide(g, _one_less_square(x)),
    }
)


# -- rounding, and parts of a float ---------------------------------------------------------------


def _mantissa(g: Value, y: Value, x: Value) -> Value:
    """By the power of two that the mantissa was divided by; zero, which has none, is kept."""
    zero = equal(x, weak(0.0))
    return select(zero, g, true_divide(multiply(g, y), select(zero, weak(1.0), x)))


elementwise_adjoints(
    {
        primitives.COPYSIGN: lambda g, y, a, b: (multiply(g, multiply(sign(a), sign(y))), None),
        primitives.FRACTION: lambda g, y, x: g,
        primitives.MANTISSA: _mantissa,
        primitives.LDEXP: lambda g, y, a, b: (apply(primitives.LDEXP, (g, b), g.type), None),
    }
)

piecewise_constant(primitives.FLOOR, primitives.CEIL, primitives.TRUNC, primitives.RINT)
piecewise_constant(primitives.EXPONENT, primitives.SPACING)
piecewise_constant(primitives.ISNAN, primitives.ISINF, primitives.ISFINITE, primitives.SIGNBIT)


# -- special functions ----------------------------------------------------------------------------

_OF_ERF = 2.0 / math.sqrt(math.pi)  # its slope at 0

elementwise_adjoints(
    {
        primitives.ERF: lambda g, y, x: multiply(
            g, multiply(weak(_OF_ERF), exp(negative(square(x))))
        ),
        primitives.ERFINV: lambda g, y, x: multiply(
            g, multiply(weak(math.sqrt(math.pi) / 2.0), exp(square(y)))
        ),
        primitives.GAMMA: lambda g, y, x: multiply(g, multiply(y, digamma(x))),
        primitives.GAMMALN: lambda g, y, x: multiply(g, digamma(x)),
        primitives.SIGMOID: lambda g, y, x: multiply(g, multiply(y, subtract(weak(1.0), y))),
    }
)
