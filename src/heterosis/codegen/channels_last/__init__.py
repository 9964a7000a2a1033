"""Convolutions of inputs whose channels are neighbours in memory."""

from heterosis.codegen.channels_last.depthwise import (
    Before,
    depthwise_scratch_bytes,
    emit_depthwise,
    panel_columns,
)
from heterosis.codegen.channels_last.problem import Problem
from heterosis.codegen.channels_last.product import emit_product

__all__ = [
    "Before",
    "Problem",
    "depthwise_scratch_bytes",
    "emit_depthwise",
    "emit_product",
    "panel_columns",
]
