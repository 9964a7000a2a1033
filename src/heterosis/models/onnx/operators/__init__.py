"""The operators of ONNX, family by family."""

from heterosis.models.onnx.operators import elementwise, shapes

__all__ = ["elementwise", "shapes"]
