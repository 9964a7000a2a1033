"""NumPy's random numbers over asynchronous arrays, of float32 unless `dtype` says otherwise.

Numbers follow from the seed and from how many calls came before: not from threads, nor from how
operations are compiled together. Parameters are numbers or arrays, which broadcast to `size`.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from math import prod
from typing import Any

from heterosis import _core
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import INTEGERS, highest, is_float, lowest
from heterosis.np.convert import array
from heterosis.np.dtypes import dtype_name
from heterosis.ops.random import choice as choices
from heterosis.ops.random import draws as ops
from heterosis.runtime import modes
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, DTypeError
from heterosis.runtime.placing import placed

# Numbers are drawn as int64, which does not hold the larger ones of uint64.
_LARGEST = {dtype: min(highest(dtype) + 1, 1 << 63) for dtype in INTEGERS}


# Ten deviations above so many events, a count still is an int64; NumPy's limit too.
_MOST_EVENTS = 2.0**63 - 1 - 10 * math.sqrt(2.0**63 - 1)


# -- the state ------------------------------------------------------------------------------------


_SEED_OUTSIDE = "Call it outside of the function."


def seed(seed: int | None = None, ctx: Any = None) -> None:
    """Start the sequence of random numbers that belongs to `seed`; without one, any sequence."""
    modes.refuse_in_capture("np.random.seed", _SEED_OUTSIDE)
    number = int.from_bytes(os.urandom(8), "little") if seed is None else operator.index(seed)
    _check(0 <= number < 1 << 64, "seed", "seed", seed, "an integer from 0 on, of up to 64 bits")
    _core.seed(number)


def get_state() -> tuple[str, int, int]:
    """What `set_state` takes to go on from here."""
    modes.refuse_in_capture("np.random.get_state", _SEED_OUTSIDE)
    return ("philox2x32", *_core.random_state())


def set_state(state: tuple[str, int, int]) -> None:
    """Go on where `get_state` was called."""
    modes.refuse_in_capture("np.random.set_state", _SEED_OUTSIDE)
    name, seed_, drawn = state
    if name != "philox2x32":
        raise ArgumentError(
            f"set_state: a state of {name!r}; expected one that get_state returned."
        )
    _core.restore_random_state(seed_, drawn)


# -- arguments ------------------------------------------------------------------------------------


def _size(size: Any, out: Any = None) -> tuple[int, ...] | None:
    if size is None:
        return None if out is None else out.shape
    given = size if isinstance(size, tuple | list) else (size,)
    try:
        found = tuple(
            n if isinstance(n, int) and is_traced(n) else operator.index(n) for n in given
        )
    except TypeError:
        raise ArgumentTypeError(f"size consists of integers; got {size!r}.") from None
    if any(n < 0 for n in found):
        raise ArgumentError(f"size {size} has a negative extent; expected numbers from 0 on.")
    return found


def _float_dtype(name: str, dtype: Any) -> str:
    found = dtype_name(dtype)
    if not is_float(found):
        raise DTypeError(f"{name}: makes floats, and dtype is {found}; convert with .astype.")
    return found


def _real(given: Any) -> Any:
    """A number as a float, so that 0 and 0.0 share code; arrays as they are."""
    return float(given) if isinstance(given, int) else given


def _check(holds: bool, name: str, parameter: str, given: Any, expected: str) -> None:
    if not holds:
        raise ArgumentError(f"{name}: {parameter} is {given}; expected {expected}.")


def _positive(name: str, parameter: str, given: Any) -> Any:
    return _parameter(name, parameter, given, "a positive number", above_zero=True)


def _not_negative(name: str, parameter: str, given: Any) -> Any:
    return _parameter(name, parameter, given, "a number from 0 on")


def _chance(name: str, parameter: str, given: Any) -> Any:
    return _parameter(name, parameter, given, "a probability, from 0 to 1", most=1.0)


def _parameter(
    name: str,
    parameter: str,
    given: Any,
    expected: str,
    *,
    most: float = math.inf,
    above_zero: bool = False,
) -> Any:
    """What a distribution takes: a number is checked now, an array's elements when used."""
    if isinstance(given, _core.ndarray):
        failure = f"{name}: an element of {parameter} is out of range; expected {expected}."
        return ops.distribution_parameter(given, failure, most, above_zero)
    if isinstance(given, int | float):
        inside = (given > 0 if above_zero else given >= 0) and given <= most
        _check(inside, name, parameter, given, expected)
    return _real(given)


# -- continuous distributions ---------------------------------------------------------------------


@placed
def uniform(
    low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """From `low` on, below `high`, all equally likely."""
    dtype = _float_dtype("uniform", dtype)
    return ops.uniform(_real(low), _real(high), _size(size, out), dtype, out=out)


@placed
def normal(
    loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """The normal distribution of mean `loc` and standard deviation `scale`."""
    dtype = _float_dtype("normal", dtype)
    scale = _not_negative("normal", "scale", scale)
    return ops.normal(_real(loc), scale, _size(size, out), dtype, out=out)


def rand(*size: int, **keywords: Any) -> Any:
    """Uniform numbers from 0 on, below 1: `uniform` with its size as arguments."""
    return uniform(size=size, **keywords)


def randn(*size: int, **keywords: Any) -> Any:
    """Numbers of mean 0 and standard deviation 1: `normal` with its size as arguments."""
    return normal(size=size, **keywords)


def random_sample(size: Any = None, dtype: Any = None) -> Any:
    """Uniform numbers from 0 on, below 1."""
    return uniform(size=size, dtype=dtype)


random = ranf = sample = random_sample


def standard_normal(size: Any = None, dtype: Any = None) -> Any:
    """Numbers of mean 0 and standard deviation 1."""
    return normal(size=size, dtype=dtype)


def standard_exponential(size: Any = None, dtype: Any = None) -> Any:
    """The exponential distribution of mean 1."""
    return exponential(size=size, dtype=dtype)


def standard_gamma(shape: Any, size: Any = None, dtype: Any = None) -> Any:
    """The gamma distribution of scale 1."""
    return gamma(shape, size=size, dtype=dtype)


def standard_cauchy(size: Any = None, dtype: Any = None) -> Any:
    """The Cauchy distribution around 0."""
    return ops.cauchy(_size(size), _float_dtype("standard_cauchy", dtype))


def standard_t(df: Any, size: Any = None, dtype: Any = None) -> Any:
    """Student's t of `df` degrees of freedom."""
    df = _positive("standard_t", "df", df)
    return ops.student_t(df, _size(size), _float_dtype("standard_t", dtype))


def _located(name: str, operation: Any, description: str) -> Callable[..., Any]:
    """A distribution with a place and a scale."""

    @placed
    def draw(
        loc: Any = 0.0, scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None,
        dtype: Any = None,
    ) -> Any:  # fmt: skip
        scale = _not_negative(name, "scale", scale)
        return operation(_real(loc), scale, _size(size, out), _float_dtype(name, dtype), out=out)

    return _named(draw, name, description)


def _scaled(name: str, operation: Any, description: str) -> Callable[..., Any]:
    """A distribution with a scale."""

    @placed
    def draw(
        scale: Any = 1.0, size: Any = None, ctx: Any = None, out: Any = None, dtype: Any = None
    ) -> Any:
        scale = _not_negative(name, "scale", scale)
        return operation(scale, _size(size, out), _float_dtype(name, dtype), out=out)

    return _named(draw, name, description)


def _shaped(name: str, operation: Any, description: str) -> Callable[..., Any]:
    """A distribution with a positive parameter of its shape."""

    @placed
    def draw(a: Any, size: Any = None, ctx: Any = None, out: Any = None, dtype: Any = None) -> Any:
        a = _positive(name, "a", a)
        return operation(a, _size(size, out), _float_dtype(name, dtype), out=out)

    return _named(draw, name, description)


def _named(draw: Callable[..., Any], name: str, description: str) -> Callable[..., Any]:
    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = description
    return draw


logistic = _located("logistic", ops.logistic, "The logistic distribution around `loc`.")
gumbel = _located("gumbel", ops.gumbel, "The distribution of the largest of many numbers.")
laplace = _located("laplace", ops.laplace, "The double exponential distribution around `loc`.")
exponential = _scaled("exponential", ops.exponential, "The exponential distribution.")
rayleigh = _scaled("rayleigh", ops.rayleigh, "The length of a vector of two normal numbers.")
weibull = _shaped("weibull", ops.weibull, "The Weibull distribution of shape `a`, scale 1.")
pareto = _shaped("pareto", ops.pareto, "The Pareto distribution moved to begin at 0 (Lomax).")
power = _shaped("power", ops.power, "From 0 to 1, with density `a * x ** (a - 1)`.")


@placed
def lognormal(
    mean: Any = 0.0, sigma: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Numbers whose logarithms are normal with `mean` and deviation `sigma`."""
    sigma = _not_negative("lognormal", "sigma", sigma)
    dtype = _float_dtype("lognormal", dtype)
    return ops.lognormal(_real(mean), sigma, _size(size, out), dtype, out=out)


def triangular(left: Any, mode: Any, right: Any, size: Any = None, dtype: Any = None) -> Any:
    """Between `left` and `right`, most likely at `mode`."""
    dtype = _float_dtype("triangular", dtype)
    return ops.triangular(_real(left), _real(mode), _real(right), _size(size), dtype)


@placed
def gamma(
    shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """The gamma distribution of mean `shape * scale`."""
    shape = _not_negative("gamma", "shape", shape)
    scale = _not_negative("gamma", "scale", scale)
    return ops.gamma(shape, scale, _size(size, out), _float_dtype("gamma", dtype), out=out)


@placed
def beta(a: Any, b: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """The beta distribution, from 0 to 1, of mean `a / (a + b)`."""
    a, b = _positive("beta", "a", a), _positive("beta", "b", b)
    return ops.beta(a, b, _size(size), _float_dtype("beta", dtype))


@placed
def chisquare(df: Any, size: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """The sum of squares of `df` normal numbers."""
    df = _positive("chisquare", "df", df)
    return ops.chisquare(df, _size(size), _float_dtype("chisquare", dtype))


def f(dfnum: Any, dfden: Any, size: Any = None, dtype: Any = None) -> Any:
    """The quotient of the mean squares of `dfnum` and of `dfden` normal numbers."""
    dfnum, dfden = _positive("f", "dfnum", dfnum), _positive("f", "dfden", dfden)
    return ops.f(dfnum, dfden, _size(size), _float_dtype("f", dtype))


# -- whole numbers --------------------------------------------------------------------------------


@placed
def randint(
    low: Any, high: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """Whole numbers from `low` on, below `high`; with one bound, from 0 on and below it."""
    if high is None:
        low, high = 0, low
    dtype = "int64" if dtype is None else dtype_name(dtype)
    if dtype not in INTEGERS:
        raise DTypeError(f"randint: makes integers, and dtype is {dtype}; see uniform for floats.")
    if isinstance(low, int) and isinstance(high, int):
        least = lowest(dtype)
        inside = least <= low < high <= _LARGEST[dtype]
        expected = f"low < high, both within {dtype}'s {least} ... {_LARGEST[dtype]}"
        _check(inside, "randint", "the interval", f"[{low}, {high})", expected)
        if high == 1 << 63:  # which no int64 holds; its distance from `low` wraps around rightly
            high = -high if low > -high else high - 1
    for bound in (low, high):
        _check(not isinstance(bound, float), "randint", "a bound", bound, "an integer")
    return ops.integers(low, high, _size(size, out), dtype, out=out)


def random_integers(low: int, high: int | None = None, size: Any = None) -> Any:
    """Whole numbers from `low` (1 if there is one bound only) to `high`, both included."""
    low, high = (1, low) if high is None else (low, high)
    return randint(low, high + 1, size)


@placed
def bernoulli(
    prob: Any = None, logit: Any = None, size: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """1 with probability `prob`, or with logarithmic odds `logit`; else 0."""
    if (prob is None) == (logit is None):
        raise ArgumentError(
            f"bernoulli: prob is {prob} and logit is {logit}; expected one of the two."
        )
    prob = _chance("bernoulli", "prob", prob) if prob is not None else None
    return ops.bernoulli(prob, _real(logit), _size(size, out), dtype_name(dtype), out=out)


def poisson(lam: Any = 1.0, size: Any = None, dtype: Any = None) -> Any:
    """How many events happen where `lam` are expected."""
    expected = f"a number from 0 to {_MOST_EVENTS:.2e}, whose counts int64 holds"
    lam = _parameter("poisson", "lam", lam, expected, most=_MOST_EVENTS)
    return ops.poisson(lam, _size(size), "int64" if dtype is None else dtype_name(dtype))


def binomial(n: Any, p: Any, size: Any = None, dtype: Any = None) -> Any:
    """How many of `n` trials succeed, each with probability `p`."""
    n, p = _not_negative("binomial", "n", n), _chance("binomial", "p", p)
    return ops.binomial(n, p, _size(size), "int64" if dtype is None else dtype_name(dtype))


def negative_binomial(n: Any, p: Any, size: Any = None, dtype: Any = None) -> Any:
    """How many trials fail before `n` succeed, each with probability `p`."""
    n, p = _positive("negative_binomial", "n", n), _chance("negative_binomial", "p", p)
    dtype = "int64" if dtype is None else dtype_name(dtype)
    return ops.negative_binomial(n, p, _size(size), dtype)


def geometric(p: Any, size: Any = None, dtype: Any = None) -> Any:
    """How many trials it takes to succeed once, each with probability `p`."""
    p = _positive("geometric", "p", _chance("geometric", "p", p))
    return ops.geometric(p, _size(size), "int64" if dtype is None else dtype_name(dtype))


# -- choices --------------------------------------------------------------------------------------


def multinomial(n: int, pvals: Any, size: Any = None, **_: Any) -> Any:
    """How often each outcome occurs in `n` trials; `pvals` are the outcomes' probabilities.

    As in NumPy the last outcome has what the others leave of 1.
    """
    if isinstance(pvals, tuple | list):
        for share in pvals:
            _check(0 <= share <= 1, "multinomial", "a probability", share, "a number from 0 to 1")
        total = sum(pvals[:-1])
        _check(total <= 1 + 1e-12, "multinomial", "sum(pvals[:-1])", total, "at most 1")
        pvals = array(pvals, dtype="float64")
    return choices.multinomial(_not_negative("multinomial", "n", n), pvals, _size(size))


def multivariate_normal(
    mean: Any, cov: Any, size: Any = None, check_valid: Any = None, tol: Any = None
) -> Any:
    """Normal vectors of `mean` and covariance `cov`: symmetric, with no negative eigenvalue.

    `cov` is not checked: negative eigenvalues count as 0.
    """
    return choices.multivariate_normal(mean, cov, _size(size))


def dirichlet(alpha: Any, size: Any = None, dtype: Any = None) -> Any:
    """Positive numbers that add up to 1, in the mean in proportion to `alpha`."""
    alpha = alpha if isinstance(alpha, _core.ndarray) else array(alpha)
    alpha = _positive("dirichlet", "alpha", alpha)
    return choices.dirichlet(alpha, _size(size), _float_dtype("dirichlet", dtype))


@placed
def choice(
    a: Any, size: Any = None, replace: bool = True, p: Any = None, ctx: Any = None, out: Any = None
) -> Any:
    """Items of `a`, or numbers below `a`, equally likely or with probabilities `p`."""
    items = None if isinstance(a, int) else (a if isinstance(a, _core.ndarray) else array(a))
    if items is not None and not items.ndim:
        items, a = None, int(items.item())
    elif items is not None and items.ndim != 1:
        expected = "one dimension, or a number; choose places: a[np.random.choice(len(a), size)]"
        _check(False, "choice", "a's shape", items.shape, expected)
    count = a if items is None else items.shape[0]
    size = _size(size, out)
    wanted = prod(size or ())
    _check(count > 0 or wanted == 0, "choice", "a", a, "a positive number, or items")
    if not replace:
        _check(wanted <= count, "choice", "size", size, f"at most the {count} items there are")
    if p is not None:
        p = p if isinstance(p, _core.ndarray) else array(p, dtype="float64")
        _check(p.shape == (count,), "choice", "p's shape", p.shape, f"({count},)")
    if p is not None and not replace:
        return _weighted_order(items, p, wanted, size, out)
    return choices.choice(items, p, count, size, replace, out=out)


def _weighted_order(items: Any, p: Any, wanted: int, size: tuple[int, ...] | None, out: Any) -> Any:
    """The first to arrive of racers that have rates `p`: draws without replacement."""
    found = choices.race(p, wanted).argsort()[:wanted].astype("int64").reshape(size or ())
    found = found if items is None else items.take(found, axis=0)
    if out is None:
        return found
    out[...] = found
    return out


def shuffle(x: Any) -> None:
    """Put the rows of the array `x` in random order, in place."""
    if not isinstance(x, _core.ndarray):
        raise DTypeError(
            f"shuffle: changes an array in place, and got {type(x).__name__}; "
            "see permutation for a new array."
        )
    if x.size:
        choices.shuffled(x, out=x)


def permutation(x: Any) -> Any:
    """The numbers below `x`, or the rows of the array `x`, in random order, as a new array."""
    if isinstance(x, int):
        return choices.choice(None, None, x, (x,), False)
    return choices.shuffled(x)


_check_members(globals())
