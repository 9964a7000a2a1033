"""Two flags of each thread: whether gradients are recorded, and whether layers act as in training.

Operations read them when they are called; `autograd` sets them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Modes(threading.local):
    recording = False
    training = False


_modes = _Modes()


def is_recording() -> bool:
    """Whether operations are recorded, so that gradients can be computed."""
    return _modes.recording


def is_training() -> bool:
    """Whether dropout drops and batch normalisation uses the batch's own statistics."""
    return _modes.training


def set_recording(recording: bool) -> bool:
    """Record, or stop; returns what was so before."""
    before, _modes.recording = _modes.recording, bool(recording)
    return before


def set_training(training: bool) -> bool:
    """Act as in training, or as in prediction; returns what was so before."""
    before, _modes.training = _modes.training, bool(training)
    return before


@contextmanager
def switched(recording: bool | None = None, training: bool | None = None) -> Iterator[None]:
    """Within the block, the flags that are given; behind it, what was so before."""
    before = _modes.recording, _modes.training
    try:
        if recording is not None:
            set_recording(recording)
        if training is not None:
            set_training(training)
        yield
    finally:
        _modes.recording, _modes.training = before
