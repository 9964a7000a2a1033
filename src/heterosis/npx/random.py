"""Random numbers that NumPy's interface does not have."""

from __future__ import annotations

import operator
from typing import Any

from heterosis.np import random as _numpy
from heterosis.np.random import bernoulli, normal, uniform
from heterosis.ops.rules import broadcast_shapes
from heterosis.runtime.arguments import check_members as _check_members

__all__ = ["bernoulli", "normal_n", "seed", "uniform_n"]


def seed(seed: int, ctx: Any = None) -> None:
    """Start the sequence of random numbers that belongs to `seed`, any integer, as in MXNet; of
    more than 64 bits, the last ones count."""
    _numpy.seed(operator.index(seed) % (1 << 64), ctx)


def uniform_n(
    low: Any = 0.0, high: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """`uniform` with `batch_shape` in front of the parameters' own shape."""
    return uniform(low, high, _sized(batch_shape, low, high), dtype, ctx)


def normal_n(
    loc: Any = 0.0, scale: Any = 1.0, batch_shape: Any = None, dtype: Any = None, ctx: Any = None
) -> Any:
    """`normal` with `batch_shape` in front of the parameters' own shape."""
    return normal(loc, scale, _sized(batch_shape, loc, scale), dtype, ctx)


def _sized(batch: Any, *parameters: Any) -> tuple[int, ...]:
    lead = (batch,) if isinstance(batch, int) else tuple(batch or ())
    return lead + broadcast_shapes("random", [getattr(p, "shape", ()) for p in parameters])


_check_members(globals())
