"""DenseNets (Huang and others, 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis.gluon import nn
from heterosis.gluon.model_zoo.vision.classifier import Classifier, branches, sequence
from heterosis.gluon.model_zoo.weights import finished
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.kinds import Positive

# Channels at first, channels that each layer adds, layers of each stage.
_PLANS = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}


class DenseNet(Classifier):
    """Stages whose layers each see the channels of all layers before."""

    def __init__(
        self, num_init_features: int, growth_rate: Positive, block_config: Sequence[int],
        bn_size: int = 4, dropout: float = 0, classes: Positive = 1000, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = sequence(
                nn.Conv2D(num_init_features, 7, strides=2, padding=3, use_bias=False),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.MaxPool2D(3, 2, 1),
            )
            channels = num_init_features
            for stage, layers in enumerate(block_config, 1):
                self.features.add(_stage(stage, layers, bn_size, growth_rate, dropout))
                channels += layers * growth_rate
                if stage < len(block_config):
                    channels //= 2
                    self.features.add(_transition(channels))
            self.features.add(nn.BatchNorm(), nn.Activation("relu"), nn.AvgPool2D(7), nn.Flatten())
            self.output = nn.Dense(classes)


def _stage(
    number: int, layers: int, bn_size: int, growth_rate: int, dropout: float
) -> nn.HybridSequential:
    stage = nn.HybridSequential(prefix=f"stage{number}_")
    with stage.name_scope():
        for _ in range(layers):
            stage.add(_layer(growth_rate, bn_size, dropout))
    return stage


def _layer(growth_rate: int, bn_size: int, dropout: float) -> nn.HybridConcurrent:
    new = sequence(
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.Conv2D(bn_size * growth_rate, 1, use_bias=False),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.Conv2D(growth_rate, 3, padding=1, use_bias=False),
    )
    if dropout:
        new.add(nn.Dropout(dropout))
    return branches(nn.Identity(), new)


def _transition(channels: int) -> nn.HybridSequential:
    return sequence(
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.Conv2D(channels, 1, use_bias=False),
        nn.AvgPool2D(2, 2),
    )


def get_densenet(
    num_layers: int, pretrained: bool = False, ctx: Any = None, root: str | None = None,
    **kwargs: Any,
) -> DenseNet:  # fmt: skip
    """DenseNet with 121, 161, 169 or 201 layers."""
    if num_layers not in _PLANS:
        raise ArgumentError(f"get_densenet: num_layers={num_layers}; expected {sorted(_PLANS)}.")
    net = DenseNet(*_PLANS[num_layers], **kwargs)
    return finished(net, f"densenet{num_layers}", pretrained, ctx, root)


def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet-121."""
    return get_densenet(121, **kwargs)


def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet-161."""
    return get_densenet(161, **kwargs)


def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet-169."""
    return get_densenet(169, **kwargs)


def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet-201."""
    return get_densenet(201, **kwargs)
