"""Batches of a dataset, in an order that a sampler gives, prepared ahead by workers."""

from __future__ import annotations

import itertools
import os
import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from heterosis import _core, np
from heterosis.gluon.data.batchify import default_batchify_fn
from heterosis.gluon.data.dataset import columns
from heterosis.gluon.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from heterosis.gluon.data.workers import Job, ProcessPool, ThreadPool
from heterosis.runtime.errors import ArgumentError, WorkerError
from heterosis.runtime.kinds import Counted, Indexed, Natural
from heterosis.runtime.memory import keep_freed_memory

_tickets = itertools.count()


class DataLoader:
    """Goes through a dataset in batches, once each time it is iterated over.

    A `sampler` gives indices, a `batch_sampler` sequences of them; a list will do for either.

    With `num_workers`, as many processes (or threads, if `thread_pool`) prepare up to `prefetch`
    batches ahead. Processes are forked at the first use and keep the dataset as it was then;
    arrays come back through shared memory. Random numbers that a worker draws depend on
    `np.random.seed` and the batch, not on the number of workers.
    """

    def __init__(
        self,
        dataset: Indexed,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Counted | None = None,
        last_batch: str | None = None,
        batch_sampler: Counted | None = None,
        batchify_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: Natural = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ):
        if timeout <= 0:
            raise ArgumentError(f"DataLoader: timeout={timeout}; expected seconds, more than 0.")
        self._dataset = dataset
        if batch_sampler is None:
            batch_sampler = _batches(dataset, batch_size, shuffle, sampler, last_batch)
        elif shuffle or any(given is not None for given in (batch_size, sampler, last_batch)):
            raise ArgumentError(
                "DataLoader: batch_sampler decides everything about batches; leave out batch_size, "
                "shuffle, sampler and last_batch beside it."
            )
        self._batch_sampler = batch_sampler
        self._batchify = batchify_fn or default_batchify_fn
        self._num_workers = max(num_workers, 0)
        self._prefetch = max(2 * self._num_workers if prefetch is None else prefetch, 0)
        self._kind = ThreadPool if thread_pool else ProcessPool
        self._timeout = timeout
        self._pool: ProcessPool | ThreadPool | None = None
        self._started: Iterator[Any] | None = None
        self._started_at: dict[str, Any] = {}
        self.auto_reload = auto_reload
        keep_freed_memory()
        if auto_reload:
            self.refresh()

    def __repr__(self) -> str:
        parts = [f"{type(self._dataset).__name__.lstrip('_')} of {len(self._dataset)}"]
        if hasattr(self._batch_sampler, "__len__"):
            parts.append(f"{len(self)} batches")
        if self._num_workers:
            parts.append(f"{self._num_workers} workers")
        return f"DataLoader({', '.join(parts)})"

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._started, _Ahead) and not self._started.is_ours:
            self._started = None
        epoch, self._started = self._started or self._epoch(), None
        yield from epoch
        if self.auto_reload and self._started is None:
            self.refresh()

    def refresh(self) -> None:
        """Start preparing the batches of the next iteration now."""
        self._started_at = {"left": self._left(), "ahead": list(_core.random_state())}
        self._started = self._epoch()

    def clean(self) -> None:
        """Forget batches that were prepared in advance for the next iteration."""
        self._started = None

    def state(self) -> dict[str, Any]:
        """What `restore` takes to go on with the epoch that comes next; JSON can say it."""
        if self._started is not None:
            return self._started_at
        return {"left": self._left(), "ahead": None}

    def restore(self, state: dict[str, Any]) -> None:
        """Be between two epochs where `state` was called, if `np.random` is there too."""
        self._started = None
        if isinstance(self._batch_sampler, BatchSampler):
            self._batch_sampler.left = list(state["left"])
        if state["ahead"] is not None:
            now = _core.random_state()
            _core.restore_random_state(*state["ahead"])
            self.refresh()
            _core.restore_random_state(*now)

    def _left(self) -> list[Any]:
        """The samples that wait for the next epoch."""
        found = isinstance(self._batch_sampler, BatchSampler)
        return list(self._batch_sampler.left) if found else []

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None:
            self._pool.close()

    def _epoch(self) -> Iterator[Any]:
        key = _core.random_key()  # drawn in any case: one seed gives one course of training
        batches = map(list, self._batch_sampler)  # a tuple would be one index of several dimensions
        if not self._num_workers:
            return map(self._load, batches)
        return _Ahead(self._workers(), batches, key, self._prefetch, self._timeout)

    def _load(self, indices: list[Any]) -> Any:
        try:
            whole = None
            if self._batchify is default_batchify_fn:
                whole = _rows(self._dataset, indices)
            if whole is not None:
                return whole
            return self._batchify([self._dataset[index] for index in indices])
        except StopIteration as error:
            raise _stopped() from error

    def _workers(self) -> ProcessPool | ThreadPool:
        if self._pool is None or not _is_usable(self._pool):
            self._pool = self._kind(self._dataset, self._batchify, self._num_workers)
        return self._pool


class _Ahead(Iterator[Any]):
    """The batches of one epoch, a number of them prepared ahead."""

    def __init__(
        self, pool: Any, batches: Iterator[list[Any]], key: int, prefetch: int, timeout: float
    ):
        self._pool, self._batches, self._timeout = pool, batches, timeout
        self._seeds = random.Random(key)
        self._jobs: deque[Job] = deque()
        for _ in range(prefetch):
            self._submit()

    @property
    def is_ours(self) -> bool:
        """Whether this process has begun it, and not one that it was forked from."""
        return bool(self._pool.process == os.getpid())

    def __next__(self) -> Any:
        if not self.is_ours:
            raise WorkerError(
                f"DataLoader: the workers of this iteration are those of process "
                f"{self._pool.process}, which this one was forked from. Begin another one here, "
                "which has workers of its own."
            )
        self._submit()
        if not self._jobs:
            raise StopIteration
        try:
            return self._pool.take(self._jobs.popleft(), self._timeout)
        except StopIteration as error:
            raise _stopped() from error

    def _submit(self) -> None:
        indices = next(self._batches, None)
        if indices is not None:
            job = Job(next(_tickets), indices, self._seeds.getrandbits(63))
            self._pool.submit(job)
            self._jobs.append(job)

    def __del__(self) -> None:
        if _is_usable(self._pool):
            self._pool.discard(self._jobs)


def _is_usable(pool: ProcessPool | ThreadPool) -> bool:
    """Whether it has workers, and they are this process's: a child that is forked has none."""
    return pool.is_open and pool.process == os.getpid()


def _stopped() -> WorkerError:
    """The error in place of a `StopIteration` of the user's, which would end the epoch early."""
    return WorkerError(
        "DataLoader: the dataset, its transform or batchify_fn has raised StopIteration, as `next` "
        "does where nothing is left. The batch cannot be made; give the dataset the length it has."
    )


def _batches(
    dataset: Indexed,
    batch_size: int | None,
    shuffle: bool,
    sampler: Counted | None,
    last_batch: str | None,
) -> BatchSampler:
    if batch_size is None:
        raise ArgumentError("DataLoader: give it a batch_size, or a batch_sampler.")
    if sampler is not None and shuffle:
        raise ArgumentError("DataLoader: a sampler decides the order; leave out shuffle beside it.")
    if sampler is None:
        sampler = (RandomSampler if shuffle else SequentialSampler)(len(dataset))
    return BatchSampler(sampler, batch_size, last_batch or "keep")


def _rows(dataset: Any, indices: list[Any]) -> Any:
    """The default batch of a dataset of plain arrays at one stroke; `None` for other datasets."""
    parts = columns(dataset)
    if parts is None:
        return None
    found = [p[indices] if isinstance(p, np.ndarray) else np.array(p[indices]) for p in parts]
    return found[0] if len(found) == 1 else found


__all__ = ["DataLoader"]
