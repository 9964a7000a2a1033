"""Networks from other frameworks' files, and for them."""

from heterosis.models.onnx.network import OnnxNetwork, from_onnx
from heterosis.models.onnx.writing.files import to_onnx

__all__ = ["OnnxNetwork", "from_onnx", "to_onnx"]
