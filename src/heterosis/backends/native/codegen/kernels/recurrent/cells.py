"""The kinds of recurrent layers: what each computes of a unit in a step, forwards and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heterosis.backends.native.codegen.mathematics.gates import sigmoid, tanh
from heterosis.backends.native.codegen.mathematics.number import Number, where
from heterosis.ir.primitives.recurrent import GATES

Numbers = list[Number]


@dataclass(frozen=True)
class Stream:
    """An operand of the pass: `width` numbers for each unit of each row of the batch.

    It stands still from step to step unless it is `moving`, and is the same for all rows if
    `shared`.
    """

    name: str
    width: int = 1
    moving: bool = True
    shared: bool = False


@dataclass(frozen=True)
class Pass:
    """What happens to every unit in one step: `formula` takes the inputs' numbers, a list for each
    stream, and gives those of the outputs, and perhaps of more."""

    inputs: tuple[Stream, ...]
    outputs: tuple[Stream, ...]
    formula: Callable[..., Sequence[Numbers]]


@dataclass(frozen=True)
class Cell:
    """A kind of layer: how many numbers a unit takes from the product, and both passes.

    In `forward`, "product" is the product of the last step's "hidden" with the weights. In `back`,
    "gates" is what the product's operand received, and "product" what comes of it for the step
    before.
    """

    name: str
    gates: int
    forward: Pass
    back: Pass


# -- formulas -------------------------------------------------------------------------------------


def _lstm(given: Numbers, product: Numbers, memory: Numbers) -> Sequence[Numbers]:
    enter, keep, fresh, leave = (a + b for a, b in zip(given, product, strict=True))
    enter, keep, fresh, leave = sigmoid(enter), sigmoid(keep), tanh(fresh), sigmoid(leave)
    now = keep * memory[0] + enter * fresh
    return [leave * tanh(now)], [now], [enter, keep, fresh, leave]


def _lstm_back(
    gates: Numbers, memory: Numbers, before: Numbers, of_output: Numbers, of_memory: Numbers,
    product: Numbers, carried: Numbers,
) -> Sequence[Numbers]:  # fmt: skip
    enter, keep, fresh, leave = gates
    g = of_output[0] + product[0]
    seen = tanh(memory[0])
    m = of_memory[0] + carried[0] + g * leave * (1.0 - seen * seen)
    found = [
        m * fresh * enter * (1.0 - enter),
        m * before[0] * keep * (1.0 - keep),
        m * enter * (1.0 - fresh * fresh),
        g * seen * leave * (1.0 - leave),
    ]
    return found, [m * keep]


def _gru(given: Numbers, product: Numbers, bias: Numbers, hidden: Numbers) -> Sequence[Numbers]:
    reset, keep = (sigmoid(given[i] + product[i]) for i in range(2))
    inner = product[2] + bias[0]
    fresh = tanh(given[2] + reset * inner)
    return [fresh + keep * (hidden[0] - fresh)], [reset, keep, fresh, inner]


def _gru_back(
    gates: Numbers, before: Numbers, of_output: Numbers, product: Numbers, direct: Numbers
) -> Sequence[Numbers]:
    reset, keep, fresh, inner = gates
    g = of_output[0] + product[0] + direct[0]
    of_fresh = g * (1.0 - keep) * (1.0 - fresh * fresh)
    of_reset = of_fresh * inner * reset * (1.0 - reset)
    of_keep = g * (before[0] - fresh) * keep * (1.0 - keep)
    return (
        [of_reset, of_keep, of_fresh * reset],
        [of_reset, of_keep, of_fresh],
        [g * keep],
    )


def _plain(activation: Callable[[Number], Number]) -> Callable[..., Sequence[Numbers]]:
    return lambda given, product: ([activation(given[0] + product[0])],)


def _rectified(x: Number) -> Number:
    return where(x <= 0.0, 0.0, x)


def _tanh_back(hidden: Numbers, of_output: Numbers, product: Numbers) -> Sequence[Numbers]:
    y = hidden[0]
    return ([(of_output[0] + product[0]) * (1.0 - y * y)],)


def _relu_back(hidden: Numbers, of_output: Numbers, product: Numbers) -> Sequence[Numbers]:
    return ([where(hidden[0] > 0.0, of_output[0] + product[0], 0.0)],)


# -- the kinds ------------------------------------------------------------------------------------


def _simple(
    name: str, forward: Callable[..., Sequence[Numbers]], back: Callable[..., Sequence[Numbers]]
) -> Cell:
    """One gate, and no state but the output."""
    return Cell(
        name,
        GATES[name],
        Pass((Stream("given"), Stream("product", moving=False)), (Stream("hidden"),), forward),
        Pass(
            (Stream("hidden"), Stream("of_output"), Stream("product", moving=False)),
            (Stream("gates"),),
            back,
        ),
    )


_LSTM = Cell(
    "lstm",
    GATES["lstm"],
    Pass(
        (Stream("given", 4), Stream("product", 4, moving=False), Stream("memory_before")),
        (Stream("hidden"), Stream("memory"), Stream("activations", 4)),
        _lstm,
    ),
    Pass(
        (
            Stream("activations", 4),
            Stream("memory"),
            Stream("before"),
            Stream("of_output"),
            Stream("of_memory"),
            Stream("product", moving=False),
            Stream("carried", moving=False),
        ),
        (Stream("gates", 4), Stream("carried", moving=False)),
        _lstm_back,
    ),
)
_GRU = Cell(
    "gru",
    GATES["gru"],
    Pass(
        (
            Stream("given", 3),
            Stream("product", 3, moving=False),
            Stream("bias", moving=False, shared=True),
            Stream("hidden_before"),
        ),
        (Stream("hidden"), Stream("activations", 4)),
        _gru,
    ),
    Pass(
        (
            Stream("activations", 4),
            Stream("before"),
            Stream("of_output"),
            Stream("product", moving=False),
            Stream("direct", moving=False),
        ),
        (Stream("gates", 3), Stream("of_given", 3), Stream("direct", moving=False)),
        _gru_back,
    ),
)
CELLS = {
    "lstm": _LSTM,
    "gru": _GRU,
    "rnn_tanh": _simple("rnn_tanh", _plain(tanh), _tanh_back),
    "rnn_relu": _simple("rnn_relu", _plain(_rectified), _relu_back),
}
