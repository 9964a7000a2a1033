"""Recurrent layers, which are ONNX's own operators: a node for all directions of a layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from heterosis.ir.primitives.rearranging import RESHAPE
from heterosis.ir.primitives.rows import ASSEMBLE
from heterosis.ir.program import Value
from heterosis.models.onnx.writing.programs import ProgramWriter
from heterosis.models.onnx.writing.rows.broadcasting import operands_of
from heterosis.models.onnx.writing.rows.rearranging import reshaped, sliced
from heterosis.models.onnx.writing.tables import Emit, Given, call
from heterosis.ops.nn.rnn import Network, described

# For each kind: ONNX's operator, and which gate of ours each of its gates is.
_KINDS = {
    "lstm": ("LSTM", (0, 3, 1, 2)),
    "gru": ("GRU", (1, 0, 2)),
    "rnn_tanh": ("RNN", (0,)),
    "rnn_relu": ("RNN", (0,)),
}


@call("rnn")
def _layers(given: Given) -> Emit | None:
    names = ("mode", "state_size", "num_layers", "bidirectional", "projection_size")
    network = described(*(given[name] for name in names))
    if network.projected or not given["data"].shape[0]:
        return None

    def emit(writer: ProgramWriter) -> tuple[str, ...]:
        return _Stack(writer, given, network).written()

    return emit


class _Stack:
    """Layers one above the other, while they are written."""

    def __init__(self, writer: ProgramWriter, given: Given, network: Network):
        self.writer, self.given, self.network = writer, given, network
        self.directions = network.directions
        self.parameters = list(self._parts(given["parameters"]))

    def _parts(self, vector: Value) -> Sequence[str]:
        """The arrays that stand in the vector of all parameters: what it is made of, if it is."""
        shapes = list(self.network.shapes(self.given["data"].shape[2]))
        joined = list(_joined(vector))
        if [value.shape for value in joined] == shapes:
            return list(map(self.writer.name, joined))
        name, at, found = self.writer.name(vector), 0, []
        for shape in shapes:
            size = prod(shape)
            part = sliced(self.writer, name, vector.shape, (at,), (1,), (size,))
            found.append(reshaped(self.writer, part, (size,), shape))
            at += size
        return found

    def written(self) -> tuple[str, ...]:
        """The outputs at all steps, and the last states if they are asked for."""
        graph, given = self.writer.graph, self.given
        cells = given["state_cell"] is not None
        x = self.writer.name(given["data"])
        states = [self._by_layers(given["state"])]
        states += [self._by_layers(given["state_cell"])] if cells else []
        last: list[tuple[str, ...]] = []
        for layer in range(self.network.layers):
            x, *after = self._layer(layer, x, [column[layer] for column in states])
            last.append(tuple(after))
        if not given["state_outputs"]:
            return (x,)
        columns = zip(*last, strict=True)
        return (
            x,
            *(c[0] if len(c) == 1 else graph.node("Concat", *c, axis=0) for c in columns),
        )

    def _by_layers(self, state: Value) -> Sequence[str]:
        """The states before the first step, of all directions of each layer."""
        name, layers = self.writer.name(state), self.network.layers
        if layers == 1:
            return [name]
        return self.writer.graph.nodes_of("Split", [name], layers, axis=0, num_outputs=layers)

    def _layer(self, layer: int, x: str, states: Sequence[str]) -> tuple[str, ...]:
        operator, order = _KINDS[self.network.mode]
        graph, units, directions = self.writer.graph, self.network.units, self.directions
        more: dict[str, object] = {"linear_before_reset": 1} if operator == "GRU" else {}
        if self.network.mode == "rnn_relu":
            more["activations"] = ["Relu"] * directions
        weights, biases = self._of_layer(layer, order)
        y, *after = graph.nodes_of(
            operator, [x, *weights, biases, "", *states], 1 + len(states), hidden_size=units,
            direction="bidirectional" if directions == 2 else "forward", **more,
        )  # fmt: skip
        if directions == 1:
            return graph.node("Squeeze", y, graph.whole(1)), *after
        beside = graph.node("Transpose", y, perm=[0, 2, 1, 3])
        joined = graph.node("Reshape", beside, graph.whole(0, 0, directions * units))
        return joined, *after

    def _of_layer(self, layer: int, order: Sequence[int]) -> tuple[list[str], str]:
        """The weights of the input and of the state, and all biases, of both directions."""
        count = self.network.layers * self.directions
        places = range(layer * self.directions, (layer + 1) * self.directions)
        weights = [
            self._together([self._gates(self.parameters[2 * i + part], order) for i in places])
            for part in range(2)
        ]
        graph, rows = self.writer.graph, []
        for i in places:
            pair = self.parameters[2 * count + 2 * i : 2 * count + 2 * i + 2]
            rows.append(graph.node("Concat", *(self._gates(b, order) for b in pair), axis=0))
        return weights, self._together(rows)

    def _gates(self, name: str, order: Sequence[int]) -> str:
        """The rows of all gates in ONNX's order."""
        if len(order) == 1:
            return name
        graph, count = self.writer.graph, len(order)
        parts = graph.nodes_of("Split", [name], count, axis=0, num_outputs=count)
        return graph.node("Concat", *(parts[gate] for gate in order), axis=0)

    def _together(self, arrays: Sequence[str]) -> str:
        """What each direction has, along a new first axis."""
        graph = self.writer.graph
        rows = [graph.node("Unsqueeze", name, graph.whole(0)) for name in arrays]
        return rows[0] if len(rows) == 1 else graph.node("Concat", *rows, axis=0)


def _joined(vector: Value) -> Iterator[Value]:
    """The arrays that follow one another in a vector, as they were before that; none, if it is made
    in another way."""
    node, end = vector.node, 0
    if node.primitive is not ASSEMBLE or node.attributes["filled"]:
        return
    for part, (starts, steps) in zip(node.inputs, node.attributes["places"], strict=True):
        if (tuple(starts), tuple(steps)) != ((end,), (1,)):
            return
        end += part.size
        yield operands_of(part.node)[0] if part.node.primitive is RESHAPE else part
