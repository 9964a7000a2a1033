"""Connectionist temporal classification, one time step an operation.

The states of a label are its classes with a blank before, between and after them. An array of
states holds the logarithms of the probabilities of all ways that end there; LOW stands for no way.
"""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir import views
from heterosis.ir.program import ASSEMBLE, Value, apply, constant
from heterosis.ir.types import TensorType
from heterosis.ops.numpylike import Array, on_terms, places_along
from heterosis.ops.record import operation
from heterosis.ops.rules import cast
from heterosis.ops.samples import Case, Samples

LOW = -1e30  # instead of minus infinity, whose differences are NaN


def _step(
    states: Array,
    padded: tuple[Array, Array],
    scores: Array,
    may_jump: Array,
    time: Array,
    lengths: Array,
) -> Array:
    come, jump = padded
    jump = numpy.where(may_jump, jump, LOW)
    highest = numpy.maximum(numpy.maximum(states, come), jump)
    ways = (numpy.exp(way - highest) for way in (states, come, jump))
    moved = highest + numpy.log(sum(ways)) + scores
    return numpy.where(lengths.reshape((lengths.shape[0], 1)) > time, moved, states)


def _numpy_step(states: Any, scores: Any, may_jump: Any, lengths: Any, time: Any) -> Any:
    padded = numpy.pad(states, ((0, 0), (2, 0)), constant_values=LOW)
    return _step(states, (padded[:, 1:-1], padded[:, :-2]), scores, may_jump, time, lengths)


@operation(
    numpy=_numpy_step,
    public=(),
    samples=Samples(
        (Case(((3, 7), (3, 7), (3, 7), (3,), None)), Case(((1, 3), (1, 3), (1, 3), (1,), None))),
        ((-4, 0), (-4, 0), (0, 2), (0, 4), (0, 3)),
        dtypes=("float32", "float64"),
        integer_arrays=(2, 3),
        ulps=16,
    ),
)
def ctc_step(states: Value, scores: Value, may_jump: Value, lengths: Value, time: Value) -> Value:
    """The states after one more time step; sequences that have ended keep theirs."""
    padded = _after_nothing(states)
    shifted = [views.slice_(padded, (0, start), (1, 1), states.shape) for start in (1, 0)]

    def step(states: Array, come: Array, jump: Array, *more: Array) -> Array:
        return _step(states, (come, jump), *more)

    (moved,) = on_terms(step, (states, *shifted, scores, may_jump, time, lengths))
    return cast(moved, states.dtype)


def _after_nothing(states: Value) -> Value:
    """The states behind two columns for no way."""
    count, width = states.shape
    nothing = constant(LOW, states.dtype)
    type_ = TensorType((count, width + 2), states.dtype)
    places = (((0, 2), (1, 1)),)
    return apply(ASSEMBLE, (nothing, states), type_, places=places, filled=True)


def _cost(states: Any, label_lengths: Any) -> Any:
    last = 2 * label_lengths.reshape((label_lengths.shape[0], 1))
    places = places_along(states, 1)
    # All classes have been seen at the last state but one, and with a blank after them at the last.
    ends = (places == last) | (places == last - 1)
    found = numpy.where(ends, states, LOW)
    highest = numpy.max(found, axis=1, keepdims=True)
    total = numpy.log(numpy.sum(numpy.exp(found - highest), axis=1))
    cost = -(highest.reshape((states.shape[0],)) + total)
    return numpy.where(cost > -LOW / 10, numpy.inf, cost)


@operation(
    numpy=_cost,
    public=(),
    samples=Samples(
        (Case(((3, 9), (3,))),),
        ((-4, 0), (0, 4)),
        dtypes=("float32", "float64"),
        integer_arrays=(1,),
        ulps=16,
    ),
)
def ctc_cost(states: Value, label_lengths: Value) -> Value:
    """Minus the logarithm of the labels' probabilities, from the states after the last step."""
    return on_terms(_cost, (states, label_lengths))[0]
