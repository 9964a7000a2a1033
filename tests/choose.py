"""Some of many."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` of the items, evenly from the first to the last; of one, the first."""
    if not items:
        return []
    step = max(len(items) - 1, 1) / max(count - 1, 1)
    return [items[i] for i in sorted({min(round(i * step), len(items) - 1) for i in range(count)})]
