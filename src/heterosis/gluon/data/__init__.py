"""Datasets, the order of their samples, and batches of them."""

from heterosis.gluon.data import batchify as batchify
from heterosis.gluon.data import vision as vision
from heterosis.gluon.data.dataloader import DataLoader
from heterosis.gluon.data.dataset import ArrayDataset, Dataset, RecordFileDataset, SimpleDataset
from heterosis.gluon.data.sampler import (
    BatchSampler,
    FilterSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)
from heterosis.runtime.arguments import check_members as _check_members

_check_members(globals())

__all__ = [
    "ArrayDataset",
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "FilterSampler",
    "RandomSampler",
    "RecordFileDataset",
    "Sampler",
    "SequentialSampler",
    "SimpleDataset",
]
