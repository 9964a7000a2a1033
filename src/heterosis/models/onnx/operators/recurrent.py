"""Recurrent layers: LSTM, GRU and the plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heterosis import np, npx
from heterosis.models.onnx.operators.activations import (
    elu,
    leaky_relu,
    softsign,
    thresholded_relu,
)
from heterosis.models.onnx.operators.table import operator
from heterosis.runtime.errors import FormatError, UnsupportedError

Function = Callable[[Any], Any]
Floats = list[float] | None
Names = list[str] | None

# What activations are by name, and the numbers that they take if none are given.
_ACTIVATIONS: dict[str, tuple[Callable[..., Any], tuple[float, ...]]] = {
    "relu": (npx.relu, ()),
    "tanh": (np.tanh, ()),
    "sigmoid": (npx.sigmoid, ()),
    "softsign": (softsign, ()),
    "softplus": (npx.softplus, ()),
    "leakyrelu": (leaky_relu, (0.01,)),
    "thresholdedrelu": (thresholded_relu, (1.0,)),
    "elu": (elu, (1.0,)),
    "hardsigmoid": (npx.hard_sigmoid, (0.2, 0.5)),
    "affine": (lambda x, alpha, beta: x * alpha + beta, (1.0, 0.0)),
    "scaledtanh": (lambda x, alpha, beta: np.tanh(x * beta) * alpha, (1.0, 1.0)),
}
# Gates as ours order them, by their places in ONNX's order.
_ORDERS = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2)}


@dataclass(frozen=True)
class _Layer:
    """A layer's inputs, with steps first, and how it is run."""

    x: Any
    w: Any
    r: Any
    b: Any
    lengths: Any
    states: tuple[Any, ...]
    direction: str
    layout: int

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1


def _layer(
    name: str, x: Any, w: Any, r: Any, b: Any, lengths: Any, states: Sequence[Any],
    direction: str, layout: int, gates: int, hidden_size: int | None,
) -> _Layer:  # fmt: skip
    if direction not in ("forward", "reverse", "bidirectional"):
        raise FormatError(f"{name}: direction={direction!r}.")
    if layout:
        x = np.swapaxes(x, 0, 1)
        states = [s if s is None else np.swapaxes(s, 0, 1) for s in states]
    directions = 2 if direction == "bidirectional" else 1
    units, dtype = r.shape[-1], str(x.dtype)
    if w.shape[0] != directions or hidden_size not in (None, units):
        raise FormatError(
            f"{name}: weights of shapes {w.shape} and {r.shape} for direction={direction!r} and "
            f"hidden_size={hidden_size}."
        )
    shape = (directions, x.shape[1], units)
    if b is None:
        b = np.zeros((directions, 2 * gates * units), dtype=dtype)
    states = tuple(np.zeros(shape, dtype=dtype) if s is None else s for s in states)
    return _Layer(x, w, r, b, lengths, states, direction, layout)


def _results(layer: _Layer, y: Any, last: Sequence[Any]) -> tuple[Any, ...]:
    """(steps, directions, batch, units) and last states (directions, batch, units), as the layout
    has them."""
    if layer.layout:
        last = [np.swapaxes(s, 0, 1) for s in last]
        y = np.transpose(y, (2, 0, 1, 3))
    return (y, *last)


# -- by ours --------------------------------------------------------------------------------------


def _reordered(v: Any, order: Sequence[int]) -> Any:
    """A matrix or a vector whose rows are gates, in another order."""
    units = v.shape[0] // len(order)
    return np.concatenate([v[g * units : (g + 1) * units] for g in order], 0)


def _fast(layer: _Layer, mode: str) -> tuple[Any, ...]:
    """One call of ours."""
    order = _ORDERS.get(mode, (0,))
    weights, biases = [], []
    for d in range(layer.directions):
        weights += [np.ravel(_reordered(m[d], order)) for m in (layer.w, layer.r)]
        half = layer.b.shape[1] // 2
        biases += [_reordered(layer.b[d, i * half : (i + 1) * half], order) for i in (0, 1)]
    backwards = layer.direction == "reverse"
    x = np.flip(layer.x, 0) if backwards else layer.x
    hidden, memory = (*layer.states, None)[:2]
    y, *last = npx.rnn(
        x, np.concatenate([*weights, *biases], 0), hidden, memory, state_size=layer.r.shape[-1],
        bidirectional=layer.directions == 2, mode=mode, state_outputs=True,
    )  # fmt: skip
    y = np.flip(y, 0) if backwards else y
    steps, batch, _ = y.shape
    y = np.reshape(y, (steps, batch, layer.directions, -1))
    return _results(layer, np.transpose(y, (0, 2, 1, 3)), last)


# -- step by step ---------------------------------------------------------------------------------


def _functions(
    name: str, names: Names, alphas: Floats, betas: Floats, usual: Sequence[str],
    directions: int, clip: float | None,
) -> list[list[Function]]:  # fmt: skip
    """The activations of each direction."""
    count = len(usual)
    names = [n.lower() for n in names] if names else [*usual] * directions
    if len(names) != count * directions:
        raise FormatError(f"{name}: activations={names} for {directions} directions of {usual}.")
    for n in names:
        if n not in _ACTIVATIONS:
            raise UnsupportedError(f"{name}: the activation {n!r} is not done here.")
    given = [_consumed(name, names, list_, i) for i, list_ in enumerate((alphas, betas))]
    made = []
    for n, numbers in zip(names, zip(*given, strict=True), strict=True):
        function, missing = _ACTIVATIONS[n]
        taken = [m if g is None else g for g, m in zip(numbers, missing, strict=False)]
        made.append(_bounded(function, taken, clip))
    return [made[i : i + count] for i in range(0, len(made), count)]


def _consumed(name: str, names: Sequence[str], given: Floats, which: int) -> list[float | None]:
    """The numbers for each activation: one for each, or one for each that takes one."""
    if not given or len(given) == len(names):
        return [*given] if given else [None] * len(names)
    taking = [len(_ACTIVATIONS[n][1]) > which for n in names]
    if len(given) != sum(taking):
        raise FormatError(f"{name}: {given} for the activations {names}.")
    rest = iter(given)
    return [next(rest) if takes else None for takes in taking]


def _bounded(
    function: Callable[..., Any], numbers: Sequence[float], clip: float | None
) -> Function:
    if clip:
        return lambda x: function(np.clip(x, -clip, clip), *numbers)
    return lambda x: function(x, *numbers)


Cell = Callable[[Any, Sequence[Any]], tuple[Any, ...]]  # what the input gives, states: new states


def _unrolled(layer: _Layer, cell: Callable[[int], Cell]) -> tuple[Any, ...]:
    """A cell for each direction over all steps. What the inputs give is one product."""
    found = [_one_direction(layer, d, cell(d)) for d in range(layer.directions)]
    y = np.stack([f[0] for f in found], 1)
    last = [np.stack(states, 0) for states in zip(*(f[1] for f in found), strict=True)]
    return _results(layer, y, last)


def _one_direction(layer: _Layer, d: int, cell: Cell) -> tuple[Any, Any]:
    backwards = layer.direction == "reverse" or d == 1
    x = _turned(layer.x, layer.lengths) if backwards else layer.x
    given = np.matmul(x, np.transpose(layer.w[d])) + layer.b[d, : layer.b.shape[1] // 2]
    step = np.arange(x.shape[0], dtype="int64")
    lengths = layer.lengths

    def turn(rows: Any, before: Any) -> tuple[Any, Any]:
        now, t = rows
        after = cell(now, before)
        shown = after[0]
        if lengths is not None:  # behind its end a sequence keeps its states, and shows zeros
            goes = np.expand_dims(t < lengths.astype("int64"), 1)
            after = tuple(np.where(goes, a, b) for a, b in zip(after, before, strict=True))
            shown = np.where(goes, shown, np.zeros_like(shown))
        return shown, list(after)

    y, last = npx.foreach(turn, [given, step], [s[d] for s in layer.states])
    return (_turned(y, lengths) if backwards else y), last


def _turned(x: Any, lengths: Any) -> Any:
    """Each sequence backwards, within its length."""
    if lengths is None:
        return np.flip(x, 0)
    step = np.reshape(np.arange(x.shape[0], dtype="int64"), (-1, 1))
    ends = np.reshape(lengths.astype("int64"), (1, -1))
    place = np.where(step < ends, ends - 1 - step, step)
    return np.take_along_axis(x, np.broadcast_to(np.expand_dims(place, 2), x.shape), 0)


def _parts(v: Any, count: int) -> list[Any]:
    """Gates side by side, as arrays of their own."""
    units = v.shape[-1] // count
    return [v[..., i * units : (i + 1) * units] for i in range(count)]


def _state_bias(layer: _Layer, d: int) -> Any:
    return layer.b[d, layer.b.shape[1] // 2 :]


# -- the operators --------------------------------------------------------------------------------


def _is_usual(names: Names, usual: Sequence[str], directions: int, *more: Any) -> bool:
    same = not names or [n.lower() for n in names] == [*usual] * directions
    return same and not any(m is not None and m != 0 for m in more)


@operator("LSTM", since=7)
def _lstm(
    x: Any, w: Any, r: Any, b: Any = None, sequence_lens: Any = None, initial_h: Any = None,
    initial_c: Any = None, p: Any = None,
    *, activation_alpha: Floats = None, activation_beta: Floats = None, activations: Names = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    input_forget: int = 0, layout: int = 0,
) -> Any:  # fmt: skip
    if clip:
        raise UnsupportedError("LSTM: clip is not done here; clip the states in the model.")
    layer = _layer("LSTM", x, w, r, b, sequence_lens, (initial_h, initial_c), direction, layout, 4,
                   hidden_size)  # fmt: skip
    usual = ("sigmoid", "tanh", "tanh")
    if _is_usual(activations, usual, layer.directions, sequence_lens is not None, p is not None,
                 input_forget):  # fmt: skip
        return _fast(layer, "lstm")
    functions = _functions("LSTM", activations, activation_alpha, activation_beta, usual,
                           layer.directions, None)  # fmt: skip

    def cell(d: int) -> Cell:
        f, g, h = functions[d]
        of_state, bias = np.transpose(layer.r[d]), _state_bias(layer, d)
        peeps = None if p is None else _parts(p[d], 3)

        def run(now: Any, before: Sequence[Any]) -> tuple[Any, ...]:
            hidden, memory = before
            i, o, forget, c = _parts(now + np.matmul(hidden, of_state) + bias, 4)
            if peeps is not None:
                i, forget = i + peeps[0] * memory, forget + peeps[2] * memory
            i = f(i)
            forget = 1 - i if input_forget else f(forget)
            memory = forget * memory + i * g(c)
            o = f(o if peeps is None else o + peeps[1] * memory)
            return o * h(memory), memory

        return run

    return _unrolled(layer, cell)


@operator("GRU", since=7)
def _gru(
    x: Any, w: Any, r: Any, b: Any = None, sequence_lens: Any = None, initial_h: Any = None,
    *, activation_alpha: Floats = None, activation_beta: Floats = None, activations: Names = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    layout: int = 0, linear_before_reset: int = 0,
) -> Any:  # fmt: skip
    layer = _layer("GRU", x, w, r, b, sequence_lens, (initial_h,), direction, layout, 3,
                   hidden_size)  # fmt: skip
    usual = ("sigmoid", "tanh")
    if linear_before_reset and _is_usual(
        activations, usual, layer.directions, sequence_lens is not None, clip
    ):
        return _fast(layer, "gru")
    functions = _functions("GRU", activations, activation_alpha, activation_beta, usual,
                           layer.directions, clip)  # fmt: skip

    def cell(d: int) -> Cell:
        f, g = functions[d]
        units = layer.r.shape[-1]
        gates, candidate = layer.r[d, : 2 * units], layer.r[d, 2 * units :]
        gates, candidate = np.transpose(gates), np.transpose(candidate)
        bias = _state_bias(layer, d)
        gate_bias, candidate_bias = bias[: 2 * units], bias[2 * units :]

        def run(now: Any, before: Sequence[Any]) -> tuple[Any, ...]:
            hidden = before[0]
            given = now[..., : 2 * units] + np.matmul(hidden, gates) + gate_bias
            z, reset = map(f, _parts(given, 2))
            if linear_before_reset:
                inner = reset * (np.matmul(hidden, candidate) + candidate_bias)
            else:
                inner = np.matmul(reset * hidden, candidate) + candidate_bias
            return ((1 - z) * g(now[..., 2 * units :] + inner) + z * hidden,)

        return run

    return _unrolled(layer, cell)


@operator("RNN", since=7)
def _rnn(
    x: Any, w: Any, r: Any, b: Any = None, sequence_lens: Any = None, initial_h: Any = None,
    *, activation_alpha: Floats = None, activation_beta: Floats = None, activations: Names = None,
    clip: float | None = None, direction: str = "forward", hidden_size: int | None = None,
    layout: int = 0,
) -> Any:  # fmt: skip
    layer = _layer("RNN", x, w, r, b, sequence_lens, (initial_h,), direction, layout, 1,
                   hidden_size)  # fmt: skip
    for usual in ("tanh", "relu"):
        if (activations or usual == "tanh") and _is_usual(
            activations, [usual], layer.directions, sequence_lens is not None, clip
        ):
            return _fast(layer, f"rnn_{usual}")
    functions = _functions("RNN", activations, activation_alpha, activation_beta, ["tanh"],
                           layer.directions, clip)  # fmt: skip

    def cell(d: int) -> Cell:
        f = functions[d][0]
        of_state, bias = np.transpose(layer.r[d]), _state_bias(layer, d)
        return lambda now, before: (f(now + np.matmul(before[0], of_state) + bias),)

    return _unrolled(layer, cell)
