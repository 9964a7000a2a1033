"""Convolutions of inputs whose channels are neighbours in memory."""

from heterosis.backends.native.codegen.kernels.channels_last.grouped import (
    Before,
    emit_grouped,
    grouped_scratch_bytes,
    takes_groups,
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
    "emit_grouped",
    "emit_product",
    "emit_tiles",
    "grouped_scratch_bytes",
    "product_scratch_bytes",
    "takes_groups",
    "tiles_scratch_bytes",
]
