"""Datasets: samples by number, and new datasets made of parts or transformations of others."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import np
from heterosis.gluon.data.sampler import FilterSampler, Sampler, SequentialSampler
from heterosis.recordio import MXIndexedRecordIO
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, ShapeError, UnsupportedError
from heterosis.runtime.kinds import Indexed


class Dataset:
    """Samples by number. A dataset of one's own defines `__getitem__` and `__len__`.

    Lists and arrays can be used as datasets too.
    """

    def __getitem__(self, idx: int) -> Any:
        raise UnsupportedError(f"{type(self).__name__} must define __getitem__.")

    def __len__(self) -> int:
        raise UnsupportedError(f"{type(self).__name__} must define __len__.")

    def _columns(self) -> list[Any] | None:
        """The arrays whose elements side by side are the samples, if they are that."""
        return None

    def filter(self, fn: Callable[[Any], Any]) -> Dataset:
        """The samples for which `fn` is true; every sample is looked at now."""
        return _Chosen(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Part `index` of `num_shards` nearly equal ones, the first of which are the larger."""
        if not 0 <= index < num_shards:
            raise ArgumentError(
                f"shard: index={index} of num_shards={num_shards}; "
                "expected 0 <= index < num_shards."
            )
        size, larger = divmod(len(self), num_shards)
        start = size * index + min(index, larger)
        return _Chosen(self, SequentialSampler(size + (index < larger), start))

    def take(self, count: int | None) -> Dataset:
        """The first `count` samples, or all if there are fewer or `count` is None."""
        count = len(self) if count is None else min(count, len(self))
        return _Chosen(self, SequentialSampler(count))

    def sample(self, sampler: Sampler) -> Dataset:
        """The samples whose indices `sampler` gives now, in that order."""
        if not isinstance(sampler, Sampler):
            raise ArgumentTypeError(
                f"sample: expected a gluon.data.Sampler, and got {type(sampler).__name__}."
            )
        return _Chosen(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """`fn` applied to every sample, each time it is asked for, or once and now if not `lazy`.

        A sample that is a tuple is given to `fn` as several arguments.
        """
        transformed = _Transformed(self, fn)
        return transformed if lazy else SimpleDataset(list(_samples(transformed)))

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> Dataset:
        """`fn` applied to the first part of every sample, mostly the data but not the label."""
        return self.transform(_First(fn), lazy)


def _samples(dataset: Indexed) -> Any:
    return (dataset[i] for i in range(len(dataset)))


def columns(dataset: Any) -> list[Any] | None:
    """The arrays whose elements side by side are the samples of `dataset`; `None` if it is more."""
    if isinstance(dataset, np.ndarray | numpy.ndarray):
        return [dataset]
    kind = type(dataset)
    if _definer(kind, "_columns") is not _definer(kind, "__getitem__"):
        return None  # a subclass gives other samples
    parts = dataset._columns() if isinstance(dataset, Dataset) else None
    plain = parts is not None and all(isinstance(p, np.ndarray | numpy.ndarray) for p in parts)
    return parts if plain else None


def _definer(kind: type, name: str) -> type | None:
    return next((c for c in kind.__mro__ if name in vars(c)), None)


class SimpleDataset(Dataset):
    """A list, an array, or anything else that has a length and gives elements by number."""

    def __init__(self, data: Indexed):
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        return self._data[idx]

    def _columns(self) -> list[Any] | None:
        return [self._data]


class ArrayDataset(Dataset):
    """Several datasets, lists or arrays of one length side by side: samples are tuples."""

    def __init__(self, *args: Indexed):
        if not args:
            raise ArgumentError("ArrayDataset: expected at least one array or dataset.")
        lengths = [len(data) for data in args]
        if len(set(lengths)) > 1:
            raise ShapeError(
                f"ArrayDataset: the parts have the lengths {lengths}; they must all be equal."
            )
        self._length = lengths[0]
        self._data = [_numbers(data) for data in args]

    def __getitem__(self, idx: int) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length

    def _columns(self) -> list[Any] | None:
        return self._data


def _numbers(data: Any) -> Any:
    """Arrays of one dimension as NumPy's, so that their elements are plain numbers."""
    return data.asnumpy() if isinstance(data, np.ndarray) and data.ndim == 1 else data


class _Transformed(Dataset):
    def __init__(self, data: Indexed, fn: Callable[..., Any]):
        self._data, self._fn = data, fn

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, idx: int) -> Any:
        sample = self._data[idx]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)


class _First:
    """A function of a whole sample from one of its first part."""

    def __init__(self, fn: Callable[[Any], Any]):
        self._fn = fn

    def __call__(self, first: Any, *rest: Any) -> Any:
        return (self._fn(first), *rest) if rest else self._fn(first)


class _Chosen(Dataset):
    """The samples that a sampler chose when the dataset was made."""

    def __init__(self, dataset: Indexed, sampler: Sampler):
        self._dataset, self._indices = dataset, list(sampler)

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, idx: int) -> Any:
        return self._dataset[self._indices[idx]]


class RecordFileDataset(Dataset):
    """The records of a `.rec` file, as bytes; its index, the `.idx` file, lies beside it."""

    def __init__(self, filename: str | os.PathLike[str]):
        self.filename = os.fspath(filename)
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        self._record = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __getitem__(self, idx: int) -> Any:
        return self._record.read_idx(self._record.keys[idx])

    def __len__(self) -> int:
        return len(self._record.keys)


__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]
