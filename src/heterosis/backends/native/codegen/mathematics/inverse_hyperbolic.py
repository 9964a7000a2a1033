"""arcsinh, arccosh, arctanh: logarithms of arguments carried with what their rounding lost.

Where the processor estimates reciprocals, roots and quotients begin with those: what an estimate
lacks is a rest that is computed anyway.
"""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.mathematics import logarithm, tabulated_logarithm
from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    exact_product,
    exact_sum,
    pair_quotient,
    quick_sum,
    residual,
)
from heterosis.backends.native.codegen.mathematics.number import Number, at_least, fma, where
from heterosis.backends.native.codegen.mathematics.registers import (
    estimated_inverse_root,
    normalises,
    on_vectors,
    reciprocal,
)

LARGE = 2.0**60  # from here on sqrt(x^2 +- 1) is x


def in_registers(formula: Callable[[Number], Number]) -> Callable[[Number], Number]:
    """`formula`, on whole vectors where it makes use of what only those have."""

    def compute(x: Number) -> Number:
        return (on_vectors(formula) if normalises(x) else formula)(x)

    compute.__name__, compute.__doc__ = formula.__name__, formula.__doc__
    return compute


def root(square: Pair) -> Pair:
    """The square root of a pair."""
    x, lost = square
    if not normalises(x):
        high = x.sqrt()
        return high, (residual(x, high, high) + lost) / at_least(high + high, 1e-30)
    inverse = estimated_inverse_root(at_least(x, 1e-30))
    half, first = inverse * 0.5, x * inverse
    high = fma(fma(-first, first, x), half, first)
    half = fma(half, fma(-high, inverse, 1.0), half)
    return high, (residual(x, high, high) + lost) * half


def quotient(a: Pair, b: Pair) -> Pair:
    """a / b."""
    if not normalises(a[0]):
        return pair_quotient(a, b)
    return pair_quotient(a, b, reciprocal(b[0]))


def log_of_sum(u: Number, lost: Number, doublings: Number | None = None) -> Number:
    """log((u + lost) * 2^doublings)."""
    if normalises(u):
        return tabulated_logarithm.log_of_sum(u, lost, doublings)
    return logarithm.log_of_sum(u, lost, doublings)


def squared_plus(x: Number, one: float) -> Pair:
    """x^2 + 1 or x^2 - 1."""
    square, lost = exact_product(x, x)
    total, more = exact_sum(square, x.constant(one))
    return total, lost + more


@in_registers
def arcsinh(x: Number) -> Number:
    """Inverse hyperbolic sine: log(|x| + sqrt(x^2 + 1))."""
    magnitude = abs(x)
    large = magnitude > LARGE
    s, s_lost = root(squared_plus(where(large, x.constant(1.0), magnitude), 1.0))
    u, lost = quick_sum(s, magnitude)
    u = where(large, magnitude, u)
    lost = where(large, 0.0, lost + s_lost)
    return log_of_sum(u, lost, where(large, x.constant(1.0), 0.0)).with_sign_of(x)


@in_registers
def arccosh(x: Number) -> Number:
    """Inverse hyperbolic cosine: log(x + sqrt(x^2 - 1)). NaN below 1."""
    large = x > LARGE
    s, s_lost = root(squared_plus(where(large, 1.0, x), -1.0))
    u, lost = quick_sum(x, s)
    u, lost = quick_sum(u, lost + s_lost)  # next to 1, a root's rest is more than a few units
    u = where(large, x, u)
    lost = where(large, 0.0, lost)
    result = log_of_sum(u, lost, where(large, x.constant(1.0), 0.0))
    return where(x < 1.0, float("nan"), result)


@in_registers
def arctanh(x: Number) -> Number:
    """Inverse hyperbolic tangent: log((1 + |x|) / (1 - |x|)) / 2."""
    magnitude = abs(x)
    above = quick_sum(x.constant(1.0), magnitude)
    below = quick_sum(x.constant(1.0), -magnitude)
    u, lost = quotient(above, below)
    result = log_of_sum(u, lost) * 0.5
    result = where(magnitude == 1.0, float("inf"), result)
    return where(magnitude > 1.0, float("nan"), result).with_sign_of(x)
