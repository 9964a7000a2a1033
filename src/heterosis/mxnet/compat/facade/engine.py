"""MXNet's wish for operations to be queued in groups.

Here a call into the engine costs less than a microsecond, and operations are queued one by one.
The size is remembered and has no effect; hybridized blocks are one operation each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_sizes = [0]


def set_bulk_size(size: int) -> int:
    """Remember a size; returns the one before."""
    before, _sizes[0] = _sizes[0], int(size)
    return before


@contextmanager
def bulk(size: int) -> Iterator[None]:
    """Within the block, another size is remembered."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        set_bulk_size(before)


__all__ = ["bulk", "set_bulk_size"]
