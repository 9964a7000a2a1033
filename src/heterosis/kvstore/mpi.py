"""A store that joins processes: sums over all of them, by MPI."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy

from heterosis import _core, np, npx
from heterosis.ir.types import dtype_name
from heterosis.kvstore.local import KVStore, added, by_key
from heterosis.kvstore.world import join
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import CommunicationError, UnsupportedError
from heterosis.runtime.modes import refuse_in_capture

# MPI has no sums of half precision: they are added up in float32 and rounded once.
_SUMMED_AS = {"float16": numpy.float32, "bfloat16": numpy.float32, "bool": numpy.int32}


class MPIStore(KVStore):
    """A store over the processes that `mpiexec` has started: a push adds up what all push.

    Every process makes the same calls in the same order, and each holds all values. What `init` and
    `broadcast` start is process 0's. Gradients of several keys are one message (`exchange`).
    """

    joins_processes: ClassVar[bool] = True

    def __init__(self, name: str = "mpi"):
        super().__init__(name)
        self._world, self._mpi = join()
        self._buckets: dict[str, numpy.ndarray] = {}

    @property
    def rank(self) -> int:
        return int(self._world.rank)

    @property
    def num_workers(self) -> int:
        return int(self._world.size)

    def barrier(self) -> None:
        """Wait until all processes are here, with all that they have issued done."""
        self._agree("barrier", ())
        npx.waitall()
        self._world.Barrier()

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Every process's numbers added up, in float64: losses and counts of a batch's parts."""
        total = numpy.array(numbers, dtype=numpy.float64)
        self._agree("sum", [("numbers", total.shape, "float64")])
        self._add_up(total)
        return [float(number) for number in total]

    def init(self, key: Any, value: Any) -> None:
        super().init(key, value)
        for one, _ in by_key(key, value):
            self._from_first(one, self._held(one))

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy process 0's values into all of `out`, on every process."""
        targets = dict(by_key(key, out))
        for one, arrays in by_key(key, value):
            start = arrays[0].copy()
            self._from_first(one, start)
            for target in targets[one]:
                target[...] = start

    def exchange(self, keys: Sequence[Any], values: Sequence[list[_core.ndarray]]) -> None:
        """Replace the arrays by their sums over all processes: one message an element type."""
        sums = [added(arrays) for arrays in values]
        self._agree("exchange", [(k, s.shape, _name(s)) for k, s in zip(keys, sums, strict=True)])
        if self.num_workers > 1:
            for kind in dict.fromkeys(_summed_as(s) for s in sums):
                self._exchange_as(kind, [s for s in sums if _summed_as(s) == kind])
        for total, arrays in zip(sums, values, strict=True):
            for array in arrays:
                if array is not total:
                    array[...] = total

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Raises: gradients are sent as they are."""
        raise UnsupportedError(
            "set_gradient_compression: gradients are sent in full, those of 16-bit floats as "
            "float32; leave compression out."
        )

    # -- messages -----------------------------------------------------------------------------

    def _sum(self, arrays: list[_core.ndarray]) -> _core.ndarray:
        total = added(arrays).copy()
        self.exchange(["one key"], [[total]])
        return total

    def _from_first(self, key: Any, array: _core.ndarray) -> None:
        """Write process 0's elements into the array."""
        self._agree("broadcast", [(key, array.shape, _name(array))])
        if self.num_workers == 1:
            return
        held = numpy.array(array.asnumpy())
        self._world.Bcast(held.reshape(-1).view(numpy.uint8), 0)
        array[...] = np.array(held, dtype=array.dtype)

    def _exchange_as(self, kind: str, arrays: list[_core.ndarray]) -> None:
        """Add up arrays over all processes, one behind the other in memory."""
        count = sum(array.size for array in arrays)
        bucket = self._buckets.get(kind)
        if bucket is None or bucket.size != count:
            bucket = self._buckets[kind] = numpy.empty(count, kind)
        parts = numpy.split(bucket, numpy.cumsum([array.size for array in arrays])[:-1])
        for array, part in zip(arrays, parts, strict=True):
            part[...] = array.asnumpy().reshape(-1)
        self._add_up(bucket)
        for array, part in zip(arrays, parts, strict=True):
            array[...] = np.array(part.reshape(array.shape), dtype=array.dtype)

    def _add_up(self, held: numpy.ndarray) -> None:
        """Replace elements by their sums over all processes; one process has them already."""
        if self.num_workers > 1:
            self._world.Allreduce(self._mpi.IN_PLACE, held)

    def _agree(self, call: str, described: Sequence[tuple[Any, tuple[int, ...], str]]) -> None:
        """Raise on all processes unless each of them is about to send the same.

        Sums of other lengths would be of memory that is not theirs, or never end. The processes
        compare a number; what it stands for is sent where they differ.
        """
        refuse_in_capture(
            f"kvstore: a sum over processes ({call})",
            "Hybridize the network and the loss, and call trainer.step outside.",
        )
        if self.num_workers == 1:
            return
        text = f"{call}: " + ", ".join(f"{key!r} {shape} {name}" for key, shape, name in described)
        digest = zlib.crc32(text.encode())
        largest = numpy.array([digest, -digest])
        self._world.Allreduce(self._mpi.IN_PLACE, largest, op=self._mpi.MAX)
        if largest[0] == -largest[1]:
            return
        texts = self._world.allgather(text)
        rank = next(rank for rank, other in enumerate(texts) if other != texts[0])
        raise CommunicationError(
            f"kvstore: the processes do not do the same: process 0 {_excerpt(texts[0])}; process "
            f"{rank} {_excerpt(texts[rank])}. Every process makes the same calls in the same "
            "order, with the same network."
        )


def _name(array: _core.ndarray) -> str:
    return dtype_name(array.dtype)


def _summed_as(array: _core.ndarray) -> str:
    name = _name(array)
    return numpy.dtype(_SUMMED_AS.get(name, name)).name


def _excerpt(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


_check_members(globals())

__all__ = ["MPIStore"]
