"""Layers that draw random numbers while a network is trained."""

from __future__ import annotations

from heterosis.ir import views
from heterosis.ir.program import Value, constant
from heterosis.ops.math import elementwise as e
from heterosis.ops.math import real as r
from heterosis.ops.math.cast import copy
from heterosis.ops.nn.activations import leak
from heterosis.ops.random import draws
from heterosis.ops.record import Key, default, operation
from heterosis.ops.rules import cast, floating
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.errors import check_axes


@operation(public=(), names={"mxnet": "Dropout"})
def dropout(
    data: Value, p: Value = default(0.5), axes: tuple[int, ...] = (), key: Key = None
) -> Value:
    """`data` with elements set to 0 at random, each with probability `p`, and the others scaled up
    so that the mean stays. Along `axes` all elements share one fate."""
    x = cast(data, floating(data.dtype))
    shared = check_axes("dropout", tuple(axes), x.ndim)
    return dropped(x, p, tuple(1 if a in shared else n for a, n in enumerate(x.shape)), key)


def dropped(x: Value, p: Value, shape: tuple[int, ...], key: Key) -> Value:
    """`x` with elements set to 0 by draws of the given shape, and the others scaled up."""
    chance = cast(p, "float32")
    kept = views.broadcast(e.greater_equal(draws.unit(key, shape, "float32"), chance), x.shape)
    zero = constant(0, "int64", weak=True)
    return e.select(kept, e.multiply(x, cast(_scale(chance), x.dtype)), zero)


def _scale(chance: Value) -> Value:
    """What keeps the mean; where nothing is left, a finite number, whose product has a gradient."""
    one = constant(1.0, "float32")
    left = e.subtract(one, chance)
    return e.select(e.greater(left, constant(0.0, "float32")), r.reciprocal(left), one)


@operation(
    numpy=lambda data, p=0.5, axes=(): data,
    public=(),
    names={"mxnet": "Dropout"},
    samples=Samples([Case(((3, 5),), {"p": 0.3})], dtypes=("int32", "float32")),
)
def idle_dropout(data: Value, p: float = 0.5, axes: tuple[int, ...] = ()) -> Value:
    """What `dropout` does in prediction: a copy. It knows what it would do in training."""
    return copy.record.function(data)


@operation(public=())
def random_leaky_relu(
    data: Value,
    lower_bound: Value = default(0.125),
    upper_bound: Value = default(0.334),
    key: Key = None,
) -> Value:
    """`data` where it is positive; elsewhere times a random slope between the bounds."""
    x = cast(data, floating(data.dtype))
    low, high = (cast(bound, "float32") for bound in (lower_bound, upper_bound))
    share = draws.unit(key, x.shape, "float32")
    return leak(x, e.add(low, e.multiply(share, e.subtract(high, low))))
