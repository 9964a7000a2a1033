"""Views: XLA decides whether elements are moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives import rearranging as r

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _reshaped(node: Node, x: Any) -> Any:
    return lax.reshape(x, node.types[0].shape)


def _broadcast(node: Node, x: Any) -> Any:
    shape = node.types[0].shape
    return lax.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def _transposed(node: Node, x: Any) -> Any:
    return lax.transpose(x, node.attributes["axes"])


def sliced(x: Any, starts: Any, steps: Any, shape: Any) -> Any:
    """`shape[d]` elements from `starts[d]` on, `steps[d]` apart, along every dimension."""
    if not all(shape):
        return lax.full(shape, numpy.zeros((), x.dtype), x.dtype)
    backwards = [d for d, step in enumerate(steps) if step < 0]
    lasts = [s + step * (n - 1) for s, step, n in zip(starts, steps, shape, strict=True)]
    lows = [min(pair) for pair in zip(starts, lasts, strict=True)]
    highs = [max(pair) + 1 for pair in zip(starts, lasts, strict=True)]
    strides = [max(abs(step), 1) for step in steps]
    repeated = [d for d, (step, n) in enumerate(zip(steps, shape, strict=True)) if step == 0 < n]
    found = lax.slice(x, lows, highs, strides)
    if backwards:
        found = lax.rev(found, backwards)
    return jnp.broadcast_to(found, shape) if repeated else found


def _sliced(node: Node, x: Any) -> Any:
    return sliced(x, node.attributes["starts"], node.attributes["steps"], node.types[0].shape)


def _diagonal(node: Node, x: Any) -> Any:
    (first, second), (i, j) = node.attributes["axes"], node.attributes["start"]
    along = numpy.arange(node.types[0].shape[-1])
    moved = jnp.moveaxis(x, (first, second), (-2, -1))
    return moved.at[..., along + i, along + j].get(mode="promise_in_bounds")


def _windows(node: Node, x: Any) -> Any:
    kernel, steps = node.attributes["kernel"], node.attributes["steps"]
    lead = x.ndim - len(kernel)
    for d, (taps, step) in enumerate(zip(kernel, steps, strict=True)):
        count = node.types[0].shape[lead + d]
        places = numpy.arange(count)[:, None] * step + numpy.arange(taps)
        found = jnp.take(x, places, axis=lead + d, mode="clip")
        x = jnp.moveaxis(found, lead + d + 1, -1)
    return x


ROWS[r.RESHAPE] = _reshaped
ROWS[r.BROADCAST] = _broadcast
ROWS[r.TRANSPOSE] = _transposed
ROWS[r.SLICE] = _sliced
ROWS[r.DIAGONAL] = _diagonal
ROWS[r.WINDOWS] = _windows
