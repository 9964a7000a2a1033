"""Batches of arrays in memory, as programs older than gluon.data iterate over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from heterosis import np
from heterosis.image.iterator import DataBatch
from heterosis.runtime.errors import ArgumentError, ShapeError

_LAST = ("pad", "discard", "roll_over")


class DataDesc(NamedTuple):
    """The name, shape, element type and layout of an input."""

    name: str
    shape: tuple[int, ...]
    dtype: Any = numpy.float32
    layout: str = "NCHW"


class DataIter:
    """An iterator over batches: derive from it, define `next` and `reset`."""

    def __init__(self, batch_size: int = 0):
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def next(self) -> DataBatch:
        """The next batch; StopIteration behind the last."""
        raise NotImplementedError(f"{type(self).__name__} defines no next().")

    def reset(self) -> None:
        """Begin again."""


class NDArrayIter(DataIter):
    """Batches of rows of arrays, or of dictionaries of them by name, as float32.

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

    def next(self) -> DataBatch:
        """The next batch; StopIteration behind the last."""
        rows = self._order[self._at : self._at + self.batch_size]
        pad = self.batch_size - len(rows)
        if not len(rows) or (pad and self._last != "pad"):
            raise StopIteration
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
    return numpy.asarray(array.asnumpy() if isinstance(array, np.ndarray) else array, "float32")


def _rows(arrays: Mapping[str, numpy.ndarray[Any, Any]], batch_size: int) -> int:
    counts = {name: len(array) for name, array in arrays.items()}
    if len(set(counts.values())) != 1:
        raise ShapeError(f"NDArrayIter: expected arrays of as many rows each, and got {counts}.")
    (rows,) = set(counts.values())
    if not 1 <= batch_size <= rows:
        raise ArgumentError(f"NDArrayIter: batch_size is {batch_size}; expected 1 to {rows} rows.")
    return rows


def _taken(arrays: Mapping[str, numpy.ndarray[Any, Any]], rows: Any) -> list[Any]:
    return [np.array(array[rows], "float32") for array in arrays.values()]


__all__ = ["DataBatch", "DataDesc", "DataIter", "NDArrayIter"]
