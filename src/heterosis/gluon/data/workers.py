"""Who prepares batches: processes or threads that are given lists of indices."""

from __future__ import annotations

import multiprocessing
import os
import random
import selectors
import signal
import socket
import time
import traceback
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, NamedTuple

import numpy

from heterosis import _core
from heterosis.gluon.data.batchify import default_batchify_fn, stacked
from heterosis.gluon.data.transport import Receiver, Shelf, receive, send
from heterosis.runtime.errors import WorkerError, WorkerTimeoutError

_IN_FLIGHT = 16  # batches that a worker is asked for at once; more wait in the parent
_GRACE = 2.0  # seconds that workers have to end by themselves
_GONE = (BrokenPipeError, ConnectionResetError)  # what `send` raises when nobody listens
_LOOK = 5.0  # seconds after which a waiting worker looks whether its parent is still there


class Job(NamedTuple):
    """A batch to be prepared."""

    ticket: int
    indices: Sequence[Any]
    seed: int


class Failure(NamedTuple):
    """What went wrong in a worker."""

    error: Exception | None  # if it can be sent
    text: str


def samples(dataset: Sequence[Any], indices: Iterable[Any], at: list[Any]) -> list[Any]:
    """The samples at `indices`; `at` holds the index that is being worked on."""
    found = []
    for index in indices:
        at[:] = [index]
        found.append(dataset[index])
    at.clear()
    return found


# -- in a worker process --------------------------------------------------------------------------


class _Worker:
    """The loop of a worker process."""

    def __init__(self, connection: socket.socket, dataset: Any, batchify: Callable[..., Any]):
        self._connection, self._dataset, self._batchify = connection, dataset, batchify
        self._shelf = Shelf()

    def run(self) -> None:
        self._connection.settimeout(_LOOK)
        parent = os.getppid()
        while True:
            try:
                message = receive(self._connection)
            except TimeoutError:
                if os.getppid() == parent:
                    continue
                return
            if message is None:
                return
            (job, released), _ = message
            self._shelf.take_back(*released)
            self._answer(job)

    def _answer(self, job: Job) -> None:
        _seed(job.seed)
        self._shelf.begin()
        at: list[Any] = []
        try:
            result = self._batch(samples(self._dataset, job.indices, at))
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
            result = _failure(error, at, job)
            self._shelf.give_up()
        self._send(job, result)

    def _batch(self, found: list[Any]) -> Any:
        if self._batchify is default_batchify_fn:
            return stacked(found, self._shelf.make)
        return self._shelf.put(self._batchify(found))

    def _send(self, job: Job, result: Any) -> None:
        new, files, dropped = self._shelf.news()
        self._connection.settimeout(None)
        with suppress(*_GONE):  # the next `receive` finds that the parent is gone
            try:
                send(self._connection, (job.ticket, result, new, dropped), files)
            except (TypeError, AttributeError, ValueError) as error:  # what pickling raises
                failure = _failure(error, [], job)
                self._shelf.give_up()
                send(self._connection, (job.ticket, failure, new, dropped), files)
        self._connection.settimeout(_LOOK)


def _seed(seed: int) -> None:
    """Random numbers that depend on the batch, and not on which worker prepares it."""
    _core.seed(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def _failure(error: Exception, at: list[Any], job: Job) -> Failure:
    place = f"sample {at[0]}" if at else f"a batch of the samples {_listed(job.indices)}"
    text = f"a worker process (pid {os.getpid()}) failed at {place}:\n\n{traceback.format_exc()}"
    try:
        multiprocessing.reduction.ForkingPickler.loads(
            multiprocessing.reduction.ForkingPickler.dumps(error)
        )
    except Exception:  # noqa: BLE001 - an error of any class may refuse to be sent
        return Failure(None, text)
    return Failure(error, text)


def _listed(indices: Sequence[Any]) -> str:
    shown = ", ".join(map(str, indices[:8]))
    return f"[{shown}{', ...' if len(indices) > 8 else ''}]"


def _start(connection: socket.socket, dataset: Any, batchify: Callable[..., Any]) -> None:
    """The main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in list(_parents_ends):  # while one is open here, its worker would outlive the parent
        other.close()
    _core.set_threads(1)
    _core.set_current_device(0)  # a GPU is the parent's
    _Worker(connection, dataset, batchify).run()


_parents_ends: weakref.WeakSet[socket.socket] = weakref.WeakSet()

# -- in the parent --------------------------------------------------------------------------------


class _Process:
    """A worker as its parent sees it."""

    def __init__(self, number: int, dataset: Any, batchify: Callable[..., Any]):
        self.number, self.parent = number, os.getpid()
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _parents_ends.add(self.connection)
        self.receiver = Receiver()
        self.jobs: dict[int, Job] = {}
        self.process = multiprocessing.get_context("fork").Process(
            target=_start, args=(theirs, dataset, batchify), daemon=True, name=f"loader-{number}"
        )
        with warnings.catch_warnings():  # Python warns of forks beside threads; the engine is ready
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()

    def give(self, job: Job) -> None:
        self.jobs[job.ticket] = job
        with suppress(*_GONE):  # found out when reading
            send(self.connection, (job, self.receiver.released()))

    def obituary(self) -> str:
        self.process.join(_GRACE)
        code = self.process.exitcode
        how = f"exited with code {code}"
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
            how += " (too little memory?)" if -code == signal.SIGKILL else ""
        job = next(iter(self.jobs.values()), None)
        where = f" while it prepared the samples {_listed(job.indices)}" if job else ""
        return f"worker {self.number} (pid {self.process.pid}) {how}{where}."


class ProcessPool:
    """Worker processes that share out batches among them."""

    def __init__(self, dataset: Any, batchify: Callable[..., Any], count: int):
        self._waiting: deque[Job] = deque()
        self._results: dict[int, Any] = {}
        self._unwanted: set[int] = set()
        self._workers: list[_Process] = []
        self._selector = selectors.DefaultSelector()
        self.is_open, self.process = True, os.getpid()
        self._finalizer = weakref.finalize(self, _end, self._workers)
        for number in range(count):
            worker = _Process(number, dataset, batchify)
            self._workers.append(worker)
            self._selector.register(worker.connection, selectors.EVENT_READ, worker)

    def submit(self, job: Job) -> None:
        """Have a batch prepared."""
        self._waiting.append(job)
        self._hand_out()

    def take(self, job: Job, timeout: float) -> Any:
        """The batch, as soon as it is there; raises what went wrong in preparing it."""
        until = time.monotonic() + timeout
        try:
            while job.ticket not in self._results:
                self._listen(job, until)
        except KeyboardInterrupt:  # in the midst of anything
            self.close()
            raise
        result = self._results.pop(job.ticket)
        if isinstance(result, Failure):
            cause = WorkerError(result.text)
            raise cause if result.error is None else result.error from cause
        return result

    def discard(self, jobs: Iterable[Job]) -> None:
        """Nobody will take these batches."""
        for job in jobs:
            if job.ticket in self._results:
                del self._results[job.ticket]
            elif job in self._waiting:
                self._waiting.remove(job)
            else:
                self._unwanted.add(job.ticket)

    def close(self) -> None:
        """End the workers."""
        self.is_open = False
        self._finalizer()

    def _hand_out(self) -> None:
        while self._waiting:
            worker = min(self._workers, key=lambda w: len(w.jobs))
            if len(worker.jobs) >= _IN_FLIGHT:
                return
            worker.give(self._waiting.popleft())

    def _listen(self, job: Job, until: float) -> None:
        ready = self._selector.select(max(until - time.monotonic(), 0))
        if not ready and time.monotonic() >= until:
            raise _late(job)
        for key, _ in ready:
            self._hear(key.data)
        self._hand_out()

    def _hear(self, worker: _Process) -> None:
        message = receive(worker.connection)
        if message is None:
            text = worker.obituary()
            self.close()
            raise WorkerError(f"DataLoader: {text} The next epoch starts new workers.")
        (ticket, result, new, dropped), files = message
        worker.receiver.learn(new, files, dropped)
        del worker.jobs[ticket]
        result = result if isinstance(result, Failure) else worker.receiver.get(result)
        if ticket in self._unwanted:
            self._unwanted.remove(ticket)
        else:
            self._results[ticket] = result


def _late(job: Job) -> WorkerTimeoutError:
    return WorkerTimeoutError(
        f"DataLoader: the batch of the samples {_listed(job.indices)} did not come in time. Give "
        "the DataLoader a larger timeout, or see what takes its dataset or transform so long."
    )


def _end(workers: list[_Process]) -> None:
    """End worker processes: gently, then firmly."""
    for worker in workers:
        worker.connection.close()
    until = time.monotonic() + _GRACE
    for worker in workers:
        if worker.parent == os.getpid():  # in a fork they are the parent's
            worker.process.join(0 if worker.jobs else max(until - time.monotonic(), 0))
            worker.process.kill()
            worker.process.join()


class ThreadPool:
    """Worker threads, for datasets that wait or compute outside of Python."""

    def __init__(self, dataset: Any, batchify: Callable[..., Any], count: int):
        self._dataset, self._batchify = dataset, batchify
        self._executor = ThreadPoolExecutor(count, "loader")
        self._futures: dict[int, Future] = {}
        self.is_open, self.process = True, os.getpid()

    def submit(self, job: Job) -> None:
        """Have a batch prepared."""
        self._futures[job.ticket] = self._executor.submit(self._batch, job.indices)

    def _batch(self, indices: Sequence[Any]) -> Any:
        return self._batchify([self._dataset[index] for index in indices])

    def take(self, job: Job, timeout: float) -> Any:
        """The batch, as soon as it is there; raises what went wrong in preparing it."""
        future = self._futures.pop(job.ticket)
        wait([future], timeout)
        if not future.done():
            raise _late(job)
        return future.result()

    def discard(self, jobs: Iterable[Job]) -> None:
        """Nobody will take these batches."""
        for job in jobs:
            self._futures.pop(job.ticket).cancel()

    def close(self) -> None:
        """End the threads when they are done with what they do."""
        self.is_open = False
        self._executor.shutdown(wait=False, cancel_futures=True)
