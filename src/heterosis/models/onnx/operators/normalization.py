"""Normalization by means, variances and norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from heterosis import np, npx
from heterosis.models.onnx.operators.activations import MICROSOFT
from heterosis.models.onnx.operators.table import operator
from heterosis.models.onnx.tensors import dtype_of
from heterosis.runtime.errors import UnsupportedError

_EPSILON = 1e-5
_CONSTANT = (1, 11, 16, 10)  # the types, by their numbers, that statistics may be computed in


def _column(v: Any, ndim: int, axis: int = 1) -> Any:
    """A vector along one axis."""
    shape = [1] * ndim
    shape[axis] = -1
    return np.reshape(v, tuple(shape))


def _moments(x: Any, axes: Sequence[int]) -> tuple[Any, Any]:
    mean = np.mean(x, tuple(axes), keepdims=True)
    return mean, np.mean(np.square(x - mean), tuple(axes), keepdims=True)


# -- of batches -----------------------------------------------------------------------------------


def _by_statistics(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: float
) -> Any:  # fmt: skip
    return npx.batch_norm(
        x, scale, bias, mean, variance, eps=epsilon, fix_gamma=False, use_global_stats=True,
        axis=1 if x.ndim > 1 else 0,
    )  # fmt: skip


@operator("BatchNormalization", since=9)
def _batch_normalization(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any,
    *, epsilon: float = _EPSILON, momentum: float = 0.9, _outputs: int = 1,
) -> Any:  # fmt: skip
    if _outputs > 1:
        raise UnsupportedError(
            "BatchNormalization: several results mean training in this version of the operator, "
            "which is not done here; export the model for inference."
        )
    return _by_statistics(x, scale, bias, mean, variance, epsilon)


@operator("BatchNormalization", since=7)
def _batch_normalization_of_space(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any,
    *, epsilon: float = _EPSILON, momentum: float = 0.9, spatial: int = 1, _outputs: int = 1,
) -> Any:  # fmt: skip
    if not spatial:
        raise UnsupportedError("BatchNormalization: spatial=0 is not done here.")
    return _batch_normalization(
        x, scale, bias, mean, variance, epsilon=epsilon, momentum=momentum, _outputs=_outputs
    )


@operator("BatchNormalization", since=14)
def _batch_normalization_in_mode(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any,
    *, epsilon: float = _EPSILON, momentum: float = 0.9, training_mode: int = 0,
) -> Any:  # fmt: skip
    if not training_mode:
        return _by_statistics(x, scale, bias, mean, variance, epsilon)
    dtype = str(mean.dtype)
    wide = x if str(x.dtype) == "float64" else x.astype("float32")
    axes = [a for a in range(x.ndim) if a != 1]
    of_mean, of_variance = _moments(wide, axes)
    factor = _column(scale.astype(str(wide.dtype)), x.ndim)
    y = (wide - of_mean) / np.sqrt(of_variance + epsilon) * factor
    y = (y + _column(bias.astype(str(wide.dtype)), x.ndim)).astype(str(x.dtype))

    def nearer(old: Any, new: Any) -> Any:
        new = np.reshape(new, old.shape)
        return (old.astype(str(new.dtype)) * momentum + new * (1 - momentum)).astype(dtype)

    return y, nearer(mean, of_mean), nearer(variance, of_variance)


# -- of single examples ---------------------------------------------------------------------------


@operator("InstanceNormalization", since=6)
def _instance_normalization(x: Any, scale: Any, bias: Any, *, epsilon: float = _EPSILON) -> Any:
    return _of_groups(x, scale, bias, x.shape[1], epsilon)


def _of_groups(x: Any, scale: Any, bias: Any, groups: int, epsilon: float) -> Any:
    """Groups of channels, each with a mean of 0 and a variance of 1; then a scale and a bias for
    each channel."""
    dtype = str(x.dtype)
    wide = x if dtype == "float64" else x.astype("float32")
    apart = np.reshape(wide, (x.shape[0], groups, -1))
    mean, variance = _moments(apart, (2,))
    normal = np.reshape((apart - mean) / np.sqrt(variance + epsilon), x.shape)
    scale, bias = (_column(v.astype(str(wide.dtype)), x.ndim) for v in (scale, bias))
    return (normal * scale + bias).astype(dtype)


@operator("GroupNormalization", since=18)
def _group_normalization_by_groups(
    x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = _EPSILON
) -> Any:
    part = x.shape[1] // num_groups
    scale, bias = (np.repeat(v, part, 0) for v in (scale, bias))
    return _of_groups(x, scale, bias, num_groups, epsilon)


@operator("GroupNormalization", since=21)
def _group_normalization(
    x: Any, scale: Any, bias: Any,
    *, num_groups: int, epsilon: float = _EPSILON, stash_type: int = 1,
) -> Any:  # fmt: skip
    _check_stash("GroupNormalization", x, stash_type)
    return _of_groups(x, scale, bias, num_groups, epsilon)


def _check_stash(name: str, x: Any, stash_type: int) -> None:
    """Statistics are computed in float32, of doubles in float64: no less precise than told."""
    if stash_type not in _CONSTANT:
        raise UnsupportedError(f"{name}: stash_type={stash_type}; expected a type of floats.")
    if dtype_of(stash_type) == "float64" and str(x.dtype) != "float64":
        raise UnsupportedError(f"{name}: stash_type float64 for {x.dtype} is not done here.")


def _along_last(x: Any, axis: int) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """All axes from this one on as one; the shape before, and that of statistics."""
    axis = axis % x.ndim
    lead, rest = tuple(x.shape[:axis]), tuple(x.shape[axis:])
    flat = x if len(rest) == 1 else np.reshape(x, (*lead, math.prod(rest)))
    return flat, tuple(x.shape), (*lead, *(1 for _ in rest))


def _layer_normalized(
    x: Any, scale: Any, bias: Any, axis: int, epsilon: float, outputs: int
) -> Any:  # fmt: skip
    flat, shape, reduced = _along_last(x, axis)
    rest = shape[axis % len(shape) :]
    vectors = scale.shape == rest and (bias is None or bias.shape == rest)
    if vectors and outputs == 1:
        scale = np.reshape(scale, (-1,))
        bias = np.zeros_like(scale) if bias is None else np.reshape(bias, (-1,))
        return np.reshape(npx.layer_norm(flat, scale, bias, -1, epsilon), shape)
    wide = flat if str(x.dtype) == "float64" else flat.astype("float32")
    mean, variance = _moments(wide, (wide.ndim - 1,))
    inverse = 1 / np.sqrt(variance + epsilon)
    y = np.reshape((wide - mean) * inverse, shape).astype(str(x.dtype)) * scale
    y = y if bias is None else y + bias
    return (y, np.reshape(mean, reduced), np.reshape(inverse, reduced)) if outputs > 1 else y


@operator("LayerNormalization", since=17)
@operator("LayerNormalization", domain=MICROSOFT)
@operator("LayerNormalization")  # as ONNX Runtime had it before there was a standard
def _layer_normalization(
    x: Any, scale: Any, bias: Any = None,
    *, axis: int = -1, epsilon: float = _EPSILON, stash_type: int = 1, _outputs: int = 1,
) -> Any:  # fmt: skip
    _check_stash("LayerNormalization", x, stash_type)
    found = _layer_normalized(x, scale, bias, axis, epsilon, _outputs)
    if _outputs == 1:
        return found
    y, *statistics = found
    return y, *(v.astype(dtype_of(stash_type)) for v in statistics)


@operator("RMSNormalization", since=23)
@operator("SimplifiedLayerNormalization", domain=MICROSOFT)
@operator("SimplifiedLayerNormalization")
def _rms_normalization(
    x: Any, scale: Any, *, axis: int = -1, epsilon: float = _EPSILON, stash_type: int = 1
) -> Any:
    _check_stash("RMSNormalization", x, stash_type)
    flat, shape, _ = _along_last(x, axis)
    if scale.shape == shape[axis % len(shape) :]:
        return np.reshape(npx.rms_norm(flat, np.reshape(scale, (-1,)), -1, epsilon), shape)
    return np.reshape(npx.rms_norm(flat, None, -1, epsilon), shape) * scale


@operator("SkipLayerNormalization", domain=MICROSOFT)
def _skip_layer_normalization(
    x: Any, skip: Any, gamma: Any, beta: Any = None, bias: Any = None,
    *, epsilon: float = 1e-12, _outputs: int = 1,
) -> Any:  # fmt: skip
    total = x + skip if bias is None else x + skip + bias
    y = _layer_normalized(total, gamma, beta, -1, epsilon, 1)
    return _with_total(y, total, _outputs)


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def _skip_rms_normalization(
    x: Any, skip: Any, gamma: Any, bias: Any = None,
    *, epsilon: float = 1e-12, _outputs: int = 1,
) -> Any:  # fmt: skip
    total = x + skip if bias is None else x + skip + bias
    return _with_total(npx.rms_norm(total, gamma, -1, epsilon), total, _outputs)


def _with_total(y: Any, total: Any, outputs: int) -> Any:
    if outputs in (2, 3):
        raise UnsupportedError("the mean and the deviation as results are not done here.")
    return y if outputs == 1 else (y, None, None, total)


@operator("MeanVarianceNormalization", since=9)
def _mean_variance_normalization(x: Any, *, axes: Sequence[int] = (0, 2, 3)) -> Any:
    mean, variance = _moments(x, tuple(axes))
    return (x - mean) / (np.sqrt(variance) + 1e-9)


# -- by norms -------------------------------------------------------------------------------------


@operator("LpNormalization")
def _lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    if p not in (1, 2):
        raise UnsupportedError(f"LpNormalization: p={p}; expected 1 or 2.")
    if p == 1:
        norm = np.sum(np.abs(x), axis, keepdims=True)
    else:
        norm = np.sqrt(np.sum(np.square(x), axis, keepdims=True))
    # Zeros stay zeros.
    return x / np.where(norm == 0, np.ones_like(norm), norm)


@operator("LRN")
def _lrn(
    x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Any:  # fmt: skip
    # Sums over neighbouring channels are a pooling along them.
    images, channels, *space = x.shape
    before, after = (size - 1) // 2, size // 2
    squares = np.reshape(np.square(x), (images, 1, channels, math.prod(space)))
    around = np.pad(squares, ((0, 0), (0, 0), (before, after), (0, 0)))
    sums = npx.pooling(around, kernel=(size, 1), pool_type="sum")
    return x / (np.reshape(sums, x.shape) * (alpha / size) + bias) ** beta
