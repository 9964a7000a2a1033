"""Convolutions of inputs whose channels are neighbours in memory."""

from heterosis.backends.native.codegen.kernels.channels_last.depthwise import (
    Before,
    depthwise_scratch_bytes,
    emit_depthwise,
)
from heterosis.backends.native.codegen.kernels.channels_last.problem import Problem
from heterosis.backends.native.codegen.kernels.channels_last.product import (
    emit_product,
    product_scratch_bytes,
)
from heterosis.backends.native.codegen.kernels.channels_last.tiles import (
    emit_tiles,
    tiles_scratch_bytes,
)

__all__ = [
    "Before",
    "Problem",
    "depthwise_scratch_bytes",
    "emit_depthwise",
    "emit_product",
    "emit_tiles",
    "product_scratch_bytes",
    "tiles_scratch_bytes",
]
