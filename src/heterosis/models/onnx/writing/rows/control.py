"""Choices and loops: `If`, `Loop` and `Scan`; and what is checked as a program runs."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir.primitives.checks import CHECK_INDICES, REQUIRE
from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP
from heterosis.ir.program import Node, Program, Value
from heterosis.ir.types import is_float
from heterosis.models.onnx.format import Graph, Input
from heterosis.models.onnx.writing.graphs import described
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.tables import row


def _described(name: str, value: Value) -> Input:
    return described(name, value.dtype, value.shape)


def _branch(writer: ProgramWriter, name: str, program: Program, operands: Sequence[str]) -> Graph:
    inner = writer.inside()
    results = inner.results(program, operands)
    return inner.finished(name, (), list(zip(results, program.outputs, strict=True)))


@row(COND)
def _chosen(writer: ProgramWriter, node: Node) -> tuple[str, ...]:
    condition, *operands = map(writer.name, node.inputs)
    then, otherwise = (
        _branch(writer, name, node.attributes[name], operands) for name in ("then", "otherwise")
    )
    return writer.graph.nodes_of(
        "If", [condition], len(node.types), then_branch=then, else_branch=otherwise
    )


@row(WHILE_LOOP)
def _repeated(writer: ProgramWriter, node: Node) -> tuple[str, ...]:
    """The condition is computed before the loop, and at the end of every turn."""
    condition, body = node.attributes["condition"], node.attributes["body"]
    carried, operands = node.attributes["carried"], list(map(writer.name, node.inputs))
    state, shared = operands[:carried], operands[carried:]
    (goes_on,) = writer.results(condition, operands)
    inner, names = writer.inside(), writer.graph.names
    given = [Input(names.fresh("turn"), "int64", ()), Input(names.fresh("goes_on"), "bool", ())]
    given += [_described(names.fresh("state"), value) for value in body.inputs[:carried]]
    found = inner.results(body, [*(one.name for one in given[2:]), *shared])
    (again,) = inner.results(condition, [*found, *shared])
    results = [(again, condition.outputs[0]), *zip(found, body.outputs, strict=True)]
    graph = inner.finished("body", given, results)
    return writer.graph.nodes_of("Loop", ["", goes_on, *state], carried, body=graph)


@row(SCAN)
def _scanned(writer: ProgramWriter, node: Node) -> tuple[str, ...]:
    body, carried = node.attributes["body"], node.attributes["carried"]
    first = carried + node.attributes["shared"]
    operands = list(map(writer.name, node.inputs))
    state, shared, rows = operands[:carried], operands[carried:first], operands[first:]
    if node.attributes["length"] == 0:  # which not every runtime knows
        shapes = [(t.dtype, writer.sizes.shape(t.shape)) for t in node.types[carried:]]
        nothing = (writer.node("Expand", writer.array(0, dtype), shape) for dtype, shape in shapes)
        return (*state, *nothing)
    inner, names = writer.inside(), writer.graph.names
    fed = [*body.inputs[:carried], *body.inputs[first:]]
    given = [_described(names.fresh("given"), value) for value in fed]
    known = [one.name for one in given]
    found = inner.results(body, [*known[:carried], *shared, *known[carried:]])
    if not rows:  # something has to be as long as the loop
        given.append(Input(names.fresh("turn"), "bool", ()))
        length = writer.sizes.row(node.attributes["length"])
        rows = [writer.node("Expand", writer.array(True, "bool"), length)]
    graph = inner.finished("body", given, list(zip(found, body.outputs, strict=True)))
    backwards = int(node.attributes["reverse"])
    made = len(body.outputs) - carried
    return writer.graph.nodes_of(
        "Scan", [*state, *rows], len(body.outputs), body=graph, num_scan_inputs=len(rows),
        scan_input_directions=[backwards] * len(rows),
        scan_output_directions=[backwards] * made or None,
    )  # fmt: skip


@row(CHECK_INDICES)
def _checked(writer: ProgramWriter, node: Node) -> str:
    """Indices counted from the front. One that is outside stays so: what reads there fails."""
    (name,), dtype = writer.operands(node), node.inputs[0].dtype
    if is_float(dtype):
        largest = writer.array(float(1 << 46), dtype)  # beyond every array, as NaN becomes
        inside = writer.node("Less", writer.node("Abs", name), largest)
        name = writer.node("Where", inside, name, largest)
    name = name if dtype == "int64" else writer.cast(name, "int64")
    zero, count = writer.array(0, "int64"), writer.sizes.number_of(node.attributes["count"])
    below = writer.node("Less", name, zero)
    found = writer.node("Where", below, writer.node("Add", name, count), name)
    return writer.node("Where", writer.node("Less", found, zero), count, found)


@row(REQUIRE)
def _required(writer: ProgramWriter, node: Node) -> str:
    holds, numbers = map(writer.name, node.inputs)
    fails = writer.cast(writer.node("Not", holds), "int64")
    failures = writer.node("ReduceSum", fails, writer.graph.whole(0), keepdims=1)
    failure = node.attributes["failure"]
    return writer.graph.guarded(numbers, failures, failure.removeprefix("expected "))
