"""Record files: a sequence of byte strings, and records that hold an image with its label.

The format is that of MXNet's RecordIO. A record is a 4-byte mark, a word with the length of what
follows (low 29 bits) and the kind of part (high 3 bits), and the bytes, padded to a multiple of 4.
Where the mark itself stands in the data at a multiple of 4, the record is split there in parts.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy

from heterosis.io.files import FileName, accessed, name_of, opened, wrong
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    HeterosisError,
    MissingFileError,
    UnknownKeyError,
)

_KIND = "a record file"
_MARK = struct.pack("<I", 0xCED7230A)
_LENGTH_BITS = 29
_LARGEST = (1 << _LENGTH_BITS) - 1
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)


class MXRecordIO:
    """A file of records, read ("r") or written ("w") from the first to the last.

    A reader may be used in forked processes and pickled; each goes its own way through the file.
    """

    def __init__(self, uri: FileName, flag: str):
        if flag not in ("r", "w"):
            raise ArgumentError(f"{type(self).__name__}: flag={flag!r}; expected 'r' or 'w'.")
        self.uri = name_of(uri)
        self.flag = flag
        self.is_open = False
        self.open()

    @property
    def writable(self) -> bool:
        return self.flag == "w"

    def open(self) -> None:
        """Start at the first record; a file to be written is emptied."""
        # Unbuffered and read by position: a forked process shares neither bytes nor a place.
        with accessed(self.uri, _KIND):
            self._file = open(self.uri, "wb" if self.writable else "rb", buffering=0)  # noqa: SIM115
        self._size = 0 if self.writable else os.fstat(self._file.fileno()).st_size
        self._position = 0
        self._owner = os.getpid()
        self.is_open = True

    def close(self) -> None:
        """Done with the file. Closing twice is harmless."""
        if self.is_open:
            self.is_open = False
            self._file.close()

    def reset(self) -> None:
        """Start again at the first record; a file to be written is emptied."""
        self.close()
        self.open()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.writable:
            raise ArgumentTypeError(
                f"{self.uri}: a record file that is being written cannot be pickled."
            )
        return {k: v for k, v in self.__dict__.items() if k not in ("_file", "_owner")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        position, was_open = state["_position"], state["is_open"]
        self.__dict__.update(state)
        self.is_open = False
        if was_open:
            MXRecordIO.open(self)
            self._position = position

    def write(self, buf: bytes) -> None:
        """Append one record."""
        self._check("w")
        if len(buf) > _LARGEST:
            raise ArgumentError(
                f"{self.uri}: a record of {len(buf):,} bytes; "
                f"the format holds {_LARGEST:,} at most."
            )
        framed = b"".join(_parts(bytes(buf)))
        self._file.write(framed)
        self._position += len(framed)

    def read(self) -> bytes | None:
        """The next record; `None` behind the last."""
        self._check("r")
        if self._position == self._size:
            return None
        kind, data = self._part()
        if kind == _WHOLE:
            return data
        if kind != _FIRST:
            raise self._broken("starts in the middle of a record")
        pieces = [data]
        while kind != _LAST:
            kind, data = self._part()
            if kind not in (_MIDDLE, _LAST):
                raise self._broken("has a record that is not continued")
            pieces.append(data)
        return _MARK.join(pieces)

    def tell(self) -> int:
        """The position in the file of the next record."""
        self._check()
        return self._position

    def _part(self) -> tuple[int, bytes]:
        """The kind and the bytes of the part at the position, which moves behind it."""
        head = self._bytes(self._position, 8)
        if head[:4] != _MARK:
            raise self._broken("has no record")
        (word,) = struct.unpack("<I", head[4:])
        length = word & _LARGEST
        data = self._bytes(self._position + 8, length)
        self._position = min(self._position + 8 + -(-length // 4) * 4, self._size)
        return word >> _LENGTH_BITS, data

    def _bytes(self, start: int, count: int) -> bytes:
        if start + count > self._size:
            raise self._broken(f"ends within a record: {count:,} more bytes were expected")
        with accessed(self.uri, _KIND):
            found = os.pread(self._file.fileno(), count, start)
        if len(found) < count:
            raise self._broken("has become shorter than it was")
        return found

    def _broken(self, what: str) -> FormatError:
        where = f"at byte {self._position:,} of {self._size:,}"
        return wrong(self.uri, _KIND, f"the file {what} {where}")

    def _check(self, flag: str | None = None) -> None:
        if not self.is_open:
            raise HeterosisError(f"{self.uri}: the record file is closed; call open() or reset().")
        if flag not in (None, self.flag):
            way = "writing" if self.writable else "reading"
            raise HeterosisError(f"{self.uri}: opened for {way} only; open it with flag={flag!r}.")
        if self.writable and self._owner != os.getpid():
            raise HeterosisError(
                f"{self.uri}: another process opened this file for writing; open one in each."
            )


def _parts(data: bytes) -> Iterator[bytes]:
    """The record `data` as it stands in the file."""
    start, kind = 0, _FIRST
    for place in _marks(data):
        yield _framed(kind, data[start:place])
        start, kind = place + 4, _MIDDLE
    yield _framed(_WHOLE if kind == _FIRST else _LAST, data[start:])


def _marks(data: bytes) -> Iterator[int]:
    """Where the mark stands in `data` at multiples of 4."""
    place = data.find(_MARK)
    while place >= 0:
        if place % 4 == 0:
            yield place
        place = data.find(_MARK, place + (4 if place % 4 == 0 else 1))


def _framed(kind: int, data: bytes) -> bytes:
    word = struct.pack("<I", kind << _LENGTH_BITS | len(data))
    return b"".join((_MARK, word, data, bytes(-len(data) % 4)))


class MXIndexedRecordIO(MXRecordIO):
    """A record file with an index beside it: any record by its key."""

    def __init__(
        self,
        idx_path: FileName,
        uri: FileName,
        flag: str,
        key_type: Callable[[str], Any] = int,
    ):
        self.idx_path = name_of(idx_path)
        self.key_type = key_type
        self.idx: dict[Any, int] = {}
        self.keys: list[Any] = []
        super().__init__(uri, flag)

    def open(self) -> None:
        super().open()
        self.idx, self.keys, self._lines = {}, [], None
        if self.writable:
            self._lines = open(self.idx_path, "w", buffering=1, encoding="utf-8")  # noqa: SIM115
        else:
            self._read_index()

    def _read_index(self) -> None:
        try:
            with opened(self.idx_path, f"the index of {self.uri}") as source:
                lines = source.text().splitlines()
            for number, line in enumerate(lines, 1):
                self._add(*self._entry(number, line))
        except MissingFileError:
            self.close()
            raise MissingFileError(
                f"{self.idx_path}: the index of {self.uri} is missing; it has a line 'key<tab>"
                "position' for each record and is written along with the record file."
            ) from None
        except BaseException:
            self.close()
            raise

    def _entry(self, number: int, line: str) -> tuple[Any, int]:
        try:
            key, position = line.strip().split("\t")[:2]
            return self.key_type(key), int(position)
        except (ValueError, OverflowError):
            raise FormatError(
                f"{self.idx_path}, line {number}: expected a key and a position with a tab between "
                f"them, and found {line[:60]!r}."
            ) from None

    def _add(self, key: Any, position: int) -> None:
        self.idx[key] = position
        self.keys.append(key)

    def close(self) -> None:
        super().close()
        lines = getattr(self, "_lines", None)
        if lines is not None:
            lines.close()

    def seek(self, idx: Any) -> None:
        """Let the next `read` give the record with this key."""
        self._check("r")
        if idx not in self.idx:
            raise UnknownKeyError(f"{self.uri}: no record has the key {idx!r}.")
        self._position = self.idx[idx]
        if not 0 <= self._position < self._size:
            raise self._broken(f"has, by its index {self.idx_path}, a record outside of it")

    def read_idx(self, idx: Any) -> bytes:
        """The record with this key."""
        self.seek(idx)
        record = self.read()
        assert record is not None  # the position lies within the file
        return record

    def write_idx(self, idx: Any, buf: bytes) -> None:
        """Append a record and note its key."""
        key, position = self.key_type(idx), self.tell()
        self.write(buf)
        self._lines.write(f"{key}\t{position}\n")
        self._add(key, position)


# -- images with labels ---------------------------------------------------------------------------


class IRHeader(NamedTuple):
    """What stands before an image: `flag` is the number of labels if there are several."""

    flag: int
    label: Any
    id: int
    id2: int


_HEADER = struct.Struct("<IfQQ")


def pack(header: IRHeader, s: bytes) -> bytes:
    """A record of `s` and its header; `label` is a number or a sequence of them."""
    header = IRHeader(*header)
    labels = b""
    if numpy.ndim(header.label):
        array = numpy.asarray(header.label, "<f4").ravel()
        header, labels = header._replace(flag=array.size, label=0), array.tobytes()
    else:
        header = header._replace(flag=0, label=float(header.label))
    return _HEADER.pack(*header) + labels + bytes(s)


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """The header of a record and the bytes that follow it."""
    if len(s) < _HEADER.size:
        raise FormatError(
            f"unpack: {len(s)} bytes hold no header of {_HEADER.size}; was the record packed?"
        )
    header = IRHeader(*_HEADER.unpack_from(s))
    rest = s[_HEADER.size :]
    if header.flag:
        if 4 * header.flag > len(rest):
            raise FormatError(
                f"unpack: the header announces {header.flag} labels, and only {len(rest)} bytes "
                "follow; the record was cut, or was not packed."
            )
        labels = numpy.frombuffer(rest, "<f4", header.flag)
        header, rest = header._replace(label=labels), rest[4 * header.flag :]
    return header, rest


def pack_img(header: IRHeader, img: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """A record of an image, encoded. Colours stand in `img` in the order blue, green, red.

    `quality` is 1 to 100 for JPEG and the effort of compression, 0 to 9, for PNG.
    """
    from heterosis.image import codec

    return pack(header, codec.encode(_other_order(numpy.asarray(img)), img_fmt, quality))


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, numpy.ndarray]:
    """The header and the pixels of a record, colours in the order blue, green, red.

    `iscolor` is 1 for colour, 0 for grey, -1 for what the file has.
    """
    from heterosis.image import codec

    header, encoded = unpack(s)
    pixels = codec.decode(encoded, iscolor)
    if pixels.shape[2] == 1:
        return header, pixels[..., 0]
    return header, numpy.ascontiguousarray(_other_order(pixels))


def _other_order(pixels: numpy.ndarray) -> numpy.ndarray:
    """Red and blue exchanged."""
    if pixels.ndim != 3 or pixels.shape[2] not in (3, 4):
        return pixels
    return pixels[..., [2, 1, 0, 3][: pixels.shape[2]]]


_check_members(globals())

__all__ = [
    "IRHeader",
    "MXIndexedRecordIO",
    "MXRecordIO",
    "pack",
    "pack_img",
    "unpack",
    "unpack_img",
]
