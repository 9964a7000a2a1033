"""The steps of recurrent layers, forwards and back, as scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from heterosis.backends.xla.rows.elementwise import like
from heterosis.backends.xla.rows.products import PRECISION
from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives import recurrent as r

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Arrays = tuple[Any, ...]


def _parts(x: Any, count: int) -> Sequence[Any]:
    found: Sequence[Any] = jnp.split(x, count, axis=-1)
    return found


# -- forwards -------------------------------------------------------------------------------------


def _lstm(given: Any, product: Any, state: Arrays, _: Any) -> tuple[Arrays, Arrays]:
    enter, keep, fresh, leave = _parts(given + product, 4)
    enter, keep, leave = lax.logistic(enter), lax.logistic(keep), lax.logistic(leave)
    fresh = lax.tanh(fresh)
    now = keep * state[1] + enter * fresh
    hidden = leave * lax.tanh(now)
    return (hidden, now), (hidden, now, jnp.concatenate([enter, keep, fresh, leave], -1))


def _gru(given: Any, product: Any, state: Arrays, bias: Any) -> tuple[Arrays, Arrays]:
    of_input, of_state = _parts(given, 3), _parts(product, 3)
    reset, keep = (lax.logistic(of_input[i] + of_state[i]) for i in range(2))
    inner = of_state[2] + bias
    fresh = lax.tanh(of_input[2] + reset * inner)
    now = fresh + keep * (state[0] - fresh)
    return (now,), (now, jnp.concatenate([reset, keep, fresh, inner], -1))


def _rnn_tanh(given: Any, product: Any, state: Arrays, _: Any) -> tuple[Arrays, Arrays]:
    now = lax.tanh(given + product)
    return (now,), (now,)


def _rnn_relu(given: Any, product: Any, state: Arrays, _: Any) -> tuple[Arrays, Arrays]:
    x = given + product
    now = lax.select(x <= 0, like(x, 0), x)
    return (now,), (now,)


def _forwards(step: Callable[..., tuple[Arrays, Arrays]], mode: str) -> Callable[..., Any]:
    """All steps; `step(given, product, state, bias)` gives what is carried and what is kept."""

    def row(node: Node, weights: Any, given: Any, hidden: Any, *more: Any) -> Arrays:
        start = (hidden, *more) if mode == "lstm" else (hidden,)
        bias = more[0] if mode == "gru" else None

        def one(state: Arrays, given: Any) -> tuple[Arrays, Arrays]:
            product = jnp.matmul(state[0], weights.T, precision=PRECISION)
            state, kept = step(given, product, state, bias)
            return state, kept[: len(node.types)]

        return tuple(lax.scan(one, start, given, reverse=node.attributes["reverse"])[1])

    return row


# -- back -----------------------------------------------------------------------------------------


def _lstm_back(read: Sequence[Any], product: Any, carried: Any) -> tuple[Arrays, Any]:
    activations, memory, before, of_output, of_memory = read
    enter, keep, fresh, leave = _parts(activations, 4)
    g, seen = of_output + product, lax.tanh(memory)
    m = of_memory + carried + g * leave * (1.0 - seen * seen)
    found = [
        m * fresh * enter * (1.0 - enter),
        m * before * keep * (1.0 - keep),
        m * enter * (1.0 - fresh * fresh),
        g * seen * leave * (1.0 - leave),
    ]
    return (jnp.concatenate(found, -1),), m * keep


def _gru_back(read: Sequence[Any], product: Any, direct: Any) -> tuple[Arrays, Any]:
    activations, before, of_output = read
    reset, keep, fresh, inner = _parts(activations, 4)
    g = of_output + product + direct
    of_fresh = g * (1.0 - keep) * (1.0 - fresh * fresh)
    of_reset = of_fresh * inner * reset * (1.0 - reset)
    of_keep = g * (before - fresh) * keep * (1.0 - keep)
    own = jnp.concatenate([of_reset, of_keep, of_fresh * reset], -1)
    return (own, jnp.concatenate([of_reset, of_keep, of_fresh], -1)), g * keep


def _tanh_back(read: Sequence[Any], product: Any, _: Any) -> tuple[Arrays, Any]:
    hidden, of_output = read
    return ((of_output + product) * (1.0 - hidden * hidden),), None


def _relu_back(read: Sequence[Any], product: Any, _: Any) -> tuple[Arrays, Any]:
    hidden, of_output = read
    received = of_output + product
    return (lax.select(hidden > 0, received, like(received, 0)),), None


def _back(step: Callable[..., tuple[Arrays, Any]]) -> Callable[..., Any]:
    """All steps, the last one first; `step(read, product, carried)` gives what one writes, of which
    the first is what the product's operand received, and what it carries on, if anything."""

    def row(node: Node, weights: Any, *read: Any) -> Arrays:
        zeros = jnp.zeros(node.types[-1].shape, weights.dtype)
        carries = len(node.types) > len(_written(node)) + 1
        start = zeros, zeros if carries else None

        def one(state: tuple[Any, Any], read: Sequence[Any]) -> tuple[tuple[Any, Any], Arrays]:
            written, carried = step(read, *state)
            product = jnp.matmul(written[0], weights, precision=PRECISION)
            return (product, carried), written

        (product, carried), written = lax.scan(
            one, start, read, reverse=not node.attributes["reverse"]
        )
        return (*written, *([carried] if carries else []), product)

    return row


def _written(node: Node) -> list[Any]:
    """The results that have every step in them."""
    return [type_ for type_ in node.types if type_.ndim == 3]


ROWS[r.LSTM] = _forwards(_lstm, "lstm")
ROWS[r.GRU] = _forwards(_gru, "gru")
ROWS[r.RNN_TANH] = _forwards(_rnn_tanh, "rnn_tanh")
ROWS[r.RNN_RELU] = _forwards(_rnn_relu, "rnn_relu")
ROWS[r.LSTM_BACK] = _back(_lstm_back)
ROWS[r.GRU_BACK] = _back(_gru_back)
ROWS[r.RNN_TANH_BACK] = _back(_tanh_back)
ROWS[r.RNN_RELU_BACK] = _back(_relu_back)
