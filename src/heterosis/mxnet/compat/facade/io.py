"""Batches of arrays in memory, as programs older than gluon.data iterate over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from heterosis import np
from heterosis.image.iterator import DataBatch
from heterosis.np.convert import from_numpy
from heterosis.runtime.errors import ArgumentError, ShapeError

_LAST = ("pad", "discard", "roll_over")


class _Pair(NamedTuple):
    name: str
    shape: tuple[int, ...]


class DataDesc(_Pair):
    """The name and shape of an input, as a pair, with its element type and layout as attributes."""

    dtype: Any
    layout: str | None

    def __new__(  # noqa: PYI034 - typing has no Self in Python 3.10
        cls, name: str, shape: Any, dtype: Any = numpy.float32, layout: str | None = "NCHW"
    ) -> DataDesc:
        made = super().__new__(cls, name, shape)
        made.dtype, made.layout = dtype, layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """The axis of the samples in a layout, -1 if there is none; the first one by default."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Any, types: Any) -> list[DataDesc]:
        """Descriptions from pairs of names and shapes, and of names and element types."""
        known = dict(types or ())
        return [DataDesc(name, shape, known.get(name, numpy.float32)) for name, shape in shapes]


class DataIter:
    """An iterator over batches: derive from it, define `reset`, and `next`, or else `iter_next`,
    `getdata`, `getlabel` and `getpad`, of which `next` makes batches."""

    def __init__(self, batch_size: int = 0):
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def next(self) -> DataBatch:
        """The next batch; StopIteration behind the last."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def reset(self) -> None:
        """Begin again."""

    def iter_next(self) -> bool:
        """Go to the next batch, and tell whether there is one."""
        raise NotImplementedError(f"{type(self).__name__} defines neither next() nor iter_next().")

    def getdata(self) -> list[Any]:
        """The data of the batch."""
        raise NotImplementedError(f"{type(self).__name__} defines no getdata().")

    def getlabel(self) -> Any:
        """The labels of the batch."""

    def getpad(self) -> Any:
        """How many samples only fill the batch up."""

    def getindex(self) -> Any:
        """The numbers of the samples."""


class _Held(DataIter):
    """An iterator that makes whole batches, and holds the one that it is at."""

    _batch: DataBatch | None = None

    def _made(self) -> DataBatch | None:
        """The next batch, None behind the last."""
        raise NotImplementedError

    def iter_next(self) -> bool:
        self._batch = self._made()
        return self._batch is not None

    def getdata(self) -> list[Any]:
        return self._held().data

    def getlabel(self) -> Any:
        return self._held().label

    def getpad(self) -> Any:
        return self._held().pad

    def getindex(self) -> Any:
        return self._held().index

    def _held(self) -> DataBatch:
        if self._batch is None:
            raise ArgumentError(
                f"{type(self).__name__} is at no batch; call iter_next() and see that it is true."
            )
        return self._batch


class NDArrayIter(_Held):
    """Batches of rows of arrays, or of dictionaries of them by name; NumPy's as float32.

    A last batch that is not full is filled from the start ("pad", and its `pad` says how much),
    left out ("discard"), or begins the next round ("roll_over").
    """

    def __init__(
        self, data: Any, label: Any = None, batch_size: int = 1, shuffle: bool = False,
        last_batch_handle: str = "pad", data_name: str = "data", label_name: str = "softmax_label",
        layout: str = "NCHW",
    ):  # fmt: skip
        super().__init__(batch_size)
        if last_batch_handle not in _LAST:
            raise ArgumentError(
                f"NDArrayIter: last_batch_handle={last_batch_handle!r}; expected one of {_LAST}."
            )
        self._data, self._label = _named(data, data_name), _named(label, label_name)
        self.num_data = _rows({**self._data, **self._label}, batch_size)
        self._shuffle, self._last, self._layout = shuffle, last_batch_handle, layout
        self._carried = numpy.empty(0, "int64")  # rows that the round before has left over
        self._begin()

    @property
    def provide_data(self) -> list[DataDesc]:
        """What a batch's data are."""
        return self._described(self._data)

    @property
    def provide_label(self) -> list[DataDesc]:
        """What a batch's labels are."""
        return self._described(self._label)

    def reset(self) -> None:
        """Begin the next round."""
        left = self._order[self._at :]
        self._carried = left if self._last == "roll_over" and self._at else self._order[:0]
        self._begin()

    def hard_reset(self) -> None:
        """Begin anew, with nothing carried over."""
        self._carried = self._order[:0]
        self._begin()

    def _made(self) -> DataBatch | None:
        rows = self._order[self._at : self._at + self.batch_size]
        pad = self.batch_size - len(rows)
        if not len(rows) or (pad and self._last != "pad"):
            return None
        self._at += len(rows)
        if self._at == len(rows):  # of the round's first batch, what is left over is not new
            pad += len(self._carried)
        rows = numpy.concatenate([rows, self._order[: self.batch_size - len(rows)]])
        return DataBatch(_taken(self._data, rows), _taken(self._label, rows), pad)

    def _begin(self) -> None:
        rows = np.random.permutation(self.num_data) if self._shuffle else np.arange(self.num_data)
        self._order = numpy.concatenate([self._carried, rows.asnumpy().astype("int64")])
        self._at = 0

    def _described(self, arrays: Mapping[str, Any]) -> list[DataDesc]:
        return [
            DataDesc(name, (self.batch_size, *array.shape[1:]), array.dtype.type, self._layout)
            for name, array in arrays.items()
        ]


class ResizeIter(_Held):
    """Rounds of `size` batches of another iterator, which begins again as often as is needed; where
    a round ends, it does so if `reset_internal`, and goes on otherwise."""

    def __init__(self, data_iter: Any, size: int, reset_internal: bool = True):
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal = data_iter, size, reset_internal
        self.provide_data, self.provide_label = data_iter.provide_data, data_iter.provide_label
        self.cur = 0

    def reset(self) -> None:
        """Begin the next round."""
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def _made(self) -> DataBatch | None:
        if self.cur == self.size:
            return None
        self.cur += 1
        try:
            return self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            return self.data_iter.next()


def _named(given: Any, name: str) -> dict[str, numpy.ndarray[Any, Any]]:
    """Arrays by name: a single one is `name`, several in a list are `_0_name`, `_1_name`, ..."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {key: _numbers(array) for key, array in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) != 1:
        return {f"_{i}_{name}": _numbers(array) for i, array in enumerate(given)}
    return {name: _numbers(given[0] if isinstance(given, Sequence) else given)}


def _numbers(array: Any) -> numpy.ndarray[Any, Any]:
    """Arrays keep their element types; those of NumPy become float32, as everywhere."""
    if isinstance(array, np.ndarray):
        return array.asnumpy()
    return numpy.asarray(array, "float32")


def _rows(arrays: Mapping[str, numpy.ndarray[Any, Any]], batch_size: int) -> int:
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) != 1:
        raise ShapeError(f"NDArrayIter: expected arrays of as many rows each, and got {counts}.")
    (rows,) = set(counts.values())
    if not 1 <= batch_size <= rows:
        raise ArgumentError(f"NDArrayIter: batch_size is {batch_size}; expected 1 to {rows} rows.")
    return rows


def _taken(arrays: Mapping[str, numpy.ndarray[Any, Any]], rows: Any) -> list[Any]:
    return [from_numpy(array[rows]) for array in arrays.values()]


__all__ = ["DataBatch", "DataDesc", "DataIter", "NDArrayIter", "ResizeIter"]
