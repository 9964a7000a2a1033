"""Datasets of images from local files. Nothing is downloaded."""

from __future__ import annotations

import math
import os
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

from heterosis import np
from heterosis.gluon.data.dataset import Dataset, RecordFileDataset
from heterosis.image import imdecode, imread
from heterosis.io.archives import members
from heterosis.io.files import Source, opened, placed, unzipped
from heterosis.recordio import unpack
from heterosis.runtime.errors import ArgumentTypeError, FormatError, MissingFileError

Transform = "Callable[[Any, Any], Any] | None"
Root = "str | os.PathLike[str] | None"


def _usual_folder(name: str) -> str:
    home = os.environ.get("MXNET_HOME", os.path.join("~", ".mxnet"))
    return os.path.join(home, "datasets", name)


class _Stored(Dataset):
    """Images and labels that are read as a whole when the dataset is made."""

    folder = ""  # below the usual folder of datasets
    source = ""  # where people get the files

    def __init__(self, root: Root, train: bool, transform: Transform):
        self._root = Path(root or _usual_folder(self.folder)).expanduser()
        self._train, self._transform = train, transform
        data, label = self._read()
        self._data, self._label = np.array(data), np.array(label.astype("int32"))

    def _read(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        raise NotImplementedError

    def __getitem__(self, idx: Any) -> Any:
        sample = self._data[idx], self._label[idx]
        return sample if self._transform is None else self._transform(*sample)

    def __len__(self) -> int:
        return len(self._label)

    def _columns(self) -> list[Any] | None:
        return [self._data, self._label] if self._transform is None else None

    def _missing(self, name: str) -> MissingFileError:
        return MissingFileError(
            f"{type(self).__name__}: {name} is not in {self._root}, and nothing is downloaded "
            f"here. It is usually fetched from {self.source}; put it there, or say with root= "
            "where it is."
        )


# -- digits and clothes ---------------------------------------------------------------------------

_IDX = "an IDX file: a mark, the extents, and as many bytes as they say"
_IMAGES, _LABELS = 0x803, 0x801


class MNIST(_Stored):
    """Handwritten digits, (28, 28, 1) bytes, and which they are; 60,000 to train, 10,000 to test.

    Reads the four files `train-images-idx3-ubyte`, ..., compressed (.gz) or not, in `root`.
    """

    folder = "mnist"
    source = "http://yann.lecun.com/exdb/mnist/ or https://ossci-datasets.s3.amazonaws.com/mnist/"

    def __init__(self, root: Root = None, train: bool = True, transform: Transform = None):
        super().__init__(root, train, transform)

    def _read(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        part = "train" if self._train else "t10k"
        images = self._numbers(f"{part}-images-idx3-ubyte", _IMAGES)
        labels = self._numbers(f"{part}-labels-idx1-ubyte", _LABELS)
        if len(images) != len(labels):
            raise FormatError(
                f"{type(self).__name__}: {len(images)} images and {len(labels)} labels in "
                f"{self._root}; the files do not belong together."
            )
        return images[..., None], labels

    def _numbers(self, name: str, mark: int) -> numpy.ndarray:
        """The bytes of a file of the format IDX: a mark, the extents, the elements."""
        packed, plain = self._root / f"{name}.gz", self._root / name
        if plain.is_file():
            with opened(plain, _IDX) as source:
                return _elements(source, mark)
        if not packed.is_file():
            raise self._missing(packed.name)
        with opened(packed, f"{_IDX}, compressed") as source, unzipped(source) as content:
            return _elements(content, mark)


def _elements(source: Source, mark: int) -> numpy.ndarray:
    """What follows the mark and the extents: as many bytes as these say."""
    rank = mark & 0xFF
    found, *shape = struct.unpack(f">{1 + rank}I", source.exactly(4 + 4 * rank, "the head"))
    if found != mark:
        raise source.wrong(f"it begins with {found:08x}, and expected was {mark:08x}")
    content = source.exactly(math.prod(shape), f"the elements of shape {tuple(shape)}")
    if source.some(1):
        raise source.wrong(f"more bytes follow the elements of shape {tuple(shape)}")
    return numpy.frombuffer(content, numpy.uint8).reshape(shape)


class FashionMNIST(MNIST):
    """Pictures of clothes, (28, 28, 1) bytes, and of which of ten kinds; files as `MNIST`'s."""

    folder = "fashion-mnist"
    source = "https://github.com/zalandoresearch/fashion-mnist"


# -- small photographs ----------------------------------------------------------------------------


class CIFAR10(_Stored):
    """Photographs, (32, 32, 3) bytes, and of which of ten things; 50,000 to train, 10,000 to test.

    Reads `data_batch_1.bin`, ..., `test_batch.bin` in `root` or the folder in it that the archive
    makes, or the archive itself.
    """

    folder = "cifar10"
    source = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
    archive, inner = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
    labels, chosen = 1, 0  # how many labels stand in front of each image, and which counts

    def __init__(self, root: Root = None, train: bool = True, transform: Transform = None):
        super().__init__(root, train, transform)

    def _names(self) -> list[str]:
        return [f"data_batch_{i}.bin" for i in range(1, 6)] if self._train else ["test_batch.bin"]

    def _read(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        rows = numpy.concatenate([self._rows(n, c) for n, c in self._contents(self._names())])
        images = rows[:, self.labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return images, rows[:, self.chosen]

    def _rows(self, name: str, content: bytes) -> numpy.ndarray:
        width = self.labels + 3 * 32 * 32
        if not content or len(content) % width:
            raise FormatError(
                f"{type(self).__name__}: {name} in {self._root} has {len(content):,} bytes; "
                f"expected rows of {width}. Was the file cut, or is it another one?"
            )
        return numpy.frombuffer(content, numpy.uint8).reshape(-1, width)

    def _contents(self, names: list[str]) -> list[tuple[str, bytes]]:
        """The files' names and contents."""
        for folder in (self._root, self._root / self.inner):
            if all((folder / name).is_file() for name in names):
                return [(name, self._batch(folder / name)) for name in names]
        if not (self._root / self.archive).is_file():
            raise self._missing(f"{names[0]}, or {self.archive},")
        with opened(self._root / self.archive, "the archive of this data set") as source:
            return list(members(source, names).items())

    @staticmethod
    def _batch(path: Path) -> bytes:
        with opened(path, "a file of images and labels") as source:
            return source.whole()


class CIFAR100(CIFAR10):
    """Photographs as `CIFAR10`'s of 100 things, or, unless `fine_label`, of 20 kinds of things."""

    folder = "cifar100"
    source = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz"
    archive, inner = "cifar-100-binary.tar.gz", "cifar-100-binary"
    labels = 2

    def __init__(
        self,
        root: Root = None,
        fine_label: bool = False,
        train: bool = True,
        transform: Transform = None,
    ):
        self.chosen = int(fine_label)
        super().__init__(root, train, transform)

    def _names(self) -> list[str]:
        return ["train.bin" if self._train else "test.bin"]


# -- one's own images -----------------------------------------------------------------------------


class ImageRecordDataset(RecordFileDataset):
    """The images and labels in a record file; `flag` is 1 for colour and 0 for grey."""

    def __init__(self, filename: str, flag: int = 1, transform: Transform = None):
        super().__init__(filename)
        self._flag, self._transform = flag, transform

    def __getitem__(self, idx: int) -> Any:
        record = super().__getitem__(idx)
        with placed(f"{self.filename}: record {self._record.keys[idx]!r}"):
            header, encoded = unpack(record)
            sample = imdecode(encoded, self._flag), header.label
        return sample if self._transform is None else self._transform(*sample)


class _ImageFiles(Dataset):
    """Image files and their labels: `items`."""

    def __init__(self, items: list[tuple[str, Any]], flag: int, transform: Transform):
        self.items = items
        self._flag, self._transform = flag, transform

    def __getitem__(self, idx: int) -> Any:
        name, label = self.items[idx]
        sample = imread(name, self._flag), label
        return sample if self._transform is None else self._transform(*sample)

    def __len__(self) -> int:
        return len(self.items)


class ImageFolderDataset(_ImageFiles):
    """The image files in the folders of `root`: each folder is a class.

    `synsets` are the classes' names in the order of their labels, `items` (file name, label).
    """

    _extensions = (".jpg", ".jpeg", ".png")

    def __init__(self, root: str | os.PathLike[str], flag: int = 1, transform: Transform = None):
        folder = Path(root).expanduser()
        if not folder.is_dir():
            raise MissingFileError(f"ImageFolderDataset: there is no folder {str(folder)!r}.")
        self.synsets: list[str] = []
        super().__init__(self._found(folder), flag, transform)

    def _found(self, root: Path) -> list[tuple[str, int]]:
        items = []
        for folder in sorted(root.iterdir()):
            if not folder.is_dir():
                warnings.warn(f"Ignoring {folder}, which is not a directory.", stacklevel=4)
                continue
            items += [(str(file), len(self.synsets)) for file in self._images(folder)]
            self.synsets.append(folder.name)
        return items

    def _images(self, folder: Path) -> list[Path]:
        files = sorted(folder.iterdir())
        for file in files:
            if file.suffix.lower() not in self._extensions:
                known = ", ".join(self._extensions)
                warnings.warn(f"Ignoring {file}: only {known} are images here.", stacklevel=5)
        return [file for file in files if file.suffix.lower() in self._extensions]


class ImageListDataset(_ImageFiles):
    """Image files below `root` that a list names: entries (label, file name), or [labels..., file
    name]; or a text file with lines of a number, labels and a file name, with tabs between."""

    def __init__(
        self,
        root: str | os.PathLike[str] = ".",
        imglist: str | Sequence[Sequence[Any]] | None = None,
        flag: int = 1,
        transform: Transform = None,
    ):
        folder = Path(root).expanduser()
        if imglist is None:
            raise ArgumentTypeError(
                "ImageListDataset: imglist is missing; give a list or a file's name."
            )
        entries = _lines(folder / imglist) if isinstance(imglist, str) else imglist
        items = [(str(folder / name), _label(label)) for *label, name in entries]
        super().__init__(items, flag, transform)


def _lines(path: Path) -> list[list[Any]]:
    with opened(path, "lines of a number, labels and a file name with tabs between") as source:
        lines = [line.split("\t") for line in source.text().splitlines() if line.strip()]
        return [[*map(float, entry[1:-1]), entry[-1]] for entry in lines]


def _label(label: list[Any]) -> Any:
    if len(label) == 1:
        return label[0] if numpy.ndim(label[0]) == 0 else numpy.asarray(label[0], "float32")
    return numpy.array(label, "float32")


__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageListDataset",
    "ImageRecordDataset",
]
