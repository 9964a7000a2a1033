"""Matrix products."""

from __future__ import annotations

from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.program import Node
from heterosis.ir.types import ITEMSIZE, is_float, is_half
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.conversions import converted
from heterosis.models.onnx.writing.tables import row


@row(MATMUL)
def _product(writer: ProgramWriter, node: Node) -> str:
    dtype = node.types[0].dtype
    wide = _wide(dtype)
    names = [name if wide == dtype else writer.cast(name, wide) for name in writer.operands(node)]
    found = writer.node("MatMul", *names)
    if wide == dtype:
        return found
    return writer.cast(found, dtype) if is_half(dtype) else converted(writer, found, wide, dtype)


def _wide(dtype: str) -> str:
    """Of halves, sums are made in float32; integers wrap, and truths are counted."""
    if is_float(dtype):
        return "float32" if is_half(dtype) else dtype
    return "int64" if ITEMSIZE[dtype] == 8 or dtype == "uint32" else "int32"
