"""The activations of recurrent cells: sigmoid and tanh within some units in the last place.

What they are taken of are sums of hundreds of products, whose rounding is larger than that. The
functions of the same names that users call are rounded nearly once, and cost twice as much.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.exponential import (
    EXPM1_DOUBLE,
    EXPM1_SINGLE,
    LN2_PARTS,
    LOG2_E,
    exp_reduced,
    magic,
    power_of_two,
)
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_least,
    at_most,
    fma,
    split_polynomial,
)
from heterosis.backends.native.codegen.mathematics.pieces import TANH
from heterosis.backends.native.codegen.mathematics.registers import (
    estimated_reciprocal,
    estimates,
    looks_up,
)


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)); the smallest results, of which nothing else is made, stay normal."""
    low, high = (-708.0, 40.0) if x.double else (-87.0, 20.0)
    shifted, t = exp_reduced(-at_most(at_least(x, low), high), _shift(x))
    return _reciprocal(fma(power_of_two(shifted), t + 1.0, x.constant(1.0)))


def tanh(x: Number) -> Number:
    """z / (z + 2) with z = exp(2x) - 1, which is accurate where x is small."""
    if looks_up(x):
        return TANH(x)
    limit = 19.1 if x.double else 9.1
    twice = at_most(at_least(x, -limit), limit) * 2.0
    shifted = fma(twice, LOG2_E, _shift(x))
    n = shifted - _shift(x)
    high, low = LN2_PARTS[x.double]
    r = fma(n, -low, fma(n, -high, twice))
    square = r * r
    tail = split_polynomial(r, square, EXPM1_DOUBLE if x.double else EXPM1_SINGLE)
    scale = power_of_two(shifted)
    z = fma(scale, fma(tail, square, r), scale - 1.0)
    return z / (z + 2.0)


def _reciprocal(x: Number) -> Number:
    """1 / x, where neither is too large or too small for a normal number."""
    if not estimates(x):
        return 1.0 / x
    first = estimated_reciprocal(x)
    return fma(first, fma(-x, first, x.constant(1.0)), first)


def _shift(x: Number) -> float:
    """The `magic` with one bias of an exponent: all powers of two here are normal numbers."""
    return magic(x, 1023 if x.double else 127)
