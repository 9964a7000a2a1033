"""tanh, from expm1."""

from __future__ import annotations

from heterosis.codegen.mathematics.compensated import residual
from heterosis.codegen.mathematics.exponential import expm1_reduced
from heterosis.codegen.mathematics.number import Number, at_most, fma


def tanh(x: Number) -> Number:
    """Hyperbolic tangent: (1 - z) / (1 + z) with z = exp(-2|x|), both halved."""
    magnitude = at_most(abs(x), 19.1 if x.double else 9.1)
    # With 2^n no smaller than this, both 1/2 - scale and 1/2 + scale are exact.
    scale, r, (tail, _) = expm1_reduced(magnitude * -2.0, 0.0, -52 if x.double else -23)
    t = tail + r
    above, below = 0.5 - scale, 0.5 + scale
    numerator, denominator = fma(-scale, t, above), fma(scale, t, below)
    first = numerator / denominator
    inverse = first + 1.0  # 1 / denominator, as the two add up to 1
    # What rounding took from each.
    lost = fma(-scale, t, above - numerator) - first * fma(scale, t, below - denominator)
    lost = fma(scale * (r - t + tail), -inverse, lost)
    rest = residual(numerator, first, denominator) + lost
    return fma(rest, inverse, first).with_sign_of(x)
