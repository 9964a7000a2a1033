"""Samplers: in which order, and in which batches, the samples of a dataset come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy

from heterosis import _core
from heterosis.runtime.errors import ArgumentError, UnsupportedError
from heterosis.runtime.kinds import Counted, Indexed, Natural, Positive

LAST_BATCH = ("keep", "discard", "rollover")


class Sampler:
    """A sequence of indices, or of lists of them, that can be gone through again and again.

    A sampler of one's own defines `__iter__` and `__len__`.
    """

    def __iter__(self) -> Iterator[Any]:
        raise UnsupportedError(f"{type(self).__name__} must define __iter__.")

    def __len__(self) -> int:
        raise UnsupportedError(f"{type(self).__name__} must define __len__.")


class SequentialSampler(Sampler):
    """The indices from `start` on, `length` of them, in their order."""

    def __init__(self, length: Natural, start: int = 0):
        self._range = range(start, start + length)

    def __iter__(self) -> Iterator[int]:
        return iter(self._range)

    def __len__(self) -> int:
        return len(self._range)


class RandomSampler(Sampler):
    """The indices from 0 to `length` in another order each time; `np.random.seed` fixes them."""

    def __init__(self, length: Natural):
        self._length = length

    def __iter__(self) -> Iterator[int]:
        order = numpy.random.default_rng(_core.random_key() % 2**64).permutation(self._length)
        return iter(order.tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """The indices of those samples of `dataset` for which `fn` is true; asked at the start."""

    def __init__(self, fn: Callable[[Any], Any], dataset: Indexed):
        self._indices = [i for i in range(len(dataset)) if fn(dataset[i])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class BatchSampler(Sampler):
    """Lists of `batch_size` indices of another sampler, which may be a list of them.

    An incomplete last batch is given as it is ("keep"), left out ("discard"), or put in front of
    what comes the next time ("rollover").
    """

    def __init__(self, sampler: Counted, batch_size: Positive, last_batch: str = "keep"):
        if last_batch not in LAST_BATCH:
            raise ArgumentError(
                f"last_batch={last_batch!r}; expected one of {', '.join(map(repr, LAST_BATCH))}."
            )
        if batch_size < 1:
            raise ArgumentError(f"batch_size={batch_size}; expected at least 1.")
        self._sampler, self._batch_size, self._last_batch = sampler, batch_size, last_batch
        self.left: list[Any] = []

    def __iter__(self) -> Iterator[list[Any]]:
        batch, self.left = self.left, []
        for index in self._sampler:
            batch.append(index)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self.left = batch

    def __len__(self) -> int:
        count = len(self._sampler) + len(self.left)
        if self._last_batch == "keep":
            count += self._batch_size - 1
        return count // self._batch_size


class SharedBatchSampler(Sampler):
    """This process's part of every batch, where `count` processes train on each batch together.

    A batch is cut into `count` parts, the first of which have one sample more where it does not
    divide; the parts of all processes are the batches that one process would have. The order of a
    pass follows from `seed` and the number of the pass alone, so that all processes have the same.
    `resume` goes on where a checkpoint was made.
    """

    def __init__(
        self,
        length: Natural,
        batch_size: Positive,
        rank: Natural,
        count: Positive,
        shuffle: bool = True,
        seed: Natural = 0,
        last_batch: str = "keep",
    ):
        if last_batch not in ("keep", "discard"):
            raise ArgumentError(f"last_batch={last_batch!r}; expected 'keep' or 'discard'.")
        if rank >= count:
            raise ArgumentError(f"rank={rank} of {count} processes; expected 0 to {count - 1}.")
        smallest = length % batch_size if last_batch == "keep" else 0
        for size in (batch_size, smallest or batch_size):
            if size < count:
                raise ArgumentError(
                    f"SharedBatchSampler: {length} samples in batches of {batch_size} make one of "
                    f"{size}, too small for {count} processes: some would have none. Take "
                    "another batch_size, or last_batch='discard'."
                )
        self._length, self._batch_size, self._last_batch = length, batch_size, last_batch
        self._rank, self._count = rank, count
        self._shuffle, self._seed = shuffle, seed
        self.epoch = 0  # the number of the pass that is gone through, or comes next
        self._first = 0

    def resume(self, epoch: Natural, batch: Natural) -> None:
        """Let the next pass be number `epoch`, from its batch number `batch` on."""
        whole = self._whole()
        if batch > whole:
            raise ArgumentError(f"resume: batch {batch} of a pass of {whole} batches.")
        self.epoch, self._first = epoch, batch

    def __iter__(self) -> Iterator[list[int]]:
        order = numpy.arange(self._length)
        if self._shuffle:
            numpy.random.default_rng((self._seed, self.epoch)).shuffle(order)
        first, self._first = self._first, 0
        for number in range(first, self._whole()):
            batch = order[number * self._batch_size : (number + 1) * self._batch_size]
            yield numpy.array_split(batch, self._count)[self._rank].tolist()
        self.epoch += 1

    def __len__(self) -> int:
        return self._whole() - self._first

    def _whole(self) -> int:
        extra = self._batch_size - 1 if self._last_batch == "keep" else 0
        return (self._length + extra) // self._batch_size


__all__ = [
    "BatchSampler",
    "FilterSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SharedBatchSampler",
]
