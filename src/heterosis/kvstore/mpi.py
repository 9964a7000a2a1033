"""A store that joins processes: sums over all of them, by MPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy

from heterosis import _core, autograd, np, npx
from heterosis.kvstore.buckets import Bucket, Row, name_of, planned
from heterosis.kvstore.local import KVStore, added, by_key
from heterosis.kvstore.messages import Call, described
from heterosis.kvstore.world import join
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import UnsupportedError
from heterosis.runtime.modes import refuse_in_capture


class MPIStore(KVStore):
    """A store over the processes that `mpiexec` has started: a push adds up what all push.

    Every process makes the same calls in the same order, and each holds all values. What `init` and
    `broadcast` start is process 0's. `exchange` and pushes return before the sums are there, as all
    operations do; what goes wrong is raised where one of the arrays is read, and by the next other
    call of a store.
    """

    joins_processes: ClassVar[bool] = True

    def __init__(self, name: str = "mpi"):
        super().__init__(name)
        self._messages = join()
        # By what says the order: trainers may have gradients alike that come in another one.
        self._plans: WeakKeyDictionary[Callable[[], Sequence[int]], dict[Any, list[Bucket]]]
        self._plans = WeakKeyDictionary()

    @property
    def rank(self) -> int:
        return int(self._messages.world.rank)

    @property
    def num_workers(self) -> int:
        return int(self._messages.world.size)

    def barrier(self) -> None:
        """Wait until all processes are here, with all that they have issued done."""
        self._agree("barrier", ())
        npx.waitall()
        self._messages.world.Barrier()

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """Every process's numbers added up, in float64: losses and counts of a batch's parts."""
        total = numpy.array(numbers, dtype=numpy.float64)
        self._agree("sum", [("numbers", total.shape, "float64")])
        if self.num_workers > 1:
            self._messages.add_up(total)
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

    def exchange(
        self,
        keys: Sequence[Any],
        values: Sequence[list[_core.ndarray]],
        turns: Callable[[], Sequence[int]] | None = None,
    ) -> None:
        """Replace the arrays by their sums over all processes, in a few messages.

        `turns` says in which order the arrays get their values, lower ones earlier: a message goes
        when its arrays are there, while others are computed. It is called once, and what it says in
        process 0 holds for all.
        """
        _refuse("exchange")
        with autograd.pause():
            sums = [added(arrays) for arrays in values]
            if self.num_workers > 1:
                rows = tuple((k, s.shape, name_of(s)) for k, s in zip(keys, sums, strict=True))
                call = Call()
                for bucket in self._planned(rows, turns or _as_given):
                    self._queue(call, bucket, [sums[i] for i in bucket.places])
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
        self._agree("broadcast", [(key, array.shape, name_of(array))])
        if self.num_workers == 1:
            return
        held = numpy.array(array.asnumpy())
        self._messages.first(held)
        array[...] = np.array(held, dtype=array.dtype)

    def _planned(self, rows: tuple[Row, ...], turns: Callable[[], Sequence[int]]) -> list[Bucket]:
        """The buckets of a call, made when it comes for the first time, for all processes alike."""
        plans = self._plans.setdefault(turns, {})
        if rows not in plans:
            self._agree("first exchange", rows)
            given = numpy.array(turns() or [0] * len(rows), numpy.int64)
            order = numpy.argsort(given, kind="stable")
            self._messages.first(order)
            plans[rows] = planned(rows, order.tolist())
        return plans[rows]

    def _queue(self, call: Call, bucket: Bucket, arrays: list[_core.ndarray]) -> None:
        message = bucket.message(arrays)
        self._messages.queue(call, bucket.text, message)
        bucket.unpack(message, arrays)

    def _agree(self, call: str, rows: Sequence[Row]) -> None:
        """Raise on all processes unless each of them is about to send the same, after all that was
        queued."""
        _refuse(call)
        if self.num_workers > 1:
            self._messages.finish()
            self._messages.agree(described(call, rows))


def _as_given() -> Sequence[int]:
    """No other order than that of the call."""
    return ()


def _refuse(call: str) -> None:
    refuse_in_capture(
        f"kvstore: a sum over processes ({call})",
        "Hybridize the network and the loss, and call trainer.step outside.",
    )


_check_members(globals())

__all__ = ["MPIStore"]
