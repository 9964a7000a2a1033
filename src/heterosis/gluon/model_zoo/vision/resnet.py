"""Residual networks (He and others, 2015 and 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis.gluon import nn
from heterosis.gluon.model_zoo.vision.classifier import Classifier, sequence
from heterosis.gluon.model_zoo.weights import finished
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.kinds import Natural, Positive


def _conv3x3(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(channels, 3, stride, 1, use_bias=False, in_channels=in_channels)


def _conv1x1(channels: int, stride: int = 1, in_channels: int = 0) -> nn.Conv2D:
    return nn.Conv2D(channels, 1, stride, use_bias=False, in_channels=in_channels)


class _BlockV1(nn.HybridBlock):
    """`relu(body(x) + x)`, where `x` is made as small as the body's output if `downsample`."""

    def __init__(
        self, channels: Positive, stride: int, downsample: bool = False, in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self.body = sequence(*self._layers(channels, stride, in_channels))
        self.downsample = None
        if downsample:
            self.downsample = sequence(_conv1x1(channels, stride, in_channels), nn.BatchNorm())

    def _layers(self, channels: int, stride: int, in_channels: int) -> list[nn.HybridBlock]:
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The block's output."""
        residual = x if self.downsample is None else self.downsample(x)
        return F.npx.activation(residual + self.body(x), "relu")


class BasicBlockV1(_BlockV1):
    """Two 3 x 3 convolutions."""

    def _layers(self, channels: int, stride: int, in_channels: int) -> list[nn.HybridBlock]:
        return [
            _conv3x3(channels, stride, in_channels),
            nn.BatchNorm(),
            nn.Activation("relu"),
            _conv3x3(channels, 1, channels),
            nn.BatchNorm(),
        ]


class BottleneckV1(_BlockV1):
    """A 3 x 3 convolution on a quarter of the channels."""

    def _layers(self, channels: int, stride: int, in_channels: int) -> list[nn.HybridBlock]:
        return [
            nn.Conv2D(channels // 4, 1, stride),
            nn.BatchNorm(),
            nn.Activation("relu"),
            _conv3x3(channels // 4, 1, channels // 4),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Conv2D(channels, 1, 1),
            nn.BatchNorm(),
        ]


class _BlockV2(nn.HybridBlock):
    """`body(x) + x`; normalisation and activation stand in front of each convolution."""

    def __init__(
        self, channels: Positive, stride: int, downsample: bool = False, in_channels: Natural = 0,
        **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self._add_layers(channels, stride, in_channels)
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def _add_layers(self, channels: int, stride: int, in_channels: int) -> None:
        raise NotImplementedError

    def _pairs(self) -> list[tuple[nn.HybridBlock, nn.HybridBlock]]:
        """Each normalisation with its convolution."""
        raise NotImplementedError

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The block's output."""
        residual = x
        for i, (norm, convolution) in enumerate(self._pairs()):
            x = F.npx.activation(norm(x), "relu")
            if i == 0 and self.downsample is not None:
                residual = self.downsample(x)
            x = convolution(x)
        return x + residual


class BasicBlockV2(_BlockV2):
    """Two 3 x 3 convolutions."""

    def _add_layers(self, channels: int, stride: int, in_channels: int) -> None:
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv3x3(channels, stride, in_channels)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(channels, 1, channels)

    def _pairs(self) -> list[tuple[nn.HybridBlock, nn.HybridBlock]]:
        return [(self.bn1, self.conv1), (self.bn2, self.conv2)]


class BottleneckV2(_BlockV2):
    """A 3 x 3 convolution on a quarter of the channels."""

    def _add_layers(self, channels: int, stride: int, in_channels: int) -> None:
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv1x1(channels // 4)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(channels // 4, stride, channels // 4)
        self.bn3 = nn.BatchNorm()
        self.conv3 = _conv1x1(channels)

    def _pairs(self) -> list[tuple[nn.HybridBlock, nn.HybridBlock]]:
        return [(self.bn1, self.conv1), (self.bn2, self.conv2), (self.bn3, self.conv3)]


class _ResNet(Classifier):
    """What both versions share: the first layers and the stages."""

    def _add_head(self, channels: int, thumbnail: bool) -> None:
        if thumbnail:
            self.features.add(_conv3x3(channels, 1, 0))
            return
        self.features.add(
            nn.Conv2D(channels, 7, 2, 3, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.MaxPool2D(3, 2, 1),
        )

    def _add_stages(self, block: type, layers: Sequence[int], channels: Sequence[int]) -> None:
        if len(layers) != len(channels) - 1:
            raise ArgumentError(
                f"{type(self).__name__}: {len(layers)} stages need {len(layers) + 1} numbers of "
                f"channels, and there are {len(channels)}."
            )
        for i, count in enumerate(layers):
            stage = nn.HybridSequential(prefix=f"stage{i + 1}_")
            before, width = channels[i], channels[i + 1]
            with stage.name_scope():
                stride = 1 if i == 0 else 2
                stage.add(block(width, stride, width != before, in_channels=before, prefix=""))
                for _ in range(count - 1):
                    stage.add(block(width, 1, False, in_channels=width, prefix=""))
            self.features.add(stage)


class ResNetV1(_ResNet):
    """Residual network, version 1; `thumbnail` is for images of 32 x 32."""

    def __init__(
        self, block: type, layers: Sequence[int], channels: Sequence[int], classes: Positive = 1000,
        thumbnail: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = sequence()
            self._add_head(channels[0], thumbnail)
            self._add_stages(block, layers, channels)
            self.features.add(nn.GlobalAvgPool2D())
            self.output = nn.Dense(classes, in_units=channels[-1])


class ResNetV2(_ResNet):
    """Residual network, version 2; `thumbnail` is for images of 32 x 32."""

    def __init__(
        self, block: type, layers: Sequence[int], channels: Sequence[int], classes: Positive = 1000,
        thumbnail: bool = False, **kwargs: Any,
    ):  # fmt: skip
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = sequence(nn.BatchNorm(scale=False, center=False))
            self._add_head(channels[0], thumbnail)
            self._add_stages(block, layers, channels)
            self.features.add(
                nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten()
            )
            self.output = nn.Dense(classes, in_units=channels[-1])


_BASIC, _WIDE = (64, 64, 128, 256, 512), (64, 256, 512, 1024, 2048)
_PLANS = {
    18: ("basic", (2, 2, 2, 2), _BASIC),
    34: ("basic", (3, 4, 6, 3), _BASIC),
    50: ("bottleneck", (3, 4, 6, 3), _WIDE),
    101: ("bottleneck", (3, 4, 23, 3), _WIDE),
    152: ("bottleneck", (3, 8, 36, 3), _WIDE),
}
_VERSIONS = {
    1: (ResNetV1, {"basic": BasicBlockV1, "bottleneck": BottleneckV1}),
    2: (ResNetV2, {"basic": BasicBlockV2, "bottleneck": BottleneckV2}),
}


def get_resnet(
    version: int, num_layers: int, pretrained: bool = False, ctx: Any = None,
    root: str | None = None, **kwargs: Any,
) -> Any:  # fmt: skip
    """A residual network of version 1 or 2 with 18, 34, 50, 101 or 152 layers."""
    if version not in _VERSIONS or num_layers not in _PLANS:
        raise ArgumentError(
            f"get_resnet: version={version}, num_layers={num_layers}; expected version 1 or 2 and "
            f"one of {sorted(_PLANS)} layers."
        )
    network, blocks = _VERSIONS[version]
    kind, layers, channels = _PLANS[num_layers]
    net = network(blocks[kind], layers, channels, **kwargs)
    return finished(net, f"resnet{num_layers}_v{version}", pretrained, ctx, root)


def resnet18_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-18, version 1."""
    return get_resnet(1, 18, **kwargs)


def resnet34_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-34, version 1."""
    return get_resnet(1, 34, **kwargs)


def resnet50_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-50, version 1."""
    return get_resnet(1, 50, **kwargs)


def resnet101_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-101, version 1."""
    return get_resnet(1, 101, **kwargs)


def resnet152_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-152, version 1."""
    return get_resnet(1, 152, **kwargs)


def resnet18_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-18, version 2."""
    return get_resnet(2, 18, **kwargs)


def resnet34_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-34, version 2."""
    return get_resnet(2, 34, **kwargs)


def resnet50_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-50, version 2."""
    return get_resnet(2, 50, **kwargs)


def resnet101_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-101, version 2."""
    return get_resnet(2, 101, **kwargs)


def resnet152_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-152, version 2."""
    return get_resnet(2, 152, **kwargs)
