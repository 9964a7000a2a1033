"""Functions that NumPy does not have, in NumPy: correct to the last places, in no hurry."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy


def rsqrt(x: Any) -> Any:
    """`1 / sqrt(x)`."""
    return 1 / numpy.sqrt(x)


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))`, by an exponential that does not overflow."""
    small = numpy.exp(-abs(x))
    return numpy.where(x < 0, small, 1) / (1 + small)


def _by_element(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """A function of one number for arrays of them, as float64."""
    each = numpy.frompyfunc(function, 1, 1)
    return lambda x: numpy.asarray(each(numpy.asarray(x, "float64")), "float64")


def _gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    if math.isinf(x) or (x < 0 and x % 1 == 0):
        return math.inf if x > 0 else math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf if x > 0 or math.floor(x) % 2 == 0 else -math.inf


def _gammaln(x: float) -> float:
    if x <= 0 and x % 1 == 0:
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def _erfinv(x: float) -> float:
    """Newton's method on `erfc`, whose digits do not vanish where `erf` is near 1."""
    size = abs(x)
    if not size < 1:
        return math.copysign(math.inf, x) if size == 1 else math.nan
    if size < 1e-8:  # the next term of the series is lost
        return x * math.sqrt(math.pi) / 2
    y = _roughly_inverted(size)
    for _ in range(4):
        left = math.erfc(y) - (1 - size) if size > 0.5 else size - math.erf(y)
        step = left * math.sqrt(math.pi) / 2 * math.exp(y * y)
        y += step / (1 - y * step)
    return math.copysign(y, x)


def _roughly_inverted(x: float) -> float:
    """`erfinv` to two digits, by Winitzki's formula."""
    log = math.log1p(-x * x)
    middle = 2 / (math.pi * 0.147) + log / 2
    return math.sqrt(math.sqrt(middle * middle - log / 0.147) - middle)


erf = _by_element(math.erf)
erfinv = _by_element(_erfinv)
gamma = _by_element(_gamma)
gammaln = _by_element(_gammaln)
