"""SqueezeNet (Iandola and others, 2016)."""

from __future__ import annotations

from typing import Any

from heterosis.gluon import nn
from heterosis.gluon.model_zoo.vision.classifier import Classifier, branches, sequence
from heterosis.gluon.model_zoo.weights import finished
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.kinds import Positive

# Channels of a fire module's squeezing layer, or None for pooling.
_PLANS = {
    "1.0": ((96, 7), (None, 16, 16, 32, None, 32, 48, 48, 64, None, 64)),
    "1.1": ((64, 3), (None, 16, 16, None, 32, 32, None, 48, 48, 64, 64)),
}


class SqueezeNet(Classifier):
    """Fire modules: few channels, then 1 x 1 and 3 x 3 convolutions side by side."""

    def __init__(self, version: str, classes: Positive = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        if version not in _PLANS:
            raise ArgumentError(f"SqueezeNet: version={version!r}; expected '1.0' or '1.1'.")
        (channels, kernel), plan = _PLANS[version]
        with self.name_scope():
            self.features = sequence(
                nn.Conv2D(channels, kernel, strides=2),
                nn.Activation("relu"),
                *(_pooling() if squeezed is None else _fire(squeezed) for squeezed in plan),
                nn.Dropout(0.5),
            )
            self.output = sequence(
                nn.Conv2D(classes, 1), nn.Activation("relu"), nn.AvgPool2D(13), nn.Flatten()
            )


def _pooling() -> nn.HybridBlock:
    return nn.MaxPool2D(3, 2, ceil_mode=True)


def _fire(squeezed: int) -> nn.HybridSequential:
    return sequence(
        _convolution(squeezed, 1),
        branches(_convolution(4 * squeezed, 1), _convolution(4 * squeezed, 3, 1)),
    )


def _convolution(channels: int, kernel: int, padding: int = 0) -> nn.HybridSequential:
    return sequence(nn.Conv2D(channels, kernel, padding=padding), nn.Activation("relu"))


def get_squeezenet(
    version: str, pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> SqueezeNet:
    """SqueezeNet '1.0' or '1.1'."""
    return finished(SqueezeNet(version, **kwargs), f"squeezenet{version}", pretrained, ctx, root)


def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0."""
    return get_squeezenet("1.0", **kwargs)


def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1, as accurate as 1.0 with less than half of the work."""
    return get_squeezenet("1.1", **kwargs)
