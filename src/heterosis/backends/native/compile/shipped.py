"""Machine code that comes with the package: a file for each target, made when it was built.

What is in there are entries of the cache, under the keys that this machine asks for: they were made
of the same sources for the same target, or are never asked for. Each is trusted as any entry is:
by its key and its checksum. The file is never written to.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Mapping
from pathlib import Path

from heterosis.backends.native.codegen.target import Target

FOLDER = "machine_code"  # in the package

_MAGIC = b"HXARCHIV"
_HEAD = struct.Struct("<8sI")  # magic, number of entries
_ROW = struct.Struct("<32sQI")  # key, where the entry begins in the file, its bytes
_MOST_ENTRIES = 1 << 20


def path_of(target: Target, package: Path = Path(__file__).parents[3]) -> str:
    """Where a package has the archive for a target."""
    return str(package / FOLDER / f"{target.name}.objects")


class Archive:
    """Entries of a cache in one file, which may be missing."""

    def __init__(self, path: str):
        self.path = path
        self._places: dict[bytes, tuple[int, int]] | None = None

    def read(self, key: bytes) -> bytes:
        """The entry under `key`, as it was written; empty without one."""
        try:
            # Without O_NONBLOCK, a pipe under this name would hold us for ever.
            file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            if self._places is None:
                self._places = _places(file)
            place, size = self._places.get(key, (0, 0))
            return os.pread(file, size, place)
        except OSError:
            return b""
        finally:
            os.close(file)

    def keys(self) -> list[bytes]:
        """Those of all entries."""
        self.read(b"")
        return list(self._places or ())

    @staticmethod
    def write(path: str, entries: Mapping[bytes, bytes]) -> None:
        """A file with these entries. Equal entries, equal files."""
        place = _HEAD.size + _ROW.size * len(entries)
        rows = []
        for key in sorted(entries):
            rows.append(_ROW.pack(key, place, len(entries[key])))
            place += len(entries[key])
        with open(path, "wb") as file:
            file.write(_HEAD.pack(_MAGIC, len(entries)))
            file.writelines(rows)
            file.writelines(entries[key] for key in sorted(entries))


def _places(file: int) -> dict[bytes, tuple[int, int]]:
    """Where entries are in a file; none in one that is no archive, or not safe from others."""
    status = os.fstat(file)
    head = os.pread(file, _HEAD.size, 0)
    if not _is_trusted(status) or len(head) < _HEAD.size:
        return {}
    magic, count = _HEAD.unpack(head)
    if magic != _MAGIC or count > _MOST_ENTRIES:
        return {}
    table = os.pread(file, _ROW.size * count, _HEAD.size)
    if len(table) < _ROW.size * count:
        return {}
    rows = _ROW.iter_unpack(table)
    return {key: (place, size) for key, place, size in rows if place + size <= status.st_size}


def _is_trusted(status: os.stat_result) -> bool:
    """A plain file that nobody may write to but who may change this source file as well."""
    own = os.stat(__file__)
    owners = (status.st_uid, status.st_gid) == (own.st_uid, own.st_gid)
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(status.st_mode) and owners and not writable & ~own.st_mode
