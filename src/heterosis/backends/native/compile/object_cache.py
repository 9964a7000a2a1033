"""Machine code by description: from memory, else from disk, else compiled and kept in both.

On disk are the entries of the user's cache, and those that came with the package.

An entry on disk is trusted only as far as it proves itself: it must belong to this user, be
writable by nobody else, and carry the key it was asked for and the checksum of its content.
Anything else is passed over and written anew. Entries appear by renaming, so that processes that
share a directory see whole ones. Nothing is synced: after a power failure the checksum tells.
"""

from __future__ import annotations

import os
import stat
import struct
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from heterosis import _core
from heterosis.backends.native.codegen.target import Target
from heterosis.backends.native.compile import shipped
from heterosis.backends.native.compile.compiler import compile_object, host_target
from heterosis.backends.native.compile.kept import KeptObjects
from heterosis.runtime import forks

try:  # hashlib's own function, without the 4 ms in which hashlib loads OpenSSL
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

if TYPE_CHECKING:
    from heterosis._core import LoadedObject

_MAGIC, _FORMAT = b"HXOBJECT", 1
_HEADER = struct.Struct("<8sII32s32s")  # magic, format, payload bytes, key, checksum
_LARGEST_ENTRY = 1 << 28
_DAY = 86_400
_BETWEEN_TRIMS = 1 / 32  # of the limit, written: going through a full directory takes 0.4 s

# One lock for all caches; held across a fork, so that the child never inherits it locked.
_lock = threading.RLock()
forks.hold(_lock)


@dataclass(slots=True)
class Counters:
    """What a cache did so far, for tests and benchmarks."""

    memory_hits: int = 0
    disk_hits: int = 0
    compiles: int = 0
    compile_seconds: float = 0.0
    disk_seconds: float = 0.0


class ObjectCache:
    """Loaded objects over a directory of object files; over nothing if `directory` is None.

    What is not there may be in an `archive`, which is only read. Loaded objects stay as long as a
    plan runs them: plans keep their code.
    """

    def __init__(
        self,
        directory: str | None,
        limit: int = 256 << 20,
        archive: shipped.Archive | None = None,
    ):
        self.directory, self.limit, self.archive = directory, limit, archive
        self.counters = Counters()
        self._loaded = KeptObjects[tuple[str, Target]]()
        self._found = KeptObjects[bytes]()  # the same, by their entries on disk
        # Also of processes that write little, one after the other, some one will look.
        self._until_trim = limit * _BETWEEN_TRIMS * os.urandom(1)[0] / 255
        self._warned = False

    def load(
        self, key_text: str, produce: Callable[[], str], target: Target | None = None
    ) -> LoadedObject:
        """The object that `key_text` describes in full; `produce` writes its LLVM text if need be.

        Our own source and the target are part of the key without being mentioned.
        """
        key = key_text, target or host_target()
        if found := self._loaded.get(key):
            self.counters.memory_hits += 1
            return found
        with _lock:
            if found := self._loaded.get(key):  # another thread was first
                self.counters.memory_hits += 1
                return found
            made = self._load_missing(*key, produce)
            self._loaded.add(key, made)
            return made

    def _load_missing(
        self, key_text: str, target: Target, produce: Callable[[], str]
    ) -> LoadedObject:
        key = self.key(key_text, target)
        return self.find(key) or self._compiled(key, target, produce)

    def find(self, key: bytes | None) -> LoadedObject | None:
        """The object that an entry holds; None without such an entry."""
        if key is None:
            return None
        with _lock:
            found = self._found.get(key)
            if found is None:
                start = time.perf_counter()
                payload = self.read(key) or self._read_archive(key)
                if payload is None:
                    return None
                found = _loaded(payload)
                self._found.add(key, found)
                self.counters.disk_hits += 1
                self.counters.disk_seconds += time.perf_counter() - start
            return found

    def _compiled(
        self, key: bytes | None, target: Target, produce: Callable[[], str]
    ) -> LoadedObject:
        start = time.perf_counter()
        payload = compile_object(produce(), target)
        made = _loaded(payload)
        self.counters.compiles += 1
        self.counters.compile_seconds += time.perf_counter() - start
        if key is not None:
            self._found.add(key, made)
            self.write(key, payload)
        return made

    # -- keys -------------------------------------------------------------------------------------

    def key(self, key_text: str, target: Target) -> bytes | None:
        """The name of the entry that `key_text` describes; None if nothing may be kept on disk."""
        if self.directory is None or (sources := self._sources()) is None:
            return None
        return _digest(f"{_FORMAT}\n{sources.hex()}\n{target!r}\n{key_text}".encode())

    def _sources(self) -> bytes | None:
        """The digest of all that shapes a plan or runs it: what one version made, no other gets.

        Reading the files takes milliseconds, so that the digest is itself an entry, under their
        sizes, times and inodes. It says more than the package's version and stands in for it.
        """
        signature = _sources_signature()
        if signature is None:
            return None
        known = self.read(signature)
        if known is None:
            known = _sources_content()
            self.write(signature, known)
        return known

    # -- files ------------------------------------------------------------------------------------

    def _path(self, key: bytes) -> str:
        return f"{self.directory}/{key.hex()}.o"

    def read(self, key: bytes | None) -> bytes | None:
        """The payload of an entry that is whole and ours."""
        if key is None:
            return None
        path = self._path(key)
        try:
            # Without O_NONBLOCK, a pipe planted under this name would hold us for ever.
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            entry = os.read(file, status.st_size) if _is_trusted(status) else b""
        except OSError:
            return None
        finally:
            os.close(file)
        payload = _unpack(entry, key)
        if payload is not None and time.time() - status.st_mtime > _DAY:
            _touch(path)
        return payload

    def _read_archive(self, key: bytes) -> bytes | None:
        return _unpack(self.archive.read(key), key) if self.archive else None

    def write(self, key: bytes, payload: bytes) -> None:
        """Keep an entry if possible; a full or read-only disk only costs the next start time."""
        temporary = f"{self._path(key)}.{os.urandom(6).hex()}.tmp"
        entry = pack(key, payload)
        try:
            os.makedirs(self.directory or "", mode=0o700, exist_ok=True)
            _write_file(temporary, entry)
            os.replace(temporary, self._path(key))
        except OSError as error:
            _remove(temporary)
            self._warn(error)
            return
        self._until_trim -= len(entry)
        if self._until_trim < 0:
            self._until_trim = self.limit * _BETWEEN_TRIMS
            self.trim()

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"compiled code cannot be kept in {self.directory}: {error.strerror}. Set "
                "HETEROSIS_CACHE to a writable directory, or to 'off' to do without.",
                RuntimeWarning,
                stacklevel=2,
            )

    def trim(self) -> None:
        """Drop the entries that were not used for longest, once the directory exceeds its limit."""
        entries = sorted(_entries(self.directory)) if self.directory else []
        excess = sum(size for _, size, _ in entries) - self.limit
        if excess > 0:
            excess += self.limit // 4  # so that the next store is not at the limit again
        now = time.time()
        for used, size, path in entries:
            if excess > 0 or (path.endswith(".tmp") and now - used > _DAY):
                _remove(path)
                excess -= size


# -- the directory of this process ----------------------------------------------------------------


def cache_directory() -> str | None:
    """HETEROSIS_CACHE, else the user's cache directory; None for `off` or without a home."""
    setting = os.environ.get("HETEROSIS_CACHE", "")
    if setting:
        return None if setting == "off" else os.path.abspath(os.path.expanduser(setting))
    root = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(root):  # the XDG rules: a relative one counts for nothing
        root = os.path.expanduser("~/.cache")
    return os.path.join(root, "heterosis", "objects") if os.path.isabs(root) else None


@cache
def default_cache() -> ObjectCache:
    """The cache that this process uses."""
    archive = shipped.Archive(shipped.path_of(host_target()))
    return ObjectCache(cache_directory(), archive=archive)


def load(key_text: str, produce: Callable[[], str], target: Target | None = None) -> LoadedObject:
    """`ObjectCache.load` of this process's cache."""
    return default_cache().load(key_text, produce, target)


# -- entries --------------------------------------------------------------------------------------


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def pack(key: bytes, payload: bytes) -> bytes:
    """An entry: what it holds, and what it is recognised by."""
    return _HEADER.pack(_MAGIC, _FORMAT, len(payload), key, _digest(payload)) + payload


def _unpack(entry: bytes, key: bytes) -> bytes | None:
    if len(entry) < _HEADER.size:
        return None
    magic, version, size, stored_key, checksum = _HEADER.unpack_from(entry)
    payload = entry[_HEADER.size :]
    header = magic, version, size, stored_key
    if header != (_MAGIC, _FORMAT, len(payload), key) or checksum != _digest(payload):
        return None
    return payload


def _is_trusted(status: os.stat_result) -> bool:
    """A plain file of this user that nobody else may write to."""
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and status.st_size <= _LARGEST_ENTRY
    )


def _write_file(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)


def _remove(path: str) -> None:
    with suppress(OSError):  # never made, or another process was first
        os.unlink(path)


def _touch(path: str) -> None:
    with suppress(OSError):  # a read-only cache is used as it is
        os.utime(path)


def _entries(directory: str) -> Iterator[tuple[float, int, str]]:
    """(time of last use, bytes, path) of every file that was written here, and of no other."""
    try:
        with os.scandir(directory) as found:
            for item in found:
                if len(item.name.split(".")[0]) == 64 and item.name.endswith((".o", ".tmp")):
                    status = item.stat(follow_symlinks=False)
                    yield status.st_mtime, status.st_size, item.path
    except OSError:
        return  # what is gone or not readable cannot be trimmed


# -- our own source --------------------------------------------------------------------------------

_PACKAGE = str(Path(__file__).parents[3])
# Whatever shapes programs, plans and code; with the core, which runs them, it has to be the same
# again for what was kept to be of use.
_SHAPING = ("autograd", "backends", "capture", "ir", "np", "ops", "passes", "runtime")
_CORE = _core.__file__
_IMPORTED_AT = time.time_ns()


def _python_files(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        items = sorted(os.scandir(directory), key=lambda item: item.name)
    except FileNotFoundError:
        return
    for item in items:
        if item.name.endswith(".py"):
            yield item.path, item.stat()
        elif item.is_dir() and item.name != "__pycache__":
            yield from _python_files(item.path)


def _sources() -> list[tuple[str, os.stat_result]]:
    python = [file for part in _SHAPING for file in _python_files(f"{_PACKAGE}/{part}")]
    return [*python, (_CORE, os.stat(_CORE))]


@cache
def _sources_signature() -> bytes | None:
    """Changes whenever a source file may have: the change time cannot be set back.

    None if a file changed after it was imported: what this process runs is then in no file.
    """
    files = _sources()
    if any(status.st_ctime_ns > _IMPORTED_AT for _, status in files):
        return None
    facts = [(path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for path, s in files]
    return _digest(f"sources {_FORMAT} {facts}".encode())


@cache
def _sources_content() -> bytes:
    """Names, relative to the package, and contents: equal wherever the same is installed."""
    whole = blake2b(digest_size=32)
    for path, _ in _sources():
        with open(path, "rb") as file:
            content = file.read()
        name = "core" if path == _CORE else os.path.relpath(path, _PACKAGE)
        whole.update(f"{name}\n{len(content)}\n".encode() + content)
    return whole.digest()


# -- loading --------------------------------------------------------------------------------------


def _loaded(payload: bytes) -> LoadedObject:
    try:
        made = _core.load_object(payload)
    except _core.LoadError:
        from heterosis.backends.native.codegen.kernels import heap, lapack

        # An object that a stored plan names: this process lowered nothing that calls these yet.
        registered = [library.register_called(payload) for library in (heap, lapack)]
        if not any(registered):
            raise
        made = _core.load_object(payload)
    _tell_perf(made)
    return made


def _tell_perf(made: LoadedObject) -> None:
    """With HETEROSIS_PERF_MAP=1, name the functions for Linux perf, where it looks for names."""
    if os.environ.get("HETEROSIS_PERF_MAP") != "1":
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(f"/tmp/perf-{os.getpid()}.map", flags, 0o600), "w") as file:
        file.writelines(f"{at:x} {size:x} {name}\n" for name, at, size in made.symbols)
