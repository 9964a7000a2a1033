"""The steps of recurrent layers, forwards, and back for what their gates received.

The product of the inputs with their weights is done outside, for all steps at once: it is `given`.
Back, `product` is what the output before the first step received through the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.numbers import precise
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.ir.program import Node

# How many numbers a unit takes from the product, for each kind of layer; one for each gate.
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}

# Kinds whose gates take the sum of what is given and the product, and nothing else of either.
OF_SUMS = ("lstm", "rnn_tanh", "rnn_relu")

_ACTIVATIONS = 4  # numbers of a unit that spare the way back to go through all steps again
_FLOATS = ("float32", "float64")


def widths(mode: str, keep: bool) -> tuple[int, ...]:
    """How many numbers of each unit the results hold at every step."""
    own = (1, 1) if mode == "lstm" else (1,)
    return (*own, _ACTIVATIONS) if keep and mode in ("lstm", "gru") else own


# -- forwards -------------------------------------------------------------------------------------


def _forward_types(mode: str) -> Callable[[Node], tuple[TensorType, ...]]:
    def types(node: Node) -> tuple[TensorType, ...]:
        found = widths(mode, node.attributes["keep"])
        _, given, *_ = expected.operands(node, 3 + (mode in ("lstm", "gru")))
        dtype = expected.common_element_type(node, _FLOATS)
        more = {"lstm": (2,), "gru": (1,)}.get(mode, ())
        expected.ranks(node, 2, 3, 2, *more)
        steps, rows, wide = given.shape
        units = wide // GATES[mode]
        last = {"lstm": ((rows, units),), "gru": ((units,),)}.get(mode, ())
        width = GATES[mode] * units
        expected.shapes(node, (width, units), (steps, rows, width), (rows, units), *last)
        return tuple(TensorType((steps, rows, n * units), dtype) for n in found)

    return types


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + numpy.exp(-x))


def _parts(x: Any, count: int) -> Sequence[Any]:
    return numpy.split(x, count, axis=-1)


def _lstm(given: Any, product: Any, hidden: Any, memory: Any) -> tuple[Any, ...]:
    enter, keep, fresh, leave = _parts(given + product, 4)
    enter, keep, fresh, leave = _sigmoid(enter), _sigmoid(keep), numpy.tanh(fresh), _sigmoid(leave)
    now = keep * memory + enter * fresh
    return leave * numpy.tanh(now), now, numpy.concatenate([enter, keep, fresh, leave], -1)


def _gru(given: Any, product: Any, hidden: Any, bias: Any) -> tuple[Any, ...]:
    of_input, of_state = _parts(given, 3), _parts(product, 3)
    reset, keep = (_sigmoid(of_input[i] + of_state[i]) for i in range(2))
    inner = of_state[2] + bias
    fresh = numpy.tanh(of_input[2] + reset * inner)
    now = fresh + keep * (hidden - fresh)
    return now, numpy.concatenate([reset, keep, fresh, inner], -1)


def _rnn_tanh(given: Any, product: Any, hidden: Any, _: Any) -> tuple[Any, ...]:
    return (numpy.tanh(given + product),)


def _rnn_relu(given: Any, product: Any, hidden: Any, _: Any) -> tuple[Any, ...]:
    x = given + product
    return (numpy.where(x <= 0.0, 0.0, x),)


def _forward(step: Callable[..., tuple[Any, ...]], mode: str) -> Callable[..., Any]:
    """All steps; `step(given, product, hidden, memory or bias)` gives the results of one."""

    def meaning(node: Node, *arrays: Any) -> Any:
        weights, given, hidden, *more = map(precise, arrays)
        beside = more[0] if more else None
        results = [numpy.empty(type_.shape) for type_ in node.types]
        for t in _order(len(given), node.attributes["reverse"]):
            found = step(given[t], hidden @ weights.T, hidden, beside)
            hidden, beside = found[0], found[1] if mode == "lstm" else beside
            for result, one in zip(results, found, strict=False):
                result[t] = one
        return tuple(results)

    return meaning


def _order(steps: int, reverse: bool) -> Sequence[int]:
    return range(steps)[::-1] if reverse else range(steps)


def _layer(mode: str, step: Callable[..., tuple[Any, ...]], about: str) -> Opaque:
    return Opaque(
        mode,
        types=_forward_types(mode),
        meaning=_forward(step, mode),
        attributes={"reverse": bool, "keep": bool},
        about=about,
    )


LSTM = _layer(
    "lstm",
    _lstm,
    "Outputs and memories of every step from weights (4 * units, units), the inputs' part (steps, "
    "rows, 4 * units), the first output and memory; with `keep`, the activations.",
)
GRU = _layer(
    "gru",
    _gru,
    "Outputs of every step from weights (3 * units, units), the inputs' part (steps, rows, 3 * "
    "units), the first output, and the bias within the gate; with `keep`, the activations.",
)
RNN_TANH = _layer(
    "rnn_tanh",
    _rnn_tanh,
    "Outputs of every step, `tanh(given + before @ weights.T)`.",
)
RNN_RELU = _layer(
    "rnn_relu",
    _rnn_relu,
    "Outputs of every step, `given + before @ weights.T` where that is positive, else 0.",
)

# -- back -----------------------------------------------------------------------------------------

# Numbers of each unit in what is read at every step, and in what is written at every step; and how
# many further results there are, of (rows, units): the last one is the product.
_BACK = {
    "lstm": ((_ACTIVATIONS, 1, 1, 1, 1), (4,), 2),
    "gru": ((_ACTIVATIONS, 1, 1), (3, 3), 2),
    "rnn_tanh": ((1, 1), (1,), 1),
    "rnn_relu": ((1, 1), (1,), 1),
}


def _back_types(mode: str) -> Callable[[Node], tuple[TensorType, ...]]:
    read, written, ends = _BACK[mode]

    def types(node: Node) -> tuple[TensorType, ...]:
        weights, *_, last = expected.operands(node, 1 + len(read))
        dtype = expected.common_element_type(node, _FLOATS)
        expected.ranks(node, 2, *(3,) * len(read))
        (_, units), (steps, rows, _) = weights.shape, last.shape
        wide = (GATES[mode] * units, units)
        expected.shapes(node, wide, *((steps, rows, n * units) for n in read))
        shapes = [(steps, rows, n * units) for n in written]
        return tuple(TensorType(s, dtype) for s in (*shapes, *[(rows, units)] * ends))

    return types


def _lstm_back(
    activations: Any, memory: Any, before: Any, of_output: Any, of_memory: Any, product: Any,
    carried: Any,
) -> tuple[Any, ...]:  # fmt: skip
    enter, keep, fresh, leave = _parts(activations, 4)
    g, seen = of_output + product, numpy.tanh(memory)
    m = of_memory + carried + g * leave * (1.0 - seen * seen)
    found = [
        m * fresh * enter * (1.0 - enter),
        m * before * keep * (1.0 - keep),
        m * enter * (1.0 - fresh * fresh),
        g * seen * leave * (1.0 - leave),
    ]
    return numpy.concatenate(found, -1), m * keep


def _gru_back(
    activations: Any, before: Any, of_output: Any, product: Any, direct: Any
) -> tuple[Any, ...]:
    reset, keep, fresh, inner = _parts(activations, 4)
    g = of_output + product + direct
    of_fresh = g * (1.0 - keep) * (1.0 - fresh * fresh)
    of_reset = of_fresh * inner * reset * (1.0 - reset)
    of_keep = g * (before - fresh) * keep * (1.0 - keep)
    own = numpy.concatenate([of_reset, of_keep, of_fresh * reset], -1)
    return own, numpy.concatenate([of_reset, of_keep, of_fresh], -1), g * keep


def _tanh_back(hidden: Any, of_output: Any, product: Any) -> tuple[Any, ...]:
    return ((of_output + product) * (1.0 - hidden * hidden),)


def _relu_back(hidden: Any, of_output: Any, product: Any) -> tuple[Any, ...]:
    return (numpy.where(hidden > 0.0, of_output + product, 0.0),)


def _back(step: Callable[..., tuple[Any, ...]], mode: str) -> Callable[..., Any]:
    """All steps, the last one first; `step(*operands, product, *carried)` gives what one writes,
    of which the first is what the product's operand received, and what it carries on."""
    _, written, ends = _BACK[mode]

    def meaning(node: Node, *arrays: Any) -> Any:
        weights, *read = map(precise, arrays)
        results = [numpy.empty(type_.shape) for type_ in node.types[: len(written)]]
        product, *carried = (numpy.zeros(node.types[-1].shape) for _ in range(ends))
        for t in _order(len(read[0]), not node.attributes["reverse"]):
            found = step(*(x[t] for x in read), product, *carried)
            carried = list(found[len(written) :])
            product = found[0] @ weights
            for result, one in zip(results, found, strict=False):
                result[t] = one
        return (*results, *carried, product)

    return meaning


def _way_back(mode: str, step: Callable[..., tuple[Any, ...]], about: str) -> Opaque:
    return Opaque(
        f"{mode}_back",
        types=_back_types(mode),
        meaning=_back(step, mode),
        attributes={"reverse": bool},
        about=about,
    )


LSTM_BACK = _way_back(
    "lstm",
    _lstm_back,
    "What the gates, the first memory and the first output received, from the weights, the "
    "activations, memories, memories before, and what outputs and memories received.",
)
GRU_BACK = _way_back(
    "gru",
    _gru_back,
    "What the gates received from the state and from the inputs, and what the first output did "
    "directly and by the product, from the weights, activations, outputs before, and what outputs "
    "received.",
)
RNN_TANH_BACK = _way_back(
    "rnn_tanh",
    _tanh_back,
    "What the gates and the first output received, from the weights, outputs, and what these "
    "received.",
)
RNN_RELU_BACK = _way_back(
    "rnn_relu",
    _relu_back,
    "What the gates and the first output received, from the weights, outputs, and what these "
    "received.",
)

FORWARD = {"lstm": LSTM, "gru": GRU, "rnn_tanh": RNN_TANH, "rnn_relu": RNN_RELU}
BACK = {"lstm": LSTM_BACK, "gru": GRU_BACK, "rnn_tanh": RNN_TANH_BACK, "rnn_relu": RNN_RELU_BACK}
