"""Convolutions: windows of the input gathered into the panels of the matrix product."""

from heterosis.codegen.convolution.forward import emit_forward, scratch_bytes
from heterosis.codegen.convolution.problem import Problem
from heterosis.codegen.convolution.weights import emit_weights, weights_scratch_bytes

__all__ = ["Problem", "emit_forward", "emit_weights", "scratch_bytes", "weights_scratch_bytes"]
