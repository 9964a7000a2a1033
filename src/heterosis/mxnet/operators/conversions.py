"""Operators that copy elements, or convert them to another type."""

from __future__ import annotations

from typing import Any

from heterosis import np
from heterosis.ir.primitives.conversions import COPY, conversion
from heterosis.ir.program import Value
from heterosis.ir.types import DTYPES
from heterosis.mxnet.graph import Entry
from heterosis.mxnet.operators.table import operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, follows, writes


@operator("Cast", "cast", method="astype")
def cast(data: Any, dtype: Any) -> Any:
    """Elements converted to `dtype`."""
    return data.astype(dtype)


@operator("amp_cast")
def amp_cast(data: Any, dtype: Any) -> Any:
    """Elements converted to `dtype`."""
    return data.astype(dtype)


@writes("astype", "cast")
def _write_cast(writer: Writer, a: Arguments) -> Made:
    (operand, dtype) = (a[parameter] for parameter in a.uses)
    return writer.single("Cast", a, operand, dtype=dtype)


@follows(*map(conversion, DTYPES))
def _follow_cast(writer: Writer, value: Value) -> Entry:
    (operand,) = value.node.inputs
    return converted(writer, "cast", writer.entry(operand), value.dtype)


def converted(writer: Writer, name: str, entry: Entry, dtype: str) -> Entry:
    """An entry in another element type."""
    return writer.node("Cast", name, [entry], {"dtype": dtype})[0]


@operator("identity", method="copy")
def identity(data: Any) -> Any:
    """A copy."""
    return np.copy(data)


stored("_copy", "_np_copy", "_npi_copy")(np.copy)


@writes("copy", "assign", "positive")
def _write_copy(writer: Writer, a: Arguments) -> Made:
    (operand,) = (a[parameter] for parameter in a.uses)
    return writer.single("_np_copy", a, operand)


@follows(COPY)
def _follow_copy(writer: Writer, value: Value) -> Entry:
    return writer.entry(value.node.inputs[0])


@operator("BlockGrad", "stop_gradient")
def stop_gradient(data: Any) -> Any:
    """The same elements; no gradient flows through."""
    return data.detach()


@writes("stop_gradient")
def _write_stop_gradient(writer: Writer, a: Arguments) -> Made:
    return writer.single("BlockGrad", a, a["a"])
