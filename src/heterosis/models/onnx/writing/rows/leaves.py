"""What has no operands."""

from __future__ import annotations

from heterosis.ir.primitives.leaves import CONSTANT, EXTENT, IOTA
from heterosis.ir.program import Node
from heterosis.ir.sizes import Size
from heterosis.models.onnx.writing.programs import ProgramWriter, computed_type
from heterosis.models.onnx.writing.tables import row


@row(CONSTANT)
def _constant(writer: ProgramWriter, node: Node) -> str:
    return writer.array(node.attributes["value"], computed_type(node.types[0].dtype))


@row(EXTENT)
def _extent(writer: ProgramWriter, node: Node) -> str:
    value = node.attributes["value"]
    if not isinstance(value, Size):
        return writer.array(value, "int64")
    return writer.node("Squeeze", writer.sizes.row(value), writer.graph.whole(0))


@row(IOTA)
def _iota(writer: ProgramWriter, node: Node) -> str:
    type_ = node.types[0]
    count = writer.node("Squeeze", writer.sizes.row(type_.size), writer.graph.whole(0))
    zero, one = (writer.array(n, "int64") for n in (0, 1))
    places = writer.node("Range", zero, count, one)
    if type_.ndim == 1:
        return places
    return writer.node("Reshape", places, writer.sizes.shape(type_.shape), allowzero=1)
