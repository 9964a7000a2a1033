"""sin, cos, tan.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of the function.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.compensated import Pair, quick_sum, quotient
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    fma,
    polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.reduction import reduce_angle
from heterosis.backends.native.codegen.mathematics.registers import (
    estimated_reciprocal,
    looks_up,
    on_vectors,
)

# (sin(r) / r - 1) / r^2 in powers of r^2, |r| <= pi/4: 2^-27.9 and 2^-57.9.
SINE_SINGLE = (-0.16666655, 0.008332188, -0.00019518074)
SINE_DOUBLE = (
    -0.1666666666666663, 0.008333333333321888, -0.0001984126982941902, 2.755731356512253e-06,
    -2.5050739229237946e-08, 1.5895745413665619e-10,
)  # fmt: skip
# (cos(r) - 1 + r^2 / 2) / r^4: 2^-33 and 2^-63.9.
COSINE_SINGLE = (0.041666646, -0.001388731, 2.4432338e-05)
COSINE_DOUBLE = (
    0.041666666666666595, -0.0013888888888873312, 2.4801587288969187e-05,
    -2.7557314204389535e-07, 2.087570332723812e-09, -1.1358626867673727e-11,
)  # fmt: skip
# (tan(r) / r - 1) / r^2: 2^-29.5.
TANGENT_SINGLE = (
    0.3333335, 0.13332672, 0.05405943, 0.021282949, 0.010836973, 8.510314e-05, 0.004379613,
)  # fmt: skip


def sine_and_cosine(r: Number, rest: Number) -> tuple[Pair, Pair]:
    """Of r + rest within a quadrant around zero, each as a large and a small part."""
    z = r * r
    near_one = fma(z, -0.5, 1.0)
    lost = fma(z, -0.5, 1.0 - near_one)
    sine = polynomial(z, SINE_DOUBLE if r.double else SINE_SINGLE)
    cosine = polynomial(z, COSINE_DOUBLE if r.double else COSINE_SINGLE)
    sine = fma(z * r, sine, rest * near_one)
    return (r, sine), (near_one, fma(z * z, cosine, lost) - r * rest)


def top_bit(n: Number, bit: int) -> Number:
    """Bit `bit` of an integer, moved to the place of a sign."""
    width = n.type.bits
    return (n << (width - 1 - bit)) & (1 << (width - 1))


def sin(x: Number) -> Number:
    """Sine of an angle in radians."""
    n, r, rest = reduce_angle(x)
    sine, cosine = (a + b for a, b in sine_and_cosine(r, rest))
    result = where((n & 1) != 0, cosine, sine).flip_sign(top_bit(n, 1))
    return where(x == 0.0, x, result)


def cos(x: Number) -> Number:
    """Cosine of an angle in radians."""
    n, r, rest = reduce_angle(x)
    sine, cosine = (a + b for a, b in sine_and_cosine(r, rest))
    return where((n & 1) != 0, sine, cosine).flip_sign(top_bit(n + 1, 1))


def tan(x: Number) -> Number:
    """Tangent of an angle in radians."""
    if looks_up(x):
        return on_vectors(_tan_by_estimate)(x)
    n, r, rest = reduce_angle(x)
    (sine, sine_rest), (cosine, cosine_rest) = (
        quick_sum(a, b) for a, b in sine_and_cosine(r, rest)
    )
    odd = (n & 1) != 0
    above = where(odd, cosine, sine), where(odd, cosine_rest, sine_rest)
    below = where(odd, sine, cosine), where(odd, sine_rest, cosine_rest)
    return where(x == 0.0, x, quotient(above, below).flip_sign(top_bit(n, 0)))


def _tan_by_estimate(x: Number) -> Number:
    """tan(x) from the tangent of the reduced angle, or one over it, which starts as an estimate."""
    n, r, rest = reduce_angle(x)
    z = r * r
    small = fma(z, fma(r, polynomial(z, TANGENT_SINGLE), rest), rest)
    tangent = r + small
    first = estimated_reciprocal(tangent)
    error = fma(-first, small, fma(-first, r, first.constant(1.0)))
    result = where((n & 1) != 0, fma(first, error, first), tangent)
    return where(x == 0.0, x, result.flip_sign(top_bit(n, 0)))
