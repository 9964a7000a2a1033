"""Reductions and scans. XLA is free to add in any order, as `ir.primitives` leaves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives import reductions as r
from heterosis.ir.types import highest, lowest, numpy_dtype

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _added(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of the type of the elements: integers wrap."""
    return lambda node, x: function(x, axis=tuple(node.attributes["axes"]), dtype=x.dtype)


def _extreme(
    function: Callable[..., Any], of_nothing: Callable[[str], float | int]
) -> Callable[..., Any]:
    def row(node: Node, x: Any) -> Any:
        # Of the elements' type: JAX takes Python's integers as int64, which the largest of
        # uint64 is beyond.
        start = numpy_dtype(dtype := node.types[0].dtype).type(of_nothing(dtype))
        return function(x, axis=tuple(node.attributes["axes"]), initial=start)

    return row


def _asked(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, x: function(x, axis=tuple(node.attributes["axes"]))


def _scanned(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, x: function(x, axis=node.attributes["axes"][0])


ROWS[r.SUM] = _added(jnp.sum)
ROWS[r.PROD] = _added(jnp.prod)
ROWS[r.MAX] = _extreme(jnp.max, lowest)
ROWS[r.MIN] = _extreme(jnp.min, highest)
ROWS[r.ANY] = _asked(jnp.any)
ROWS[r.ALL] = _asked(jnp.all)
ROWS[r.CUMSUM] = _scanned(lax.cumsum)
ROWS[r.CUMPROD] = _scanned(lax.cumprod)
