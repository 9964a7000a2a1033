"""Networks from other frameworks' files."""

from heterosis.models.onnx.network import OnnxNetwork, from_onnx

__all__ = ["OnnxNetwork", "from_onnx"]
