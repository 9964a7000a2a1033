"""What is counted or placed by values."""

from __future__ import annotations

from heterosis.ir.primitives.counting import OCCURRENCES, TRUE_PLACES
from heterosis.ir.program import Node
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.tables import row


@row(OCCURRENCES)
def _occurring(writer: ProgramWriter, node: Node) -> str:
    """Those that count for nothing are counted behind the others."""
    graph, (count,) = writer.graph, node.types[0].shape
    numbers = writer.name(node.inputs[0])
    numbers = numbers if node.inputs[0].dtype == "int64" else writer.cast(numbers, "int64")
    room = writer.sizes.number_of(count)
    below, inside = (
        writer.node("Less", numbers, bound) for bound in (writer.array(0, "int64"), room)
    )
    inside = writer.node("And", writer.node("Not", below), inside)
    places = writer.node("Where", inside, numbers, room)
    zeros = writer.node("Expand", writer.array(0, "int64"), writer.sizes.row(count + 1))
    one, each = writer.array(1, "int64"), writer.node("Shape", numbers)
    ones = writer.node("Expand", one, each)
    places = writer.node("Unsqueeze", places, graph.whole(1))
    found = writer.node("ScatterND", zeros, places, ones, reduction="add")
    return writer.node("Slice", found, graph.whole(0), writer.sizes.row(count), graph.whole(0))


@row(TRUE_PLACES)
def _true(writer: ProgramWriter, node: Node) -> str:
    graph, (count,) = writer.graph, node.types[0].shape
    zero, room = graph.whole(0), writer.sizes.row(count)
    found = writer.node("NonZero", writer.name(node.inputs[0]))
    found = writer.node("Squeeze", found, zero)
    found = writer.node("Slice", found, zero, room, zero)
    left = writer.node("Sub", room, writer.node("Shape", found))
    behind = writer.node("Expand", writer.array(0, "int64"), left)
    return writer.node("Concat", found, behind, axis=0)
