"""Rows of keys in order, and numbers in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.rows.elementwise import is_nan, like, unsigned
from heterosis.backends.xla.rows.random_bits import below, block
from heterosis.backends.xla.tables import ROWS, elements
from heterosis.ir.primitives import sort_keys as k
from heterosis.ir.primitives.shuffling import SHUFFLED_PLACES
from heterosis.ir.primitives.sorting import (
    EXTREME_PLACES,
    FIRST_PLACES,
    SEARCH,
    SORT,
    SORT_PLACES,
)

if TYPE_CHECKING:
    from heterosis.ir.program import Node


def _sorted(node: Node, keys: Any) -> Any:
    return lax.bitcast_convert_type(lax.sort(unsigned(keys), dimension=1), keys.dtype)


def _placed(node: Node, keys: Any) -> Any:
    places = lax.broadcasted_iota(numpy.dtype("int64"), keys.shape, 1)
    found, places = lax.sort((unsigned(keys), places), dimension=1, num_keys=1, is_stable=True)
    return lax.bitcast_convert_type(found, keys.dtype), places


def _first(node: Node, keys: Any) -> Any:
    _, places = _placed(node, keys)
    return places[:, : node.attributes["count"]]


def _searched(node: Node, row: Any, numbers: Any) -> Any:
    if jnp.issubdtype(row.dtype, jnp.floating):
        row, numbers = (unsigned(_key(x)) for x in (row, numbers))
    side = "right" if node.attributes["right"] else "left"
    return jnp.searchsorted(row, numbers, side=side).astype(numpy.dtype("int64"))


def _extreme(node: Node, rows: Any) -> Any:
    place = jnp.argmin if node.attributes["smallest"] else jnp.argmax
    return place(rows, axis=1).astype(numpy.dtype("int64"))


# -- floats as integers of the same order ---------------------------------------------------------


def _key(x: Any) -> Any:
    whole = numpy.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(lax.select(x == 0, like(x, 0), x), whole)
    ends = jnp.iinfo(whole)
    flipped = bits ^ ((bits >> (ends.bits - 1)) | ends.min)
    return lax.select(is_nan(x), like(bits, -1), flipped)


def _number(key: Any) -> Any:
    dtype = numpy.dtype(f"float{8 * key.dtype.itemsize}")
    lowest = jnp.iinfo(key.dtype).min
    bits = key ^ lax.select(key < 0, like(key, lowest), like(key, -1))
    found = lax.bitcast_convert_type(bits, dtype)
    return lax.select(key == -1, like(found, numpy.nan), found)


# -- random order ---------------------------------------------------------------------------------


def _shuffled(node: Node, key: Any) -> Any:
    count, wanted = node.types[0].size, node.attributes["wanted"]
    turns = lax.iota(numpy.dtype("int64"), wanted)
    others = turns + below(block(turns, jnp.broadcast_to(key, turns.shape)), count - turns)

    def turn(i: Any, places: Any) -> Any:
        one, other = places[i], places[others[i]]
        return places.at[i].set(other).at[others[i]].set(one)

    places = lax.iota(numpy.dtype("int64"), count)
    return lax.fori_loop(0, wanted, turn, places) if wanted else places


ROWS[SORT] = _sorted
ROWS[SORT_PLACES] = _placed
ROWS[FIRST_PLACES] = _first
ROWS[EXTREME_PLACES] = _extreme
ROWS[SEARCH] = _searched
ROWS[SHUFFLED_PLACES] = _shuffled
elements(
    {
        k.SORT_KEY_FLOAT32: _key,
        k.SORT_KEY_FLOAT64: _key,
        k.FROM_SORT_KEY_FLOAT32: _number,
        k.FROM_SORT_KEY_FLOAT64: _number,
    }
)
