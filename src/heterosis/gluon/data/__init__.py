"""Datasets, the order of their samples, and batches of them."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

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
    SharedBatchSampler,
)
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.elsewhere import lookup as _lookup

_check_members(globals())

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)

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
    "SharedBatchSampler",
    "SimpleDataset",
]
