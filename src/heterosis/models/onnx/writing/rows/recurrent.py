"""Recurrent layers step by step, whose input's products are there for all steps: a `Scan`.

Layers as users call them are ONNX's own operators: `calls` writes those.
"""

from __future__ import annotations

from heterosis.ir.primitives import PRIMITIVES
from heterosis.ir.primitives.recurrent import GATES
from heterosis.ir.program import Node
from heterosis.models.onnx.writing.graphs import described
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.elementwise import Elements
from heterosis.models.onnx.writing.tables import row
from heterosis.runtime.errors import UnsupportedError


def _parts(on: Elements, x: str, count: int) -> tuple[str, ...]:
    """What each of so many gates takes."""
    return on.writer.graph.nodes_of("Split", [x], count, axis=-1, num_outputs=count)


def _lstm(on: Elements, given: str, product: str, hidden: str, memory: str) -> tuple[str, ...]:
    enter, keep, fresh, leave = _parts(on, on("Add", given, product), 4)
    enter, keep, leave = (on("Sigmoid", gate) for gate in (enter, keep, leave))
    now = on("Add", on("Mul", keep, memory), on("Mul", enter, on("Tanh", fresh)))
    return on("Mul", leave, on("Tanh", now)), now


def _gru(on: Elements, given: str, product: str, hidden: str, bias: str) -> tuple[str, ...]:
    of_input, of_state = (_parts(on, x, 3) for x in (given, product))
    reset, keep = (on("Sigmoid", on("Add", of_input[i], of_state[i])) for i in range(2))
    inner = on("Add", of_state[2], bias)
    fresh = on("Tanh", on("Add", of_input[2], on("Mul", reset, inner)))
    return (on("Add", fresh, on("Mul", keep, on("Sub", hidden, fresh))),)


def _rnn_tanh(on: Elements, given: str, product: str, hidden: str, _: str) -> tuple[str, ...]:
    return (on("Tanh", on("Add", given, product)),)


def _rnn_relu(on: Elements, given: str, product: str, hidden: str, _: str) -> tuple[str, ...]:
    return (on("Relu", on("Add", given, product)),)


_STEPS = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _rnn_tanh, "rnn_relu": _rnn_relu}


@row(*(PRIMITIVES[mode] for mode in _STEPS))
def _layer(writer: ProgramWriter, node: Node) -> tuple[str, ...]:
    mode = node.primitive.name
    if node.attributes["keep"]:
        raise UnsupportedError(f"{mode}: what gradients need is no part of an ONNX file.")
    weights, given, hidden, *more = map(writer.name, node.inputs)
    dtype, (_, rows, width) = node.types[0].dtype, node.inputs[1].shape
    across = writer.node("Transpose", weights, perm=[1, 0])
    within, names = writer.inside(), writer.graph.names
    shape = rows, width // GATES[mode]
    now, before = names.fresh("given"), [names.fresh("hidden")]
    before += [names.fresh("memory")] if mode == "lstm" else []
    inner, step = within.graph, Elements(within, dtype)
    beside = before[1] if mode == "lstm" else (more or [""])[0]
    found = _STEPS[mode](step, now, inner.node("MatMul", before[0], across), before[0], beside)
    inputs = [described(name, dtype, shape) for name in before]
    inputs.append(described(now, dtype, (rows, width)))
    copies = [inner.node("Identity", name) for name in found]
    results = [(name, described(names.fresh("after"), dtype, shape)) for name in (*found, *copies)]
    body = inner.graph("step", inputs, results)
    backwards, count = int(node.attributes["reverse"]), len(found)
    state = [hidden, *(more[:1] if mode == "lstm" else [])]
    made = writer.graph.nodes_of(
        "Scan", [*state, given], 2 * count, body=body, num_scan_inputs=1,
        scan_input_directions=[backwards], scan_output_directions=[backwards] * count,
    )  # fmt: skip
    return made[count:]
