"""Stacked recurrent layers with all their parameters in one vector."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.primitives.recurrent import GATES
from heterosis.ir.program import Value, constant
from heterosis.ops.array.join import concatenate, joined
from heterosis.ops.array.legacy import slice_axis
from heterosis.ops.array.split import part, split
from heterosis.ops.linalg.matmul import product
from heterosis.ops.math import elementwise as e
from heterosis.ops.nn.dropout import dropout
from heterosis.ops.nn.recurrence import recurrence
from heterosis.ops.record import as_users_call, operation
from heterosis.ops.rules import cast, floating
from heterosis.ops.samples import Case, Samples
from heterosis.ops.unsized import rule
from heterosis.runtime.errors import ArgumentError, ShapeError


@dataclass(frozen=True)
class Network:
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


def _pull_parameters(received: Any, results: Any, *rest: Any) -> Value:
    # One vector at once, where the rules of the parts would add up a vector for each.
    flat = [views.reshape(g, (math.prod(g.shape),)) for g in received]
    return joined("rnn", flat, 0)


def _parts_reference(parameters: Any, shapes: Any) -> Any:
    ends = numpy.cumsum([math.prod(shape) for shape in shapes])
    parts = numpy.split(parameters, ends[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


@operation(
    public=(),
    views=True,
    gradient=_pull_parameters,
    numpy=_parts_reference,
    samples=Samples([Case(((11,),), {"shapes": ((2, 3), (5,))})], dtypes=("float32",)),
)
def rnn_parameters(parameters: Value, shapes: Any) -> tuple[Value, ...]:
    """Matrices and vectors that stand in one vector, one after the other."""
    parts, at = [], 0
    for shape in shapes:
        size = math.prod(shape)
        parts.append(views.reshape(part(parameters, 0, at, at + size), shape))
        at += size
    return tuple(parts)


def _checked(
    network: Network, data: Any, parameters: Any, state: Any, state_cell: Any
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


def described(
    mode: str, state_size: int, num_layers: int, bidirectional: bool, projection_size: int | None
) -> Network:
    """The network that these arguments of `rnn` mean."""
    if mode not in GATES:
        raise ArgumentError(f"rnn: mode={mode!r}; expected one of {', '.join(GATES)}.")
    if state_size < 1 or num_layers < 1:
        raise ArgumentError(
            f"rnn: state_size={state_size}, num_layers={num_layers}; expected positive numbers."
        )
    if projection_size and mode != "lstm":
        raise ArgumentError(f"rnn: projection_size is for mode='lstm', and this is {mode!r}.")
    return Network(mode, state_size, num_layers, 1 + bool(bidirectional), projection_size or None)


@rule("rnn")
def _unsized(a: Mapping[str, Any]) -> Mapping[str, tuple[int, ...]]:
    layers = a["num_layers"] * (2 if a["bidirectional"] else 1)
    batch, units = a["data"].shape[1], a["state_size"]
    network = described(a["mode"], units, a["num_layers"], a["bidirectional"], a["projection_size"])
    return {
        "parameters": (sum(map(math.prod, network.shapes(a["data"].shape[2]))),),
        "state": (layers, batch, a["projection_size"] or units),
        "state_cell": (layers, batch, units),
    }


# -- one direction of a layer ---------------------------------------------------------------------


@operation(public=())
def rnn_layer(
    data: Value,
    of_input: Value,
    of_state: Value,
    input_bias: Value,
    state_bias: Value,
    hidden: Value,
    memory: Value | None = None,
    projection: Value | None = None,
    mode: str = "lstm",
    reverse: bool = False,
    keep: bool = False,
) -> Value | tuple[Value, ...]:
    """One direction of one layer over `data` (steps, batch, inputs), from the states `hidden` and
    `memory` (1, batch, units): its outputs at every step, and for 'lstm' its memories.

    With `keep`, further results, which spare the gradient to compute them again.
    """
    dtype = floating(data.dtype)
    wide = "float64" if dtype == "float64" else "float32"
    x, of_input, of_state, input_bias, state_bias, *states = (
        cast(v, wide)
        for v in (data, of_input, of_state, input_bias, state_bias, hidden, memory)
        if v is not None
    )
    states = [views.reshape(v, v.shape[1:]) for v in states]
    steps, rows, width = x.shape
    units = of_state.shape[0] // GATES[mode]
    bias, inner = _merged_bias(mode, units, input_bias, state_bias)
    flat = views.reshape(x, (steps * rows, width))
    given = e.add(_dense(flat, of_input), bias)
    given = views.reshape(given, (steps, rows, bias.shape[0]))
    if projection is not None:
        projection = cast(projection, wide)
        given, states[0] = _before_projection(given, states[0], of_state, units, reverse)
        of_state = product("rnn", of_state, projection)
    states += [] if inner is None else [inner]
    found = recurrence(mode, of_state, given, states, reverse, keep)
    if projection is not None:
        outputs, memories, *kept = found
        flat = _dense(views.reshape(outputs, (steps * rows, units)), projection)
        projected = views.reshape(flat, (steps, rows, projection.shape[0]))
        found = (projected, memories, *((outputs, *kept) if keep else ()))
    found = tuple(cast(v, dtype) for v in found)
    return found if len(found) > 1 else found[0]


def _dense(x: Value, weights: Value) -> Value:
    return product("rnn", x, views.transpose(weights, (1, 0)))


def _merged_bias(mode: str, units: int, first: Value, second: Value) -> tuple[Value, Value | None]:
    """What is added to the inputs' product, and what a GRU adds to its own within the gate."""
    if mode != "gru":
        return e.add(first, second), None
    outside, inside = part(second, 0, 0, 2 * units), part(second, 0, 2 * units, 3 * units)
    nothing = views.broadcast(constant(0.0, second.dtype), inside.shape)
    return e.add(first, joined("rnn", [outside, nothing], 0)), inside


def _before_projection(
    given: Value, hidden: Value, of_state: Value, units: int, reverse: bool
) -> tuple[Value, Value]:
    """A loop over what is not projected yet, by weights that have the projection in them.

    The first state has been projected: its product is added where it belongs.
    """
    steps, rows, wide = given.shape
    if not steps:
        return given, views.broadcast(constant(0.0, given.dtype), (rows, units))
    place = steps - 1 if reverse else 0
    own = views.reshape(_dense(hidden, of_state), (1, rows, wide))
    at = e.add(part(given, 0, place, place + 1), own)
    rest = part(given, 0, 0, place) if reverse else part(given, 0, 1, steps)
    given = joined("rnn", [rest, at] if reverse else [at, rest], 0)
    return given, views.broadcast(constant(0.0, given.dtype), (rows, units))


# -- all layers -----------------------------------------------------------------------------------


def stacked(
    network: Network, data: Any, parameters: Any, state: Any, state_cell: Any, p: float = 0.0,
    keep: bool = False,
) -> list[Any]:  # fmt: skip
    """The last layer's outputs and the last states of all, on arrays or on program values.

    Between the layers dropout by `p`; with `keep`, gradients find all they need.
    """
    shapes = _checked(network, data, parameters, state, state_cell)
    count = network.layers * network.directions
    parts = rnn_parameters(parameters, tuple(shapes))
    weights, biases = parts[: -2 * count], parts[-2 * count :]
    each = len(weights) // count
    states = [_each(split(v, count)) for v in (state, state_cell) if v is not None]
    last = []
    for layer in range(network.layers):
        x = data if not layer else as_users_call(dropout)(data, p) if p else data
        outputs = []
        for direction in range(network.directions):
            i = layer * network.directions + direction
            of_input, of_state, *projection = weights[each * i : each * (i + 1)]
            first = [column[i] for column in states]
            found = _each(
                as_users_call(rnn_layer)(
                    x, of_input, of_state, *biases[2 * i : 2 * i + 2], first[0],
                    first[1] if len(first) > 1 else None, projection[0] if projection else None,
                    network.mode, bool(direction), keep,
                )
            )  # fmt: skip
            outputs.append(found[0])
            pairs = zip(found, first, strict=False)
            last.append([_last(every, own, bool(direction)) for every, own in pairs])
        data = concatenate(outputs, 2) if len(outputs) > 1 else outputs[0]
    return [data, *(concatenate(column, 0) for column in zip(*last, strict=True))]


def _each(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def _last(every: Any, first: Any, reverse: bool) -> Any:
    """The state after the last step: the first one, if there is no step."""
    steps = every.shape[0]
    if not steps:
        return first
    return slice_axis(every, 0, 0, 1) if reverse else slice_axis(every, 0, steps - 1, steps)


@operation(public=(), names={"mxnet": "RNN"})
def rnn(
    data: Value,
    parameters: Value,
    state: Value,
    state_cell: Value | None = None,
    state_size: int = 0,
    num_layers: int = 1,
    bidirectional: bool = False,
    mode: str = "lstm",
    projection_size: int | None = None,
    state_outputs: bool = False,
    p: float = 0.0,
) -> Value | tuple[Value, ...]:
    """Recurrent layers over `data` (steps, batch, inputs): the last layer's outputs, and with
    `state_outputs` the last states. `p` tells the dropout between layers, which training has."""
    network = described(mode, state_size, num_layers, bidirectional, projection_size)
    found = stacked(network, data, parameters, state, state_cell)
    return tuple(found) if state_outputs else found[0]
