"""The initialisers: constants, random numbers, and shapes with a meaning."""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis import _core, np
from heterosis.initializer.base import Initializer, alias, register
from heterosis.runtime.errors import ArgumentError, ShapeError


@register
@alias("zeros")
class Zero(Initializer):
    """Zeros."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: _core.ndarray) -> None:
        arr[...] = 0.0


@register
@alias("ones")
class One(Initializer):
    """Ones."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, _: str, arr: _core.ndarray) -> None:
        arr[...] = 1.0


@register
class Constant(Initializer):
    """One number, or an array of the parameter's shape."""

    def __init__(self, value: Any):
        super().__init__(value=value)
        self.value = value

    def _init_weight(self, _: str, arr: _core.ndarray) -> None:
        is_number = isinstance(self.value, bool | int | float)
        arr[...] = self.value if is_number else np.asarray(self.value)


@register
class Uniform(Initializer):
    """Random numbers from `-scale` to `scale`, all equally likely."""

    def __init__(self, scale: float = 0.07):
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, _: str, arr: _core.ndarray) -> None:
        _fill_uniform(arr, self.scale)


@register
class Normal(Initializer):
    """Random numbers from the normal distribution of deviation `sigma`."""

    def __init__(self, sigma: float = 0.01):
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, _: str, arr: _core.ndarray) -> None:
        _fill_normal(arr, self.sigma)


def _fill_uniform(arr: _core.ndarray, scale: float) -> None:
    arr[...] = np.random.uniform(-scale, scale, arr.shape, dtype=arr._dtype_name)


def _fill_normal(arr: _core.ndarray, sigma: float) -> None:
    arr[...] = np.random.normal(0.0, sigma, arr.shape, dtype=arr._dtype_name)


@register
class Orthogonal(Initializer):
    """A random matrix with orthogonal rows, or columns if there are fewer, times `scale`."""

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform"):
        super().__init__(scale=scale, rand_type=rand_type)
        _check_one_of("rand_type", rand_type, ("uniform", "normal"))
        self.scale, self.rand_type = scale, rand_type

    def _init_weight(self, name: str, arr: _core.ndarray) -> None:
        if not arr.ndim:
            raise ShapeError(f"Orthogonal: the parameter {name!r} is a single number.")
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        drawn = (
            np.random.uniform(-1.0, 1.0, shape)
            if self.rand_type == "uniform"
            else np.random.normal(0.0, 1.0, shape)
        )
        left, _, right = np.linalg.svd(drawn)
        found = left if left.shape == shape else right
        arr[...] = self.scale * found.reshape(arr.shape)


@register
class Xavier(Initializer):
    """Random numbers whose spread keeps the size of what layers pass on.

    The variance is `magnitude` over the number of inputs ('in'), outputs ('out') or their
    average ('avg') for 'gaussian' numbers; a third of that for 'uniform' ones.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        _check_one_of("rnd_type", rnd_type, ("uniform", "gaussian"))
        _check_one_of("factor_type", factor_type, ("avg", "in", "out"))
        self.rnd_type, self.factor_type = rnd_type, factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: _core.ndarray) -> None:
        scale = math.sqrt(self.magnitude / self._factor(name, arr.shape))
        (_fill_uniform if self.rnd_type == "uniform" else _fill_normal)(arr, scale)

    def _factor(self, name: str, shape: tuple[int, ...]) -> float:
        if len(shape) < 2:
            raise ShapeError(
                f"{type(self).__name__}: the parameter {name!r} of shape {shape} has no inputs "
                "and outputs to count; it needs two dimensions. Use Normal or Uniform for it."
            )
        area = math.prod(shape[2:])
        fans = {"in": shape[1] * area, "out": shape[0] * area}
        fans["avg"] = (fans["in"] + fans["out"]) / 2.0
        return fans[self.factor_type] or 1.0  # an empty array: no numbers are drawn


@register
class MSRAPrelu(Xavier):
    """Xavier's, made for layers that PReLU of `slope` follows (He et al.)."""

    def __init__(self, factor_type: str = "avg", slope: float = 0.25):
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """A kernel with which a transposed convolution enlarges pictures smoothly."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: str, arr: _core.ndarray) -> None:
        if arr.ndim != 4:
            raise ShapeError(
                f"Bilinear: the parameter {name!r} has the shape {arr.shape}; expected four "
                "dimensions, those of a convolution's weight."
            )
        height, width = arr.shape[2:]
        half = math.ceil(width / 2.0)
        centre = (2 * half - 1 - half % 2) / (2.0 * half)
        down, across = (1 - numpy.abs(numpy.arange(n) / half - centre) for n in (height, width))
        kernel = numpy.outer(down, across).astype("float32")
        arr[...] = np.array(numpy.broadcast_to(kernel, arr.shape))


@register
class LSTMBias(Initializer):
    """Zeros, and `forget_bias` for the forget gate: the second quarter of an LSTM's bias."""

    def __init__(self, forget_bias: float = 1.0):
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: str, arr: _core.ndarray) -> None:
        arr[...] = 0.0
        count = arr.shape[0] // 4
        arr[count : 2 * count] = self.forget_bias


def _check_one_of(name: str, given: str, expected: tuple[str, ...]) -> None:
    if given not in expected:
        raise ArgumentError(f"{name}={given!r}: expected one of {', '.join(expected)}.")
