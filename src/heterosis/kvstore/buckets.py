"""Buckets: arrays that are summed over processes as one message, those first that come first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from heterosis import _core, np
from heterosis.ir.types import dtype_name
from heterosis.kvstore.messages import described

# Bytes of a message that is not made longer: at 10 Gbit/s it takes 3 ms, a hundred times what a
# message costs by itself. An array as large goes alone, and is summed where it lies.
ENOUGH = 4 << 20

# MPI has no sums of half precision: they are added up in float32 and rounded once.
_SUMMED_AS = {"float16": "float32", "bfloat16": "float32", "bool": "int32"}

Row = tuple[Any, tuple[int, ...], str]  # key, shape and element type


@dataclass(frozen=True)
class Bucket:
    """The places of its arrays among those of the call, the element type of the message, and what
    the processes compare before it."""

    places: tuple[int, ...]
    kind: str
    text: str

    def message(self, arrays: Sequence[_core.ndarray]) -> _core.ndarray:
        """The arrays one behind the other; one that can be sent as it lies, itself."""
        (first, *others) = arrays
        if not others and first._contiguous and name_of(first) == self.kind:
            return first
        return np.concatenate([array.reshape(-1).astype(self.kind, copy=False) for array in arrays])

    @staticmethod
    def unpack(message: _core.ndarray, arrays: Sequence[_core.ndarray]) -> None:
        """Write the parts of a message into the arrays."""
        at = 0
        for array in arrays:
            if array is not message:
                array[...] = message[at : at + array.size].reshape(array.shape)
            at += array.size


def planned(rows: Sequence[Row], order: Sequence[int]) -> list[Bucket]:
    """The buckets of what a call describes by `rows`, in the given order."""
    places = list(_filled(rows, order))
    return [
        Bucket(
            tuple(within),
            _summed_as(rows[within[0]]),
            described(f"exchange, part {n} of {len(places)}", [rows[i] for i in within]),
        )
        for n, within in enumerate(places, 1)
    ]


def _filled(rows: Sequence[Row], order: Sequence[int]) -> Iterator[list[int]]:
    begun: dict[str, list[int]] = {}  # by element type
    for i in order:
        kind = _summed_as(rows[i])
        if _bytes(rows[i]) >= ENOUGH:
            yield [i]
        elif _bytes(rows[i]) > 0:
            within = begun.setdefault(kind, [])
            within.append(i)
            if sum(_bytes(rows[j]) for j in within) >= ENOUGH:
                yield begun.pop(kind)
    yield from begun.values()


def _bytes(row: Row) -> int:
    _, shape, _ = row
    return int(numpy.prod(shape, dtype=numpy.int64)) * numpy.dtype(_summed_as(row)).itemsize


def _summed_as(row: Row) -> str:
    name = row[2]
    return _SUMMED_AS.get(name, name)


def name_of(array: _core.ndarray) -> str:
    """An array's element type."""
    return dtype_name(array.dtype)
