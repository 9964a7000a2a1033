"""Operators that draw random numbers."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.creation import extents_of
from heterosis.mxnet.operators.table import operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, writes

# -- parameters are numbers -----------------------------------------------------------------------


@operator("random_uniform", "uniform", creates=True)
def random_uniform(
    low: Any = 0.0, high: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Uniform random numbers."""
    return np.random.uniform(low, high, extents_of(shape), dtype=dtype, ctx=ctx)


@stored("_npi_uniform", "_npi_uniform_n")
def _uniform(low: float = 0, high: float = 1, size: Any = None, dtype: str = "float32") -> Any:
    return np.random.uniform(low, high, size, dtype=dtype)


@operator("random_normal", "normal", creates=True)
def random_normal(
    loc: Any = 0.0, scale: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Normal random numbers."""
    return np.random.normal(loc, scale, extents_of(shape), dtype=dtype, ctx=ctx)


@stored("_npi_normal", "_npi_normal_n")
def _normal(loc: float = 0, scale: float = 1, size: Any = None, dtype: str = "float32") -> Any:
    return np.random.normal(loc, scale, size, dtype=dtype)


@writes("random_uniform", "random_normal")
def _write_random(writer: Writer, a: Arguments) -> Made:
    attributes = {p: a.number(p) for p in list(a.uses)[:2]}
    if None in attributes.values():
        return None
    kind = a.record.name.removeprefix("random_")
    result = a.results[0]
    return writer.single(f"_npi_{kind}", a, **attributes, size=result.shape, dtype=result.dtype)


@operator("random_gamma", creates=True)
def random_gamma(
    alpha: Any = 1.0, beta: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random numbers of the gamma distribution with shape `alpha` and scale `beta`."""
    return np.random.gamma(alpha, beta, extents_of(shape), dtype=dtype, ctx=ctx)


@operator("random_exponential", creates=True)
def random_exponential(
    lam: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random numbers of the exponential distribution with rate `lam`."""
    return np.random.exponential(1.0 / lam, extents_of(shape)).astype(dtype or "float32")


@operator("random_poisson", creates=True)
def random_poisson(lam: Any = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None) -> Any:
    """Random counts with mean `lam`."""
    return np.random.poisson(lam, extents_of(shape)).astype(dtype or "float32")


@operator("random_randint", creates=True)
def random_randint(
    low: int, high: int, shape: Any = None, dtype: Any = "int32", ctx: Any = None
) -> Any:
    """Random whole numbers from `low` up to, without, `high`."""
    return np.random.randint(low, high, extents_of(shape), dtype=dtype)


@operator("random_negative_binomial", creates=True)
def random_negative_binomial(
    k: int = 1, p: float = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random counts of failures before `k` successes of probability `p`."""
    return np.random.negative_binomial(k, p, extents_of(shape)).astype(dtype or "float32")


@operator("random_generalized_negative_binomial", creates=True)
def random_generalized_negative_binomial(
    mu: float = 1.0, alpha: float = 1.0, shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """Random counts with mean `mu` and variance `mu + alpha * mu ** 2`."""
    return _mixed_counts(np.full(extents_of(shape), mu), alpha, dtype)


@operator()
def shuffle(data: Any) -> Any:
    """The rows in random order."""
    return np.random.permutation(data)


# -- parameters are arrays, with numbers for each of their elements -------------------------------


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


@operator("sample_multinomial", results=lambda a: 2 if a.get("get_prob") else 1)
def sample_multinomial(
    data: Any, shape: Any = None, get_prob: bool = False, dtype: Any = "int32"
) -> Any:
    """Random classes, for each vector of probabilities as many as `shape` says."""
    extents = extents_of(shape)
    lead = data.shape[:-1]
    aligned = np.log(data).reshape((*lead, *(1,) * len(extents), data.shape[-1]))
    noise = np.random.gumbel(size=(*lead, *extents, data.shape[-1]))
    found = np.argmax(aligned + noise, axis=-1)
    if not get_prob:
        return found.astype(dtype)
    chosen = np.broadcast_to(aligned, (*found.shape, data.shape[-1]))
    return [found.astype(dtype), npx.pick(chosen, found)]


def _counts(parameters: tuple[Any, ...], shape: Any, dtype: Any, draw: Any) -> Any:
    extents = extents_of(shape)
    lead = parameters[0].shape
    aligned = [np.broadcast_to(p.reshape(lead + (1,) * len(extents)), lead + extents)
               for p in parameters]  # fmt: skip
    return draw(*aligned).astype(dtype or "float32")


def _sampled(draw: Any, parameters: tuple[Any, ...], shape: Any, dtype: Any) -> Any:
    extents = extents_of(shape)
    lead = parameters[0].shape
    aligned = [p.reshape(lead + (1,) * len(extents)) for p in parameters]
    return draw(*aligned, size=lead + extents, dtype=dtype)
