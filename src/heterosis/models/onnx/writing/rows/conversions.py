"""Conversions between element types, as programs have them: floats out of range are told."""

from __future__ import annotations

from functools import partial

import numpy

from heterosis.ir.primitives.conversions import BY_WAY_OF, COPY, NEAREST, conversion
from heterosis.ir.program import Node
from heterosis.ir.types import DTYPES, is_float, is_half, is_integer
from heterosis.models.onnx.writing.programs import ProgramWriter, computed_type
from heterosis.models.onnx.writing.tables import row


def converted(writer: ProgramWriter, name: str, old: str, new: str) -> str:
    """Elements of the type `old`, in the type that `new` is computed in."""
    held, computed = computed_type(old), computed_type(new)
    if new == "bool":
        zero = writer.array(0, held)
        return name if old == "bool" else writer.node("Not", writer.node("Equal", name, zero))
    if is_float(old) and is_integer(new):
        return _to_integer(writer, name, held, new)
    if held == computed and not (is_half(new) and old != new):
        return name
    if is_half(new):  # rounded once, and computed with in float32
        return writer.cast(writer.cast(name, new), computed)
    return writer.cast(name, new)


def _to_integer(writer: ProgramWriter, name: str, held: str, new: str) -> str:
    """By truncation; those out of range as the lowest. Narrow types take the last bits."""
    wide = BY_WAY_OF.get(new, new)
    limits = numpy.iinfo(wide)
    low, high = (writer.array(n, held) for n in (float(limits.min), -float(limits.min)))
    inside = writer.node(
        "And", writer.node("GreaterOrEqual", name, low), writer.node("Less", name, high)
    )
    zero = writer.array(0.0, held)
    whole = writer.cast(writer.node("Where", inside, name, zero), wide)
    whole = writer.node("Where", inside, whole, writer.array(limits.min, wide))
    if new != "uint64":
        return whole if wide == new else writer.cast(whole, new)
    large = writer.node("And", writer.node("GreaterOrEqual", name, high),
                        writer.node("Less", name, writer.array(2.0**64, held)))  # fmt: skip
    itself = writer.cast(writer.node("Where", large, name, zero), new)
    return writer.node("Where", large, itself, writer.cast(whole, new))


def _convert(new: str, writer: ProgramWriter, node: Node) -> str:
    (name,) = writer.operands(node)
    return converted(writer, name, node.inputs[0].dtype, new)


for _dtype in DTYPES:
    row(conversion(_dtype))(partial(_convert, _dtype))


@row(COPY)
def _copy(writer: ProgramWriter, node: Node) -> str:
    (name,) = writer.operands(node)
    return name


@row(NEAREST)
def _nearest(writer: ProgramWriter, node: Node) -> str:
    """What a type of 16 bits holds: the value has been in float32 until here."""
    return writer.name(node.inputs[0])
