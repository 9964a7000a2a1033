"""What Python's slices take of an extent, which may be a size."""

from __future__ import annotations

from heterosis.ir.traced_sizes import is_traced


def taken(item: slice, extent: int) -> tuple[int, int, int]:
    """The first place that a slice takes, its step, and how many places it takes."""
    step = 1 if item.step is None else item.step
    if is_traced(step) or step < 1 or not any(map(is_traced, (extent, item.start, item.stop))):
        found = range(*item.indices(extent))
        return found.start if found else 0, found.step, len(found)
    start = 0 if item.start is None else bound(item.start, extent)
    stop = extent if item.stop is None else bound(item.stop, extent)
    if stop <= start:
        return 0, step, 0
    return start, step, (stop - start + step - 1) // step


def bound(place: int, extent: int) -> int:
    """A bound of a slice, counted from the front; at an end if it is outside."""
    if place < 0:
        place = place + extent
        return max(place, 0)
    return min(place, extent)
