"""Stacked recurrent layers with all their parameters in one vector."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heterosis.ir import views
from heterosis.ir.program import Call, Value, constant
from heterosis.ops import dropout as drop
from heterosis.ops import elementwise as e
from heterosis.ops.join import joined
from heterosis.ops.linear import product
from heterosis.ops.random import key_of_part
from heterosis.ops.record import Key, operation
from heterosis.ops.recurrence import GATES, recurrence
from heterosis.ops.rules import cast, floating
from heterosis.ops.split import part
from heterosis.runtime.errors import ArgumentError, ShapeError


@dataclass(frozen=True)
class _Network:
    """The shape of the whole."""

    mode: str
    units: int
    layers: int
    directions: int
    projected: int | None

    @property
    def outputs(self) -> int:
        """Numbers that one direction of a layer gives at each step."""
        return self.projected or self.units

    def shapes(self, inputs: int) -> Iterator[tuple[int, ...]]:
        """Of the parameters, in order: first all weights, then all biases."""
        wide = GATES[self.mode] * self.units
        for layer in range(self.layers):
            width = self.outputs * self.directions if layer else inputs
            for _ in range(self.directions):
                yield wide, width
                yield wide, self.outputs
                if self.projected:
                    yield self.projected, self.units
        for _ in range(2 * self.layers * self.directions):
            yield (wide,)


def _unpacked(parameters: Value, shapes: Sequence[tuple[int, ...]]) -> list[Value]:
    """Matrices and vectors that stand in one vector."""
    parts, at = [], 0
    for shape in shapes:
        size = math.prod(shape)
        parts.append(views.reshape(part(parameters, 0, at, at + size), shape))
        at += size

    def pull(results: tuple[Value, ...], received: tuple[Value | None, ...]) -> tuple[Value]:
        # One vector at once, where the parts' own rules would add one vector for each.
        pieces = [
            views.broadcast(constant(0.0, y.dtype), (math.prod(y.shape),))
            if g is None
            else views.reshape(g, (math.prod(y.shape),))
            for g, y in zip(received, results, strict=True)
        ]
        return (joined("rnn", pieces, 0),)

    Call((parameters,), tuple(parts), pull).mark()
    return parts


def _checked(
    network: _Network, data: Value, parameters: Value, state: Value, state_cell: Value | None
) -> list[tuple[int, ...]]:
    """The parameters' shapes, if everything fits."""
    if data.ndim != 3:
        raise ShapeError(f"rnn: data of shape {data.shape}; expected (steps, batch, inputs).")
    shapes = list(network.shapes(data.shape[2]))
    lead = (network.layers * network.directions, data.shape[1])
    expected = {
        "parameters": (parameters, (sum(map(math.prod, shapes)),)),
        "state": (state, (*lead, network.outputs)),
    }
    if network.mode == "lstm":
        expected["state_cell"] = (state_cell, (*lead, network.units))
    for what, (given, shape) in expected.items():
        if given is None or given.shape != shape:
            found = "missing" if given is None else f"of shape {given.shape}"
            raise ShapeError(
                f"rnn: {what} is {found}; expected {shape} for data of shape {data.shape} and "
                f"{network}."
            )
    return shapes


def _network(
    mode: str, state_size: int, num_layers: int, bidirectional: bool, projection_size: int | None
) -> _Network:
    if mode not in GATES:
        raise ArgumentError(f"rnn: mode={mode!r}; expected one of {', '.join(GATES)}.")
    if state_size < 1 or num_layers < 1:
        raise ArgumentError(
            f"rnn: state_size={state_size}, num_layers={num_layers}; expected positive numbers."
        )
    if projection_size and mode != "lstm":
        raise ArgumentError(f"rnn: projection_size is for mode='lstm', and this is {mode!r}.")
    return _Network(mode, state_size, num_layers, 1 + bool(bidirectional), projection_size or None)


# -- one direction of a layer ---------------------------------------------------------------------


def _direction(
    network: _Network, x: Value, weights: Sequence[Value], biases: Sequence[Value],
    states: Sequence[Value], reverse: bool,
) -> tuple[Value, ...]:  # fmt: skip
    """What it gives at every step, and its last states."""
    steps, rows, width = x.shape
    of_input, of_state, *projection = weights
    bias, own_bias = _merged_bias(network, *biases)
    flat = views.reshape(x, (steps * rows, width))
    given = e.add(product("rnn", flat, views.transpose(of_input, (1, 0))), bias)
    given = views.reshape(given, (steps, rows, bias.shape[0]))
    hidden, *memory = states
    if projection:
        (projected,) = projection
        given, hidden = _before_projection(given, hidden, of_state, network.units, reverse)
        of_state = product("rnn", of_state, projected)
    found = recurrence(network.mode, of_state, given, (hidden, *memory), own_bias, reverse)
    outputs, *memories = found
    if projection:
        flat = views.reshape(outputs, (steps * rows, network.units))
        outputs = product("rnn", flat, views.transpose(projected, (1, 0)))
        outputs = views.reshape(outputs, (steps, rows, network.outputs))
    place = 0 if reverse else steps - 1
    return outputs, *(
        views.reshape(part(v, 0, place, place + 1), v.shape[1:]) for v in (outputs, *memories)
    )


def _merged_bias(network: _Network, first: Value, second: Value) -> tuple[Value, Value | None]:
    """What is added to the inputs' product, and what a GRU adds to its own within the gate."""
    if network.mode != "gru":
        return e.add(first, second), None
    outside = part(second, 0, 0, 2 * network.units)
    inside = part(second, 0, 2 * network.units, 3 * network.units)
    nothing = views.broadcast(constant(0.0, second.dtype), inside.shape)
    return e.add(first, joined("rnn", [outside, nothing], 0)), inside


def _before_projection(
    given: Value, hidden: Value, of_state: Value, units: int, reverse: bool
) -> tuple[Value, Value]:
    """A loop over what is not projected yet, by weights that have the projection in them.

    The first state has been projected: its product is added where it belongs.
    """
    steps, rows, wide = given.shape
    place = steps - 1 if reverse else 0
    own = product("rnn", hidden, views.transpose(of_state, (1, 0)))
    at = e.add(part(given, 0, place, place + 1), views.reshape(own, (1, rows, wide)))
    rest = part(given, 0, 0, place) if reverse else part(given, 0, 1, steps)
    given = joined("rnn", [rest, at] if reverse else [at, rest], 0)
    return given, views.broadcast(constant(0.0, given.dtype), (rows, units))


# -- the operations -------------------------------------------------------------------------------


def _stacked(
    network: _Network, data: Value, parameters: Value, state: Value, state_cell: Value | None,
    p: Value | None = None, key: Value | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """The last layer's outputs and the last states of all; dropout by `p` between the layers."""
    shapes = _checked(network, data, parameters, state, state_cell)
    dtype = floating(data.dtype)
    wide = "float64" if dtype == "float64" else "float32"
    count = network.layers * network.directions
    parts = _unpacked(cast(parameters, wide), shapes)
    weights, biases = parts[: -2 * count], parts[-2 * count :]
    each = len(weights) // count
    x, last = cast(data, wide), []
    given = [cast(v, wide) for v in (state, state_cell) if v is not None]
    for layer in range(network.layers):
        if layer and p is not None:
            x = drop.dropout.record.function(x, p, (), key_of_part(key, layer))
        outputs = []
        for direction in range(network.directions):
            i = layer * network.directions + direction
            own = [views.reshape(part(v, 0, i, i + 1), v.shape[1:]) for v in given]
            found = _direction(
                network, x, weights[each * i : each * (i + 1)], biases[2 * i : 2 * i + 2], own,
                bool(direction),
            )  # fmt: skip
            outputs.append(found[0])
            last.append(found[1:])
        x = joined("rnn", outputs, 2) if len(outputs) > 1 else outputs[0]
    states = [_together(column) for column in zip(*last, strict=True)]
    return tuple(cast(v, dtype) for v in (x, *states))


def _together(states: Sequence[Value]) -> Value:
    return joined("rnn", [views.reshape(v, (1, *v.shape)) for v in states], 0)


@operation(public=(), names={"mxnet": "RNN"})
def rnn(
    data,
    parameters,
    state,
    state_cell=None,
    state_size: int = 0,
    num_layers: int = 1,
    bidirectional: bool = False,
    mode: str = "lstm",
    projection_size: int | None = None,
    state_outputs: bool = False,
):
    """Recurrent layers over `data` (steps, batch, inputs): the last layer's outputs, and with
    `state_outputs` the last states."""
    network = _network(mode, state_size, num_layers, bidirectional, projection_size)
    found = _stacked(network, data, parameters, state, state_cell)
    return found if state_outputs else found[0]


@operation(public=())
def rnn_with_dropout(
    data,
    parameters,
    state,
    state_cell=None,
    p=0.5,
    state_size: int = 0,
    num_layers: int = 1,
    bidirectional: bool = False,
    mode: str = "lstm",
    projection_size: int | None = None,
    state_outputs: bool = False,
    key: Key = None,
):
    """`rnn` with dropout between the layers."""
    network = _network(mode, state_size, num_layers, bidirectional, projection_size)
    found = _stacked(network, data, parameters, state, state_cell, p, key)
    return found if state_outputs else found[0]
