"""arcsinh, arccosh, arctanh: logarithms of arguments carried with what their rounding lost."""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    exact_product,
    exact_sum,
    pair_quotient,
    quick_sum,
    residual,
)
from heterosis.backends.native.codegen.mathematics.logarithm import log_of_sum
from heterosis.backends.native.codegen.mathematics.number import Number, at_least, where

LARGE = 2.0**60  # from here on sqrt(x^2 +- 1) is x


def root(square: Pair) -> Pair:
    """The square root of a pair."""
    high = square[0].sqrt()
    low = (residual(square[0], high, high) + square[1]) / at_least(high + high, 1e-30)
    return high, low


def squared_plus(x: Number, one: float) -> Pair:
    """x^2 + 1 or x^2 - 1."""
    square, lost = exact_product(x, x)
    total, more = exact_sum(square, x.constant(one))
    return total, lost + more


def arcsinh(x: Number) -> Number:
    """Inverse hyperbolic sine: log(|x| + sqrt(x^2 + 1))."""
    magnitude = abs(x)
    large = magnitude > LARGE
    s, s_lost = root(squared_plus(where(large, x.constant(1.0), magnitude), 1.0))
    u, lost = quick_sum(s, magnitude)
    u = where(large, magnitude, u)
    lost = where(large, 0.0, lost + s_lost)
    return log_of_sum(u, lost, where(large, x.constant(1.0), 0.0)).with_sign_of(x)


def arccosh(x: Number) -> Number:
    """Inverse hyperbolic cosine: log(x + sqrt(x^2 - 1)). NaN below 1."""
    large = x > LARGE
    s, s_lost = root(squared_plus(where(large, 1.0, x), -1.0))
    u, lost = quick_sum(x, s)
    u = where(large, x, u)
    lost = where(large, 0.0, lost + s_lost)
    result = log_of_sum(u, lost, where(large, x.constant(1.0), 0.0))
    return where(x < 1.0, float("nan"), result)


def arctanh(x: Number) -> Number:
    """Inverse hyperbolic tangent: log((1 + |x|) / (1 - |x|)) / 2."""
    magnitude = abs(x)
    above = quick_sum(x.constant(1.0), magnitude)
    below = quick_sum(x.constant(1.0), -magnitude)
    u, lost = pair_quotient(above, below)
    result = log_of_sum(u, lost) * 0.5
    result = where(magnitude == 1.0, float("inf"), result)
    return where(magnitude > 1.0, float("nan"), result).with_sign_of(x)
