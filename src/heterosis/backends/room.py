"""Results that are too large for any memory, which are refused before they are computed."""

from __future__ import annotations

from collections.abc import Iterable

from heterosis import _core
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import OutOfMemoryError


def check_room_for(name: str, results: Iterable[TensorType], most: int | None = None) -> None:
    """Refuse at the call what no waiting will make room for: results of what is called so, in main
    memory, or on a device that has room for `most` bytes."""
    limit = _core.memory_counters()["limit"] if most is None else most
    for type_ in results:
        if type_.nbytes <= limit:
            continue
        said = f"{name}: a result {type_} takes {type_.nbytes:,} bytes, and "
        if most is None:
            raise OutOfMemoryError(
                f"{said}all arrays together may take {limit:,}. Use smaller pieces, or raise "
                "npx.settings.memory_limit."
            )
        raise OutOfMemoryError(f"{said}the device has {limit:,}. Use smaller pieces.")
