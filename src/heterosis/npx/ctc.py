"""Connectionist temporal classification (Graves et al.): `ops.nn.ctc` over a sequence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heterosis import np
from heterosis.ops.nn.ctc import LOW, ctc_cost, ctc_step
from heterosis.ops.nn.softmax import log_softmax
from heterosis.runtime.errors import ArgumentError, ShapeError


def ctc_loss(
    data: Any,
    label: Any,
    data_lengths: Any = None,
    label_lengths: Any = None,
    blank_label: str = "first",
) -> Any:
    """The loss of each sequence: scores (time, batch, classes), labels (batch, length).

    The blank is class 0 ('first') or the last one ('last'). Labels without lengths end before
    the first 0 ('first') or -1 ('last').
    """
    _check(data, label, blank_label)
    steps, batch, classes = data.shape
    blank, padding = (0, 0) if blank_label == "first" else (classes - 1, -1)
    label = label.astype("int64")
    if label_lengths is None:
        label_lengths = _until(label, padding)
    if data_lengths is None:
        data_lengths = np.full((batch,), steps, dtype="int64")
    data_lengths, label_lengths = (x.astype("int64") for x in (data_lengths, label_lengths))
    wide = "float64" if data._dtype_name == "float64" else "float32"
    scores = _of_states(log_softmax(data, dtype=wide), np.maximum(label, 0), blank)
    may_jump = _jumps(label)
    first, *later = _each(scores)
    states = _start(first, data_lengths)
    for time, now in enumerate(later, 1):
        states = ctc_step(states, now, may_jump, data_lengths, time)
    cost = ctc_cost(states, label_lengths)
    return cost.astype(data._dtype_name) if data.dtype.itemsize == 2 else cost


_PARTS = 16  # at a time: what one gradient can be assembled from


def _each(x: Any) -> Iterator[Any]:
    """The elements along the first axis. Slices one by one would have as many whole gradients."""
    if len(x) == 1:
        yield x.reshape(x.shape[1:])
        return
    size = -(-len(x) // _PARTS)
    for part in np.split(x, list(range(size, len(x), size))):
        yield from _each(part)


def _check(data: Any, label: Any, blank_label: str) -> None:
    if blank_label not in ("first", "last"):
        raise ArgumentError(f"ctc_loss: blank_label={blank_label!r}; expected 'first' or 'last'.")
    fits = data.ndim == 3 and label.ndim == 2 and data.shape[1] == label.shape[0]
    if not fits or 0 in data.shape:
        raise ShapeError(
            f"ctc_loss: scores of shape {data.shape} and labels of shape {label.shape}; expected "
            "(time, batch, classes) and (batch, length)."
        )


def _until(label: Any, padding: int) -> Any:
    """How many classes stand before the first padding."""
    count = label.shape[1]
    places = np.where(label == padding, np.arange(count, dtype="int64"), count)
    return np.min(places, axis=1, initial=count)


def _of_states(scores: Any, label: Any, blank: int) -> Any:
    """The scores of the states' classes: a blank before, between and after the label's."""
    batch, count = label.shape
    blanks = np.full((batch, count + 1), blank, dtype="int64")
    pairs = np.stack([blanks[:, :-1], label], axis=2).reshape(batch, 2 * count)
    classes = np.concatenate([pairs, blanks[:, -1:]], axis=1)
    wanted = np.broadcast_to(classes, (scores.shape[0], *classes.shape))
    return np.take_along_axis(scores, wanted, axis=2)


def _jumps(label: Any) -> Any:
    """Where a state can follow the one before last: a class that differs from the last class."""
    batch, count = label.shape
    differs = np.concatenate(
        [np.ones((batch, min(count, 1)), dtype="bool"), label[:, 1:] != label[:, :-1]], axis=1
    )
    never = np.zeros((batch, count + 1), dtype="bool")
    pairs = np.stack([never[:, :-1], differs], axis=2).reshape(batch, 2 * count)
    return np.concatenate([pairs, never[:, -1:]], axis=1)


def _start(scores: Any, lengths: Any) -> Any:
    """After the first step: at the first blank or the first class, unless there was no step."""
    begins = np.arange(scores.shape[1], dtype="int64") < 2
    return np.where(begins & (lengths > 0).reshape(-1, 1), scores, LOW)
