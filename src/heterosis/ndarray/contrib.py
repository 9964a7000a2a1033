"""What MXNet kept under `nd.contrib`: loops over arrays, and detection."""

from heterosis.mxnet.arrays.contrib import (
    MultiBoxDetection,
    MultiBoxPrior,
    MultiBoxTarget,
    arange_like,
    cond,
    foreach,
    while_loop,
)

__all__ = [
    "MultiBoxDetection",
    "MultiBoxPrior",
    "MultiBoxTarget",
    "arange_like",
    "cond",
    "foreach",
    "while_loop",
]
