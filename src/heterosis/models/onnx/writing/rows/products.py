"""Matrix products."""

from __future__ import annotations

from heterosis.ir.primitives.products import MATMUL
from heterosis.ir.program import Node
from heterosis.ir.types import is_half
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.conversions import converted
from heterosis.models.onnx.writing.rows.elementwise import combined_type
from heterosis.models.onnx.writing.tables import row


@row(MATMUL)
def _product(writer: ProgramWriter, node: Node) -> str:
    dtype = node.types[0].dtype
    wide = combined_type(dtype)
    names = [name if wide == dtype else writer.cast(name, wide) for name in writer.operands(node)]
    found = writer.node("MatMul", *names)
    if wide == dtype:
        return found
    return writer.cast(found, dtype) if is_half(dtype) else converted(writer, found, wide, dtype)
