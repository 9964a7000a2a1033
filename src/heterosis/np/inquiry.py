"""Questions about arrays that no kernel answers."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis import _core
from heterosis.np import convert


def shape(a: Any) -> tuple[int, ...]:
    """The extents of an array, or of what would become one."""
    return tuple(a.shape) if hasattr(a, "shape") else numpy.shape(a)


def ndim(a: Any) -> int:
    """How many dimensions `a` has."""
    return len(shape(a))


def size(a: Any, axis: int | None = None) -> int:
    """How many elements `a` has, or how many along `axis`."""
    extents = shape(a)
    return int(numpy.prod(extents, dtype="int64")) if axis is None else extents[axis]


def shares_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    """Whether an element of `a` is also one of `b`."""
    return numpy.shares_memory(*_lent(a, b), max_work)


def may_share_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    """Whether the memory that `a` lies in reaches into that of `b`."""
    return numpy.may_share_memory(*_lent(a, b), max_work)


def _lent(*arrays: Any) -> list[Any]:
    """What NumPy compares: arrays of its own that lie as these do."""
    memory: dict[int, numpy.ndarray] = {}  # on devices, by storage; nobody touches it

    def lent(a: Any) -> Any:
        if not isinstance(a, _core.ndarray):
            return a
        if a._device < _core.first_remote:
            return convert.shared(a)
        room = memory.setdefault(a._storage_id, numpy.empty(a._storage_nbytes, "uint8"))
        return numpy.ndarray(a.shape, a.dtype, room.data, a._offset, a.strides)

    return list(map(lent, arrays))


__all__ = ["may_share_memory", "ndim", "shape", "shares_memory", "size"]
