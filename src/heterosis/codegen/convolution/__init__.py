"""Convolutions: windows of the input gathered into the panels of the matrix product."""

from heterosis.codegen.convolution.forward import emit_forward, scratch_bytes
from heterosis.codegen.convolution.problem import Problem

__all__ = ["Problem", "emit_forward", "scratch_bytes"]
