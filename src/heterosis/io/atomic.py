"""Files that are replaced whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from heterosis.io.files import FileName, accessed, name_of

_PARTIAL = re.compile(r".+\.[0-9a-f]{16}\.partial")


@contextmanager
def written(path: FileName) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of `path` at the end of the block.

    Whatever happens before leaves what was there. Devices and pipes are written to directly.
    """
    with _Replacement(path) as file:
        with file.accessed():
            yield file.stream
        file.finish()
        file.take_place()


def write_together(writers: Mapping[str, Callable[[BinaryIO], object]]) -> None:
    """Write files, each by its function, which take the places of others in this order, once all
    are on the disk.

    Whatever happens before leaves all that was there. Who is killed between two of them leaves
    files of two exports: those that need each other have to tell.
    """
    with ExitStack() as opened:
        files = [opened.enter_context(_Replacement(path)) for path in writers]
        for file, write in zip(files, writers.values(), strict=True):
            with file.accessed():
                write(file.stream)
            file.finish()
        for file in files:
            file.take_place()


class _Replacement:
    """A file that is written beside another one and takes its place; or the device or pipe there,
    which is written to directly."""

    def __init__(self, path: FileName):
        self._name = name_of(path)
        self._beside: Path | None = None

    def accessed(self) -> AbstractContextManager[None]:
        """A block in which what the system says is about this file."""
        return accessed(self._name, "a file that can be written")

    def __enter__(self) -> _Replacement:  # noqa: PYI034 - typing has no Self in Python 3.10
        with self.accessed():
            self._target = Path(os.path.realpath(self._name))
            if self._target.exists() and not self._target.is_file():
                self.stream: BinaryIO = open(self._target, "wb")
            else:
                _remove_abandoned(self._target.parent)
                self._beside, self.stream = _locked_beside(self._target)
        return self

    def finish(self) -> None:
        """Have the whole content on the disk."""
        with self.accessed():
            self.stream.flush()
            if self._beside is None:
                return
            os.fsync(self.stream.fileno())
            if self._target.exists():
                shutil.copymode(self._target, self._beside)

    def take_place(self) -> None:
        """Replace the other file, while this one is locked, as nobody else may remove it."""
        if self._beside is None:
            return
        with self.accessed():
            os.replace(self._beside, self._target)
            self._beside = None
            _sync(self._target.parent)

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # all is written, or what failed has been told
            self.stream.close()
        if self._beside is not None:
            with suppress(FileNotFoundError):
                self._beside.unlink()


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
