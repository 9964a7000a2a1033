"""Distributions by rejection: an element is tried again until an attempt succeeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.rows.random_bits import block, normal, open_unit
from heterosis.backends.xla.tables import elements
from heterosis.ir.primitives.random_bits import PLACE_BITS
from heterosis.ir.primitives.random_loops import BINOMIAL, LOG_GAMMA_VARIATE, POISSON

_LAST_BLOCK = (1 << (64 - PLACE_BITS)) - 1
_BLOCKS = 3  # that an attempt takes at most
_SEARCHED = 10.0  # means below this are found by search
_LONGEST_SEARCH = 1e3  # far beyond what a mean below 10 reaches before rounding ends the search


def _bits(counter: Any, key: Any, number: Any) -> Any:
    """The block `number` of each element."""
    start = lax.shift_left(jnp.asarray(number, "uint64"), numpy.uint64(PLACE_BITS))
    return block(counter + lax.bitcast_convert_type(start, numpy.dtype("int64")), key)


def _until_accepted(start: Any, wanted: Any, attempt: Callable[[Any], tuple[Any, Any]]) -> Any:
    """`attempt`'s results, tried again where it fails; `start` where none is wanted.

    `attempt(number)` takes the number of the first block to be used.
    """

    def turn(carried: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        pending, result, number = carried
        accepted, found = attempt(number)
        result = jnp.where(pending & accepted, found, result)
        return pending & ~accepted, result, number + _BLOCKS

    begin = wanted, start, jnp.asarray(0, "int64")
    return lax.while_loop(lambda carried: jnp.any(carried[0]), turn, begin)[1]


def _by_search(u: Any, wanted: Any, first: Any, ratio: Callable[[Any], Any], most: Any) -> Any:
    """The smallest k whose probabilities up to k exceed `u`.

    `first` is the probability of 0, `ratio(k)` that of k divided by that of k - 1.
    """

    def turn(carried: tuple[Any, ...]) -> tuple[Any, ...]:
        pending, k, left, p = carried
        pending = pending & (left > p) & (k < most)
        left, k = left - p, jnp.where(pending, k + 1.0, k)
        return pending, k, left, p * ratio(k)

    begin = wanted, jnp.zeros_like(u), u, first
    return lax.while_loop(lambda carried: jnp.any(carried[0]), turn, begin)[1]


def _log_gamma_variate(counter: Any, key: Any, shape: Any) -> Any:
    """Marsaglia and Tsang, 2000. Shapes below 1 take a number of shape + 1 and multiply it by a
    power of a uniform one; the logarithm keeps what would underflow."""
    valid = (shape > 0.0) & (shape < numpy.inf)
    small = shape < 1.0
    d = jnp.where(small, shape + 1.0, jnp.where(valid, shape, 1.0)) - 1 / 3
    c = 1.0 / jnp.sqrt(d * 9.0)

    def attempt(number: Any) -> tuple[Any, Any]:
        x = normal(_bits(counter, key, number), _bits(counter, key, number + 1))
        u = open_unit(_bits(counter, key, number + 2))
        root = x * c + 1.0
        v = root * root * root
        log_v = jnp.log(v)
        bound = x * x * 0.5 + d * (1.0 - v + log_v)
        return (root > 0.0) & (jnp.log(u) < bound), log_v

    found = _until_accepted(jnp.zeros_like(shape), valid, attempt) + jnp.log(d)
    u = open_unit(_bits(counter, key, _LAST_BLOCK))
    found = jnp.where(small, found + jnp.log(u) / jnp.where(valid, shape, 1.0), found)
    return jnp.where(valid, found, jnp.where(shape == 0.0, -numpy.inf, numpy.nan))


def _two_units(counter: Any, key: Any, number: Any) -> tuple[Any, Any]:
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
    lifted = jnp.where(small, z + 8.0, z)
    inverse = 1.0 / lifted
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260)))
    result = (lifted - 0.5) * jnp.log(lifted) - lifted + (series + 0.9189385332046727)
    return jnp.where(small, result - jnp.log(product), result)


def _poisson(counter: Any, key: Any, mean: Any) -> Any:
    """Search, or transformed rejection (Hoermann, 1993)."""
    valid = (mean > 0.0) & (mean < 2.0**62)
    few, many = valid & (mean < _SEARCHED), valid & (mean >= _SEARCHED)
    u = open_unit(_bits(counter, key, _LAST_BLOCK))
    least = jnp.where(few, mean, 1.0)
    searched = _by_search(
        u, few, jnp.exp(-least), lambda k: least / jnp.where(k > 0.0, k, 1.0), _LONGEST_SEARCH
    )
    mean = jnp.where(many, mean, _SEARCHED)
    b = jnp.sqrt(mean) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    log_mean = jnp.log(mean)
    scale = jnp.log(1.1239 + 1.1328 / (b - 3.4))

    def attempt(number: Any) -> tuple[Any, Any]:
        u, v = _two_units(counter, key, number)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((a * 2.0 / us + b) * u + mean + 0.43)
        quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
        density = k * log_mean - mean - _log_factorial(jnp.where(k < 0.0, 0.0, k))
        exact = jnp.log(v) + scale - jnp.log(a / (us * us) + b) <= density
        outside = (k < 0.0) | ((us < 0.013) & (v > us))
        return quick | (exact & ~outside), k

    return _until_accepted(searched, many, attempt)


def _binomial(counter: Any, key: Any, trials: Any, probability: Any) -> Any:
    """Search, or transformed rejection (Hoermann, 1993), for the rarer of success and failure."""
    flipped = probability > 0.5
    p = jnp.where(flipped, 1.0 - probability, probability)
    valid = (trials > 0.0) & (p > 0.0) & (trials < 2.0**62)
    few, many = valid & (trials * p < _SEARCHED), valid & (trials * p >= _SEARCHED)
    start = _few_successes(counter, key, jnp.where(few, trials, 1.0), jnp.where(few, p, 0.5), few)
    n, p = jnp.where(many, trials, 40.0), jnp.where(many, p, 0.5)
    spread = jnp.sqrt(n * p * (1.0 - p))
    b = spread * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + p * 0.01
    alpha = (5.1 / b + 2.83) * spread
    odds = jnp.log(p) - jnp.log1p(-p)
    mode = jnp.floor((n + 1.0) * p)
    most_likely = _log_factorial(mode) + _log_factorial(n - mode)

    def attempt(number: Any) -> tuple[Any, Any]:
        u, v = _two_units(counter, key, number)
        us = 0.5 - jnp.abs(u)
        k = jnp.floor((a * 2.0 / us + b) * u + n * p + 0.5)
        inside = (k >= 0.0) & (k <= n)
        quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        safe = jnp.where(inside, k, mode)
        density = most_likely - _log_factorial(safe) - _log_factorial(n - safe)
        density = density + (safe - mode) * odds
        exact = jnp.log(v * alpha / (a / (us * us) + b)) <= density
        return inside & (quick | exact), k

    found = jnp.where(valid, _until_accepted(start, many, attempt), 0.0)
    return jnp.where(flipped, trials - found, found)


def _few_successes(counter: Any, key: Any, trials: Any, p: Any, wanted: Any) -> Any:
    u = open_unit(_bits(counter, key, _LAST_BLOCK))
    odds = p / (1.0 - p)

    def ratio(k: Any) -> Any:
        return (trials - k + 1.0) * odds / jnp.where(k > 0.0, k, 1.0)

    return _by_search(u, wanted, jnp.exp(trials * jnp.log1p(-p)), ratio, trials)


elements({LOG_GAMMA_VARIATE: _log_gamma_variate, POISSON: _poisson, BINOMIAL: _binomial})
