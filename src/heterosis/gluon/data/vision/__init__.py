"""Datasets of images, and transforms of images."""

from heterosis.gluon.data.vision import datasets as datasets
from heterosis.gluon.data.vision import transforms as transforms
from heterosis.gluon.data.vision.datasets import (
    CIFAR10,
    CIFAR100,
    MNIST,
    FashionMNIST,
    ImageFolderDataset,
    ImageListDataset,
    ImageRecordDataset,
)
from heterosis.runtime.arguments import check_members as _check_members

_check_members(globals())

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "MNIST",
    "FashionMNIST",
    "ImageFolderDataset",
    "ImageListDataset",
    "ImageRecordDataset",
    "transforms",
]
