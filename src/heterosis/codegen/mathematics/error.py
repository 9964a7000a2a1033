"""erf: a polynomial near zero, 1 - exp(-q(x)) away from it.

The polynomials are reweighted least-squares fits in 200-bit arithmetic, rounded one coefficient
at a time with the rest fitted again; `2^-n` is the relative error of erf.
"""

from __future__ import annotations

from heterosis.codegen.mathematics.exponential import exp2_tail, magic, power_of_two
from heterosis.codegen.mathematics.number import (
    Number,
    at_most,
    fma,
    polynomial,
    split_polynomial,
    where,
)

# erf(x) / x - 1 in powers of x^2, |x| <= 0.93: 2^-25.8.
NEAR_SINGLE = (0.12837915, -0.3761249, 0.11281731, -0.026762966, 0.004987352, -0.00059595786)
# -log2(1 - erf(x)) / x on 0.92 .. 4: 2^-30.3.
FAR_SINGLE = (
    1.6282963, 0.91632676, 0.15327245, -0.034285963, 0.005257212, -0.00046628664, 1.6263577e-05,
)  # fmt: skip


def erf_single(x: Number) -> Number:
    magnitude = at_most(abs(x), 4.0)
    square = magnitude * magnitude
    near = fma(polynomial(square, NEAR_SINGLE), x, x)
    p = split_polynomial(magnitude, square, FAR_SINGLE)
    shift = magic(x, 127)
    shifted = shift - magnitude * p
    r = fma(magnitude, -p, shift - shifted)
    scale = power_of_two(shifted)
    far = (1.0 - fma(scale, exp2_tail(r), scale)).with_sign_of(x)
    return where(magnitude < 0.925, near, far)
