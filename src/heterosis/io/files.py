"""The door for files from outside: each is read through here, and nothing in it is believed.

What is taken is bounded before it is taken, decompressed or not. Whatever a parser raises over the
content of a file becomes one `FormatError` that names it; what the system says, one `FileError`.
"""

from __future__ import annotations

import gzip
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from heterosis import _core
from heterosis.runtime.errors import (
    ArgumentTypeError,
    FileError,
    FormatError,
    HeterosisError,
    MissingFileError,
    OutOfMemoryError,
)

FileName = str | os.PathLike[str]
Wrong = Callable[[str], FormatError]

MOST_JSON = 1 << 26  # bytes; parsed, JSON takes some twenty times as many
_PIECE = 1 << 20
DEFLATE_RATIO = 1032  # no byte of a deflated file stands for more


def name_of(file: FileName) -> str:
    """A file's name. A number is none: it would be a descriptor, and closed after its use."""
    if isinstance(file, str | os.PathLike) and "\0" not in (name := os.fsdecode(file)):
        return name
    raise ArgumentTypeError(
        f"{file!r} ({type(file).__name__}) is no name of a file; expected a text or a pathlib.Path."
    )


@contextmanager
def opened(file: FileName, kind: str) -> Iterator[Source]:
    """A file to read from; `kind` says in messages what it should be, such as "a symbol file".

    What is raised in the block over its content is translated: no user's code may run in it.
    """
    name = name_of(file)
    with translated(name, kind), open(name, "rb") as stream:
        size = _regular_size(stream)
        yield Source(stream, name, kind, size, size)


class Source:
    """An open file. Every error says which, and what it should have been."""

    def __init__(self, stream: Any, name: str, kind: str, size: int | None, bound: int | None):
        self.stream, self.name, self.kind = stream, name, kind
        self.size, self._bound = size, bound  # how many bytes there are, and can be, if it is known

    def wrong(self, what: str) -> FormatError:
        """The error for a file that is not what it should be."""
        return wrong(self.name, self.kind, what)

    def whole(self, most: int | None = None) -> bytes:
        """All bytes; more than `most`, or than arrays may take, are refused."""
        room = _room(most)
        if self.size is not None and self.size <= room:
            return self.stream.read(self.size)
        found = b"" if self.size is not None else self.some(room + 1)
        if self.size is not None or len(found) > room:
            raise self.wrong(f"it holds more than {room:,} bytes, the most that are read")
        return bytes(found)

    def exactly(self, count: int, what: str) -> bytearray:
        """The next `count` bytes, which are `what`."""
        most = _room(self._bound)
        if count > most:
            raise self.wrong(f"{what} should take {count:,} bytes, and there can be {most:,}")
        found = self.some(count)
        if len(found) < count:
            raise self.wrong(f"it ends within {what}: {len(found):,} bytes of {count:,}")
        return found

    def some(self, count: int) -> bytearray:
        """The next `count` bytes, or as many as there are: room is made only for these."""
        found = bytearray()
        while piece := self.stream.read(min(count - len(found), _PIECE)):
            found += piece
        return found

    def text(self, most: int | None = None) -> str:
        """All of it, as UTF-8."""
        return decoded(self.whole(most), self.wrong)

    def json(self) -> Any:
        """What JSON says in it."""
        return parsed_json(self.whole(MOST_JSON), self.wrong)


def wrong(name: str, kind: str, what: str) -> FormatError:
    """The error for the file `name` that should have been a `kind`."""
    return FormatError(
        f"{name}: {what.rstrip('.')}. Nothing has been loaded; expected {kind}. Was it cut off or "
        "damaged, or is it another file? Copy it or make it again."
    )


def decoded(data: bytes, wrong: Wrong) -> str:
    """UTF-8 text; the error, made by `wrong`, says on which line it ends to be that."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = data[error.start : error.start + 8]
        raise wrong(f"line {line} is no UTF-8 text, but has the bytes {found!r}") from None


def parsed_json(text: str | bytes, wrong: Wrong) -> Any:
    """What JSON says; `wrong` makes the error for a text that is none."""
    if len(text) > MOST_JSON:
        raise wrong(f"{len(text):,} characters of JSON; {MOST_JSON:,} are read at most")
    try:
        return json.loads(text if isinstance(text, str) else decoded(text, wrong))
    except RecursionError:
        raise wrong("it is nested too deeply") from None
    except ValueError as error:
        raise wrong(f"it is no JSON: {error}") from None


@contextmanager
def unzipped(source: Source) -> Iterator[Source]:
    """What a gzip file holds, decompressed as it is taken; its size is not known before."""
    bound = None if source.size is None else source.size * DEFLATE_RATIO
    with gzip.GzipFile(fileobj=source.stream) as stream:
        yield Source(stream, source.name, source.kind, None, bound)


# -- errors ---------------------------------------------------------------------------------------


@contextmanager
def translated(name: str, kind: str) -> Iterator[None]:
    """Turn what is raised in the block into errors of ours that name the file."""
    try:
        with accessed(name, kind):
            yield
    except (FileError, OutOfMemoryError):
        raise
    except MemoryError:
        raise OutOfMemoryError(
            f"{name}: there is no room for what this file wants. Was it made as {kind}?"
        ) from None
    except HeterosisError as error:
        if name in str(error):
            raise
        raise wrong(name, kind, str(error)) from error
    except Exception as error:
        raise wrong(name, kind, _told(error)) from error


@contextmanager
def accessed(name: str, kind: str) -> Iterator[None]:
    """Turn what the system says in the block about the file into a `FileError`."""
    try:
        yield
    except HeterosisError:
        raise
    except OSError as error:
        if error.errno is None:  # a parser's, about the content
            raise
        raise _file_error(name, kind, error) from error


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Say where in a file the content stood that is wrong."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{place}: {error}") from error.__cause__


def _file_error(name: str, kind: str, error: OSError) -> FileError:
    if isinstance(error, FileNotFoundError):
        made: FileError = MissingFileError(f"there is no file {name!r}; expected {kind}.")
    else:
        made = FileError(f"{name}: {error.strerror}. Expected {kind}.")
    made.errno = error.errno
    return made


def _told(error: Exception) -> str:
    """What a foreign error says; its kind too, where the words alone tell little."""
    said = str(error)
    bare = not said or isinstance(error, LookupError | TypeError | AttributeError | AssertionError)
    return f"{type(error).__name__}: {said}" if bare else said


def _regular_size(stream: BinaryIO) -> int | None:
    status = os.fstat(stream.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _room(most: int | None) -> int:
    limit: int = _core.memory_counters()["limit"]
    return limit if most is None else min(most, limit)
