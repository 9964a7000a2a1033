"""Convolutions of inputs whose channels are neighbours in memory."""

from heterosis.codegen.channels_last.depthwise import depthwise_scratch_bytes, emit_depthwise
from heterosis.codegen.channels_last.problem import Problem
from heterosis.codegen.channels_last.product import emit_product

__all__ = ["Problem", "depthwise_scratch_bytes", "emit_depthwise", "emit_product"]
