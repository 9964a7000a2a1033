"""Reading and writing rows at computed places, which are inside, and parts side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.tables import ROWS
from heterosis.ir.primitives.elementwise import ADD, MAXIMUM, MINIMUM, MULTIPLY
from heterosis.ir.primitives.rows import ASSEMBLE, GATHER, SCATTER, joined_axis
from heterosis.ir.types import numpy_dtype
from heterosis.runtime.errors import UnsupportedError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

Place = tuple[Sequence[int], Sequence[int]]  # where a part begins, and its steps

_COMBINED = {ADD: "add", MULTIPLY: "multiply", MAXIMUM: "max", MINIMUM: "min"}


def _gathered(node: Node, x: Any, *places: Any) -> Any:
    if not node.types[0].size:
        return jnp.zeros(node.types[0].shape, x.dtype)
    return x.at[places].get(mode="promise_in_bounds")


def _scattered(node: Node, x: Any, *given: Any) -> Any:
    *places, update = given
    if not update.size:
        return x
    combine = node.attributes["combine"]
    if combine is None:
        return _written_in_order(x, places, update)
    if combine not in _COMBINED:
        raise UnsupportedError(
            f"scatter: rows combined by {combine}; expected one of "
            f"{', '.join(map(repr, _COMBINED))} for the back end 'xla'. Hybridize for 'native'."
        )
    return getattr(x.at[tuple(places)], _COMBINED[combine])(update, mode="promise_in_bounds")


def _written_in_order(x: Any, places: Sequence[Any], update: Any) -> Any:
    """Of rows for one place the last one stays: XLA leaves open which. So each place is told the
    number of its last row, and that row is written by all."""
    numbers = lax.iota(numpy.dtype("int64"), places[0].size)
    at = tuple(lax.reshape(place, (place.size,)) for place in places)
    rows = lax.reshape(update, (places[0].size, *x.shape[len(places) :]))
    extents = x.shape[: len(places)]
    last = jnp.zeros(extents, "int64").at[at].max(numbers, mode="promise_in_bounds")
    return x.at[at].set(rows[last[at]], mode="promise_in_bounds")


# -- parts ----------------------------------------------------------------------------------------


def _assembled(node: Node, *parts: Any) -> Any:
    type_, places = node.types[0], node.attributes["places"]
    dtype = numpy_dtype(type_.dtype)
    if node.attributes["filled"]:
        fill, *parts = parts  # type: ignore[assignment]
    else:
        fill = lax.full((), numpy.zeros((), dtype), dtype)
    pairs = [pair for pair in zip(parts, places, strict=True) if pair[0].size]
    axis = joined_axis(type_.shape, [(part.shape, place) for part, place in pairs])
    if axis is not None:
        return lax.concatenate([part for part, _ in pairs], axis)
    found = None
    for part, (starts, steps) in pairs:
        if found is None and min(steps, default=1) > 0:
            found = _padded(type_.shape, part, fill, starts, steps)
            continue
        base = lax.broadcast(fill, type_.shape) if found is None else found
        found = _put(base, part, starts, steps)
    return lax.broadcast(fill, type_.shape) if found is None else found


def _padded(
    shape: Sequence[int], part: Any, fill: Any, starts: Sequence[int], steps: Sequence[int]
) -> Any:
    """One part amid what fills the rest."""
    axes = zip(starts, steps, part.shape, shape, strict=True)
    pads = [(start, n - start - (m - 1) * step - 1, step - 1) for start, step, m, n in axes]
    return lax.pad(part, fill, pads)


def _put(base: Any, part: Any, starts: Sequence[int], steps: Sequence[int]) -> Any:
    """`base` with a part over it."""
    backwards = [d for d, step in enumerate(steps) if step < 0]
    if backwards:
        part = lax.rev(part, backwards)
    lasts = [s + step * (m - 1) for s, step, m in zip(starts, steps, part.shape, strict=True)]
    lows = [min(pair) for pair in zip(starts, lasts, strict=True)]
    if all(abs(step) == 1 or m == 1 for step, m in zip(steps, part.shape, strict=True)):
        return lax.dynamic_update_slice(base, part, [numpy.int64(low) for low in lows])
    highs = [max(pair) + 1 for pair in zip(starts, lasts, strict=True)]
    index = tuple(
        slice(low, high, max(abs(step), 1))
        for low, high, step in zip(lows, highs, steps, strict=True)
    )
    return base.at[index].set(part, mode="promise_in_bounds")


ROWS[GATHER] = _gathered
ROWS[SCATTER] = _scattered
ROWS[ASSEMBLE] = _assembled
