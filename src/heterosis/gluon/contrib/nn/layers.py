"""Pixel shuffles, and variants of layers for many devices and sparse gradients."""

from __future__ import annotations

import math
from typing import Any

from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.nn.basic import Embedding
from heterosis.gluon.nn.convolution import Sizes, per_axis
from heterosis.gluon.nn.normalization import BatchNorm
from heterosis.runtime.errors import ShapeError
from heterosis.runtime.kinds import Natural, Positive


class SparseEmbedding(Embedding):
    """An Embedding; its gradients are dense here."""

    def __init__(
        self, input_dim: Positive, output_dim: Positive, dtype: Any = "float32",
        weight_initializer: Any = None, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(input_dim, output_dim, dtype, weight_initializer, True, **kwargs)


class SyncBatchNorm(BatchNorm):
    """Batch normalisation over the batches of all devices: there is one, so it is BatchNorm."""

    def __init__(
        self, in_channels: Natural = 0, num_devices: int | None = None, momentum: float = 0.9,
        epsilon: float = 1e-5, center: bool = True, scale: bool = True,
        use_global_stats: bool = False, beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones", running_mean_initializer: Any = "zeros",
        running_variance_initializer: Any = "ones", **kwargs: Any,
    ):  # fmt: skip
        super().__init__(
            1, momentum, epsilon, center, scale, use_global_stats, beta_initializer,
            gamma_initializer, running_mean_initializer, running_variance_initializer, in_channels,
            **kwargs,
        )  # fmt: skip


class _PixelShuffle(HybridBlock):
    """Channels moved into blocks of pixels: (n, c * f1 * ..., w1, ...) to (n, c, w1 * f1, ...)."""

    _axes = 1

    def __init__(self, factor: Sizes):
        super().__init__()
        self._factors = per_axis(type(self).__name__, "factor", factor, self._axes)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The shuffled pixels."""
        block, count = math.prod(self._factors), self._axes
        if x.ndim != count + 2 or x.shape[1] % block:
            raise ShapeError(
                f"{type(self).__name__}: input of shape {x.shape}; expected (batch, channels, ...) "
                f"with {count + 2} dimensions and a multiple of {block} channels."
            )
        batch, channels, *extents = x.shape
        x = F.np.reshape(x, (batch, channels // block, *self._factors, *extents))
        order = [axis for i in range(count) for axis in (2 + count + i, 2 + i)]
        x = F.np.transpose(x, (0, 1, *order))
        sizes = [n * f for n, f in zip(extents, self._factors, strict=True)]
        return F.np.reshape(x, (batch, channels // block, *sizes))


class PixelShuffle1D(_PixelShuffle):
    """(n, c * f, w) to (n, c, w * f)."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors[0]})"


class PixelShuffle2D(_PixelShuffle):
    """(n, c * f1 * f2, h, w) to (n, c, h * f1, w * f2)."""

    _axes = 2

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"


class PixelShuffle3D(_PixelShuffle):
    """(n, c * f1 * f2 * f3, d, h, w) to (n, c, d * f1, h * f2, w * f3)."""

    _axes = 3

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors})"
