"""The steps of recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from heterosis.ir.primitives.recurrent import FORWARD, GATES, widths
from heterosis.ir.program import Value, apply_many
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ShapeError


def recurrence(
    mode: str, weights: Value, given: Value, states: Sequence[Value], reverse: bool, keep: bool
) -> tuple[Value, ...]:
    """The outputs of every step (steps, batch, units); for 'lstm' also the memories; with `keep`,
    for 'lstm' and 'gru' also what spares the gradient to go through all steps again.

    `weights` (gates * units, units) multiply the last output, and `given` (steps, batch, gates *
    units) is added. `states` are those before the first step, which is the last one if `reverse`;
    for 'gru' they are followed by the bias within its gate.
    """
    steps, rows, wide = given.shape
    units = wide // GATES[mode]
    _check_shapes(mode, [(rows, wide), *(v.shape for v in (weights, *states))], rows, units)
    types = [TensorType((steps, rows, n * units), given.dtype) for n in widths(mode, keep)]
    operands = (weights, given, *states)
    return apply_many(FORWARD[mode], operands, types, reverse=reverse, keep=keep)


def _check_shapes(mode: str, found: list[tuple[int, ...]], rows: int, units: int) -> None:
    """The kernel reads what these say."""
    wide = GATES[mode] * units
    states: dict[str, list[tuple[int, ...]]] = {
        "lstm": [(rows, units)] * 2,
        "gru": [(rows, units), (units,)],
    }
    expected = [(rows, wide), (wide, units), *states.get(mode, [(rows, units)])]
    if found != expected:
        raise ShapeError(f"rnn: operands of shapes {found}; expected {expected}.")
