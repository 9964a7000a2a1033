"""Distributions by rejection: an element is tried again until an attempt succeeds.

Attempts depend on the element's own counter alone. All of them compute in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir.primitives.element_types import fixed
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.primitives.random_bits import PLACE_BITS, block, normal, open_unit

_LAST_BLOCK = (1 << (64 - PLACE_BITS)) - 1
_BLOCKS = 3  # that an attempt takes at most
_SEARCHED = 10.0  # means below this are found by search
_LONGEST_SEARCH = 1e3  # far beyond what a mean below 10 reaches before rounding ends the search


def _bits(counter: Any, key: Any, number: int) -> Any:
    """The block `number` of each element."""
    start = numpy.uint64(number << PLACE_BITS).view("int64")
    return block(counter + start, key)


def _until_accepted(start: Any, wanted: Any, attempt: Callable[[int], tuple[Any, Any]]) -> Any:
    """`attempt`'s results, tried again where it fails; `start` where none is wanted.

    `attempt(number)` takes the number of the first block to be used.
    """
    pending, result, number = wanted, start, 0
    while pending.any():
        accepted, found = attempt(number)
        result = numpy.where(pending & accepted, found, result)
        pending, number = pending & ~accepted, number + _BLOCKS
    return result


def _by_search(u: Any, wanted: Any, first: Any, ratio: Callable[[Any], Any], most: Any) -> Any:
    """The smallest k whose probabilities up to k exceed `u`.

    `first` is the probability of 0, `ratio(k)` that of k divided by that of k - 1.
    """
    pending, k, left, p = wanted, numpy.zeros_like(u), u, first
    while pending.any():
        pending = pending & (left > p) & (k < most)
        left, k = left - p, numpy.where(pending, k + 1.0, k)
        p = p * ratio(k)
    return k


def _log_gamma_variate(counter: Any, key: Any, shape: Any) -> Any:
    """Marsaglia and Tsang, 2000. Shapes below 1 take a number of shape + 1 and multiply it by a
    power of a uniform one; the logarithm keeps what would underflow."""
    valid = (shape > 0.0) & (shape < numpy.inf)
    small = shape < 1.0
    d = numpy.where(small, shape + 1.0, numpy.where(valid, shape, 1.0)) - 1 / 3
    c = 1.0 / numpy.sqrt(d * 9.0)

    def attempt(number: int) -> tuple[Any, Any]:
        x = normal(_bits(counter, key, number), _bits(counter, key, number + 1))
        u = open_unit(_bits(counter, key, number + 2))
        root = x * c + 1.0
        v = root * root * root
        log_v = numpy.log(v)
        bound = x * x * 0.5 + d * (1.0 - v + log_v)
        return (root > 0.0) & (numpy.log(u) < bound), log_v

    found = _until_accepted(numpy.zeros_like(shape), valid, attempt) + numpy.log(d)
    u = open_unit(_bits(counter, key, _LAST_BLOCK))
    found = numpy.where(small, found + numpy.log(u) / numpy.where(valid, shape, 1.0), found)
    return numpy.where(valid, found, numpy.where(shape == 0.0, -numpy.inf, numpy.nan))


def _two_units(counter: Any, key: Any, number: int) -> tuple[Any, Any]:
    """Two uniform numbers: around zero, and from 0 to 1."""
    u, v = (open_unit(_bits(counter, key, number + i)) for i in range(2))
    return u - 0.5, v


def _log_factorial(k: Any) -> Any:
    """log k! of whole numbers, to 1e-9: enough to accept or reject by."""
    z = k + 1.0
    small = z < 8.0
    product = z
    for i in range(1, 8):
        product = product * (z + i)
    lifted = numpy.where(small, z + 8.0, z)
    inverse = 1.0 / lifted
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260)))
    result = (lifted - 0.5) * numpy.log(lifted) - lifted + (series + 0.9189385332046727)
    return numpy.where(small, result - numpy.log(product), result)


def _poisson(counter: Any, key: Any, mean: Any) -> Any:
    """Search, or transformed rejection (Hoermann, 1993)."""
    valid = (mean > 0.0) & (mean < 2.0**62)
    few, many = valid & (mean < _SEARCHED), valid & (mean >= _SEARCHED)
    u = open_unit(_bits(counter, key, _LAST_BLOCK))
    least = numpy.where(few, mean, 1.0)
    first = numpy.exp(-least)
    searched = _by_search(
        u, few, first, lambda k: least / numpy.where(k > 0.0, k, 1.0), _LONGEST_SEARCH
    )
    mean = numpy.where(many, mean, _SEARCHED)
    b = numpy.sqrt(mean) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    log_mean = numpy.log(mean)
    scale = numpy.log(1.1239 + 1.1328 / (b - 3.4))

    def attempt(number: int) -> tuple[Any, Any]:
        u, v = _two_units(counter, key, number)
        us = 0.5 - abs(u)
        k = numpy.floor((a * 2.0 / us + b) * u + mean + 0.43)
        quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
        density = k * log_mean - mean - _log_factorial(numpy.where(k < 0.0, 0.0, k))
        exact = numpy.log(v) + scale - numpy.log(a / (us * us) + b) <= density
        outside = (k < 0.0) | ((us < 0.013) & (v > us))
        return quick | (exact & ~outside), k

    return _until_accepted(searched, many, attempt)


def _binomial(counter: Any, key: Any, trials: Any, probability: Any) -> Any:
    """Search, or transformed rejection (Hoermann, 1993), for the rarer of success and failure."""
    flipped = probability > 0.5
    p = numpy.where(flipped, 1.0 - probability, probability)
    valid = (trials > 0.0) & (p > 0.0) & (trials < 2.0**62)
    few, many = valid & (trials * p < _SEARCHED), valid & (trials * p >= _SEARCHED)
    start = _few_successes(
        counter, key, numpy.where(few, trials, 1.0), numpy.where(few, p, 0.5), few
    )
    n, p = numpy.where(many, trials, 40.0), numpy.where(many, p, 0.5)
    spread = numpy.sqrt(n * p * (1.0 - p))
    b = spread * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + p * 0.01
    alpha = (5.1 / b + 2.83) * spread
    odds = numpy.log(p) - numpy.log1p(-p)
    mode = numpy.floor((n + 1.0) * p)
    most_likely = _log_factorial(mode) + _log_factorial(n - mode)

    def attempt(number: int) -> tuple[Any, Any]:
        u, v = _two_units(counter, key, number)
        us = 0.5 - abs(u)
        k = numpy.floor((a * 2.0 / us + b) * u + n * p + 0.5)
        inside = (k >= 0.0) & (k <= n)
        quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        safe = numpy.where(inside, k, mode)
        density = most_likely - _log_factorial(safe) - _log_factorial(n - safe)
        density = density + (safe - mode) * odds
        exact = numpy.log(v * alpha / (a / (us * us) + b)) <= density
        return inside & (quick | exact), k

    found = numpy.where(valid, _until_accepted(start, many, attempt), 0.0)
    return numpy.where(flipped, trials - found, found)


def _few_successes(counter: Any, key: Any, trials: Any, p: Any, wanted: Any) -> Any:
    u = open_unit(_bits(counter, key, _LAST_BLOCK))
    odds = p / (1.0 - p)
    first = numpy.exp(trials * numpy.log1p(-p))

    def ratio(k: Any) -> Any:
        return (trials - k + 1.0) * odds / numpy.where(k > 0.0, k, 1.0)

    return _by_search(u, wanted, first, ratio, trials)


LOG_GAMMA_VARIATE = Elementwise(
    "log_gamma_variate",
    types=fixed("int64", "int64", "float64", result="float64"),
    meaning=_log_gamma_variate,
    about="The logarithm of a number from the gamma distribution of shape c; -inf for shape 0.",
)
POISSON = Elementwise(
    "poisson",
    types=fixed("int64", "int64", "float64", result="float64"),
    meaning=_poisson,
    about="A number from the Poisson distribution of mean c, from a counter and a key.",
)
BINOMIAL = Elementwise(
    "binomial",
    types=fixed("int64", "int64", "float64", "float64", result="float64"),
    meaning=_binomial,
    about="How many of c trials of probability d succeed, from a counter and a key.",
)
