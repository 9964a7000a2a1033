"""log, log2, log10, log1p: split off the exponent, a series around one.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of the logarithm.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics import tabulated_logarithm
from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    exact_product,
    exact_sum,
    pair_product,
    pair_quotient,
    quick_sum,
)
from heterosis.backends.native.codegen.mathematics.exponential import LN2_PARTS
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    fma,
    split_polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.registers import normalises, on_vectors

# (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f between sqrt(1/2) and sqrt(2): 2^-27.3.
SERIES_SINGLE = (
    0.3333333, -0.25000823, 0.20001246, -0.16623326, 0.14201462, -0.1316023, 0.12763023,
    -0.07635717,
)  # fmt: skip
# 2 * (artanh(s) / s - 1) / s^2 in powers of s^2, s = f / (2 + f): 2^-59.5.
SERIES_DOUBLE = (
    0.6666666666666734, 0.3999999999941673, 0.2857142874199766, 0.22222198608886284,
    0.18183562627043773, 0.15314091042264866, 0.1479556786647088,
)  # fmt: skip

# (artanh(s) / s - 1 - z / 3) / z^2 in powers of z = s^2: 2^-66.3, relative to the logarithm.
ARTANH_DOUBLE = (
    0.2000000000000113, 0.14285714285048656, 0.11111111260136433, 0.09090892170133531,
    0.07693379214724513, 0.0662839739345619, 0.06598260983167353,
)  # fmt: skip
THIRD = (0.3333333333333333, 1.850371707708594e-17)
TWO_OVER_LN2 = (2.8853900817779268, 4.0710547481862066e-17)

# 1 / ln(base), and log_base(2) in two parts, the first with zeros at its end.
BASES = {
    (2, False): (1.442695, 1.925963e-08, 1.0, 0.0),
    (2, True): (1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0),
    (10, False): (0.4342945, -1.010305e-08, 0.301025390625, 4.605039e-06),
    (10, True): (
        0.4342944819032518, 1.098319650216765e-17, 0.30102999566383914, 1.42050232272661e-13,
    ),
}  # fmt: skip


def split(x: Number, *, denormals: bool = True) -> tuple[Number, Number]:
    """A positive finite x as (1 + f) * 2^e with 1 + f between sqrt(1/2) and sqrt(2): e, f."""
    double = x.double
    mantissa, bias, lift = (52, 1023, 54) if double else (23, 127, 25)
    offset = x.constant(2.0**mantissa + bias)
    if denormals:
        tiny = x < (2.0**-1022 if double else 2.0**-126)
        x = where(tiny, x * 2.0**lift, x)
        offset = where(tiny, 2.0**mantissa + bias + lift, offset)
    # The exponent counts from sqrt(1/2): adding 1 - sqrt(1/2) carries the upper half over.
    one = bias << mantissa
    root = 0x3FE6A09E667F3BCD if double else 0x3F3504F3
    moved = x.bits + (one - root)
    exponent = ((moved >> mantissa) | (0x4330000000000000 if double else 0x4B000000)).as_float
    e = exponent - offset
    fraction = ((moved & ((1 << mantissa) - 1)) + root).as_float
    return e, fraction - 1.0


def tail(f: Number) -> Number:
    """log(1 + f) - f, to the relative accuracy of log(1 + f)."""
    square = f * f
    if not f.double:
        series = split_polynomial(f, square, SERIES_SINGLE)
        return square * fma(series, f, -0.5)
    half = square * 0.5
    s = f / (f + 2.0)
    z = s * s
    series = split_polynomial(z, z * z, SERIES_DOUBLE)
    return fma(s, fma(z, series, half), -half)


def with_limits(x: Number, result: Number) -> Number:
    """The logarithm at its edges: zero, below zero, infinity and NaN."""
    result = where(x < float("inf"), result, x)
    result = where(x == 0.0, float("-inf"), result)
    return where(x < 0.0, float("nan"), result)


def log(x: Number) -> Number:
    """Natural logarithm."""
    if normalises(x):
        return on_vectors(tabulated_logarithm.log)(x)
    return log_by_series(x)


def log_by_series(x: Number) -> Number:
    """Natural logarithm, on all processors alike that have fused instructions."""
    e, f = split(x)
    high, low = LN2_PARTS[x.double]
    total, error = quick_sum(e * high, f)
    return with_limits(x, total + (error + fma(e, low, tail(f))))


def log_base(x: Number, base: int) -> Number:
    """Logarithm to base 2 or 10."""
    e, f = split(x)
    inverse, inverse_low, high, low = BASES[base, x.double]
    product, lost = exact_product(f, f.constant(inverse))
    lost = fma(f, inverse_low, lost)
    total, error = quick_sum(e * high, product)
    if low:
        lost = fma(e, low, lost)
    return with_limits(x, total + (error + fma(tail(f), inverse, lost)))


def log2(x: Number) -> Number:
    """Logarithm to base 2; exact on powers of two."""
    if normalises(x):
        return on_vectors(tabulated_logarithm.log2)(x)
    return log_base(x, 2)


def log10(x: Number) -> Number:
    """Logarithm to base 10."""
    if normalises(x):
        return on_vectors(tabulated_logarithm.log10)(x)
    return log_base(x, 10)


def log_of_sum(u: Number, lost: Number, doublings: Number | None = None) -> Number:
    """log((u + lost) * 2^doublings), accurate near 1; `lost` is at most half a unit of u."""
    e, f = split(u)
    # `lost` in units of the fraction; nothing where u is beyond the precision.
    mantissa, bias = (52, 1023) if u.double else (23, 127)
    scale = (u.constant(bias + 2.0**mantissa) - e).bits << mantissa
    lost = where(e > mantissa + 2.0, 0.0, lost * scale.as_float)
    f, lost = quick_sum(f, lost)
    if doublings is not None:
        e = e + doublings
    high, low = LN2_PARTS[u.double]
    total, error = quick_sum(e * high, f)
    correction = fma(lost, -f, lost) + fma(e, low, error)
    return with_limits(u, total + (correction + tail(f)))


def log1p(x: Number) -> Number:
    """log(1 + x), accurate for small x."""
    if normalises(x):
        return on_vectors(tabulated_logarithm.log1p)(x)
    result = log_of_sum(*exact_sum(x.constant(1.0), x))
    return where(x == 0.0, x, result)


def artanh_pair(f: Number) -> Pair:
    """log(1 + f) / 2 to about 65 bits, for the f of `split` in double precision."""
    s, s_rest = pair_quotient((f, f.constant(0.0)), quick_sum(f.constant(2.0), f))
    z, z_rest = exact_product(s, s)
    z_rest = fma(s + s, s_rest, z_rest)
    # artanh(s) / s = 1 + z * (1/3 + z * q)
    q = split_polynomial(z, z * z, ARTANH_DOUBLE)
    a, a_rest = quick_sum(z.constant(THIRD[0]), z * q)
    series = pair_product((z, z_rest), (a, a_rest + THIRD[1]))
    one, one_rest = quick_sum(z.constant(1.0), series[0])
    return pair_product((s, s_rest), (one, one_rest + series[1]))


def log2_pair(x: Number) -> Pair:
    """log2 of a positive finite double to about 65 bits."""
    e, f = split(x)
    scale = f.constant(TWO_OVER_LN2[0]), f.constant(TWO_OVER_LN2[1])
    high, low = pair_product(artanh_pair(f), scale)
    total, lost = quick_sum(e, high)
    return total, lost + low


def log_pair(x: Number) -> Pair:
    """log of a positive finite double to about 65 bits."""
    e, f = split(x)
    high, low = artanh_pair(f)
    ln2, ln2_rest = LN2_PARTS[True]
    total, lost = quick_sum(e * ln2, high + high)
    return total, fma(e, ln2_rest, lost + (low + low))
