"""Rows in order, by ONNX's `TopK`, which keeps the order of equal elements.

Programs sort keys: integers that stand in the order of floats, made of their bits. ONNX has no way
to those bits, so the floats are sorted themselves; keys are there for nothing else. NaN has no
place in ONNX's order: rows are sorted as if it were infinite, then by whether they are NaN.
"""

from __future__ import annotations

import numpy

from heterosis.ir.primitives import sort_keys
from heterosis.ir.primitives.sorting import FIRST_PLACES, SORT, SORT_PLACES
from heterosis.ir.program import Node
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.broadcasting import sorted_floats
from heterosis.models.onnx.writing.sizes import Extent
from heterosis.models.onnx.writing.tables import row
from heterosis.runtime.errors import UnsupportedError


def _first(writer: ProgramWriter, rows: str, length: Extent, *, largest: bool) -> tuple[str, str]:
    """All elements of every row in order, and where they stood."""
    values, places = writer.graph.nodes_of(
        "TopK", (rows, writer.sizes.row(length)), 2, axis=1, largest=int(largest), sorted=1
    )
    return values, places


def _of_floats(writer: ProgramWriter, node: Node) -> tuple[str, str]:
    """Floats in the order of their keys, and where they stood."""
    found = sorted_floats(node)
    assert found is not None
    value, descending = found
    x, length = writer.name(value), value.shape[1]
    nan = writer.node("IsNaN", x)
    clean = writer.node("Where", nan, writer.like(value, float("inf")), x)
    _, places = _first(writer, clean, length, largest=descending)
    flags = writer.node("GatherElements", writer.cast(nan, "float32"), places, axis=1)
    _, order = _first(writer, flags, length, largest=descending)
    places = writer.node("GatherElements", places, order, axis=1)
    return writer.node("GatherElements", x, places, axis=1), places


def _of_keys(writer: ProgramWriter, node: Node) -> tuple[str, str]:
    """Integers in the order of unsigned ones."""
    (keys,), type_ = writer.operands(node), node.inputs[0].type
    lowest = writer.array(numpy.iinfo(type_.dtype).min, type_.dtype)
    signed = writer.node("BitwiseXor", keys, lowest)
    values, places = _first(writer, signed, type_.shape[1], largest=False)
    return writer.node("BitwiseXor", values, lowest), places


@row(SORT)
def _sorted(writer: ProgramWriter, node: Node) -> str:
    return _of_keys(writer, node)[0]


@row(SORT_PLACES)
def _placed(writer: ProgramWriter, node: Node) -> tuple[str, ...]:
    if sorted_floats(node):
        return "", _of_floats(writer, node)[1]
    return _of_keys(writer, node)


@row(FIRST_PLACES)
def _first_places(writer: ProgramWriter, node: Node) -> str:
    made = _of_floats if sorted_floats(node) else _of_keys
    zero, one = writer.graph.whole(0), writer.graph.whole(1)
    count = writer.graph.whole(node.attributes["count"])
    return writer.node("Slice", made(writer, node)[1], zero, count, one, one)


@row(sort_keys.FROM_SORT_KEY_FLOAT32, sort_keys.FROM_SORT_KEY_FLOAT64)
def _floats(writer: ProgramWriter, node: Node) -> str:
    if not sorted_floats(node):
        raise UnsupportedError(
            f"{node.primitive.name}: floats are made of keys that were not sorted, which no ONNX "
            "file can."
        )
    return _of_floats(writer, node)[0]
