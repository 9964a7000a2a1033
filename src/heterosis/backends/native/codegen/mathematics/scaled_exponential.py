"""exp and its like in single precision where the processor multiplies by powers of two.

exp(x) = 2^n * exp(r): powers of two are made of the bits of n, and the last of them is multiplied
by an instruction that rounds once into denormals and goes to infinity by itself.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of the function.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.compensated import quick_sum
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_least,
    at_most,
    fma,
    polynomial,
    split_polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.registers import (
    entry,
    estimated_reciprocal,
    scaled_by,
)
from heterosis.backends.native.codegen.mathematics.tabulated_power import EXP2, EXP2_REST

LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has zeros enough at its end for n times it to be exact.
LN2 = (0.693145751953125, 1.4286068203094172e-06)
# (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2: 2^-28.2.
EXP = (0.49999994, 0.1666652, 0.041668244, 0.0083688395, 0.0013822948)
# The same in terms of exp(r) - 1 for |r| <= ln(2)/64: 2^-35.5.
EXPM1 = (0.5, 0.16666749, 0.041666828)
# (sinh(r) / r - 1) / r^2 and (cosh(r) - 1) / r^2 in powers of r^2, |r| <= ln(2)/2: 2^-34.3 and
# 2^-33.2.
SINH = (0.16666667, 0.008333176, 0.00019973078)
COSH = (0.5, 0.04166646, 0.0013935455)
BIAS = 127
ROUNDING = 1.5 * 2.0**23  # added to a float, it leaves the nearest whole number in the low bits
ROUNDING_32 = 1.5 * 2.0**18  # the same for multiples of 1/32


def expm1(x: Number) -> Number:
    """exp(x) - 1, accurate for small x: 2^k from a table, k a multiple of 1/32."""
    bounded = at_most(at_least(x, -18.0), 89.0)
    shifted = fma(bounded, LOG2_E, ROUNDING_32)
    k = shifted - ROUNDING_32
    most = fma(k, -LN2[0], bounded)  # exact
    more = k * -LN2[1]
    r = fma(k, -LN2[1], most)
    index = shifted.bits
    high, low = entry("exp2", EXP2, index), entry("exp2.rest", EXP2_REST, index)
    # 2^-n, n the whole number below k; from 127 on 0, which is as good.
    one = index.constant(BIAS << 23)
    inverse = _not_negative(one - ((index & -32) << 18)).as_float
    # exp(x) - 1 = 2^n * (high - 2^-n + ...), where the difference is exact for |n| <= 1.
    small = fma(high, fma(r * r, polynomial(r, EXPM1), more), fma(low, r, low))
    return scaled_by((high - inverse) + fma(high, most, small), k).with_sign_of(x)


def _not_negative(bits: Number) -> Number:
    return where(bits < 0, 0, bits)


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)), as 2^n / (2^n + exp(-r)) for x = n * ln(2) + r."""
    # Bounds beyond which results are 0, as denormals end, and 1.
    bounded = at_most(at_least(x, -105.0), 20.0)
    shifted = fma(bounded, LOG2_E, ROUNDING + BIAS)
    n = shifted - (ROUNDING + BIAS)
    r = fma(n, -LN2[1], fma(n, -LN2[0], bounded))
    square = r * r
    t = fma(split_polynomial(-r, square, EXP), square, -r)  # exp(-r) - 1
    # No less than 2^-126, which does not count beside exp(-r).
    power = (at_least(shifted, ROUNDING + 1).bits << 23).as_float
    first = estimated_reciprocal(power + (t + 1.0))
    # 1 - first * (power + 1 + t), the greater of power and 1 first, which leaves least to round.
    one = power.constant(1.0)
    error = fma(-first, where(power > one, power, one), one)
    error = fma(-first, t, error)
    error = fma(-first, where(power < one, power, one), error)
    return scaled_by(fma(first, error, first), n)


def _parts(x: Number, half: float) -> tuple[Number, Number, Number, Number]:
    """For |x| = n * ln(2) + r: n, most of r, exactly, and the rest; then 2^-2n * half, 0 where that
    is no normal number.

    Of n, one is taken away where `half` is 1.
    """
    less = 1 if half == 1.0 else 0
    magnitude = at_most(abs(x), 90.0)
    shifted = fma(magnitude, LOG2_E, ROUNDING)
    n = shifted - ROUNDING
    most, more = fma(n, -LN2[0], magnitude), n * -LN2[1]
    inverse = shifted.bits.constant((BIAS - 1 + less) << 23) - (shifted.bits << 24)
    return shifted - (ROUNDING + less), most, more, _not_negative(inverse).as_float


def cosh(x: Number) -> Number:
    """Hyperbolic cosine: 2^n * (exp(r) / 2 + 2^-2n * exp(-r) / 2)."""
    n, most, more, inverse = _parts(x, 0.5)
    r = most + more
    z = r * r
    odd = fma(z * r, polynomial(z, SINH), more)
    even = z * polynomial(z, COSH)
    difference, total = 0.5 - inverse, inverse + 0.5
    rest = fma(odd, difference, fma(even, total, inverse))
    return scaled_by(fma(most, difference, rest) + 0.5, n)


def sinh(x: Number) -> Number:
    """Hyperbolic sine: 2^(n - 1) * (exp(r) - 2^-2n * exp(-r)), where no half becomes denormal."""
    before, most, more, inverse = _parts(x, 1.0)
    r = most + more
    z = r * r
    odd = fma(z * r, polynomial(z, SINH), more)
    even = z * polynomial(z, COSH)
    difference, total = 1.0 - inverse, inverse + 1.0
    # difference + total * r in parts: inverse * most is exact.
    first, lost = quick_sum(difference, most)
    rest = fma(total, odd, fma(difference, even, fma(most, inverse, lost)))
    return scaled_by(first + rest, before).with_sign_of(x)
