"""arcsin, arccos, arctan, arctan2.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of the function.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    choose,
    pair_quotient,
    quick_sum,
    residual,
)
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
    estimated_reciprocal,
    exponent,
    fraction,
    looks_up,
    normalises,
    on_vectors,
    reciprocal,
    scaled_by,
)

# (arctan(t) / t - 1) / t^2 in powers of t^2, |t| <= tan(pi/8): 2^-30.5 and 2^-59.5.
ARCTAN_SINGLE = (-0.33333316, 0.19998533, -0.1424451, 0.10600163, -0.060926918)
ARCTAN_DOUBLE = (
    -0.333333333333332, 0.19999999999953844, -0.14285714280225, 0.11111110784973795,
    -0.09090897803086795, 0.07692061043881729, -0.06663113635049706, 0.05847959754232048,
    -0.05039623760255165, 0.0380726822504879, -0.01791610086351281,
)  # fmt: skip
# (arcsin(t) / t - 1) / t^2 in powers of t^2, |t| <= 1/2: 2^-27.6 and 2^-59.8.
ARCSIN_SINGLE = (0.16666754, 0.07495251, 0.045476265, 0.024150407, 0.042215545)
ARCSIN_DOUBLE = (
    0.16666666666666763, 0.07499999999970124, 0.04464285717526352, 0.03038194267631879,
    0.022372215877487465, 0.017351595998515372, 0.013981012679868501, 0.011397340105046342,
    0.010789061777714045, 0.003673149358543325, 0.0217883364036806, -0.021113496666188475,
    0.03270017477749703,
)  # fmt: skip
# Multiples of pi/4, each in two parts.
QUARTERS = {
    False: (
        (0.0, 0.0), (0.7853982, -2.1855694e-08), (1.5707964, -4.371139e-08),
        (2.3561945, -5.9624403e-09), (3.1415927, -8.742278e-08),
    ),
    True: (
        (0.0, 0.0), (0.7853981633974483, 3.061616997868383e-17),
        (1.5707963267948966, 6.123233995736766e-17), (2.356194490192345, 9.184850993605148e-17),
        (3.141592653589793, 1.2246467991473532e-16),
    ),
}  # fmt: skip
# (arctan(t) / t - 1) / t^2 in powers of t^2, |t| <= 1: 2^-28.5.
ARCTAN_TO_ONE = (
    -0.333333, 0.19998533, -0.14264078, 0.10951348, -0.0840103, 0.05791646, -0.031137032,
    0.010892748, -0.0017887416,
)  # fmt: skip
TAN_EIGHTH_TURN = 0.41421356237309503


def arctan_of_ratio(a: Number, b: Number) -> tuple[Number, Pair]:
    """arctan(a / b) for 0 <= a <= b: whether pi/4 is to be added, and the rest in two terms."""
    upper = a > b * TAN_EIGHTH_TURN
    total, total_lost = quick_sum(b, a)
    difference, difference_lost = quick_sum(-b, a)
    above, above_lost = where(upper, difference, a), where(upper, difference_lost, 0.0)
    below, below_lost = where(upper, total, b), where(upper, total_lost, 0.0)
    t, t_lost = pair_quotient((above, above_lost), (below, below_lost))
    z = t * t
    series = split_polynomial(z, z * z, ARCTAN_DOUBLE if a.double else ARCTAN_SINGLE)
    return upper, (t, fma(z * t, series, t_lost))


def added(base: Pair, angle: Pair) -> Number:
    """Their sum, where the base is the greater or zero."""
    total, lost = quick_sum(base[0], angle[0])
    return total + (lost + (base[1] + angle[1]))


def quarters(x: Number, count: int) -> Pair:
    """`count` times pi/4."""
    high, low = QUARTERS[x.double][count]
    return x.constant(high), x.constant(low)


def arctan(x: Number) -> Number:
    """Inverse tangent."""
    if looks_up(x):
        return on_vectors(_arctan_to_one)(x)
    magnitude = at_most(abs(x), 2.0**60)
    steep = magnitude > 1.0
    upper, (t, rest) = arctan_of_ratio(
        where(steep, x.constant(1.0), magnitude), where(steep, magnitude, 1.0)
    )
    base = choose(steep, quarters(x, 2), quarters(x, 0))
    base = choose(upper, quarters(x, 1), base)
    angle = where(steep, -t, t), where(steep, -rest, rest)
    result = added(base, angle).with_sign_of(x)
    return where(x.is_nan(), x, result)


def _arctan_to_one(x: Number) -> Number:
    """arctan(x), where |x| is greater than 1 as pi/2 and the angle of -1 / |x|."""
    magnitude = at_most(abs(x), 2.0**60)
    one = x.constant(1.0)
    first = estimated_reciprocal(magnitude)
    inverse = fma(-first, fma(-first, magnitude, one), -first)
    steep = magnitude > one
    t = where(steep, inverse, magnitude)
    right_angle, right_angle_lost = QUARTERS[False][2]
    total, lost = quick_sum(where(steep, x.constant(right_angle), 0.0), t)
    # What -1 / |x| lacks of t counts half as much next to 1, and does not matter elsewhere.
    t_lost = fma(inverse * 0.5, fma(inverse, magnitude, one), right_angle_lost)
    lost = lost + where(steep, t_lost, 0.0)
    z = t * t
    # Horner's rule: even and odd terms apart would be much larger than their sum, at 1.
    rest = fma(z * t, polynomial(z, ARCTAN_TO_ONE), lost)
    return (total + rest).with_sign_of(x)


def arctan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y), between -pi and pi."""
    return (on_vectors(_angle_to_one) if normalises(x) else _angle_of_ratio)(y, x)


def _angle_to_one(y: Number, x: Number) -> Number:
    """`arctan2`, by arctan(t) for the smaller part of the larger one, t <= 1."""
    height, width = abs(y), abs(x)
    steep = height > width
    a, b = where(steep, width, height), where(steep, height, width)
    below = fraction(b)
    above = scaled_by(a, exponent(below) - exponent(b))
    # 0 / 0 counts as 0, and of two infinities the quotient as 1.
    above = where(above.is_nan(), at_most(a, 1.0), above)
    inverse = reciprocal(below)
    t = above * inverse
    t_lost = fma(-t, below, above) * inverse
    z = t * t
    t_lost = fma(t_lost * -0.5, z, t_lost)  # divided by 1 + z, nearly
    rest = fma(z * t, polynomial(z, ARCTAN_TO_ONE), t_lost)
    left = x.is_negative()
    base = choose(steep, quarters(x, 2), choose(left, quarters(x, 4), quarters(x, 0)))
    sign = where(steep ^ left, x.constant(-1.0), 1.0)
    total, lost = quick_sum(base[0], t * sign)
    result = (total + (lost + fma(rest, sign, base[1]))).with_sign_of(y)
    return where(x.unordered(y), x + y, result)


def _angle_of_ratio(y: Number, x: Number) -> Number:
    """`arctan2`, by arctan of a ratio up to tan(pi/8) and multiples of pi/4."""
    height, width = abs(y), abs(x)
    steep = height > width
    a, b = where(steep, width, height), where(steep, height, width)
    a = where(a == float("inf"), 1.0, where(b == float("inf"), 0.0, a))
    b = where((b == float("inf")) | (b == 0.0), 1.0, b)
    # Away from both ends of the range, where 1 / b, a + b or what products lose leave it.
    large, small, scale = (2.0**100, 2.0**30, 2.0**64)
    if x.double:
        large, small, scale = (2.0**900, 2.0**200, 2.0**300)
    factor = where(b > large, b.constant(1.0 / scale), where(b < small, b.constant(scale), 1.0))
    upper, (t, rest) = arctan_of_ratio(a * factor, b * factor)
    left = x.is_negative()
    base = choose(steep, quarters(x, 2), choose(left, quarters(x, 4), quarters(x, 0)))
    base = choose(upper, choose(left, quarters(x, 3), quarters(x, 1)), base)
    backward = steep ^ left
    angle = where(backward, -t, t), where(backward, -rest, rest)
    result = added(base, angle).with_sign_of(y)
    return where(x.unordered(y), x + y, result)


def arcsin_parts(x: Number) -> tuple[Number, Number, Pair]:
    """For |x|: whether it exceeds 1/2, the argument t of the series, and arcsin(t) in two terms.

    Above 1/2, t is sqrt((1 - |x|) / 2) and arccos |x| is twice arcsin(t).
    """
    magnitude = abs(x)
    outer = magnitude > 0.5
    z = where(outer, (1.0 - magnitude) * 0.5, magnitude * magnitude)
    root = z.sqrt()
    root_lost = residual(z, root, root) / at_least(root + root, 1e-30)
    t, lost = where(outer, root, magnitude), where(outer, root_lost, 0.0)
    series = split_polynomial(z, z * z, ARCSIN_DOUBLE if x.double else ARCSIN_SINGLE)
    return outer, t, (t, fma(z * t, series, lost))


def arcsin(x: Number) -> Number:
    """Inverse sine."""
    outer, _, (t, rest) = arcsin_parts(x)
    folded = added(quarters(x, 2), (-(t + t), -(rest + rest)))
    return where(outer, folded, t + rest).with_sign_of(x)


def arccos(x: Number) -> Number:
    """Inverse cosine."""
    outer, _, (t, rest) = arcsin_parts(x)
    left = x < 0.0
    twice = t + t, rest + rest
    backward = where(outer, where(left, -twice[0], twice[0]), where(left, t, -t))
    rest = where(outer, where(left, -twice[1], twice[1]), where(left, rest, -rest))
    base = choose(left, quarters(x, 4), quarters(x, 0))
    base = choose(outer, base, quarters(x, 2))
    return added(base, (backward, rest))
