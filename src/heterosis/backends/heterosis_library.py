"""Libraries that Heterosis has exported, in Python without Heterosis: ctypes and NumPy.

For Python 3.9 and later:

from heterosis_library import Library

mlp = Library("libmy_mlp.so")
print(mlp)                      # what it takes and gives
scores = mlp(x)                 # arrays in, arrays out
mlp.close()                     # or `with Library(...) as mlp:`; else, when nobody has it any more
"""

from __future__ import annotations

import _ctypes
import ctypes
import operator
import os
import struct
import weakref
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

_VERSION = 2
_ALIGNMENT = 64  # of a workspace
_SEAL = struct.Struct("<8sIIQ")  # ends every library: magic, version, CRC-32, size before it
_BLOCK = 1 << 20
_ELF = struct.Struct("<4s14xH")  # begins every library: magic, and for which family of processors
_FAMILIES = {62: ("x86-64", "x86_64"), 183: ("AArch64", "aarch64")}  # and what systems call it
_DTYPES = (
    *("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"),
    *("int16", "uint16", "uint32", "uint64"),
)
# NumPy has none: returned as the bits, in uint16, unless an input is given as another package's
# type of this name.
_HALF = "bfloat16"

_Address, _Number, _Text = ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p
_OF_ARRAYS = ("name", "dtype", "rank", "bytes", "extent", "extent_text")
_MOST_KEPT = 64  # sizes of which an entry keeps what was prepared for them
_MOST_SPARE = 8  # workspaces kept for the next runs, for each of these
_FUNCTIONS = {
    "open_with": (_Address, [_Number, _Text, ctypes.POINTER(_Number)]),
    "close": (_Number, [_Address]),
    "name": (_Text, [_Address]),
    "target": (_Text, [_Address]),
    "threads": (_Number, [_Address]),
    "entries": (_Number, [_Address]),
    "entry_name": (_Text, [_Address, _Number]),
    "workspace_bytes": (_Number, [_Address, _Number]),
    "inputs": (_Number, [_Address, _Number]),
    "outputs": (_Number, [_Address, _Number]),
    "sizes": (_Number, [_Address, _Number]),
    "size_name": (_Text, [_Address, _Number, _Number]),
    "size_least": (_Number, [_Address, _Number, _Number]),
    "size_most": (_Number, [_Address, _Number, _Number]),
    "at_bytes": (_Number, [_Address, _Number]),
    "at": (_Address, [_Address, _Number, _Address, _Address, ctypes.POINTER(_Number)]),
    "pool_bytes": (_Number, [_Address, _Number]),
    "pool_start": (_Number, [_Address, _Address, _Number]),
    "pool_stop": (_Number, [_Address, _Address]),
    "run_with": (_Number, [_Address, _Number, _Address, _Address, _Address, _Address]),
    "message": (_Text, [_Address, _Number, _Number]),
}
for _side in ("input", "output"):
    for _fact in _OF_ARRAYS:
        _taken = [_Address, *[_Number] * (3 if _fact.startswith("extent") else 2)]
        _returned = _Text if _fact in ("name", "extent_text") else _Number
        _FUNCTIONS[f"{_side}_{_fact}"] = (_returned, _taken)


class LibraryError(RuntimeError):
    """A library that cannot be used, or a program that has failed."""


@dataclass(frozen=True)
class Array:
    """An array that a program takes or gives; extents that follow from sizes are texts of these."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    @property
    def numpy_dtype(self) -> numpy.dtype:
        return numpy.dtype("uint16" if self.dtype == _HALF else self.dtype)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Size:
    """An extent that the inputs of a program may have any number for, within bounds."""

    name: str
    least: int
    most: int


class Library:
    """An exported library. Call it, or one of its `entries`, with arrays.

    Threads may share it: every call has a workspace of its own. A run shares its work between at
    most `threads`: as many as the library was exported for, unless fewer are asked for. Parameters
    in a file of their own are expected beside the library. All is read and checked before it is
    used, unless `check` is false: then only sizes are, and whether such a file is the right one.
    Closed, or when nobody has it any more, it is unloaded, after the runs that go on.
    """

    def __init__(
        self, path: str | os.PathLike[str], threads: int | None = None, check: bool = True
    ):
        weights = os.path.splitext(os.fspath(path))[0] + ".weights"
        for file in (path, *([weights] if os.path.exists(weights) else [])):
            _check(file, whole=check)
        self._functions = ctypes.CDLL(_own_name(os.path.abspath(path)))
        try:
            self._library = _opened(self._functions, os.fspath(path), weights)
        except LibraryError:
            _ctypes.dlclose(self._functions._handle)
            raise
        self._is_closed = False
        self._uses: list[None] = []  # an item for each use of its functions that goes on
        self.name, self.target = self._ask("name").decode(), self._ask("target").decode()
        self.threads = most = self._ask("threads")
        pool = numpy.zeros(self._ask("pool_bytes", most) + _ALIGNMENT, "uint8")
        self._pool = _aligned(pool)
        self._end = weakref.finalize(self, _end, self._functions, self._library, pool, os.getpid())
        self._end.atexit = False  # threads end with their process
        if threads is not None:
            self.threads = self._count(threads)
        self._ask("pool_start", self._pool, self.threads)
        count = self._ask("entries")
        self.entries = {entry.name: entry for entry in (Entry(self, i) for i in range(count))}

    def __call__(
        self, *arrays: numpy.ndarray, out: Sequence[numpy.ndarray] | None = None
    ) -> numpy.ndarray | tuple[numpy.ndarray, ...]:
        """Run the entry that takes arrays like these."""
        given = [numpy.asarray(array) for array in arrays]
        for entry in self.entries.values():
            prepared = entry._prepared_for(given)
            if prepared:
                return prepared.run(given, out)
        raise LibraryError(f"{self.name}: no entry takes ({_shown(given)}). There are:\n{self}")

    def close(self) -> None:
        """Unload the library: at once, or when the runs of other threads have ended.

        What is called afterwards raises. A file that has been put in its place meanwhile can be
        opened as the library that it is, before and after.
        """
        self._is_closed = True
        self._end_if_unused()

    def __enter__(self) -> Library:  # noqa: PYI034 - Python 3.9 has no Self
        self._check_open()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise LibraryError(f"{self.name} is closed; open its file once more: Library(path).")

    def _begin_use(self) -> None:
        """Let no thread unload it before `_end_use`.

        There is no lock, which a process that forks could leave taken to its child: uses are noted
        before they look whether the library is closed, and it is closed before anybody looks for
        uses, so that one of the two sees the other.
        """
        self._uses.append(None)
        try:
            self._check_open()
        except LibraryError:
            self._end_use()
            raise

    def _end_use(self) -> None:
        self._uses.pop()
        if self._is_closed:
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        if not self._uses:
            self._end()  # the first time, whoever calls it

    def _count(self, threads: int) -> int:
        """How many threads are asked for: ctypes would take what is left of a number in 64 bits."""
        most: int = self._ask("threads")
        if not hasattr(threads, "__index__") or not 1 <= operator.index(threads) <= most:
            raise LibraryError(f"{self.name}: got threads={threads!r}; expected 1 to {most}.")
        return operator.index(threads)

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries.values()))

    def _ask(self, name: str, *arguments: Any) -> Any:
        """What a function of the library says, while it is being opened or in use."""
        return getattr(self._functions, f"heterosis_{name}")(self._library, *arguments)


class Entry:
    """One program of a library; `workspace_bytes` is None where that depends on its `sizes`."""

    def __init__(self, library: Library, number: int):
        self._library, self._number = library, number
        self.name = library._ask("entry_name", number).decode()
        self.sizes = [self._size(i) for i in range(library._ask("sizes", number))]
        self.inputs = self._arrays("input")
        self.outputs = self._arrays("output")
        self._kept: dict[tuple[Any, ...], _Prepared] = {}
        known = None if self.sizes else _Prepared(self, ())
        self.workspace_bytes = known and known.workspace_bytes

    def _size(self, i: int) -> Size:
        name, *bounds = (
            self._library._ask(f"size_{fact}", self._number, i)
            for fact in ("name", "least", "most")
        )
        return Size(name.decode(), *bounds)

    def _arrays(self, side: str) -> list[Array]:
        def ask(fact: str, *where: int) -> Any:
            return self._library._ask(f"{side}_{fact}", self._number, *where)

        def extent(i: int, axis: int) -> int | str:
            found: int = ask("extent", i, axis)
            text: str = ask("extent_text", i, axis).decode()
            return found if found >= 0 else text

        return [
            Array(
                ask("name", i).decode(),
                _DTYPES[ask("dtype", i)],
                tuple(extent(i, axis) for axis in range(ask("rank", i))),
            )
            for i in range(self._library._ask(f"{side}s", self._number))
        ]

    def takes(self, arrays: Sequence[numpy.ndarray]) -> bool:
        """Whether these arrays have the types of the inputs, and shapes as they have."""
        return self._sizes_of(list(map(numpy.asarray, arrays))) is not None

    def _sizes_of(self, arrays: list[numpy.ndarray]) -> tuple[int, ...] | None:
        """The sizes that arrays have; None unless they are as the inputs."""
        if len(arrays) != len(self.inputs) or not all(map(_is_like, self.inputs, arrays)):
            return None
        found: dict[str, int] = {}
        for own, given in _pairs(self.inputs, arrays):
            for extent, number in _pairs(own.shape, given.shape):
                if number != (
                    found.setdefault(extent, number) if extent in self._names else extent
                ):
                    return None
        return tuple(found[size.name] for size in self.sizes)

    def serves(self, *sizes: int) -> bool:
        """Whether the library has a plan for these sizes, in their order."""
        if len(sizes) != len(self.sizes):
            names = ", ".join(self._names)
            raise LibraryError(f"{self.name}: got the sizes {sizes}; expected ({names})")
        if not all(own.least <= size <= own.most for own, size in _pairs(self.sizes, sizes)):
            return False  # before ctypes takes what is left of it in 64 bits
        self._library._check_open()
        try:
            _Prepared(self, sizes)
        except LibraryError:
            return False
        return True

    @property
    def _names(self) -> list[str]:
        return [size.name for size in self.sizes]

    def _prepared_for(self, arrays: list[numpy.ndarray]) -> _Prepared | None:
        """The program for arrays like these; None if it takes others."""
        kind = tuple([(array.dtype, array.shape) for array in arrays])
        found = self._kept.get(kind)
        if found is None:
            sizes = self._sizes_of(arrays)
            if sizes is None:
                return None
            found = _Prepared(self, sizes)
            # The latest of them, as a whole that replaces the other: threads may be reading that.
            latest = list(self._kept.items())[1 - _MOST_KEPT :]
            self._kept = dict([*latest, (kind, found)])
        return found

    def __call__(
        self, *arrays: numpy.ndarray, out: Sequence[numpy.ndarray] | None = None
    ) -> numpy.ndarray | tuple[numpy.ndarray, ...]:
        """Run the program: one array, or a tuple of several; those of `out`, one for each result,
        if it is given."""
        given = [numpy.asarray(array) for array in arrays]
        prepared = self._prepared_for(given)
        if prepared is None:
            raise LibraryError(f"{self.name}: got ({_shown(given)}); expected {self}")
        return prepared.run(given, out)

    def _check(self, code: int, sizes: tuple[int, ...] = ()) -> None:
        if code:
            message = self._library._ask("message", self._number, code).decode()
            given = ", ".join(f"{name} = {n}" for name, n in _pairs(self._names, sizes))
            raise LibraryError(f"{self.name}{given and f' at {given}'}: {message}")

    def __str__(self) -> str:
        given, made = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        return f"{self.name}({given}) -> ({made})"


class _Prepared:
    """A program for some sizes: what stands for its library there."""

    def __init__(self, entry: Entry, sizes: tuple[int, ...]):
        self._entry = entry
        self._spare: list[tuple[numpy.ndarray, int]] = []
        self._made: list[tuple[tuple[int, ...], numpy.dtype, bool]] = []
        entry._library._begin_use()
        try:
            self._prepare(entry._library, entry._number, sizes)
        finally:
            entry._library._end_use()

    def _prepare(self, library: Library, number: int, sizes: tuple[int, ...]) -> None:
        entry = self._entry
        self._memory = numpy.empty(library._ask("at_bytes", number) + _ALIGNMENT, "uint8")
        code = _Number()
        given = (_Number * max(len(sizes), 1))(*sizes)
        self._at = library._ask("at", number, given, _aligned(self._memory), ctypes.byref(code))
        entry._check(code.value, sizes)
        ask = library._functions
        self.workspace_bytes = ask.heterosis_workspace_bytes(self._at, number)
        for i, output in enumerate(entry.outputs):
            axes = range(len(output.shape))
            shape = tuple(ask.heterosis_output_extent(self._at, number, i, axis) for axis in axes)
            self._made.append((shape, output.numpy_dtype, output.dtype == _HALF))

    def run(
        self, arrays: list[numpy.ndarray], out: Sequence[numpy.ndarray] | None
    ) -> numpy.ndarray | tuple[numpy.ndarray, ...]:
        """What the program gives for arrays of its types and shapes."""
        entry, library = self._entry, self._entry._library
        given = [numpy.ascontiguousarray(array) for array in arrays]
        made = self._results(arrays) if out is None else self._checked(out, given)
        workspace = self._workspace()
        library._begin_use()
        try:
            code = library._functions.heterosis_run_with(
                self._at, entry._number, _addresses(given), _addresses(made), workspace[1],
                library._pool,
            )  # fmt: skip
            if code:
                entry._check(code)
        finally:
            library._end_use()
            if len(self._spare) < _MOST_SPARE:
                self._spare.append(workspace)
        return made[0] if len(made) == 1 else tuple(made)

    def _workspace(self) -> tuple[numpy.ndarray, int]:
        """Memory that a run has left, or new one, which the system would clear each time; and where
        it begins."""
        try:
            return self._spare.pop()
        except IndexError:
            memory = numpy.empty(self.workspace_bytes + _ALIGNMENT, "uint8")
            return memory, _aligned(memory)

    def _results(self, arrays: list[numpy.ndarray]) -> list[numpy.ndarray]:
        """New arrays; `bfloat16` is of the type in which it is given."""
        made = [numpy.empty(shape, dtype) for shape, dtype, _ in self._made]
        for half in {array.dtype for array in arrays if array.dtype.name == _HALF}:
            made = [
                array.view(half) if is_half else array
                for array, (_, _, is_half) in _pairs(made, self._made)
            ]
        return made

    def _checked(
        self, out: Sequence[numpy.ndarray], given: list[numpy.ndarray]
    ) -> list[numpy.ndarray]:
        """The caller's arrays, if results can be written there."""
        entry, made = self._entry, list(out)
        if len(made) != len(self._made):
            raise LibraryError(
                f"{entry.name}: got out= with {len(made)} arrays; expected {len(self._made)}."
            )
        for i, array in enumerate(made):
            own, (shape, _, _) = entry.outputs[i], self._made[i]
            expected = f"{own.name}: {own.dtype}{list(shape)}, without gaps and writeable"
            if not isinstance(array, numpy.ndarray):
                raise LibraryError(f"{entry.name}: out= has a {type(array).__name__}; {expected}.")
            is_fit = _is_like(own, array) and array.shape == shape
            if not (is_fit and array.flags.c_contiguous and array.flags.writeable):
                shown = _shown([array])
                raise LibraryError(f"{entry.name}: out= has {shown}; expected {expected}.")
            if any(numpy.may_share_memory(array, other) for other in (*given, *made[:i])):
                raise LibraryError(
                    f"{entry.name}: out= for {own.name} overlaps another array of the call. Let "
                    "two arrays take turns: one is read where the other is written."
                )
        return made


def _shown(arrays: list[numpy.ndarray]) -> str:
    return ", ".join(f"{array.dtype}{list(array.shape)}" for array in arrays)


def _pairs(*sides: Any) -> Iterator[tuple[Any, Any]]:
    return zip(*sides)  # noqa: B905 - Python 3.9 has no strict=, and lengths were looked at


def _is_like(own: Array, given: numpy.ndarray) -> bool:
    """Whether an array has the type of an input, and as many axes."""
    is_typed = given.dtype == own.numpy_dtype or given.dtype.name == own.dtype == _HALF
    return is_typed and given.ndim == len(own.shape)


_known: dict[str, list[tuple[int, int]]] = {}  # the files that were loaded by a path


def _own_name(path: str) -> str:
    """The path, written so that the system's loader knows no other file by it: it does not look
    again at a path that it has loaded, whatever stands there now."""
    status = os.stat(path)
    files, file = _known.setdefault(path, []), (status.st_dev, status.st_ino)
    if file not in files:
        files.append(file)
    folder, name = os.path.split(path)
    return os.path.join(folder, "./" * files.index(file) + name)


def _opened(functions: ctypes.CDLL, path: str, weights: str) -> int:
    """The library in a file that the system has loaded."""
    for name, (returns, takes) in _FUNCTIONS.items():
        function = getattr(functions, f"heterosis_{name}", None)
        if function is None:
            raise LibraryError(f"{path} is not a library that heterosis.export has written.")
        function.restype, function.argtypes = returns, takes
    code = _Number()
    library: int | None = functions.heterosis_open_with(
        _VERSION, os.fsencode(weights), ctypes.byref(code)
    )
    if not library:
        message = functions.heterosis_message(None, 0, code.value)
        raise LibraryError(f"{path}: {message.decode()}")
    return library


def _end(functions: ctypes.CDLL, library: int, pool: numpy.ndarray, process: int) -> None:
    """What is left to do when nobody needs a library any more."""
    if os.getpid() == process:  # a child that was forked has no threads
        functions.heterosis_pool_stop(library, _aligned(pool))
    functions.heterosis_close(library)
    _ctypes.dlclose(functions._handle)  # other objects of the same file keep it loaded


def _aligned(memory: numpy.ndarray) -> int:
    """Where a workspace begins in memory that is larger by its alignment."""
    address: int = memory.ctypes.data
    return address + -address % _ALIGNMENT


def _check(path: str | os.PathLike[str], whole: bool) -> None:
    """Refuse files that are damaged: the system's loader would follow whatever stands there. Those
    of the right size pass, unless the `whole` of them is looked at."""
    checksum, name = 0, os.fspath(path)
    with open(path, "rb") as file:
        begin = file.read(_ELF.size).ljust(_ELF.size, b"\0")
        file.seek(0)
        size = left = max(os.fstat(file.fileno()).st_size - _SEAL.size, 0)
        if not whole:
            left = file.seek(size) - size
        while left and (block := file.read(min(left, _BLOCK))):
            checksum, left = zlib.crc32(block, checksum), left - len(block)
        seal = file.read()
    if len(seal) != _SEAL.size or not seal.startswith(b"HETEROSO"):
        raise LibraryError(
            f"{name} is cut short, stripped, or not a library that heterosis.export has written."
        )
    _, version, *said = _SEAL.unpack(seal)
    if said != [checksum if whole else said[0], size]:
        raise LibraryError(f"{name} is damaged: its size or its checksum is wrong. Copy it again.")
    if version != _VERSION:
        raise LibraryError(
            f"{name} has version {version} of heterosis.h; this module expects {_VERSION}."
        )
    magic, number = _ELF.unpack(begin)
    family, system = _FAMILIES.get(number, (f"number {number} of ELF's list", ""))
    if magic == b"\x7fELF" and system != os.uname().machine:
        raise LibraryError(
            f"{name} is for another family of processors: {family}; this one is "
            f"{os.uname().machine}. Export the library with another target, or use such a machine."
        )


def _addresses(arrays: list[numpy.ndarray]) -> ctypes.Array[Any]:
    return (_Address * max(len(arrays), 1))(*(array.ctypes.data for array in arrays))
