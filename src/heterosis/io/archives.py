"""Members of tar archives, compressed or not: read in one pass, within bounds."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from heterosis.io.files import Source, unzipped

_GZIP = b"\x1f\x8b"
_MOST = 1 << 32  # bytes of an archive, decompressed


def members(source: Source, names: Sequence[str]) -> dict[str, bytes]:
    """The contents of the files with these names, in whatever folders of the archive they are."""
    found: dict[str, bytes] = {}
    with _plain(source) as stream, tarfile.open(fileobj=_Bounded(stream), mode="r|") as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            if member.isreg() and name in names and name not in found:
                found[name] = _content(stream, archive, member)
            if len(found) == len(names):
                break
    missing = [name for name in names if name not in found]
    if missing:
        raise source.wrong(f"{', '.join(missing)}: not in it")
    return {name: found[name] for name in names}


def _content(source: Source, archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None  # a regular file
    content = Source(file, f"{source.name}: {member.name}", source.kind, None, member.size)
    return bytes(content.exactly(member.size, "its content"))


@contextmanager
def _plain(source: Source) -> Iterator[Source]:
    """The archive without its compression."""
    compressed = source.stream.peek(2)[:2] == _GZIP
    if not compressed:
        yield source
        return
    with unzipped(source) as content:
        yield content


class _Bounded:
    """A stream that `tarfile` may not take more from than an archive may have."""

    def __init__(self, source: Source):
        self._source, self._taken = source, 0

    def read(self, count: int) -> Any:
        """The next bytes."""
        self._taken += count
        if self._taken > _MOST:
            raise self._source.wrong(f"more than {_MOST:,} bytes of an archive")
        return bytes(self._source.some(count))
