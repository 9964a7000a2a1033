"""VGG networks (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from heterosis import initializer
from heterosis.gluon import nn
from heterosis.gluon.model_zoo.vision.classifier import Classifier, sequence
from heterosis.gluon.model_zoo.weights import finished
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.kinds import Positive

_FILTERS = (64, 128, 256, 512, 512)
_LAYERS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(Classifier):
    """Groups of 3 x 3 convolutions, each followed by pooling, and three dense layers."""

    def __init__(
        self, layers: Sequence[int], filters: Sequence[int], classes: Positive = 1000,
        batch_norm: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = sequence(
                *_convolutions(layers, filters, batch_norm),
                nn.Dense(4096, activation="relu", weight_initializer="normal"),
                nn.Dropout(0.5),
                nn.Dense(4096, activation="relu", weight_initializer="normal"),
                nn.Dropout(0.5),
            )
            self.output = nn.Dense(classes, weight_initializer="normal")


def _convolutions(
    layers: Sequence[int], filters: Sequence[int], batch_norm: bool
) -> Iterator[nn.HybridBlock]:
    for count, channels in zip(layers, filters, strict=True):
        for _ in range(count):
            init = initializer.Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
            yield nn.Conv2D(channels, 3, padding=1, weight_initializer=init)
            if batch_norm:
                yield nn.BatchNorm()
            yield nn.Activation("relu")
        yield nn.MaxPool2D(strides=2)


def get_vgg(
    num_layers: int, pretrained: bool = False, ctx: Any = None, root: str | None = None,
    **kwargs: Any,
) -> VGG:  # fmt: skip
    """VGG with 11, 13, 16 or 19 layers, with batch normalisation if `batch_norm`."""
    if num_layers not in _LAYERS:
        raise ArgumentError(f"get_vgg: num_layers={num_layers}; expected {sorted(_LAYERS)}.")
    name = f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}"
    return finished(VGG(_LAYERS[num_layers], _FILTERS, **kwargs), name, pretrained, ctx, root)


def vgg11(**kwargs: Any) -> VGG:
    """VGG-11."""
    return get_vgg(11, **kwargs)


def vgg13(**kwargs: Any) -> VGG:
    """VGG-13."""
    return get_vgg(13, **kwargs)


def vgg16(**kwargs: Any) -> VGG:
    """VGG-16."""
    return get_vgg(16, **kwargs)


def vgg19(**kwargs: Any) -> VGG:
    """VGG-19."""
    return get_vgg(19, **kwargs)


def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG-11 with batch normalisation."""
    return get_vgg(11, **{**kwargs, "batch_norm": True})


def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG-13 with batch normalisation."""
    return get_vgg(13, **{**kwargs, "batch_norm": True})


def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG-16 with batch normalisation."""
    return get_vgg(16, **{**kwargs, "batch_norm": True})


def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG-19 with batch normalisation."""
    return get_vgg(19, **{**kwargs, "batch_norm": True})
