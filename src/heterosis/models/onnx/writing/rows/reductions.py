"""Reductions along axes, and sums and products of all that came before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heterosis.ir.primitives import reductions as r
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import Node
from heterosis.ir.reference import computes_wide
from heterosis.ir.types import is_half
from heterosis.models.onnx.writing.graphs import described
from heterosis.models.onnx.writing.programs import ProgramWriter, computed_type
from heterosis.models.onnx.writing.rows.elementwise import combined_type
from heterosis.models.onnx.writing.rows.rearranging import transposed
from heterosis.models.onnx.writing.sizes import Extent
from heterosis.models.onnx.writing.tables import row

_OPERATORS: dict[Primitive, str] = {
    r.SUM: "ReduceSum", r.PROD: "ReduceProd", r.MAX: "ReduceMax", r.MIN: "ReduceMin",
    r.ANY: "ReduceMax", r.ALL: "ReduceMin",
}  # fmt: skip


def _combined(writer: ProgramWriter, node: Node, combine: Callable[[str, str], str]) -> str:
    """What `combine` makes of the operand, which it is given in a type that holds sums."""
    value = node.inputs[0]
    wide = combined_type(value.dtype)
    name = writer.wide(value)
    if wide != computed_type(value.dtype):
        name = writer.cast(name, wide)
    found = combine(name, wide)
    same = wide == node.types[0].dtype or (computes_wide(node) and is_half(value.dtype))
    return found if same else writer.cast(found, node.types[0].dtype)


@row(*_OPERATORS)
def _reduced(writer: ProgramWriter, node: Node) -> str:
    axes, operator = node.attributes["axes"], _OPERATORS[node.primitive]
    if not axes:
        return writer.operands(node)[0]

    def reduced(name: str, wide: str) -> str:
        return writer.node(operator, name, writer.graph.whole(*axes), keepdims=0)

    return _combined(writer, node, reduced)


@row(r.CUMSUM)
def _summed(writer: ProgramWriter, node: Node) -> str:
    (axis,) = node.attributes["axes"]

    def summed(name: str, wide: str) -> str:
        return writer.node("CumSum", name, writer.array(axis, "int64"))

    return _combined(writer, node, summed)


@row(r.CUMPROD)
def _multiplied(writer: ProgramWriter, node: Node) -> str:
    """Row by row along the axis."""
    (axis,), shape = node.attributes["axes"], node.inputs[0].shape
    if shape[axis] == 0:
        return writer.operands(node)[0]
    return _combined(writer, node, lambda name, wide: _products(writer, name, shape, axis, wide))


def _products(
    writer: ProgramWriter, name: str, shape: Sequence[Extent], axis: int, dtype: str
) -> str:
    others = [a for a in range(len(shape)) if a != axis]
    rest = tuple(shape[a] for a in others)
    rows = transposed(writer, name, [axis, *others])
    one = writer.node("Expand", writer.array(1, dtype), writer.sizes.shape(rest))
    inner, names = writer.inside().graph, writer.graph.names
    before, now = names.fresh("before"), names.fresh("row")
    product = inner.node("Mul", before, now)
    given = [described(n, dtype, rest) for n in (before, now)]
    results = [(product, described(names.fresh(n), dtype, rest)) for n in ("after", "product")]
    body = inner.graph("product", given, results)
    _, found = writer.graph.nodes_of("Scan", (one, rows), 2, body=body, num_scan_inputs=1)
    back = [0] * len(shape)
    for place, a in enumerate([axis, *others]):
        back[a] = place
    return transposed(writer, found, back)
