"""Batches of images straight from record files, lists of files, or lists in Python."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy

from heterosis import np
from heterosis.image import image
from heterosis.image.augment import CreateAugmenter
from heterosis.image.detection import CreateDetAugmenter, DetAugmenter
from heterosis.io.files import opened, placed
from heterosis.np.convert import from_numpy, shared
from heterosis.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, unpack
from heterosis.runtime.arguments import described
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, FormatError, ShapeError

Shape = "tuple[int, ...]"
_logger = logging.getLogger("heterosis.image")
_LAST = ("pad", "discard", "roll_over")
_LABELS = ("int32", "float32", "int64", "float64")


class DataBatch:
    """Arrays of data and labels; the last `pad` samples only fill the batch up.

    `index` has the samples' numbers, `provide_data` and `provide_label` describe the arrays, and
    `bucket_key` is for programs that sort batches by it; iterators here leave them out.
    """

    def __init__(
        self, data: Any, label: Any = None, pad: int | None = None, index: Any = None,
        bucket_key: Any = None, provide_data: Any = None, provide_label: Any = None,
    ):  # fmt: skip
        for name, given in (("data", data), ("label", label)):
            if given is not None and not isinstance(given, list | tuple):
                raise ArgumentTypeError(
                    f"DataBatch: {name} is {described(given)}; expected a list of arrays."
                )
        self.data, self.label, self.pad, self.index = data, label, pad, index
        self.bucket_key = bucket_key
        self.provide_data, self.provide_label = provide_data, provide_label

    def __repr__(self) -> str:
        data, labels = ([x.shape for x in given or ()] for given in (self.data, self.label))
        return f"DataBatch: data shapes: {data} label shapes: {labels or None}"


class _Partial(NamedTuple):
    """A batch on its way: `count` samples are there."""

    data: numpy.ndarray
    label: numpy.ndarray
    count: int


class ImageIter:
    """Batches of images from a record file (`path_imgrec`), or of files below `path_root` that a
    text file (`path_imglist`) or a list (`imglist`) names after their labels.

    Images go through `aug_list`, or through what `CreateAugmenter` makes of further arguments. A
    last batch that is not full is filled from the start ("pad"), left out ("discard"), or begins
    the next round ("roll_over").
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
        label_width: int = 1,
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[Any] | None = None,
        imglist: list[Any] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ):
        name = type(self).__name__
        if not (path_imgrec or path_imglist or isinstance(imglist, list)):
            raise ArgumentError(f"{name}: give it path_imgrec, path_imglist or imglist.")
        if dtype not in _LABELS:
            raise ArgumentError(f"{name}: dtype={dtype!r}; expected one of {', '.join(_LABELS)}.")
        if last_batch_handle not in _LAST:
            raise ArgumentError(
                f"{name}: last_batch_handle={last_batch_handle!r}; expected one of "
                f"{', '.join(_LAST)}."
            )
        self.check_data_shape(data_shape)
        self.batch_size, self.data_shape = batch_size, tuple(data_shape)
        self.label_width, self.shuffle = label_width, shuffle
        self.path_root, self.last_batch_handle = path_root or "", last_batch_handle
        self.provide_data = [(data_name, (batch_size, *self.data_shape))]
        self.provide_label = [(label_name, (batch_size, label_width)[: 1 + (label_width > 1)])]
        self.imgrec, self.imgidx = _records(path_imgrec, path_imgidx)
        self.imglist = _listed(path_imglist, imglist, dtype)
        self.seq = self._sequence(part_index, num_parts)
        self._settings = kwargs if aug_list is None else None
        self.auglist = self._augmenters(kwargs) if aug_list is None else list(aug_list)
        self._left: _Partial | None = None
        self._rewind()

    @property
    def num_image(self) -> int | None:
        return None if self.seq is None else len(self.seq)

    def _augmenters(self, settings: dict[str, Any]) -> list[Any]:
        return CreateAugmenter(self.data_shape, **settings)

    def _sequence(self, part_index: int, num_parts: int) -> list[Any] | None:
        """The keys of the samples, or `None` for those of a record file as they come."""
        keys = self.imgidx if self.imgrec is not None else list(self.imglist)
        if keys is None and (self.shuffle or num_parts > 1):
            raise ArgumentError(
                f"{type(self).__name__}: to shuffle a record file or to take a part of it needs "
                "its index; give path_imgidx."
            )
        if not 0 <= part_index < num_parts:
            raise ArgumentError(
                f"{type(self).__name__}: part_index={part_index} of num_parts={num_parts}; "
                "expected 0 <= part_index < num_parts."
            )
        if keys is None or num_parts == 1:
            return keys
        size = len(keys) // num_parts
        return keys[part_index * size : (part_index + 1) * size]

    # -- going through the samples ----------------------------------------------------------------

    def reset(self) -> None:
        """Begin another round; samples that roll over stay."""
        self._rewind()

    def hard_reset(self) -> None:
        """Begin another round and forget samples that would have rolled over."""
        self._left = None
        self._rewind()

    def _rewind(self) -> None:
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        self._ended = False
        self._start()

    def _start(self) -> None:
        self.cur = 0
        if self.imgrec is not None:
            self.imgrec.reset()

    def next_sample(self) -> tuple[Any, bytes]:
        """The label and the encoded image of the next sample; raises StopIteration at the end."""
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                raise StopIteration
            self.cur += 1
            header, encoded = self._unpacked(record)
            return header.label, encoded
        if self.cur >= len(self.seq):
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is None:
            label, name = self.imglist[key]
            return label, self.read_image(name)
        header, encoded = self._unpacked(self.imgrec.read_idx(key))
        return (header.label if self.imglist is None else self.imglist[key][0]), encoded

    def _unpacked(self, record: bytes) -> tuple[IRHeader, bytes]:
        with placed(f"{type(self).__name__}: {self._place()}"):
            return unpack(record)

    def __iter__(self) -> Iterator[DataBatch]:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def next(self) -> DataBatch:
        """The next batch; raises StopIteration at the end of a round."""
        if self._ended:
            raise StopIteration
        partial, self._left = self._filled(self._left or self._empty()), None
        if partial.count == self.batch_size:
            return _finished(partial)
        if partial.count and self.last_batch_handle == "roll_over":
            self._left = partial
        self._ended = True
        if not partial.count or self.last_batch_handle != "pad":
            raise StopIteration
        return self._padded(partial)

    def _padded(self, partial: _Partial) -> DataBatch:
        own = partial.count
        while partial.count < self.batch_size:
            self._start()
            before, partial = partial.count, self._filled(partial)
            if partial.count == before:
                raise FormatError(f"{type(self).__name__}: no sample can be used; see the log.")
        return _finished(partial, pad=self.batch_size - own)

    def _empty(self) -> _Partial:
        data = numpy.zeros(self.provide_data[0][1], "float32")
        return _Partial(data, numpy.zeros(self.provide_label[0][1], "float32"), 0)

    def _filled(self, partial: _Partial) -> _Partial:
        data, labels, count = partial
        while count < self.batch_size:
            try:
                label, encoded = self.next_sample()
            except StopIteration:
                break
            if self._write(data[count], labels[count : count + 1], label, encoded):
                count += 1
        return _Partial(data, labels, count)

    def _write(self, data: Any, label_row: Any, label: Any, encoded: bytes) -> bool:
        """Put a sample into the batch; false if it is of no use."""
        pixels = self.augmentation_transform(self.imdecode(encoded))
        data[...] = self._fitting(self.postprocess_data(pixels))
        found = numpy.asarray(label)
        if found.size != label_row[0].size:
            raise FormatError(
                f"{type(self).__name__}: {self._place()} has {found.size} labels, and label_width "
                f"is {label_row[0].size}; was it made for another number of labels?"
            )
        label_row[0] = found.reshape(label_row.shape[1:])
        return True

    def _fitting(self, pixels: np.ndarray) -> numpy.ndarray:
        if pixels.shape != self.data_shape:
            raise ShapeError(
                f"{type(self).__name__}: the augmenters give an image of shape {pixels.shape}, and "
                f"data_shape is {self.data_shape}; add one that crops or resizes."
            )
        return shared(pixels)

    # -- steps that subclasses may change ---------------------------------------------------------

    def check_data_shape(self, data_shape: Shape) -> None:
        """Refuse what is not (3, height, width)."""
        if len(data_shape) != 3 or data_shape[0] != 3:
            raise ShapeError(
                f"{type(self).__name__}: data_shape={tuple(data_shape)}; expected (3, height, "
                "width): images have three channels here."
            )

    def imdecode(self, s: bytes) -> np.ndarray:
        """The image of the sample that was read last."""
        with placed(f"{type(self).__name__}: {self._place()}"):
            return image.imdecode(s)

    def _place(self) -> str:
        key = self.cur - 1 if self.seq is None else self.seq[self.cur - 1]
        if self.imgrec is not None:
            return f"{self.imgrec.uri}: record {key}"
        return f"file {self.imglist[key][1]!r}"

    def read_image(self, fname: str) -> bytes:
        """The bytes of an image file below `path_root`."""
        return image.codec.read(os.path.join(self.path_root, fname))

    def augmentation_transform(self, data: Any) -> Any:
        """The image after all augmenters."""
        for augmenter in self.auglist:
            data = augmenter(data)
        return data

    def postprocess_data(self, datum: Any) -> np.ndarray:
        """Channels first."""
        return datum.transpose(2, 0, 1)


def _finished(partial: _Partial, pad: int = 0) -> DataBatch:
    return DataBatch([from_numpy(partial.data)], [from_numpy(partial.label)], pad)


def _records(path: str | None, index: str | None) -> tuple[MXRecordIO | None, list[Any] | None]:
    if not path:
        return None, None
    if not index:
        return MXRecordIO(path, "r"), None
    records = MXIndexedRecordIO(index, path, "r")
    return records, list(records.keys)


def _listed(path: str | None, images: list[Any] | None, dtype: str) -> dict[Any, Any] | None:
    """(label, file name) by key."""
    if path:
        with opened(path, "lines of a number, labels and a file name with tabs between") as source:
            lines = enumerate(source.text().splitlines(), 1)
            return dict(_entry(path, n, line, dtype) for n, line in lines if line.strip())
    if images is None:
        return None
    return {str(i): _pair(entry, dtype) for i, entry in enumerate(images, 1)}


def _entry(path: str, number: int, line: str, dtype: str) -> tuple[int, Any]:
    try:
        key, *label, name = line.strip().split("\t")
        return int(key), (numpy.array(label, dtype), name)
    except (ValueError, OverflowError):
        raise FormatError(
            f"{path}, line {number}: expected a number, labels and a file name with tabs between "
            f"them, and found {line.strip()[:60]!r}."
        ) from None


def _pair(entry: Sequence[Any], dtype: str) -> tuple[numpy.ndarray, str]:
    *label, name = entry
    whole = label[0] if len(label) == 1 and not isinstance(label[0], Number) else label
    return numpy.array(whole, dtype), name


# -- detection ------------------------------------------------------------------------------------


class ImageDetIter(ImageIter):
    """Batches of images and, for each, a row for every object in it, filled up with -1.

    A label in the source is: the width of its head, the width of a row, the rest of the head, and
    the rows: class, left, top, right, bottom (as parts of the image), and more if there is more.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
        path_imgrec: str | None = None,
        path_imglist: str | None = None,
        path_root: str | None = None,
        path_imgidx: str | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: Sequence[DetAugmenter] | None = None,
        imglist: list[Any] | None = None,
        data_name: str = "data",
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ):
        super().__init__(
            batch_size=batch_size,
            data_shape=data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=aug_list,
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
            **kwargs,
        )
        self._set_label_shape(self._estimate_label_shape())

    def _augmenters(self, settings: dict[str, Any]) -> list[Any]:
        return CreateDetAugmenter(self.data_shape, **settings)

    def _set_label_shape(self, shape: tuple[int, int]) -> None:
        self.label_shape = shape
        self.provide_label = [(self.provide_label[0][0], (self.batch_size, *shape))]

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The most objects of a sample, and the width of a row; goes through all samples."""
        shapes = []
        self.reset()
        while True:
            try:
                shapes.append(self._parse_label(self.next_sample()[0]).shape)
            except StopIteration:
                break
        self.reset()
        if not shapes:
            raise FormatError(f"{type(self).__name__}: there are no samples.")
        if len({width for _, width in shapes}) > 1:
            raise FormatError(
                f"{type(self).__name__}: rows of {sorted({width for _, width in shapes})} numbers; "
                "expected as many for each object."
            )
        return max(rows for rows, _ in shapes), shapes[-1][1]

    def _parse_label(self, label: Any) -> numpy.ndarray:
        """The rows of the objects whose boxes are not empty."""
        raw = numpy.asarray(label).ravel()
        given = raw.size >= 7 and bool(numpy.isfinite(raw[:2]).all())
        head, width = (int(n) for n in raw[:2]) if given else (0, 0)
        if head < 2 or width < 5 or (raw.size - head) % width:
            raise FormatError(
                f"{type(self).__name__}: {self._place()} has a label of {raw.size} numbers, "
                f"{raw[:8].tolist()}...; expected the width of the head (at least 2), the width of "
                "a row (at least 5), the rest of the head, and whole rows."
            )
        rows = raw[head:].reshape(-1, width)
        rows = rows[_valid(rows)]
        if not len(rows):
            raise FormatError(f"{type(self).__name__}: {self._place()} has no valid object.")
        return rows

    def _empty(self) -> _Partial:
        data, label, count = super()._empty()
        label[...] = -1
        return _Partial(data, label, count)

    def _write(self, data: Any, label_row: Any, label: Any, encoded: bytes) -> bool:
        pixels, rows = self.augmentation_transform(
            self.imdecode(encoded), self._parse_label(label).copy()
        )
        if not _valid(rows).any():
            _logger.warning("%s: left out, no object is in the augmented image", self._place())
            return False
        data[...] = self._fitting(self.postprocess_data(pixels))
        label_row[...] = -1
        label_row[0, : len(rows)] = rows
        return True

    def augmentation_transform(self, data: Any, label: numpy.ndarray) -> tuple[Any, Any]:
        """Image and label after all augmenters."""
        for augmenter in self.auglist:
            data, label = augmenter(data, label)
        return data, label

    def reshape(self, data_shape: Shape | None = None, label_shape: Shape | None = None) -> None:
        """Another size of images, or room for more objects."""
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = tuple(data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *self.data_shape))]
            if self._settings is not None:
                self.auglist = self._augmenters(self._settings)
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self._set_label_shape(tuple(label_shape))

    def check_label_shape(self, label_shape: Shape) -> None:
        """Refuse room for fewer objects than there are, or rows of another width."""
        objects, width = self.label_shape
        if len(label_shape) != 2 or label_shape[0] < objects or label_shape[1] != width:
            raise ShapeError(
                f"{type(self).__name__}: label_shape={tuple(label_shape)}; expected two numbers, "
                f"at least {objects} objects and just {width} for each."
            )

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Give this iterator and `it` room for as many objects as either needs."""
        if self.label_shape[1] != it.label_shape[1]:
            raise ShapeError(
                f"sync_label_shape: rows of {self.label_shape[1]} and {it.label_shape[1]} numbers."
            )
        shape = (max(self.label_shape[0], it.label_shape[0]), self.label_shape[1])
        for iterator in (self, it):
            iterator.reshape(None, shape)
        if verbose:
            _logger.info("label_shape of both is now %s", shape)
        return it

    def draw_next(
        self, color: Any = None, thickness: int = 2, mean: Any = None, std: Any = None
    ) -> Iterator[numpy.ndarray]:
        """Augmented images, uint8, with the objects' boxes drawn in, `mean` and `std` undone."""
        while True:
            try:
                label, encoded = self.next_sample()
            except StopIteration:
                return
            pixels, rows = self.augmentation_transform(
                self.imdecode(encoded), self._parse_label(label).copy()
            )
            shown = pixels.asnumpy() * (1 if std is None else std) + (0 if mean is None else mean)
            shown = numpy.clip(shown, 0, 255).astype("uint8")
            for row in rows:
                colour = color or [random.randint(0, 255) for _ in range(3)]
                _draw_box(shown, row[1:5], colour, thickness)
            yield shown


def _valid(rows: numpy.ndarray) -> numpy.ndarray:
    return (rows[:, 0] >= 0) & (rows[:, 3] > rows[:, 1]) & (rows[:, 4] > rows[:, 2])


def _draw_box(pixels: numpy.ndarray, box: Any, colour: Any, thickness: int) -> None:
    height, width = pixels.shape[:2]
    left, top, right, bottom = (round(n * s) for n, s in zip(box, (width, height) * 2, strict=True))
    left, top = max(left, 0), max(top, 0)
    outline = numpy.zeros((height, width), bool)
    outline[top:bottom, left:right] = True
    outline[top + thickness : bottom - thickness, left + thickness : right - thickness] = False
    pixels[outline] = colour


__all__ = ["DataBatch", "ImageDetIter", "ImageIter"]
