"""What processes send each other: one message after the other, in the same order in all of them."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy

from heterosis import _core
from heterosis.runtime.errors import CommunicationError, HeterosisError

_LONGEST_NAP = 5e-4  # seconds; a wait is lengthened by a quarter at most


class Call:
    """One call of a store, which may send several messages: after one that fails, none is sent."""

    failed: CommunicationError | None = None


class Messages:
    """The messages of this process, over a communicator of all.

    `queue` returns at once, and a thread of the core's sends: nobody else does until `finish` has
    waited for it. Every process asks for the same messages in the same order.
    """

    def __init__(self, world: Any, mpi: Any):
        self.world, self.mpi = world, mpi
        self._order = _core.empty("float32", (0,))  # that all calls in the lane write
        self._failed: CommunicationError | None = None  # the first, until somebody is told
        self._lock = threading.RLock()  # held while something is queued, and by forks
        os.register_at_fork(
            before=self._before_fork,
            after_in_parent=self._lock.release,
            after_in_child=self._after_fork_in_child,
        )
        atexit.register(self._end)

    @property
    def beside(self) -> bool:
        """Whether MPI allows that a thread calls it beside the program's own calls."""
        return bool(self.mpi.Query_thread() >= self.mpi.THREAD_MULTIPLE)

    def queue(self, call: Call, text: str, array: _core.ndarray) -> None:
        """Replace an array by the sum of those of all processes; `text` says which, and all say the
        same. What goes wrong is raised where the array is read, and by `finish`.
        """
        send = partial(self._send, call, text, array._dtype_name)
        with self._lock:
            if self.beside:
                _core.call_in_lane("exchange", send, array, self._order)
            else:
                self._send_here(send, array)

    def finish(self) -> None:
        """Wait for what is queued, and raise the first error that one of these messages has met."""
        self._wait_for_lane()
        error, self._failed = self._failed, None
        if error is not None:
            raise CommunicationError(str(error))

    def agree(self, text: str) -> None:
        """Raise on all processes unless each of them is about to send the same.

        Sums of other lengths would be of memory that is not theirs, or never end. The processes
        compare a number; what it stands for is sent where they differ.
        """
        digest = zlib.crc32(text.encode())
        largest = numpy.array([digest, -digest])
        if self.beside:
            self._nap_until(self.world.Iallreduce(self.mpi.IN_PLACE, largest, op=self.mpi.MAX))
        else:  # where messages that are looked for now and then have made MPICH 5 hang
            self.world.Allreduce(self.mpi.IN_PLACE, largest, op=self.mpi.MAX)
        if largest[0] == -largest[1]:
            return
        texts = self.world.allgather(text)
        rank = next(rank for rank, other in enumerate(texts) if other != texts[0])
        raise CommunicationError(
            f"kvstore: the processes do not do the same: process 0 {_excerpt(texts[0])}; process "
            f"{rank} {_excerpt(texts[rank])}. Every process makes the same calls in the same "
            "order, with the same network."
        )

    def add_up(self, held: numpy.ndarray) -> None:
        """Replace elements by their sums over all processes."""
        self.world.Allreduce(self.mpi.IN_PLACE, held)

    def first(self, held: numpy.ndarray) -> None:
        """Replace elements by those of process 0."""
        self.world.Bcast(held.reshape(-1).view(numpy.uint8), 0)

    # -- in the lane --------------------------------------------------------------------------

    def _send(self, call: Call, text: str, kind: str, memory: Any, error: str | None) -> None:
        if call.failed is not None:  # on all processes
            raise call.failed
        try:
            self.agree(text if error is None else f"has met an error: {error} (in {text})")
            if error is None:
                self.add_up(numpy.frombuffer(memory, kind))
        except CommunicationError as found:
            self._note(call, found)
            raise
        except self.mpi.Exception as found:
            failed = CommunicationError(f"kvstore: MPI could not send {_excerpt(text)}: {found}")
            self._note(call, failed)
            raise failed from found

    def _note(self, call: Call, error: CommunicationError) -> None:
        call.failed = error
        self._failed = self._failed or error

    def _send_here(self, send: Any, array: _core.ndarray) -> None:
        """What the lane does, by the calling thread."""
        error = None
        try:
            array.wait_to_read()
        except HeterosisError as found:
            error = found
        try:
            send(array, None) if error is None else send(None, str(error))
        finally:
            self._failed = None  # it is raised here
        if error is not None:
            raise error
        array._count_write()

    def _nap_until(self, request: Any) -> None:
        """Wait for a message, and leave the processor to what is computed beside.

        MPI's own waits look for messages all the time. That they do so while gradients are summed
        costs nothing: here it is others that are waited for, who have not come so far yet.
        """
        begun = time.perf_counter()
        while not request.Test():
            waited = time.perf_counter() - begun
            if waited > 5e-5:
                time.sleep(min(waited / 4, _LONGEST_NAP))

    def _wait_for_lane(self) -> None:
        with contextlib.suppress(HeterosisError):  # of an array, which raises it, or in _failed
            self._order.wait_to_read()

    def _end(self) -> None:
        """Let an error that nobody has been told of end all processes, as other errors do."""
        try:
            self.finish()
        except CommunicationError:
            traceback.print_exc()
            sys.stderr.flush()
            self.world.Abort(1)

    def _before_fork(self) -> None:
        self._lock.acquire()
        self._wait_for_lane()

    def _after_fork_in_child(self) -> None:
        self._failed = None  # it is the parent that is told
        self._lock.release()


def described(call: str, rows: Sequence[tuple[Any, tuple[int, ...], str]]) -> str:
    """What a call is about to send: keys, shapes and element types."""
    return f"{call}: " + ", ".join(f"{key!r} {shape} {name}" for key, shape, name in rows)


def _excerpt(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
