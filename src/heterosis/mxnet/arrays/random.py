"""Random arrays by MXNet's older names. Parameters are numbers, and `shape` the result's shape; or
arrays, with numbers of `shape` for each of their elements."""

from __future__ import annotations

from typing import Any

from heterosis import np
from heterosis.mxnet.operators import OPERATORS as _OPERATORS
from heterosis.np.random import seed
from heterosis.runtime.arguments import check_members as _check_members


def _drawn(name: str, parameters: tuple[Any, ...], shape: Any, options: dict[str, Any]) -> Any:
    if any(isinstance(p, np.ndarray) for p in parameters):
        options.pop("ctx", None)
        arrays = np.broadcast_arrays(*(np.array(p, "float32") for p in parameters))
        return _OPERATORS[f"sample_{name}"](*arrays, shape=shape, **options)
    shape = (1,) if shape is None else shape
    return _OPERATORS[f"random_{name}"](*parameters, shape=shape, **options)


def uniform(low: Any = 0.0, high: Any = 1.0, shape: Any = None, dtype: Any = None,
            ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """From `low` on, below `high`, all equally likely."""
    return _drawn("uniform", (low, high), shape, {"dtype": dtype, "ctx": ctx, "out": out})


def normal(loc: Any = 0.0, scale: Any = 1.0, shape: Any = None, dtype: Any = None,
           ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """The normal distribution of mean `loc` and standard deviation `scale`."""
    return _drawn("normal", (loc, scale), shape, {"dtype": dtype, "ctx": ctx, "out": out})


def randn(*shape: int, loc: Any = 0.0, scale: Any = 1.0, **options: Any) -> Any:
    """`normal` with its shape as arguments."""
    return normal(loc, scale, shape, **options)


def gamma(alpha: Any = 1.0, beta: Any = 1.0, shape: Any = None, dtype: Any = None,
          ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """The gamma distribution of shape `alpha` and scale `beta`."""
    return _drawn("gamma", (alpha, beta), shape, {"dtype": dtype, "ctx": ctx, "out": out})


def exponential(scale: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None,
                out: Any = None, **options: Any) -> Any:  # fmt: skip
    """The exponential distribution of mean `scale`."""
    return _drawn("exponential", (1.0 / scale,), shape, {"dtype": dtype, "ctx": ctx, "out": out})


def poisson(lam: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None,
            out: Any = None, **options: Any) -> Any:  # fmt: skip
    """Counts with mean `lam`, as floats."""
    return _drawn("poisson", (lam,), shape, {"dtype": dtype, "ctx": ctx, "out": out})


def negative_binomial(k: Any = 1, p: Any = 1.0, shape: Any = None, dtype: Any = None,
                      ctx: Any = None, out: Any = None, **options: Any) -> Any:  # fmt: skip
    """Counts of failures before `k` successes of probability `p`, as floats."""
    return _drawn("negative_binomial", (k, p), shape, {"dtype": dtype, "ctx": ctx, "out": out})


def generalized_negative_binomial(
    mu: Any = 1.0, alpha: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None,
    out: Any = None, **options: Any,
) -> Any:  # fmt: skip
    """Counts with mean `mu` and variance `mu + alpha * mu ** 2`, as floats."""
    given = {"dtype": dtype, "ctx": ctx, "out": out}
    return _drawn("generalized_negative_binomial", (mu, alpha), shape, given)


def randint(low: int, high: int, shape: Any = None, dtype: Any = None, ctx: Any = None,
            out: Any = None, **options: Any) -> Any:  # fmt: skip
    """Whole numbers from `low` on, below `high`; int32 unless `dtype` says otherwise."""
    return _drawn(
        "randint", (low, high), shape, {"dtype": dtype or "int32", "ctx": ctx, "out": out}
    )


def multinomial(data: Any, shape: Any = None, get_prob: bool = False, out: Any = None,
                dtype: Any = "int32", **options: Any) -> Any:  # fmt: skip
    """Random classes by the probabilities in the last axis of `data`, as many as `shape` says;
    with `get_prob` also the logarithms of their probabilities."""
    shape = (1,) if shape is None and data.ndim == 1 else shape
    return _OPERATORS["sample_multinomial"](data, shape, get_prob, dtype=dtype, out=out)


def shuffle(data: Any, out: Any = None, **options: Any) -> Any:
    """The rows in random order, as a new array."""
    return _OPERATORS["shuffle"](data, out=out)


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
