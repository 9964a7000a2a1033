"""Rows in order, by ONNX's `TopK`, which keeps the order of equal elements, and places in rows.

Programs sort keys: integers that stand in the order of floats, made of their bits. ONNX has no way
to those bits, so the floats are sorted themselves; keys are there for nothing else. NaN has no
place in ONNX's order: rows are sorted as if it were infinite, then by whether they are NaN.
"""

from __future__ import annotations

import numpy

from heterosis.ir.primitives import sort_keys
from heterosis.ir.primitives.sorting import (
    EXTREME_PLACES,
    FIRST_PLACES,
    SEARCH,
    SORT,
    SORT_PLACES,
)
from heterosis.ir.program import Node
from heterosis.ir.types import is_float
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.broadcasting import sorted_floats
from heterosis.models.onnx.writing.rows.elementwise import combined_type
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


# -- places in rows -------------------------------------------------------------------------------


@row(EXTREME_PLACES)
def _extreme(writer: ProgramWriter, node: Node) -> str:
    """The first NaN of a row, if it has any."""
    (value,) = node.inputs
    operator = "ArgMin" if node.attributes["smallest"] else "ArgMax"
    options = {"axis": 1, "keepdims": 0}
    if not is_float(value.dtype):
        name, wide = writer.name(value), combined_type(value.dtype)
        name = name if wide == value.dtype else writer.cast(name, wide)
        return writer.node(operator, name, **options)
    x = writer.wide(value)
    nan = writer.node("IsNaN", x)
    clean = writer.node("Where", nan, writer.like(value, 0.0), x)
    flags = writer.cast(nan, "int32")
    spoilt = writer.cast(writer.node("ReduceMax", flags, writer.graph.whole(1), keepdims=0), "bool")
    places = writer.node(operator, clean, **options)
    return writer.node("Where", spoilt, writer.node("ArgMax", flags, **options), places)


@row(SEARCH)
def _searched(writer: ProgramWriter, node: Node) -> str:
    """How many elements of the row are less, compared with each: NaN is the largest."""
    in_order, numbers = node.inputs
    elements = writer.name(in_order)
    each = writer.node("Unsqueeze", writer.name(numbers), writer.graph.whole(numbers.ndim))
    right = node.attributes["right"]
    less = writer.node("LessOrEqual" if right else "Less", elements, each)
    if is_float(numbers.dtype):
        last = writer.node("IsNaN", each)
        if not right:
            last = writer.node("And", last, writer.node("Not", writer.node("IsNaN", elements)))
        less = writer.node("Or", less, last)
    axis = writer.graph.whole(numbers.ndim)
    return writer.node("ReduceSum", writer.cast(less, "int64"), axis, keepdims=0)
