"""What has no operands."""

from __future__ import annotations

from heterosis.ir.primitives.leaves import CONSTANT, EXTENT, IOTA
from heterosis.ir.program import Node
from heterosis.models.onnx.writing.programs import ProgramWriter, computed_type
from heterosis.models.onnx.writing.tables import row


@row(CONSTANT)
def _constant(writer: ProgramWriter, node: Node) -> str:
    return writer.array(node.attributes["value"], computed_type(node.types[0].dtype))


@row(EXTENT)
def _extent(writer: ProgramWriter, node: Node) -> str:
    return writer.sizes.number_of(node.attributes["value"])


@row(IOTA)
def _iota(writer: ProgramWriter, node: Node) -> str:
    type_ = node.types[0]
    places = writer.places(type_.size)
    if type_.ndim == 1:
        return places
    return writer.node("Reshape", places, writer.sizes.shape(type_.shape), allowzero=1)
