"""Random arrays by MXNet's older names. Parameters are numbers, and `shape` the result's shape; or
arrays, with numbers of `shape` for each of their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis import np
from heterosis.mxnet.operators import random as _operators
from heterosis.npx.random import seed
from heterosis.runtime.arguments import check_members as _check_members


def _drawn(
    by_numbers: Callable[..., Any], by_arrays: Callable[..., Any], parameters: tuple[Any, ...],
    shape: Any, options: dict[str, Any],
) -> Any:  # fmt: skip
    """What the operator for numbers gives, or that for arrays of them."""
    if any(isinstance(p, np.ndarray) for p in parameters):
        ctx = options.pop("ctx")
        arrays = np.broadcast_arrays(*(np.array(p, "float32") for p in parameters))
        drawn = by_arrays(*arrays, shape=shape, **options)
        return drawn if ctx is None else drawn.as_in_context(ctx)
    return by_numbers(*parameters, shape=(1,) if shape is None else shape, **options)


def uniform(low: Any = 0.0, high: Any = 1.0, shape: Any = None, dtype: Any = None,
            ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """From `low` on, below `high`, all equally likely."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn(_operators.random_uniform, _operators.sample_uniform, (low, high), shape, given)


def normal(loc: Any = 0.0, scale: Any = 1.0, shape: Any = None, dtype: Any = None,
           ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """The normal distribution of mean `loc` and standard deviation `scale`."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn(_operators.random_normal, _operators.sample_normal, (loc, scale), shape, given)


def randn(*shape: int, loc: Any = 0.0, scale: Any = 1.0, **options: Any) -> Any:
    """`normal` with its shape as arguments."""
    return normal(loc, scale, shape, **options)


def gamma(alpha: Any = 1.0, beta: Any = 1.0, shape: Any = None, dtype: Any = None,
          ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """The gamma distribution of shape `alpha` and scale `beta`."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn(_operators.random_gamma, _operators.sample_gamma, (alpha, beta), shape, given)


def exponential(scale: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None,
                out: Any = None, **options: Any) -> Any:  # fmt: skip
    """The exponential distribution of mean `scale`."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn(
        _operators.random_exponential, _operators.sample_exponential, (1.0 / scale,), shape, given
    )


def poisson(lam: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None,
            out: Any = None, **options: Any) -> Any:  # fmt: skip
    """Counts with mean `lam`, as floats."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn(_operators.random_poisson, _operators.sample_poisson, (lam,), shape, given)


def negative_binomial(k: Any = 1, p: Any = 1.0, shape: Any = None, dtype: Any = None,
                      ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """Counts of failures before `k` successes of probability `p`, as floats."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn(
        _operators.random_negative_binomial,
        _operators.sample_negative_binomial,
        (k, p),
        shape,
        given,
    )


def generalized_negative_binomial(
    mu: Any = 1.0, alpha: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Counts with mean `mu` and variance `mu + alpha * mu ** 2`, as floats."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn(
        _operators.random_generalized_negative_binomial,
        _operators.sample_generalized_negative_binomial,
        (mu, alpha),
        shape,
        given,
    )


def randint(low: int, high: int, shape: Any = None, dtype: Any = None, ctx: Any = None,
            out: Any = None, **options: Any) -> Any:  # fmt: skip
    """Whole numbers from `low` on, below `high`; int32 unless `dtype` says otherwise."""
    shape = (1,) if shape is None else shape
    return _operators.random_randint(low, high, shape, dtype or "int32", ctx, out=out)


def multinomial(data: Any, shape: Any = None, get_prob: bool = False, out: Any = None,
                dtype: Any = "int32", **options: Any) -> Any:  # fmt: skip
    """Random classes by the probabilities in the last axis of `data`, as many as `shape` says;
    with `get_prob` also the logarithms of their probabilities."""
    shape = (1,) if shape is None and data.ndim == 1 else shape
    return _operators.sample_multinomial(data, shape, get_prob, dtype=dtype, out=out)


def shuffle(data: Any, out: Any = None, **options: Any) -> Any:
    """The rows in random order, as a new array."""
    return _operators.shuffle(data, out=out)


_check_members(globals())

__all__ = [
    "exponential",
    "gamma",
    "generalized_negative_binomial",
    "multinomial",
    "negative_binomial",
    "normal",
    "poisson",
    "randint",
    "randn",
    "seed",
    "shuffle",
    "uniform",
]
