"""exp, exp2, expm1, sigmoid: split off a power of two, a polynomial, put the power back.

Polynomials are minimax fits in 200-bit arithmetic (reweighted least squares), rounded one
coefficient at a time with the rest fitted again; `2^-n` beside them is their relative error.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics import scaled_exponential
from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    exact_sum,
    quick_sum,
    reciprocal,
)
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_least,
    at_most,
    fma,
    split_polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.registers import (
    looks_up,
    on_vectors,
    scaled_by,
    scales,
)

LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has zeros enough at its end for n * part to be exact.
LN2_PARTS = {
    False: (0.693145751953125, 1.4286068203094172e-06),
    True: (0.693147180559663, 2.8235290563031577e-13),
}
# Reduced arguments lie between (OFFSET - 1/2) * ln(2) and (OFFSET + 1/2) * ln(2). Off the centre,
# as there exp(r) stays above 3/4 and exp(r) - 1 within -1/4 .. 1/2, where rounding weighs least.
OFFSET = 0.085
EXPM1_OFFSET = 0.07

# (exp(r) - 1 - r) / r^2: 2^-28.4 and 2^-57.7.
EXP_SINGLE = (0.5000002, 0.16666572, 0.04165846, 0.00836019, 0.0014639612)
EXP_DOUBLE = (
    0.4999999999999999, 0.16666666666667748, 0.04166666666668528, 0.008333333332416294,
    0.0013888888885190132, 0.00019841272489326696, 2.4801576452730834e-05,
    2.7554110315618037e-06, 2.759010108730701e-07, 2.6467405336380968e-08,
)  # fmt: skip
# The same in terms of expm1: 2^-31.3 and 2^-61.3.
EXPM1_SINGLE = (0.5, 0.16666669, 0.041666534, 0.008332427, 0.0013925106, 0.00020652056)
EXPM1_DOUBLE = (
    0.5, 0.16666666666666666, 0.04166666666666744, 0.008333333333333479, 0.001388888888822032,
    0.00019841269845756042, 2.4801589204701405e-05, 2.7557297926794384e-06,
    2.7555092351350336e-07, 2.5084616106257775e-08, 2.1813161341925265e-09,
)  # fmt: skip
# (2^r - 1 - LN2 * r) / r^2, where LN2 is rounded to the precision: 2^-28.4 and 2^-57.9.
LN2 = 0.6931471805599453
EXP2_SINGLE = (0.2402266, 0.055503767, 0.009616213, 0.0013377393, 0.00016235096)
EXP2_DOUBLE = (
    0.2402265069591006, 0.055504108664826406, 0.009618129107634411, 0.0013333558144758447,
    0.00015403530387739955, 1.5252735982072874e-05, 1.3215481428627102e-06,
    1.0176858507280352e-07, 7.0633122396826924e-09, 4.700486979643953e-10,
)  # fmt: skip


def magic(x: Number, bias: int = 0) -> float:
    """Added to a float, this rounds it to an integer n and leaves n + bias in its low bits."""
    return (1.5 * 2.0**52 if x.double else 1.5 * 2.0**23) + bias


def double_bias(x: Number) -> float:
    """The `magic` that `scaled` wants: twice the exponent's bias."""
    return magic(x, 2046 if x.double else 254)


def factors(shifted: Number) -> Pair:
    """Two powers of two whose product is 2^n, both normal, where `shifted` has `double_bias`. At
    the lowest n that it can have, both are 0."""
    mantissa = 52 if shifted.double else 23
    twice = shifted.bits
    half = twice >> 1  # its low bits: floor(n / 2) + bias, the exponent of 2^floor(n / 2)
    return (half << mantissa).as_float, ((twice - half) << mantissa).as_float


def scaled(y: Number, shifted: Number) -> Number:
    """`y * 2^n` where `shifted` is n + `double_bias`: only the last step into denormals rounds."""
    if scales(y):
        return scaled_by(y, shifted - double_bias(y))
    first, second = factors(shifted)
    return y * first * second


def power_of_two(shifted: Number) -> Number:
    """2^n where `shifted` is n plus the `magic` of one bias, and 2^n is a normal number."""
    return (shifted.bits << (52 if shifted.double else 23)).as_float


def exp_reduced(x: Number, shift: float) -> tuple[Number, Number]:
    """exp(x) as (1 + t) * 2^n: n + `shift`, which is a `magic`, and t in relative terms."""
    high, low = LN2_PARTS[x.double]
    shifted = fma(x, LOG2_E, -OFFSET) + shift
    n = shifted - shift
    r = fma(n, -low, fma(n, -high, x))
    square = r * r
    tail = split_polynomial(r, square, EXP_DOUBLE if x.double else EXP_SINGLE)
    return shifted, fma(tail, square, r)


def exp_of_pair(x: Number, rest: Number) -> tuple[Number, Pair]:
    """exp(x + rest) as a pair times 2^n: n + `double_bias`, and the pair. Double precision."""
    shift = double_bias(x)
    high, low = LN2_PARTS[True]
    shifted = fma(x, LOG2_E, -EXPM1_OFFSET) + shift
    n = shifted - shift
    first = fma(n, -high, x)
    r = fma(n, -low, first)
    lost = fma(n, -low, first - r) + rest
    square = r * r
    tail = split_polynomial(r, square, EXPM1_DOUBLE) * square
    total, error = quick_sum(r.constant(1.0), r)
    return shifted, (total, error + fma(lost, tail + (r + 1.0), tail))


def exp_clamped(x: Number) -> Number:
    """`x` kept where the exponent of exp(x) fits its field, far enough to reach 0 and infinity:
    0 with both `factors` 0. A product that underflows takes the processor long, and what is
    masked in a softmax lies below every bound."""
    low, high = (-1418.0, 710.0) if x.double else (-176.0, 89.0)
    return at_most(at_least(x, low), high)


def exp(x: Number) -> Number:
    """e to the power x."""
    shifted, t = exp_reduced(exp_clamped(x), double_bias(x))
    return scaled(t + 1.0, shifted)


def exp2(x: Number) -> Number:
    """2 to the power x."""
    low, high = (-2046.0, 1025.0) if x.double else (-254.0, 129.0)  # as in `exp_clamped`
    x = at_most(at_least(x, low), high)
    shifted = (x - OFFSET) + double_bias(x)
    r = x - (shifted - double_bias(x))
    return scaled(exp2_tail(r) + 1.0, shifted)


def exp2_rest(r: Number) -> Number:
    """2^r - 1 - LN2 * r for r between OFFSET - 1/2 and OFFSET + 1/2."""
    square = r * r
    return split_polynomial(r, square, EXP2_DOUBLE if r.double else EXP2_SINGLE) * square


def exp2_tail(r: Number) -> Number:
    """2^r - 1 there."""
    return fma(r, LN2, exp2_rest(r))


def expm1_reduced(x: Number, offset: float, least: int) -> tuple[Number, Number, Pair]:
    """exp(x) as 2 * s * (1 + r + rest): gives s, r and the rest, small, in two terms.

    The half keeps s finite for the largest x. Below 2^least only s stays in proportion.
    """
    bias = 1022 if x.double else 126
    shift = magic(x, bias)
    high, low = LN2_PARTS[x.double]
    shifted = fma(x, LOG2_E, -offset) + shift if offset else fma(x, LOG2_E, shift)
    shifted = at_least(shifted, shift + least)
    n = shifted - shift
    first = fma(n, -high, x)
    r = fma(n, -low, first)
    square = r * r
    tail = split_polynomial(r, square, EXPM1_DOUBLE if x.double else EXPM1_SINGLE)
    return power_of_two(shifted), r, (tail * square, fma(n, -low, first - r))


def expm1(x: Number) -> Number:
    """exp(x) - 1, accurate for small x."""
    if looks_up(x):
        return on_vectors(scaled_exponential.expm1)(x)
    low, high, least = (-40.0, 710.0, -58) if x.double else (-18.0, 89.0, -26)
    bounded = at_most(at_least(x, low), high)
    scale, r, (tail, lost) = expm1_reduced(bounded, EXPM1_OFFSET, least)
    base, base_error = exact_sum(scale, scale.constant(-0.5))
    total, error = quick_sum(base, scale * r)
    half = total + fma(scale, tail + lost, error + base_error)
    return where(abs(x) < (2.0**-55 if x.double else 2.0**-26), x, half + half)


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)), as g / (g + 1 + t) where exp(-x) = (1 + t) / g."""
    if looks_up(x):
        return on_vectors(scaled_exponential.sigmoid)(x)
    low, high = (-1418.0, 40.0) if x.double else (-176.0, 20.0)  # as in `exp_clamped`
    shifted, t = exp_reduced(-at_most(at_least(x, low), high), double_bias(x))
    first, second = factors(2.0 * double_bias(x) - shifted)
    whole, lost = quick_sum(t.constant(1.0), t)
    denominator, rest = exact_sum(whole, first * second)
    return reciprocal((denominator, rest + lost)) * first * second
