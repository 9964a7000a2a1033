"""Logarithms of single precision from tables that the processor looks up in registers.

A fraction m from 3/4 up to 3/2 has an inverse c among 32, so that r = c * m - 1 lies between -1/64
and 1/32: log(m) = log(1 + r) - log(c), and around 1 c is 1, where r is exact. Of an exponent, the
fraction below 1 needs one more; the tables' upper half has it. Parts of an exponent's share and
the tables' first parts are multiples of 2^-17 or more: their sums are exact.

Zeros, infinities, NaN and denormals need no care: their exponents and fractions are such that the
formulas give what they should.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of the logarithm.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    fma,
    polynomial,
    split_polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.registers import (
    entry,
    exponent,
    fraction,
    scaled_by,
)

INVERSES = (
    1.0, 0.9548625, 0.92785275, 0.9015975, 0.8765764, 0.85325086, 0.83161837, 0.8099773,
    0.79056156, 0.7708934, 0.7531072, 0.7355602, 0.7189921, 0.70284927, 0.6884801, 0.6732715,
    1.3189582, 1.292991, 1.2672805, 1.2422913, 1.2196511, 1.196879, 1.175228, 1.1534805, 1.132375,
    1.1126437, 1.0939965, 1.0747862, 1.0577575, 1.0408665, 1.0239094, 1.0,
)  # fmt: skip
LOG2 = (
    0.0, 0.06663513, 0.10803223, 0.14944458, 0.19004822, 0.22895813, 0.26600647, 0.30404663,
    0.3390503, 0.37539673, 0.40907288, 0.44308472, 0.47595215, 0.50871277, 0.5385132, 0.57073975,
    0.6006012, 0.6292877, 0.65826416, 0.68699646, 0.7135315, 0.74072266, 0.7670593, 0.79400635,
    0.8206482, 0.8460083, 0.87039185, 0.8959503, 0.9189911, 0.94221497, 0.96591187, 1.0,
)  # fmt: skip
LOG = (
    0.0, 0.046188354, 0.07487488, 0.10359192, 0.13172913, 0.15870667, 0.1843872, 0.2107544,
    0.23501587, 0.26020813, 0.28355408, 0.3071289, 0.32991028, 0.35261536, 0.37327576, 0.39559937,
    0.41630554, 0.43618774, 0.4562683, 0.47618103, 0.49458313, 0.51342773, 0.53167725, 0.55036926,
    0.5688324, 0.5864105, 0.603302, 0.62101746, 0.6369934, 0.65309143, 0.66952515, 0.69314575,
)  # fmt: skip
LOG_REST = (
    0.0, -4.007993e-7, 7.3556143e-6, -4.8296674e-6, 2.2606084e-6, -4.983123e-6, -5.5720834e-6,
    -5.329507e-6, -4.1145113e-6, -2.9463529e-6, -6.3666084e-6, -5.984162e-6, -5.3890813e-6,
    -2.5350657e-6, -6.8619424e-6, 7.2817516e-6, -5.1613625e-7, 1.2646218e-6, 5.6361027e-6,
    8.628024e-6, -7.8603625e-7, 2.0863085e-6, 7.763407e-6, -6.0013745e-6, -2.4155927e-6,
    -2.2539814e-6, 7.6512015e-6, 7.979249e-6, 2.6742348e-6, 2.2161544e-6, -6.060485e-6,
    1.4286068e-6,
)  # fmt: skip
LOG10 = (
    0.0, 0.020057678, 0.03252411, 0.04499054, 0.05721283, 0.06892395, 0.080078125, 0.091529846,
    0.10206604, 0.11300659, 0.12314606, 0.1333847, 0.1432724, 0.1531372, 0.16210938, 0.17180634,
    0.18079376, 0.18943024, 0.19815063, 0.20680237, 0.21479034, 0.22297668, 0.23090363, 0.23901367,
    0.24703217, 0.2546692, 0.26200867, 0.26970673, 0.27664185, 0.28363037, 0.29076385, 0.3010254,
)  # fmt: skip
LOG10_REST = (
    0.0, 1.4951966e-6, -3.1680659e-6, -3.238281e-6, -2.6153025e-6, -6.8547035e-7, -2.1983778e-6,
    -2.6901853e-6, -1.7318212e-6, -9.164272e-7, -2.8510851e-6, -2.914261e-6, 3.4730472e-6,
    5.955422e-7, -7.536816e-7, 3.4483412e-6, 5.213311e-6, 4.242756e-6, 6.6225007e-6, 4.172774e-6,
    4.038541e-6, 3.053397e-6, 4.2402485e-6, 6.055559e-6, 7.556739e-6, 4.68569e-6, 5.386252e-6,
    1.1935999e-6, 2.0378936e-6, 4.5958855e-6, 4.589598e-6, 4.605039e-6,
)  # fmt: skip

# (log(1 + r) - r) / r^2: 2^-33.3.
SERIES = (-0.5, 0.33333474, -0.25001734, 0.19413656)
# (log(1 + r) / ln(base) - r * SLOPES[base]) / r: 2^-27 both.
SLOPES = {2: 1.442695, 10: 0.4342945}
SERIES_2 = (1.6966007e-08, -0.7213494, 0.4809515, -0.35189998)
SERIES_10 = (-1.0793499e-08, -0.2171478, 0.14478101, -0.10595796)
# log_base(2) in two parts, the first with zeros at its end.
LN2 = (0.693145751953125, 1.4286068203094172e-06)
LOG10_2 = (0.301025390625, 4.605039e-06)


def reduced(x: Number) -> tuple[Number, Number, Number]:
    """The exponent of x, which fits the tables; where to look there; and r."""
    m = fraction(x)
    index = m.bits >> 18
    return exponent(x), index, fma(m, entry("log.inverse", INVERSES, index), -1.0)


def log(x: Number) -> Number:
    """Natural logarithm."""
    e, index, r = reduced(x)
    return joined(*of_exponent(e, index), r)


def of_exponent(e: Number, index: Number) -> tuple[Number, Number]:
    """What an exponent and an inverse add to a natural logarithm, in two parts."""
    whole = fma(e, LN2[0], entry("log.first", LOG, index))
    return whole, fma(e, LN2[1], entry("log.rest", LOG_REST, index))


def joined(whole: Number, rest: Number, r: Number) -> Number:
    """The two parts and log(1 + r)."""
    square = r * r
    return whole + (fma(square, split_polynomial(r, square, SERIES), rest) + r)


def log2(x: Number) -> Number:
    """Logarithm to base 2; exact on powers of two."""
    e, index, r = reduced(x)
    whole = e + entry("log2.first", LOG2, index)
    return whole + fma(r, SLOPES[2], r * polynomial(r, SERIES_2))


def log10(x: Number) -> Number:
    """Logarithm to base 10."""
    e, index, r = reduced(x)
    whole = fma(e, LOG10_2[0], entry("log10.first", LOG10, index))
    rest = fma(e, LOG10_2[1], entry("log10.rest", LOG10_REST, index))
    return whole + fma(r, SLOPES[10], fma(r, polynomial(r, SERIES_10), rest))


def log1p(x: Number) -> Number:
    """log(1 + x), accurate for small x."""
    u = x + 1.0
    # What rounding took, exactly: from 2^24 up, where u - 1 rounds, nothing that matters.
    return log_of_sum(u, x - (u - 1.0), positive=False).with_sign_of(x)


def log_of_sum(
    u: Number, lost: Number, doublings: Number | None = None, *, positive: bool = True
) -> Number:
    """log((u + lost) * 2^doublings), accurate near 1; `lost` is a few units of u at most, and zero
    where that is infinite; or `u`, if it need not be `positive`, zero or infinite."""
    m, e = fraction(u), exponent(u)
    index = m.bits >> 18
    c = entry("log.inverse", INVERSES, index)
    share = scaled_by(lost, exponent(m) - e)
    if not positive:  # NaN at the ends: a number, as the exponent alone decides there
        share = where(share < 2.0**-20, share, 2.0**-20)
    whole, rest = of_exponent(e if doublings is None else e + doublings, index)
    r = fma(m, c, -1.0)
    slope = fma(-r, c, c)  # c / (1 + r), as far as it matters
    return joined(whole, fma(share, slope, rest), r)
