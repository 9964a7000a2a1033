"""What MXNet kept under `nd.contrib`: loops over arrays, detection, and further operators."""

from heterosis.mxnet.arrays.contrib import (
    MultiBoxDetection,
    MultiBoxPrior,
    MultiBoxTarget,
    arange_like,
    cond,
    foreach,
    while_loop,
)
from heterosis.mxnet.operators.contrib import CONTRIB as _CONTRIB

globals().update(_CONTRIB)

__all__ = [
    "MultiBoxDetection",
    "MultiBoxPrior",
    "MultiBoxTarget",
    "arange_like",
    "cond",
    "foreach",
    "while_loop",
]
__all__ += list(_CONTRIB)
