"""What is inside of files, to be damaged without what is around: checksums, lengths, archives."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
import zlib
from collections.abc import Callable
from random import Random

Inner = tuple[bytes, Callable[[bytes], bytes]]  # the content, and the file around another one
Layer = Callable[[bytes, Random], Inner]


def zipped(data: bytes, rng: Random) -> Inner:
    """What gzip packed."""
    return gzip.decompress(data), lambda inner: gzip.compress(inner, 1)


def archived(data: bytes, rng: Random) -> Inner:
    """A member of a compressed archive, or the archive without its compression."""
    plain = gzip.decompress(data)
    if rng.random() < 0.5:
        return plain, lambda inner: gzip.compress(inner, 1)
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        rows = [(m, archive.extractfile(m).read()) for m in archive.getmembers() if m.isfile()]
    chosen = rng.randrange(len(rows))

    def around(inner: bytes) -> bytes:
        to = io.BytesIO()
        with tarfile.open(fileobj=to, mode="w") as changed:
            for i, (member, content) in enumerate(rows):
                content = inner if i == chosen else content
                member.size = len(content)
                if rng.random() < 0.2:
                    _change(member, rng)
                changed.addfile(member, io.BytesIO(content))
        return gzip.compress(to.getvalue(), 1)

    return rows[chosen][1], around


def _change(member: tarfile.TarInfo, rng: Random) -> None:
    """Another kind of member, or another name."""
    if rng.random() < 0.5:
        member.name = rng.choice(
            ("../" * 9 + "x", "/etc/passwd", "a" * 3000, member.name.upper(), "é")
        )
    else:
        member.type = rng.choice(
            (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE)
        )
        member.linkname = member.name


def safetensors(data: bytes, rng: Random) -> Inner:
    """The JSON at the head, or a JSON text in it."""
    (size,) = struct.unpack_from("<Q", data)
    head, rest = data[8 : 8 + size], data[8 + size :]

    def around(inner: bytes) -> bytes:
        return struct.pack("<Q", len(inner)) + inner + rest

    facts = json.loads(head)
    texts = facts.get("__metadata__")
    if not texts or rng.random() < 0.2:
        return head, around
    name = rng.choice(list(texts))

    def with_text(inner: bytes) -> bytes:
        changed = facts | {"__metadata__": texts | {name: inner.decode("utf-8", "replace")}}
        return around(json.dumps(changed).encode())

    return texts[name].encode(), with_text


def within_checkpoint(data: bytes, rng: Random) -> Inner:
    """The head of a checkpoint, or that of the optimizer's states in it, whose size stays."""
    place = data.find(b'"states"')
    start = data.rfind(b'{"', 0, data.rfind(b'{"__metadata__"', 0, place) + 2)
    if place < 0 or start < 16 or rng.random() < 0.5:
        return safetensors(data, rng)
    (size,) = struct.unpack_from("<Q", data, start - 8)
    head, end = data[start : start + size], start + size

    def around(inner: bytes) -> bytes:
        return data[:start] + inner[:size].ljust(size) + data[end:]

    return head, around


def chunks(data: bytes, rng: Random) -> Inner:
    """A chunk of a PNG file, whose checksum follows it."""
    places, at = [], 8
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        places.append((at, size))
        at += 12 + size
    at, size = rng.choice(places)
    kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]

    def around(inner: bytes) -> bytes:
        head = struct.pack(">I", len(inner)) + kind + inner
        return (
            data[:at] + head + struct.pack(">I", zlib.crc32(kind + inner)) + data[at + 12 + size :]
        )

    return content, around


def record(data: bytes, rng: Random) -> Inner:
    """The content of a record, whose length stands before it."""
    places, at = [], 0
    while at + 8 <= len(data):
        size = struct.unpack_from("<I", data, at + 4)[0] & (1 << 29) - 1
        places.append((at, size))
        at += 8 + -(-size // 4) * 4
    at, size = rng.choice(places)

    def around(inner: bytes) -> bytes:
        head = data[at : at + 4] + struct.pack("<I", len(inner))
        end = at + 8 + -(-size // 4) * 4
        return data[:at] + head + inner + bytes(-len(inner) % 4) + data[end:]

    return data[at + 8 : at + 8 + size], around
