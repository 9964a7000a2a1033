"""Branches side by side, pixel shuffles, and variants of layers."""

from heterosis.gluon.contrib.nn.layers import (
    PixelShuffle1D,
    PixelShuffle2D,
    PixelShuffle3D,
    SparseEmbedding,
    SyncBatchNorm,
)
from heterosis.gluon.nn.containers import Concurrent, HybridConcurrent, Identity
from heterosis.runtime.arguments import check_members as _check_members

_check_members(globals())

__all__ = [
    "Concurrent",
    "HybridConcurrent",
    "Identity",
    "PixelShuffle1D",
    "PixelShuffle2D",
    "PixelShuffle3D",
    "SparseEmbedding",
    "SyncBatchNorm",
]
