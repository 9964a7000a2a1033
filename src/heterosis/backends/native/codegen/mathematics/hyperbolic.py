"""tanh, in pieces or from expm1; sinh and cosh, whose even and odd parts in the reduced argument
are apart.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of the function.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics import scaled_exponential
from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    exact_product,
    quick_sum,
    residual,
)
from heterosis.backends.native.codegen.mathematics.exponential import (
    LN2_PARTS,
    LOG2_E,
    expm1_reduced,
    magic,
    power_of_two,
)
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_most,
    fma,
    polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.pieces import TANH
from heterosis.backends.native.codegen.mathematics.registers import looks_up, on_vectors

# (sinh(r) / r - 1) / r^2 in powers of r^2, |r| <= ln(2)/2: 2^-34.3 and 2^-61.7.
SINH_SINGLE = (0.16666667, 0.008333176, 0.00019973078)
SINH_DOUBLE = (
    0.16666666666666677, 0.008333333333321398, 0.00019841269886760322, 2.7557243528682807e-06,
    2.5109287915995983e-08,
)  # fmt: skip
# (cosh(r) - 1) / r^2 in powers of r^2: 2^-33.2 and 2^-70.
COSH_SINGLE = (0.5, 0.04166646, 0.0013935455)
COSH_DOUBLE = (
    0.5, 0.041666666666666685, 0.0013888888888873273, 2.480158734924364e-05,
    2.755725176909729e-07, 2.0921789698931947e-09,
)  # fmt: skip


def tanh(x: Number) -> Number:
    """Hyperbolic tangent: (1 - z) / (1 + z) with z = exp(-2|x|), both halved."""
    if looks_up(x):
        return TANH(x)
    magnitude = at_most(abs(x), 19.1 if x.double else 9.1)
    # With 2^n no smaller than this, both 1/2 - scale and 1/2 + scale are exact.
    scale, r, (tail, _) = expm1_reduced(magnitude * -2.0, 0.0, -52 if x.double else -23)
    t = tail + r
    above, below = 0.5 - scale, 0.5 + scale
    numerator, denominator = fma(-scale, t, above), fma(scale, t, below)
    first = numerator / denominator
    # What rounding took from t, from each of the two and from their quotient, over the
    # denominator: one over it is 1 + first, as the two add up to 1.
    above_lost = fma(-scale, t, above - numerator)
    below_lost = fma(scale, t, below - denominator)
    t_lost = scale * (r - t + tail)
    inverse = first + 1.0
    rest = residual(numerator, first, denominator) + fma(first, -below_lost, above_lost)
    return fma(fma(t_lost, -inverse, rest), inverse, first).with_sign_of(x)


def halves_of_exp(x: Number) -> tuple[Pair, Pair, tuple[Number, Number, Number]]:
    """For |x| = n * ln(2) + r: 2^n - 2^-n and 2^n + 2^-n, both over 16, then about r.

    About r: itself, sinh(r) - r with what r lacks, and cosh(r) - 1.
    """
    magnitude = at_most(abs(x), 711.0 if x.double else 90.0)
    shift = magic(x, (1023 if x.double else 127) - 4)  # /16 keeps the powers finite
    shifted = fma(magnitude, LOG2_E, shift)
    n = shifted - shift
    high, low = LN2_PARTS[x.double]
    first = fma(n, -high, magnitude)
    r = fma(n, -low, first)
    lost = fma(n, -low, first - r)
    large = power_of_two(shifted)
    small = power_of_two(shift - at_most(n, 60.0))
    z = r * r
    sinh = polynomial(z, SINH_DOUBLE if x.double else SINH_SINGLE)
    cosh = polynomial(z, COSH_DOUBLE if x.double else COSH_SINGLE)
    about_r = r, fma(z * r, sinh, lost), z * cosh
    return quick_sum(large, -small), quick_sum(large, small), about_r


def combined(a: Pair, b: Pair, r: Number, odd: Number, even: Number) -> Number:
    """a * (1 + even) + b * (r + odd), rounded nearly once, times 8."""
    product, product_lost = exact_product(b[0], r)
    total, lost = quick_sum(a[0], product)
    rest = fma(b[0], odd, fma(a[0], even, a[1] + fma(b[1], r, lost + product_lost)))
    return (total + rest) * 8.0


def sinh(x: Number) -> Number:
    """Hyperbolic sine."""
    if looks_up(x):
        return on_vectors(scaled_exponential.sinh)(x)
    difference, total, (r, odd, even) = halves_of_exp(x)
    result = combined(difference, total, r, odd, even).with_sign_of(x)
    return where(abs(x) < (2.0**-28 if x.double else 2.0**-13), x, result)


def cosh(x: Number) -> Number:
    """Hyperbolic cosine."""
    if looks_up(x):
        return on_vectors(scaled_exponential.cosh)(x)
    difference, total, (r, odd, even) = halves_of_exp(x)
    return combined(total, difference, r, odd, even)
