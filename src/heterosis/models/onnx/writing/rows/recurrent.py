"""Recurrent layers step by step, whose input's products are there for all steps: a `Scan`.

Layers as users call them are ONNX's own operators: `calls` writes those.
"""

from __future__ import annotations

from heterosis.ir.primitives import PRIMITIVES
from heterosis.ir.primitives.recurrent import GATES
from heterosis.ir.program import Node
from heterosis.models.onnx.writing.graphs import GraphWriter, described
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.tables import row
from heterosis.runtime.errors import UnsupportedError


class _Step:
    """The operators of one step, on names of the loop's body."""

    def __init__(self, graph: GraphWriter, dtype: str, count: int):
        self.graph, self._dtype, self._count = graph, dtype, count

    def __call__(self, operator: str, *operands: str | float) -> str:
        names = (o if isinstance(o, str) else self.graph.array(o, self._dtype) for o in operands)
        return self.graph.node(operator, *names)

    def parts(self, x: str) -> list[str]:
        """What each gate takes."""
        if self._count == 1:
            return [x]
        return list(
            self.graph.nodes_of("Split", [x], self._count, axis=-1, num_outputs=self._count)
        )


def _lstm(on: _Step, given: str, product: str, hidden: str, memory: str) -> tuple[str, ...]:
    enter, keep, fresh, leave = on.parts(on("Add", given, product))
    enter, keep, leave = (on("Sigmoid", gate) for gate in (enter, keep, leave))
    now = on("Add", on("Mul", keep, memory), on("Mul", enter, on("Tanh", fresh)))
    return on("Mul", leave, on("Tanh", now)), now


def _gru(on: _Step, given: str, product: str, hidden: str, bias: str) -> tuple[str, ...]:
    of_input, of_state = on.parts(given), on.parts(product)
    reset, keep = (on("Sigmoid", on("Add", of_input[i], of_state[i])) for i in range(2))
    inner = on("Add", of_state[2], bias)
    fresh = on("Tanh", on("Add", of_input[2], on("Mul", reset, inner)))
    return (on("Add", fresh, on("Mul", keep, on("Sub", hidden, fresh))),)


def _rnn_tanh(on: _Step, given: str, product: str, hidden: str, _: str) -> tuple[str, ...]:
    return (on("Tanh", on("Add", given, product)),)


def _rnn_relu(on: _Step, given: str, product: str, hidden: str, _: str) -> tuple[str, ...]:
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
    inner, names = writer.inside().graph, writer.graph.names
    shape = rows, width // GATES[mode]
    now, before = names.fresh("given"), [names.fresh("hidden")]
    before += [names.fresh("memory")] if mode == "lstm" else []
    step = _Step(inner, dtype, GATES[mode])
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
