"""Random numbers: others at every call, from the generator that `np.random.seed` sets."""

from __future__ import annotations

from typing import Any

from heterosis import np
from heterosis.models.onnx.operators.table import operator
from heterosis.models.onnx.tensors import dtype_of
from heterosis.runtime.errors import UnsupportedError

_DRAWN = ("float16", "float32", "float64")


def _check_seed(name: str, seed: float | None) -> None:
    if seed is not None:
        raise UnsupportedError(
            f"{name}: seed={seed}, whose numbers are those of another program; leave it out, and "
            "call np.random.seed."
        )


def _drawn(name: str, draw: Any, a: float, b: float, shape: Any, dtype: str) -> Any:
    if dtype not in _DRAWN:
        raise UnsupportedError(f"{name}: elements of {dtype}; expected one of {_DRAWN}.")
    return draw(a, b, size=tuple(shape), dtype="float32").astype(dtype)


@operator("RandomNormal")
def _random_normal(
    *, shape: list[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0,
    seed: float | None = None,
) -> Any:  # fmt: skip
    _check_seed("RandomNormal", seed)
    return _drawn("RandomNormal", np.random.normal, mean, scale, shape, dtype_of(dtype))


@operator("RandomUniform")
def _random_uniform(
    *, shape: list[int], dtype: int = 1, low: float = 0.0, high: float = 1.0,
    seed: float | None = None,
) -> Any:  # fmt: skip
    _check_seed("RandomUniform", seed)
    return _drawn("RandomUniform", np.random.uniform, low, high, shape, dtype_of(dtype))


def _like(x: Any, dtype: int | None) -> str:
    return str(x.dtype) if dtype is None else dtype_of(dtype)


@operator("RandomNormalLike")
def _random_normal_like(
    x: Any, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
    seed: float | None = None,
) -> Any:  # fmt: skip
    _check_seed("RandomNormalLike", seed)
    return _drawn("RandomNormalLike", np.random.normal, mean, scale, x.shape, _like(x, dtype))


@operator("RandomUniformLike")
def _random_uniform_like(
    x: Any, *, dtype: int | None = None, low: float = 0.0, high: float = 1.0,
    seed: float | None = None,
) -> Any:  # fmt: skip
    _check_seed("RandomUniformLike", seed)
    return _drawn("RandomUniformLike", np.random.uniform, low, high, x.shape, _like(x, dtype))


@operator("Bernoulli", since=15)
def _bernoulli(x: Any, *, dtype: int | None = None, seed: float | None = None) -> Any:
    _check_seed("Bernoulli", seed)
    return (np.random.uniform(size=x.shape) < x).astype(_like(x, dtype))


@operator("Multinomial", since=7)
def _multinomial(x: Any, *, dtype: int = 6, sample_size: int = 1, seed: float | None = None) -> Any:
    """Classes, from logarithms of their chances that need not be normalized."""
    _check_seed("Multinomial", seed)
    wide = x.astype("float32")
    chances = np.cumsum(np.exp(wide - np.max(wide, 1, keepdims=True)), 1)
    total = chances[:, -1:]
    drawn = np.random.uniform(size=(x.shape[0], sample_size)) * total
    # As many classes lie wholly before what is drawn as its class has before it.
    before = np.expand_dims(chances, 1) <= np.expand_dims(drawn, 2)
    found = np.sum(before.astype("int32"), 2)
    # Rounding may bring what is drawn to the very end: the last class that has a chance is meant.
    last = np.sum((chances < total).astype("int32"), 1, keepdims=True)
    return np.minimum(found, last).astype(dtype_of(dtype))
