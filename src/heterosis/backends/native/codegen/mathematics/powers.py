"""power: 2^(y * log2 |x|), the logarithm carried to more bits than the result has.

Single precision goes through double, double through pairs of doubles. The polynomials are
reweighted least-squares fits in 200-bit arithmetic; `2^-n` is the error they leave.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics import tabulated_power
from heterosis.backends.native.codegen.mathematics.compensated import exact_product, quick_sum
from heterosis.backends.native.codegen.mathematics.exponential import (
    LN2,
    OFFSET,
    double_bias,
    exp2_rest,
    magic,
    power_of_two,
    scaled,
)
from heterosis.backends.native.codegen.mathematics.logarithm import log2_pair, split
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_least,
    at_most,
    fma,
    split_polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.registers import normalises, on_vectors

INFINITY = float("inf")

# log2(1 + f) / s in powers of s^2, s = f / (2 + f): 2^-45, relative.
LOG2_SINGLE = (
    2.88539008177785, 0.9617966941133439, 0.5770779423705896, 0.41220925142850484,
    0.31990574706297853, 0.2828993158367015,
)  # fmt: skip
# (2^r - 1) / r on |r| <= 1/2: 2^-34.3, relative to 2^r.
EXP2_SINGLE = (
    0.693147180705822, 0.24022651068902043, 0.05550410361083986, 0.009618037754742036,
    0.0013333938453801636, 0.00015466886359014477, 1.519557607533313e-05,
)  # fmt: skip
LN2_REST = 2.3190468138462996e-17  # what LN2 lacks


def power_single(x: Number, y: Number) -> Number:
    """x^y for doubles that hold positive floats, to the precision of a float."""
    e, f = split(x, denormals=False)
    s = f / (f + 2.0)
    z = s * s
    exponent = at_most(at_least(y, -(2.0**40)), 2.0**40)
    t = exponent * fma(s, split_polynomial(z, z * z, LOG2_SINGLE), e)
    t = at_most(at_least(t, -160.0), 140.0)
    shift = magic(t, 1023)
    shifted = t + shift
    r = t - (shifted - shift)
    tail = r * split_polynomial(r, r * r, EXP2_SINGLE)
    scale = power_of_two(shifted)
    return fma(scale, tail, scale)


def power_double(x: Number, y: Number) -> Number:
    """x^y for positive finite x."""
    high, low = log2_pair(x)
    exponent = at_most(at_least(y, -(2.0**65)), 2.0**65)
    t, lost = exact_product(exponent, high)
    lost = fma(exponent, low, lost)
    lost = where(abs(t) < 1100.0, lost, 0.0)
    t = at_most(at_least(t, -1080.0), 1030.0)
    shifted = (t - OFFSET) + double_bias(t)
    first, first_rest = quick_sum(double_bias(t) - shifted, t)
    r, rest = quick_sum(first, first_rest + lost)
    product, product_rest = exact_product(r, r.constant(LN2))
    tail = exp2_rest(r) + fma(r, LN2_REST, fma(rest, LN2, product_rest))
    total, total_rest = quick_sum(r.constant(1.0), product)
    return scaled(total + (total_rest + tail), shifted)


def is_integer(y: Number) -> Number:
    """Whether y has no fraction; true for infinities."""
    whole = 2.0**52 if y.double else 2.0**23
    magnitude = abs(y)
    return (magnitude >= whole) | ((magnitude + whole) - whole == magnitude)


def power(x: Number, y: Number) -> Number:
    """x to the power y, with every special case of IEEE 754's pow."""
    if normalises(x):
        return on_vectors(_tabulated)(x, y)
    base = abs(x)
    if x.double:
        result = power_double(base, y)
    else:
        result = power_single(base.to_double(), y.to_double()).to_single()
    return with_limits(x, y, result)


def _tabulated(x: Number, y: Number) -> Number:
    return tabulated_power.power(x, y, lambda result: with_limits(x, y, result))


def with_limits(x: Number, y: Number, result: Number) -> Number:
    """x to the power y, where `result` is that of |x|, if neither is zero or infinite."""
    base, falling = abs(x), y < 0.0
    result = where(base == 0.0, where(falling, x.constant(INFINITY), 0.0), result)
    result = where(base == INFINITY, where(falling, x.constant(0.0), INFINITY), result)
    whole = is_integer(y)
    odd = whole & ~is_integer(y * 0.5)
    sign = x.bits & (1 << (x.type.bits - 1))
    result = where(odd, result.flip_sign(sign), result)
    undefined = (x < 0.0) & ~(whole | (base == INFINITY)) | x.unordered(y)
    result = where(undefined, float("nan"), result)
    return where((y == 0.0) | (x == 1.0), 1.0, result)
