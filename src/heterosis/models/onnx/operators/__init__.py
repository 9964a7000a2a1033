"""The operators of ONNX, family by family."""

from heterosis.models.onnx.operators import control, elementwise, sequences, shapes

__all__ = ["control", "elementwise", "sequences", "shapes"]
