"""Batches on their way between processes: messages over a socket, arrays in shared memory.

Memory is shared as anonymous files whose descriptors travel with the messages: nothing has a name
that could be left behind. The worker owns the memory and uses it again when the parent has let go
of all arrays in it, so that neither side touches new pages in the long run.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import socket
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy

from heterosis import _core, np
from heterosis.ir.types import dtype_name, numpy_dtype
from heterosis.np.convert import shared
from heterosis.runtime.errors import DTypeError

_IN_SOCKET = 4096  # bytes of a message that fit the socket beside others; longer ones go in a file
_MOST_FILES = 200  # of descriptors in one message; the kernel lets 253 through
_IN_MESSAGE = 1024  # bytes of an array that are sent along; larger ones are shared
_ALIGNMENT = 64
_MAP_FIXED = 0x10  # of Linux
_SPARE = 8  # segments that a worker keeps for reuse


class Stored(NamedTuple):
    """Where an array of a batch is: in a segment, or here if it is small."""

    segment: int
    offset: int
    dtype: str
    shape: tuple[int, ...]
    ours: bool  # else one of NumPy's
    data: bytes = b""


class Segment(NamedTuple):
    """Shared memory that messages stand in."""

    number: int
    file: int
    memory: mmap.mmap


# -- messages -------------------------------------------------------------------------------------


def send(connection: socket.socket, message: Any, files: Iterable[int] = ()) -> None:
    """Send one message and descriptors of files. Blocks only if the other side lags far behind."""
    files = list(files)
    payload = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    if len(payload) <= _IN_SOCKET:
        socket.send_fds(connection, [b"\0", payload], files)
        return
    with open(os.memfd_create("message"), "w+b", buffering=0) as carrier:
        carrier.write(payload)
        socket.send_fds(connection, [b"\1"], [carrier.fileno(), *files])


def receive(connection: socket.socket) -> tuple[Any, list[int]] | None:
    """The next message and its files; `None` when the other side is gone."""
    try:
        data, files, _, _ = socket.recv_fds(connection, _IN_SOCKET + 1, _MOST_FILES + 1)
    except ConnectionResetError:  # it has left messages unread
        return None
    if not data:
        return None
    if data[0] == 0:
        return pickle.loads(memoryview(data)[1:]), list(files)
    with open(files[0], "rb", buffering=0) as carrier:
        carrier.seek(0)
        return pickle.loads(carrier.read()), list(files[1:])


# -- the worker's side ----------------------------------------------------------------------------


class Shelf:
    """Segments of shared memory that a worker puts batches into."""

    def __init__(self) -> None:
        self._free: list[Segment] = []
        self._lent: dict[int, Segment] = {}
        self._made = 0
        self._current: list[int] = []
        self._new: list[Segment] = []
        self._dropped: list[int] = []

    def begin(self) -> None:
        """What is made from now on belongs to another batch."""
        self._current = []

    def give_up(self) -> None:
        """The batch will not be sent."""
        self.take_back(self._current)
        self._current = []

    def take_back(self, numbers: Iterable[int], forked: Iterable[int] = ()) -> None:
        """Nobody uses these segments any more, but for processes that were forked meanwhile."""
        self._free += [self._lent.pop(number) for number in numbers]
        while len(self._free) > _SPARE:
            self._drop(self._free.pop(0))
        for number in forked:
            self._drop(self._lent.pop(number))

    def _drop(self, segment: Segment) -> None:
        os.close(segment.file)
        self._dropped.append(segment.number)

    def news(self) -> tuple[list[int], list[int], list[int]]:
        """Since the last call: numbers of new segments, their files, numbers of dropped ones."""
        new, self._new = self._new, []
        dropped, self._dropped = self._dropped, []
        return [s.number for s in new], [s.file for s in new], dropped

    def make(self, shape: tuple[int, ...], dtype: str) -> tuple[Stored, numpy.ndarray]:
        """Room for an array of a batch: where it is, and its memory."""
        segment = self._segment(_bytes(shape, dtype))
        return self._placed(segment, 0, shape, dtype, ours=True)

    def put(self, batch: Any) -> Any:
        """`batch` with its arrays copied into shared memory."""
        arrays: list[Any] = []
        _each_array(batch, arrays.append)
        large = [a for a in arrays if a.nbytes > _IN_MESSAGE]
        room = sum(_aligned(a.nbytes) for a in large)
        segment = self._segment(room) if large else None
        places = iter(numpy.cumsum([0, *(_aligned(a.nbytes) for a in large)]).tolist())
        return _each_array(batch, lambda a: self._copied(a, segment, places))

    def _copied(self, array: Any, segment: Segment | None, places: Any) -> Stored:
        ours = isinstance(array, np.ndarray)
        source = shared(array) if ours else array
        dtype = array._dtype_name if ours else source.dtype.str
        if array.nbytes <= _IN_MESSAGE:
            return Stored(-1, 0, dtype, source.shape, ours, source.tobytes())
        assert segment is not None
        stored, memory = self._placed(segment, next(places), source.shape, dtype, ours)
        memory[...] = source
        return stored

    def _placed(
        self, segment: Segment, offset: int, shape: tuple[int, ...], dtype: str, ours: bool
    ) -> tuple[Stored, numpy.ndarray]:
        stored = Stored(segment.number, offset, dtype, tuple(shape), ours)
        return stored, _array_at(segment.memory, stored)

    def _segment(self, size: int) -> Segment:
        fitting = [s for s in self._free if size <= len(s.memory) <= 2 * size + mmap.PAGESIZE]
        if fitting:
            segment = min(fitting, key=lambda s: len(s.memory))
            self._free.remove(segment)
        else:
            segment = self._new_segment(size)
        self._lent[segment.number] = segment
        self._current.append(segment.number)
        return segment

    def _new_segment(self, size: int) -> Segment:
        file = os.memfd_create("batch")
        os.ftruncate(file, max(-(-size // mmap.PAGESIZE), 1) * mmap.PAGESIZE)
        segment = Segment(self._made, file, mmap.mmap(file, 0))
        self._made += 1
        self._new.append(segment)
        return segment


def _is_shareable(item: Any) -> bool:
    if isinstance(item, numpy.ndarray):
        return item.dtype.kind in "biufc"
    return isinstance(item, np.ndarray)


def _each_array(batch: Any, function: Any) -> Any:
    """`batch` with `function` applied to every array in its lists, tuples and dictionaries."""
    if _is_shareable(batch):
        return function(batch)
    if type(batch) in (list, tuple):
        return type(batch)([_each_array(item, function) for item in batch])
    if type(batch) is dict:
        return {key: _each_array(item, function) for key, item in batch.items()}
    return batch


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _numpy_dtype(dtype: str) -> numpy.dtype:
    try:
        return numpy_dtype(dtype_name(dtype))
    except DTypeError:  # one of NumPy's that ours are not
        return numpy.dtype(dtype)


def _bytes(shape: tuple[int, ...], dtype: str) -> int:
    return int(numpy.prod(shape, dtype="int64")) * _numpy_dtype(dtype).itemsize


def _array_at(memory: Any, stored: Stored) -> numpy.ndarray:
    """The array in `memory`, a buffer or an array of bytes that it keeps alive."""
    flat = memory if isinstance(memory, numpy.ndarray) else numpy.frombuffer(memory, numpy.uint8)
    part = flat[stored.offset : stored.offset + _bytes(stored.shape, stored.dtype)]
    return part.view(_numpy_dtype(stored.dtype)).reshape(stored.shape)


# -- the parent's side ----------------------------------------------------------------------------


class Receiver:
    """A worker's segments as the parent sees them."""

    def __init__(self) -> None:
        self._memory: dict[int, mmap.mmap] = {}
        self._released: deque[int] = deque()
        self._leased: dict[int, Callable[[], numpy.ndarray | None]] = {}  # those with arrays
        self._forked: set[int] = set()  # of which a child has arrays, too
        _receivers.add(self)

    def learn(self, new: list[int], files: list[int], dropped: list[int]) -> None:
        """Segments that the worker made, and those that it will not use again."""
        for number, file in zip(new, files, strict=True):
            self._memory[number] = mmap.mmap(file, 0)
            os.close(file)
        for number in dropped:
            del self._memory[number]

    def released(self) -> tuple[list[int], list[int]]:
        """The segments whose arrays have all gone since the last call, and those of them that must
        not be written to again: a process that was forked has such arrays, too."""
        found: tuple[list[int], list[int]] = [], []
        with suppress(IndexError):  # arrays may go at any time, in any thread
            while True:
                number = self._released.popleft()
                found[number in self._forked].append(number)
        self._forked.difference_update(found[1])
        return found

    def before_fork(self) -> None:
        """The child will have the arrays that there are."""
        self._forked.update(self._leased)

    def after_in_child(self) -> None:
        """Give the arrays that there are memory of their own, at the same place: what is written
        there, here or in the parent, is not for the other."""
        for base in [found() for found in list(self._leased.values())]:
            if base is not None:
                _become_private(base)

    def get(self, batch: Any) -> Any:
        """`batch` with arrays over the shared memory, none copied but the small."""
        return self._get(batch, {})

    def _get(self, batch: Any, bases: dict[int, numpy.ndarray]) -> Any:
        if isinstance(batch, Stored):
            return self._array(batch, bases)
        if type(batch) in (list, tuple):
            return type(batch)([self._get(item, bases) for item in batch])
        if type(batch) is dict:
            return {key: self._get(item, bases) for key, item in batch.items()}
        return batch

    def _array(self, stored: Stored, bases: dict[int, numpy.ndarray]) -> Any:
        if stored.segment < 0:
            found = _array_at(numpy.frombuffer(bytearray(stored.data), numpy.uint8), stored)
        else:
            if stored.segment not in bases:
                bases[stored.segment] = self._lease(stored.segment)
            found = _array_at(bases[stored.segment], stored)
        return _ours(found) if stored.ours else found

    def _lease(self, number: int) -> numpy.ndarray:
        """The bytes of a segment; when no array uses them any more, it is released."""
        base = numpy.frombuffer(self._memory[number], numpy.uint8)
        self._leased[number] = weakref.ref(base)
        weakref.finalize(base, self._release, number).atexit = False
        return base

    def _release(self, number: int) -> None:
        self._leased.pop(number, None)
        self._released.append(number)


_receivers: weakref.WeakSet[Receiver] = weakref.WeakSet()


def _become_private(memory: numpy.ndarray) -> None:
    """Replace shared memory, of whole pages, by a copy that this process alone has."""
    content, address = memory.tobytes(), ctypes.c_void_p(memory.ctypes.data)
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    found = library.mmap(
        address, ctypes.c_size_t(memory.nbytes), mmap.PROT_READ | mmap.PROT_WRITE,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1, ctypes.c_long(0),
    )  # fmt: skip
    if found != address.value:
        raise OSError(ctypes.get_errno(), "a forked process has no memory for its batches")
    memory[:] = numpy.frombuffer(content, numpy.uint8)


def _before_fork() -> None:
    for receiver in list(_receivers):
        receiver.before_fork()


def _after_in_child() -> None:
    for receiver in list(_receivers):
        receiver.after_in_child()


os.register_at_fork(before=_before_fork, after_in_child=_after_in_child)


def _ours(array: numpy.ndarray) -> Any:
    """An array over the memory of NumPy's."""
    if not array.size:
        return np.array(array)
    if array.dtype.kind == "V" or array.dtype.name == "bfloat16":  # which DLPack of NumPy lacks
        return _core.reinterpret(_core.from_dlpack(array.view("float16").__dlpack__()), "bfloat16")
    return _core.from_dlpack(array.__dlpack__())
