"""Activations: functions of each element, the softmax family, and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.models.onnx.operators.table import Host, operator
from heterosis.runtime.errors import UnsupportedError

MICROSOFT = "com.microsoft"


# -- functions of each element --------------------------------------------------------------------


def leaky_relu(x: Any, alpha: float) -> Any:
    """`x` where it is not negative, else `alpha * x`."""
    return np.where(x < 0, x * alpha, x)


def elu(x: Any, alpha: float) -> Any:
    """`x` where it is not negative, else an exponential curve down to `-alpha`."""
    # The exponential sees no positive numbers: it would overflow there.
    return np.where(x < 0, np.expm1(np.minimum(x, 0)) * alpha, x)


def softsign(x: Any) -> Any:
    """`x / (1 + |x|)`."""
    return x / (np.abs(x) + 1)


def thresholded_relu(x: Any, alpha: float) -> Any:
    """`x` where it is above `alpha`, else 0."""
    return np.where(x > alpha, x, np.zeros_like(x))


@operator("LeakyRelu", since=6)
def _leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    return leaky_relu(x, alpha)


@operator("PRelu", since=7)
def _prelu(x: Any, slope: Any) -> Any:
    return np.where(x < 0, x * slope, x)


@operator("Elu", since=6)
def _elu(x: Any, *, alpha: float = 1.0) -> Any:
    return elu(x, alpha)


@operator("Celu", since=12)
def _celu(x: Any, *, alpha: float = 1.0) -> Any:
    below = np.expm1(np.minimum(x, 0) / alpha) * alpha
    return np.maximum(x, 0) + np.minimum(below, 0)


@operator("Selu", since=6)
def _selu(x: Any, *, alpha: float = 1.6732631921768188, gamma: float = 1.0507010221481323) -> Any:
    return np.where(x <= 0, np.expm1(np.minimum(x, 0)) * alpha, x) * gamma


@operator("Gelu", since=20)
def _gelu(x: Any, *, approximate: str = "none") -> Any:
    if approximate not in ("none", "tanh"):
        raise UnsupportedError(f"Gelu: approximate={approximate!r}; expected 'none' or 'tanh'.")
    return npx.gelu(x, "tanh" if approximate == "tanh" else "erf")


@operator("Gelu", domain=MICROSOFT)
def _microsoft_gelu(x: Any) -> Any:
    return npx.gelu(x)


@operator("BiasGelu", domain=MICROSOFT)
def _bias_gelu(a: Any, b: Any) -> Any:
    return npx.gelu(a + b)


@operator("FastGelu", domain=MICROSOFT)
def _fast_gelu(x: Any, bias: Any = None) -> Any:
    return npx.gelu(x if bias is None else x + bias, "tanh")


@operator("QuickGelu", domain=MICROSOFT)
def _quick_gelu(x: Any, *, alpha: float = 1.702) -> Any:
    return npx.silu(x, alpha)


@operator("HardSigmoid", since=6)
def _hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return npx.hard_sigmoid(x, alpha, beta)


@operator("Swish", since=24)
def _swish(x: Any, *, alpha: float = 1.0) -> Any:
    return npx.silu(x, alpha)


@operator("SwiGLU", since=28)
def _swiglu(a: Any, b: Any, *, alpha: float = 1.0) -> Any:
    return npx.silu(a, alpha) * b


@operator("ThresholdedRelu", since=10)
def _thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    return thresholded_relu(x, alpha)


@operator("Shrink", since=9)
def _shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    dtype = str(x.dtype)
    found = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, np.zeros_like(x)))
    return found.astype(dtype)


for _name, _since, _function in (
    ("Mish", 18, npx.mish),
    ("HardSwish", 14, npx.hardswish),
    ("Softplus", 1, npx.softplus),
    ("Softsign", 1, softsign),
):
    operator(_name, since=_since)(lambda x, _function=_function: _function(x))


# -- over an axis ---------------------------------------------------------------------------------


def _flattened(x: Any, axis: int, along_last: Callable[[Any], Any]) -> Any:
    """As it was before version 13: all axes from this one on count as one."""
    shape = x.shape
    axis %= max(len(shape), 1)
    return np.reshape(along_last(np.reshape(x, (math.prod(shape[:axis]), -1))), shape)


def _hardmax(x: Any, axis: int) -> Any:
    """1 at the first of the largest elements along an axis, else 0."""
    place = np.expand_dims(np.argmax(x, axis), axis)
    column = [1] * x.ndim
    column[axis] = x.shape[axis]
    return (np.reshape(np.arange(x.shape[axis], dtype="int64"), tuple(column)) == place).astype(
        str(x.dtype)
    )


def _family(name: str, along: Callable[[Any, int], Any]) -> None:
    @operator(name, since=13)
    def on_axis(x: Any, *, axis: int = -1) -> Any:
        return along(x, axis)

    @operator(name)
    def from_axis(x: Any, *, axis: int = 1) -> Any:
        return _flattened(x, axis, lambda flat: along(flat, -1))


_family("Softmax", lambda x, axis: npx.softmax(x, axis=axis))
_family("LogSoftmax", lambda x, axis: npx.log_softmax(x, axis=axis))
_family("Hardmax", _hardmax)


# -- dropout --------------------------------------------------------------------------------------


def _kept(x: Any, count: int, dtype: str = "bool") -> Any:
    return (x, np.ones(x.shape, dtype=dtype)) if count > 1 else x


@operator("Dropout", since=7)
def _dropout(x: Any, *, ratio: float = 0.5, _outputs: int = 1, _version: int = 7) -> Any:
    # In inference nothing is dropped; a network that is trained drops as it would in training.
    if _outputs == 1:
        return npx.dropout(x, min(float(ratio), 1.0))
    return _kept(x, _outputs, str(x.dtype) if _version < 10 else "bool")


@operator("Dropout", since=12)
def _dropout_by_input(
    x: Any, ratio: Host | None = None, training_mode: Host | None = None,
    *, seed: int | None = None, _outputs: int = 1,
) -> Any:  # fmt: skip
    share = 0.5 if ratio is None else float(numpy.asarray(ratio).reshape(-1)[0])
    training = training_mode is not None and bool(numpy.asarray(training_mode).reshape(-1)[0])
    if not training or share == 0:
        return _kept(x, _outputs)
    if seed is not None:
        raise UnsupportedError(
            "Dropout: training_mode with a seed, whose numbers are those of another program; "
            "leave the seed out."
        )
    mask = np.random.uniform(size=x.shape) >= share
    found = np.where(mask, x / (1 - share), np.zeros_like(x))
    return (found, mask) if _outputs > 1 else found
