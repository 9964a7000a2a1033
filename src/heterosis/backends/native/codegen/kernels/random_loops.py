"""Distributions by rejection: every lane of a vector tries until all have succeeded.

A lane's attempts depend on its own counter alone. All of them compute in double precision.
"""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.emit.builder import Function, Type, Value
from heterosis.backends.native.codegen.kernels.random_bits import block, normal, numbered, open_unit
from heterosis.backends.native.codegen.mathematics.exponential import exp
from heterosis.backends.native.codegen.mathematics.logarithm import log, log1p
from heterosis.backends.native.codegen.mathematics.number import Number, where
from heterosis.ir.primitives.random_bits import PLACE_BITS

_LAST_BLOCK = (1 << (64 - PLACE_BITS)) - 1
_INFINITY = float("inf")

# A step: the number of the attempt -> which lanes succeed, and their results.
Attempt = Callable[[Number], tuple[Number, Number]]


def outlined(formula: Callable[..., Number]) -> Callable[..., Value]:
    """The formula, whose result is of doubles, as a function that the module defines once."""

    def emit(f: Function, *arguments: Value) -> Value:
        module, lanes = f.module, arguments[0].type.lanes
        name = f"{formula.__name__}.{lanes}"
        returns = Type("double", lanes)
        if not module.defines(name):
            parameters = [(f"x{i}", argument.type) for i, argument in enumerate(arguments)]
            attributes = module.target.function_attributes if module.target else ""
            g = module.function(name, parameters, returns, attributes=attributes)
            g.ret(formula(*(Number(g, parameter) for parameter in g.parameters)).value)
        return f.call(name, arguments, returns)

    return emit


def _until_accepted(start: Number, wanted: Number, attempt: Attempt) -> Number:
    """`attempt`'s results, tried again where it fails; `start` in the lanes that are not wanted.

    `attempt(number)` takes how many have been made, shifted to where blocks are numbered.
    """
    f = start.f
    none = start.bits.constant(0)
    with f.repeat([wanted.value, start.value, none.value]) as loop:
        pending, result, number = (Number(f, value) for value in loop.carried)
        accepted, found = attempt(number)
        result = where(pending & accepted, found, result)
        pending = pending & ~accepted
        # Three blocks at most an attempt.
        loop.next = [pending.value, result.value, (number + (3 << PLACE_BITS)).value]
        loop.more = pending.any().value
    return Number(f, loop.results[1])


def log_gamma_variate(counter: Number, key: Number, shape: Number) -> Number:
    """The logarithm of a number from the gamma distribution (Marsaglia and Tsang, 2000).

    Shapes below 1 take a number of shape + 1 and multiply it by a power of a uniform one; the
    logarithm keeps what would underflow. -inf for shape 0, NaN for shapes below.
    """
    valid = (shape > 0.0) & (shape < _INFINITY)
    small = shape < 1.0
    d = where(small, shape + 1.0, where(valid, shape, 1.0)) - 1 / 3
    c = 1.0 / (d * 9.0).sqrt()

    def attempt(number: Number) -> tuple[Number, Number]:
        at = counter + number
        x = normal(block(at, key), block(numbered(at, 1), key), "double")
        u = open_unit(block(numbered(at, 2), key), "double")
        root = x * c + 1.0
        v = root * root * root
        log_v = log(v)
        bound = x * x * 0.5 + d * (1.0 - v + log_v)
        return (root > 0.0) & (log(u) < bound), log_v

    found = _until_accepted(shape.constant(0.0), valid, attempt) + log(d)
    u = open_unit(block(numbered(counter, _LAST_BLOCK), key), "double")
    found = where(small, found + log(u) / where(valid, shape, 1.0), found)
    return where(valid, found, where(shape == 0.0, -_INFINITY, shape * float("nan")))


def _two_units(at: Number, key: Number) -> tuple[Number, Number]:
    """Two uniform numbers: around zero, and from 0 to 1."""
    u = open_unit(block(at, key), "double")
    return u - 0.5, open_unit(block(numbered(at, 1), key), "double")


def _by_search(
    u: Number, wanted: Number, first: Number, ratio: Callable[[Number], Number], most: Number
) -> Number:
    """The smallest k whose probabilities up to k exceed `u`.

    `first` is the probability of 0, `ratio(k)` that of k divided by that of k - 1.
    """
    f, zero = u.f, u.constant(0.0)
    with f.repeat([wanted.value, zero.value, u.value, first.value]) as loop:
        pending, k, left, p = (Number(f, value) for value in loop.carried)
        pending = pending & (left > p) & (k < most)
        left, k = left - p, where(pending, k + 1.0, k)
        loop.next = [n.value for n in (pending, k, left, p * ratio(k))]
        loop.more = pending.any().value
    return Number(f, loop.results[1])


def _log_factorial(k: Number) -> Number:
    """log k! of whole numbers, to 1e-9: enough to accept or reject by."""
    z = k + 1.0
    small = z < 8.0
    product = z
    for i in range(1, 8):
        product = product * (z + float(i))
    lifted = where(small, z + 8.0, z)
    inverse = 1.0 / lifted
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260)))
    result = (lifted - 0.5) * log(lifted) - lifted + (series + 0.9189385332046727)
    return where(small, result - log(product), result)


_SEARCHED = 10.0  # means below this are found by search
_LONGEST_SEARCH = 1e3  # far beyond what a mean below 10 reaches before rounding ends the search


def poisson(counter: Number, key: Number, mean: Number) -> Number:
    """The Poisson distribution, as doubles: search, or transformed rejection (Hoermann, 1993)."""
    valid = (mean > 0.0) & (mean < 2.0**62)
    few = valid & (mean < _SEARCHED)
    many = valid & (mean >= _SEARCHED)
    u = open_unit(block(numbered(counter, _LAST_BLOCK), key), "double")
    least = where(few, mean, 1.0)
    searched = _by_search(
        u, few, exp(-least), lambda k: least / where(k > 0.0, k, 1.0), u.constant(_LONGEST_SEARCH)
    )
    mean = where(many, mean, _SEARCHED)
    b = mean.sqrt() * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    log_mean = log(mean)
    scale = log(1.1239 + 1.1328 / (b - 3.4))

    def attempt(number: Number) -> tuple[Number, Number]:
        u, v = _two_units(counter + number, key)
        us = 0.5 - abs(u)
        k = ((a * 2.0 / us + b) * u + mean + 0.43).call("floor")
        quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
        density = k * log_mean - mean - _log_factorial(where(k < 0.0, 0.0, k))
        exact = log(v) + scale - log(a / (us * us) + b) <= density
        outside = (k < 0.0) | ((us < 0.013) & (v > us))
        return quick | (exact & ~outside), k

    return _until_accepted(searched, many, attempt)


def binomial(counter: Number, key: Number, trials: Number, probability: Number) -> Number:
    """The binomial distribution, as doubles: search, or transformed rejection (Hoermann, 1993)."""
    flipped = probability > 0.5
    p = where(flipped, 1.0 - probability, probability)
    valid = (trials > 0.0) & (p > 0.0) & (trials < 2.0**62)
    few = valid & (trials * p < _SEARCHED)
    many = valid & (trials * p >= _SEARCHED)
    searched = _few_successes(counter, key, where(few, trials, 1.0), where(few, p, 0.5), few)
    n, p = where(many, trials, 40.0), where(many, p, 0.5)
    spread = (n * p * (1.0 - p)).sqrt()
    b = spread * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + p * 0.01
    alpha = (5.1 / b + 2.83) * spread
    odds = log(p) - log1p(-p)
    mode = ((n + 1.0) * p).call("floor")
    most_likely = _log_factorial(mode) + _log_factorial(n - mode)

    def attempt(number: Number) -> tuple[Number, Number]:
        u, v = _two_units(counter + number, key)
        us = 0.5 - abs(u)
        k = ((a * 2.0 / us + b) * u + n * p + 0.5).call("floor")
        inside = (k >= 0.0) & (k <= n)
        quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        safe = where(inside, k, mode)
        density = most_likely - _log_factorial(safe) - _log_factorial(n - safe)
        density = density + (safe - mode) * odds
        exact = log(v * alpha / (a / (us * us) + b)) <= density
        return inside & (quick | exact), k

    found = _until_accepted(searched, many, attempt)
    found = where(valid, found, 0.0)
    return where(flipped, trials - found, found)


def _few_successes(
    counter: Number, key: Number, trials: Number, p: Number, wanted: Number
) -> Number:
    u = open_unit(block(numbered(counter, _LAST_BLOCK), key), "double")
    odds = p / (1.0 - p)
    first = exp(trials * log1p(-p))
    return _by_search(
        u,
        wanted,
        first,
        lambda k: (trials - k + 1.0) * odds / where(k > 0.0, k, 1.0),
        trials,
    )
