"""Operators that make arrays, and random numbers."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.operator import operator


def _extents(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape or ())


@operator()
def zeros(shape: Any, ctx: Any = None, dtype: Any = None, **options: Any) -> Any:
    """Zeros."""
    return np.zeros(_extents(shape), dtype, ctx=ctx)


@operator()
def ones(shape: Any, ctx: Any = None, dtype: Any = None, **options: Any) -> Any:
    """Ones."""
    return np.ones(_extents(shape), dtype or "float32", ctx=ctx)


@operator()
def full(shape: Any, val: float, ctx: Any = None, dtype: Any = "float32") -> Any:
    """One number everywhere."""
    return np.full(_extents(shape), val, dtype, ctx=ctx)


@operator()
def empty(shape: Any, ctx: Any = None, dtype: Any = None) -> Any:
    """Whatever the memory held."""
    return np.empty(_extents(shape), dtype, ctx=ctx)


@operator()
def array(source_array: Any, ctx: Any = None, dtype: Any = None) -> Any:
    """An array from numbers, lists or arrays; of float32, also from NumPy's arrays of others."""
    own = source_array.dtype if isinstance(source_array, np.ndarray) else "float32"
    return np.array(source_array, dtype or own, ctx)


@operator()
def arange(
    start: float, stop: float | None = None, step: float = 1.0, repeat: int = 1,
    infer_range: bool | None = None, ctx: Any = None, dtype: Any = "float32",
) -> Any:  # fmt: skip
    """Numbers from `start` up to `stop`, each `repeat` times."""
    numbers = np.arange(start, stop, step, dtype, ctx)
    return np.repeat(numbers, repeat) if repeat > 1 else numbers


@operator()
def eye(N: int, M: int = 0, k: int = 0, ctx: Any = None, dtype: Any = "float32") -> Any:
    """Ones on a diagonal."""
    return np.eye(N, M or None, k, dtype)


@operator("random_uniform", "uniform")
def random_uniform(
    low: Any = 0.0, high: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Uniform random numbers."""
    return np.random.uniform(low, high, _extents(shape), dtype=dtype, ctx=ctx)


@operator("random_normal", "normal")
def random_normal(
    loc: Any = 0.0, scale: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Normal random numbers."""
    return np.random.normal(loc, scale, _extents(shape), dtype=dtype, ctx=ctx)


@operator("random_gamma")
def random_gamma(
    alpha: Any = 1.0, beta: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random numbers of the gamma distribution with shape `alpha` and scale `beta`."""
    return np.random.gamma(alpha, beta, _extents(shape), dtype=dtype, ctx=ctx)


@operator("random_exponential")
def random_exponential(
    lam: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random numbers of the exponential distribution with rate `lam`."""
    return np.random.exponential(1.0 / lam, _extents(shape)).astype(dtype or "float32")


@operator("random_poisson")
def random_poisson(lam: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Random counts with mean `lam`."""
    return np.random.poisson(lam, _extents(shape)).astype(dtype or "float32")


@operator("random_randint")
def random_randint(
    low: int, high: int, shape: Any = None, dtype: Any = "int32", ctx: Any = None
) -> Any:
    """Random whole numbers from `low` up to, without, `high`."""
    return np.random.randint(low, high, _extents(shape), dtype=dtype)


@operator("sample_uniform")
def sample_uniform(low: Any, high: Any, shape: Any = None, dtype: Any = None) -> Any:
    """For each pair of bounds, random numbers of `shape`."""
    return _sampled(np.random.uniform, (low, high), shape, dtype)


@operator("sample_normal")
def sample_normal(mu: Any, sigma: Any, shape: Any = None, dtype: Any = None) -> Any:
    """For each mean and deviation, random numbers of `shape`."""
    return _sampled(np.random.normal, (mu, sigma), shape, dtype)


@operator("sample_gamma")
def sample_gamma(alpha: Any, beta: Any, shape: Any = None, dtype: Any = None) -> Any:
    """For each shape and scale of a gamma distribution, random numbers of `shape`."""
    return _sampled(np.random.gamma, (alpha, beta), shape, dtype)


@operator("sample_exponential")
def sample_exponential(lam: Any, shape: Any = None, dtype: Any = None) -> Any:
    """For each rate, random numbers of `shape`."""
    ones = np.ones(lam.shape)
    return _sampled(np.random.gamma, (ones, 1.0 / lam), shape, dtype)


@operator("sample_poisson")
def sample_poisson(lam: Any, shape: Any = None, dtype: Any = None) -> Any:
    """For each mean, random counts of `shape`."""
    return _counts((lam,), shape, dtype, np.random.poisson)


@operator("sample_negative_binomial")
def sample_negative_binomial(k: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """For each pair, random counts of failures before `k` successes of probability `p`."""
    return _counts((k, p), shape, dtype, np.random.negative_binomial)


@operator("random_negative_binomial")
def random_negative_binomial(
    k: int = 1, p: float = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random counts of failures before `k` successes of probability `p`."""
    return np.random.negative_binomial(k, p, _extents(shape)).astype(dtype or "float32")


@operator("random_generalized_negative_binomial")
def random_generalized_negative_binomial(
    mu: float = 1.0, alpha: float = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random counts with mean `mu` and variance `mu + alpha * mu ** 2`."""
    return _mixed_counts(np.full(_extents(shape), mu), alpha, dtype)


@operator("sample_generalized_negative_binomial")
def sample_generalized_negative_binomial(
    mu: Any, alpha: Any, shape: Any = None, dtype: Any = None
) -> Any:
    """For each mean and dispersion, random counts of `shape`."""
    return _counts((mu, alpha), shape, dtype, _mixed_counts)


def _mixed_counts(mean: Any, dispersion: Any, dtype: Any = None) -> Any:
    """Poisson counts whose means are gamma numbers; without dispersion all means are `mean`."""
    some = np.maximum(dispersion, 1e-12)
    means = np.where(np.greater(dispersion, 0), np.random.gamma(1.0 / some, mean * some), mean)
    return np.random.poisson(means).astype(dtype or "float32")


@operator("sample_multinomial")
def sample_multinomial(
    data: Any, shape: Any = None, get_prob: bool = False, dtype: Any = "int32"
) -> Any:
    """Random classes, for each vector of probabilities as many as `shape` says."""
    extents = _extents(shape)
    lead = data.shape[:-1]
    aligned = np.log(data).reshape((*lead, *(1,) * len(extents), data.shape[-1]))
    noise = np.random.gumbel(size=(*lead, *extents, data.shape[-1]))
    found = np.argmax(aligned + noise, axis=-1)
    if not get_prob:
        return found.astype(dtype)
    chosen = np.broadcast_to(aligned, (*found.shape, data.shape[-1]))
    return [found.astype(dtype), npx.pick(chosen, found)]


def _counts(parameters: tuple[Any, ...], shape: Any, dtype: Any, draw: Any) -> Any:
    extents = _extents(shape)
    lead = parameters[0].shape
    aligned = [np.broadcast_to(p.reshape(lead + (1,) * len(extents)), lead + extents)
               for p in parameters]  # fmt: skip
    return draw(*aligned).astype(dtype or "float32")


def _sampled(draw: Any, parameters: tuple[Any, ...], shape: Any, dtype: Any) -> Any:
    extents = _extents(shape)
    lead = parameters[0].shape
    aligned = [p.reshape(lead + (1,) * len(extents)) for p in parameters]
    return draw(*aligned, size=lead + extents, dtype=dtype)
