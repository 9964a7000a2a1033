"""The activations of recurrent cells: sigmoid and tanh within some units in the last place.

What they are taken of are sums of hundreds of products, whose rounding is larger than that. The
functions of the same names that users call are rounded nearly once, and cost twice as much.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.exponential import (
    exp_reduced,
    expm1_reduced,
    scaled,
)
from heterosis.backends.native.codegen.mathematics.number import Number, at_least, at_most, fma
from heterosis.backends.native.codegen.mathematics.pieces import TANH
from heterosis.backends.native.codegen.mathematics.registers import looks_up


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)); the smallest results, of which nothing else is made, stay normal."""
    low, high = (-708.0, 40.0) if x.double else (-87.0, 20.0)
    shifted, t = exp_reduced(-at_most(at_least(x, low), high))
    return 1.0 / (scaled(t + 1.0, shifted) + 1.0)


def tanh(x: Number) -> Number:
    """-z / (2 + z) with z = exp(-2|x|) - 1, which is accurate where x is small."""
    if looks_up(x):
        return TANH(x)
    magnitude = at_most(abs(x), 19.1 if x.double else 9.1)
    half, r, (tail, lost) = expm1_reduced(magnitude * -2.0, 0.0, -52 if x.double else -23)
    z = fma(half, r + (tail + lost), half - 0.5)  # halved, as what comes of it is
    return (-z / (z + 1.0)).with_sign_of(x)
