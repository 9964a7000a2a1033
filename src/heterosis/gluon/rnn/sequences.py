"""Sequences as lists of steps and as one array, with a length for each example if they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis import ndarray as F
from heterosis import np, npx
from heterosis.runtime.errors import ShapeError

Steps = Sequence[np.ndarray]
Inputs = np.ndarray | Steps


def split(inputs: Inputs, length: int | None, layout: str) -> list[np.ndarray]:
    """One array for each step."""
    if isinstance(inputs, np.ndarray):
        moved = np.moveaxis(inputs, layout.index("T"), 0)
        inputs = [moved[step] for step in range(moved.shape[0])]
    if length is not None and len(inputs) != length:
        raise ShapeError(f"unroll: length={length}, and the inputs have {len(inputs)} steps.")
    return list(inputs)


def merged(inputs: Inputs, layout: str) -> np.ndarray:
    """One array for all steps."""
    if isinstance(inputs, np.ndarray):
        return inputs
    return np.stack(tuple(inputs), axis=layout.index("T"))


def arranged(inputs: Inputs, length: int | None, layout: str, merge: bool | None) -> Any:
    """One array if `merge`, a list of steps if it is False, what it is if it is None."""
    if merge is None:
        return inputs
    return merged(inputs, layout) if merge else split(inputs, length, layout)


def batch_size(inputs: Inputs, layout: str) -> int:
    """How many examples there are."""
    if isinstance(inputs, np.ndarray):
        return int(inputs.shape[layout.index("N")])
    return int(inputs[0].shape[layout.replace("T", "").index("N")])


def masked(inputs: Inputs, length: int, valid_length: Any, layout: str, merge: bool | None) -> Any:
    """The steps with 0 behind the end of each example; a list if `merge` is False or None."""
    whole = npx.sequence_mask(
        merged(inputs, layout), valid_length, use_sequence_length=True, axis=layout.index("T")
    )
    return whole if merge else split(whole, length, layout)


def last_states(states: Sequence[Steps], valid_length: Any) -> list[np.ndarray]:
    """Of the states after each step, those after each example's last one."""
    return [
        F.SequenceLast(np.stack(kind), valid_length, use_sequence_length=True)
        for kind in zip(*states, strict=True)
    ]


def backwards(steps: Steps, valid_length: Any = None) -> list[np.ndarray]:
    """The steps in reverse; each example only up to its length."""
    if valid_length is None:
        return list(reversed(steps))
    turned = F.SequenceReverse(np.stack(tuple(steps)), valid_length, use_sequence_length=True)
    return [turned[step] for step in range(len(steps))]
