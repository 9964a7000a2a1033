"""Datasets, samplers and batches in one process."""

import numpy
import pytest

from heterosis import np
from heterosis.gluon import data
from heterosis.gluon.data import batchify
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError


def listed(dataset):
    return [dataset[i] for i in range(len(dataset))]


def test_array_dataset():
    x, y = np.arange(12).reshape(6, 2), np.arange(6, dtype="int32")
    dataset = data.ArrayDataset(x, y)
    assert len(dataset) == 6
    row, label = dataset[2]
    assert row.tolist() == [4, 5] and label == 2
    assert isinstance(row, np.ndarray) and isinstance(label, numpy.int32)
    assert data.ArrayDataset([1, 2, 3])[1] == 2
    with pytest.raises(ShapeError, match=r"\[6, 5\]"):
        data.ArrayDataset(x, y[:5])
    with pytest.raises(ArgumentError):
        data.ArrayDataset()


def test_parts_of_datasets():
    numbers = data.SimpleDataset(list(range(10)))
    assert listed(numbers.filter(lambda n: n % 3 == 0)) == [0, 3, 6, 9]
    assert [listed(numbers.shard(3, i)) for i in range(3)] == [
        [0, 1, 2, 3],
        [4, 5, 6],
        [7, 8, 9],
    ]
    assert listed(numbers.take(2)) == [0, 1]
    assert len(numbers.take(99)) == len(numbers.take(None)) == 10
    assert listed(numbers.sample(data.SequentialSampler(2, 5))) == [5, 6]
    with pytest.raises(ArgumentError, match="index=3 of num_shards=3"):
        numbers.shard(3, 3)
    with pytest.raises(TypeError, match="Sampler"):
        numbers.sample([1, 2])


def test_transforms_are_lazy_or_not():
    calls = []

    def double(n):
        calls.append(n)
        return 2 * n

    numbers = data.SimpleDataset([1, 2, 3])
    lazy = numbers.transform(double)
    assert not calls and lazy[1] == 4 and calls == [2]
    assert listed(numbers.transform(double, lazy=False)) == [2, 4, 6] and calls == [2, 1, 2, 3]
    pairs = data.ArrayDataset([1, 2], [3, 4])
    assert pairs.transform(lambda a, b: a + b)[0] == 4
    assert pairs.transform_first(double)[1] == (4, 4)
    assert numbers.transform_first(double)[0] == 2


def test_samplers():
    assert list(data.SequentialSampler(3, start=2)) == [2, 3, 4]
    np.random.seed(5)
    random = data.RandomSampler(20)
    first, second = list(random), list(random)
    assert sorted(first) == sorted(second) == list(range(20)) and first != second
    np.random.seed(5)
    assert list(random) == first
    assert list(data.FilterSampler(lambda n: n > 1, [0, 3, 1, 2])) == [1, 3]


@pytest.mark.parametrize(
    "last, expected, lengths",
    [
        ("keep", [[0, 1, 2], [3, 4, 5], [6]], (3, 3)),
        ("discard", [[0, 1, 2], [3, 4, 5]], (2, 2)),
        ("rollover", [[0, 1, 2], [3, 4, 5]], (2, 2)),
    ],
)
def test_batch_sampler(last, expected, lengths):
    sampler = data.BatchSampler(data.SequentialSampler(7), 3, last)
    assert len(sampler) == lengths[0]
    assert list(sampler) == expected
    assert len(sampler) == lengths[1]
    if last == "rollover":
        assert list(sampler) == [[6, 0, 1], [2, 3, 4]]


def test_samplers_refuse():
    with pytest.raises(ArgumentError, match="'drop'"):
        data.BatchSampler(data.SequentialSampler(7), 3, "drop")
    with pytest.raises(ArgumentError, match="at least 1"):
        data.BatchSampler(data.SequentialSampler(7), 0)
    with pytest.raises(NotImplementedError, match="__iter__"):
        iter(data.Sampler())
    with pytest.raises(NotImplementedError, match="__getitem__"):
        data.Dataset()[0]


# -- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "bfloat16", "float32", "float64"])
@pytest.mark.main_memory("batches are made in main memory")
def test_stacking_keeps_the_type(dtype):
    parts = [np.array([i, 1], dtype=dtype) for i in range(20)]
    batch = batchify.default_batchify_fn(parts)
    assert batch.shape == (20, 2) and batch.dtype == parts[0].dtype
    assert (batch == np.stack(parts)).all()


def test_what_the_default_makes():
    batch = batchify.default_batchify_fn([(np.ones((2,)), 1, 2.5), (np.zeros((2,)), 2, 3.5)])
    assert [b.tolist() for b in batch] == [[[1, 1], [0, 0]], [1, 2], [2.5, 3.5]]
    assert [b.dtype.name for b in batch] == ["float32", "int64", "float64"]
    assert all(isinstance(b, np.ndarray) for b in batch)
    with pytest.raises(ShapeError, match=r"number 1 has.*batchify.Pad"):
        batchify.default_batchify_fn([np.ones((2,)), np.ones((3,))])
    with pytest.raises(DTypeError, match="AsList"):
        batchify.default_batchify_fn(["a", "b"])


def test_other_ways():
    ragged = [numpy.ones((1, 3)), numpy.ones((2, 1))]
    padded = batchify.Pad(val=-1)(ragged)
    assert padded.tolist() == [[[1, 1, 1], [-1] * 3], [[1, -1, -1], [1, -1, -1]]]
    assert batchify.Pad(round_to=4, dtype="int32")([[1], [1, 2, 3, 4, 5]]).shape == (2, 8)
    assert batchify.Stack()([[1, 2], [3, 4]]).shape == (2, 2)
    group = batchify.Group(batchify.Pad(), batchify.AsList())
    first, second = group([([1], "a"), ([1, 2], "b")])
    assert first.shape == (2, 2) and second == ["a", "b"]
    with pytest.raises(ArgumentError, match="3 parts and 2 functions"):
        group([(1, 2, 3)])
    with pytest.raises(ShapeError, match="dimensions"):
        batchify.Pad()([numpy.ones(2), numpy.ones((2, 2))])
