"""The warning for programs that take a view for the copy that MXNet makes."""

from __future__ import annotations

import warnings
from typing import Any

from heterosis import _core
from heterosis.ops.record import REGISTRY

# Results that share memory in MXNet, too; the core looks at indices by itself.
_SHARED_THERE = ("stop_gradient", "select_part")


class ViewWriteWarning(UserWarning):
    """A write that changes another array too, where MXNet would have made a copy."""


def warn_of_writes() -> None:
    """Warn at the first write in place into a view that MXNet would have made a copy."""
    views = [record for record in REGISTRY.values() if record.views]
    _core.set_hook("view_written", _warn)
    _core.note_views_of([r.operation for r in views if r.name not in _SHARED_THERE])


def _warn(array: Any, place: str) -> None:
    """Tell of one write, at a place like `train.py:12`, and of none after it."""
    _core.note_views_of([])
    file, _, line = place.rpartition(":")
    warnings.warn_explicit(
        f"a write into an array of shape {array.shape} that shares its memory with another one: "
        "that array changes too. As in NumPy, reshape(), transpose() and their like are views, "
        "where MXNet makes copies. Write into a copy if the other array is to stay as it is: "
        "x.reshape(...).copy(). Further writes of this kind are not told of.",
        ViewWriteWarning,
        file,
        int(line or 0),
    )


__all__ = ["ViewWriteWarning", "warn_of_writes"]
