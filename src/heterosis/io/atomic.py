"""Files that are replaced whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from heterosis.io.files import FileName, accessed, name_of

_PARTIAL = re.compile(r".+\.[0-9a-f]{16}\.partial")


@contextmanager
def written(path: FileName) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` at the end of the block.

    Whatever happens before leaves what was there. Devices and pipes are written to directly.
    """
    name = name_of(path)
    with accessed(name, "a file that can be written"):
        target = Path(os.path.realpath(name))
        if target.exists() and not target.is_file():
            with open(target, "wb") as file:
                yield file
            return
        _remove_abandoned(target.parent)
        beside, file = _locked_beside(target)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if target.exists():
                    shutil.copymode(target, beside)
                os.replace(beside, target)  # while it is locked, as nobody else may remove it
        except BaseException:
            with suppress(FileNotFoundError):
                beside.unlink()
            raise
        _sync(target.parent)


def _locked_beside(target: Path) -> tuple[Path, BinaryIO]:
    """A new file beside `target`, locked for as long as it is open: its writer is alive."""
    while True:
        beside = target.with_name(f"{target.name}.{secrets.token_hex(8)}.partial")
        file = open(beside, "xb")  # noqa: SIM115
        try:
            alone = _lock(file.fileno()) and beside.exists()
        except OSError:  # a file system without locks: what is abandoned there stays
            alone = True
        if alone:
            return beside, file
        file.close()  # somebody took it for abandoned, between the two


def _remove_abandoned(folder: Path) -> None:
    """Remove what writers left who were killed: nobody holds its lock."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _PARTIAL.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                _remove_unless_locked(entry.path)


def _remove_unless_locked(path: str) -> None:
    with suppress(OSError):  # another process was first, or it is not ours to remove
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if _lock(file):
                os.unlink(path)
        finally:
            os.close(file)


def _lock(file: int) -> bool:
    """Lock an open file; false if somebody else has."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sync(folder: Path) -> None:
    """Make the new name last; some file systems cannot, and need not."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
