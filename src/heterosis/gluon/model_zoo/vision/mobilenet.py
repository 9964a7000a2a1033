"""MobileNets (Howard and others, 2017; Sandler and others, 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from heterosis.gluon import nn
from heterosis.gluon.model_zoo.vision.classifier import Classifier, sequence
from heterosis.gluon.model_zoo.weights import finished
from heterosis.runtime.kinds import Natural, Positive


class RELU6(nn.HybridBlock):
    """Elements kept between 0 and 6."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The activation of each element."""
        return F.np.clip(x, 0, 6)


def _convolution(
    channels: int, kernel: int = 1, stride: int = 1, groups: int = 1, act: type | None = None
) -> Iterator[nn.HybridBlock]:
    """A convolution that keeps the size at stride 1, batch normalisation, an activation."""
    yield nn.Conv2D(channels, kernel, stride, kernel // 2, groups=groups, use_bias=False)
    yield nn.BatchNorm()
    if act is not None:
        yield nn.Activation("relu") if act is nn.Activation else act()


class LinearBottleneck(nn.HybridBlock):
    """More channels, a convolution of each, fewer channels; the input added if it fits."""

    def __init__(
        self, in_channels: Natural, channels: Positive, t: int, stride: int, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        inner = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            self.out.add(
                *_convolution(inner, act=RELU6),
                *_convolution(inner, 3, stride, inner, RELU6),
                *_convolution(channels),
            )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The bottleneck's output."""
        return self.out(x) + x if self.use_shortcut else self.out(x)


# Channels and stride of each pair of a convolution of each channel and one across channels.
_PAIRS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2),
    (1024, 1),
)  # fmt: skip

# Channels, widening and stride of each bottleneck.
_BOTTLENECKS = (
    (16, 1, 1), (24, 6, 2), (24, 6, 1), (32, 6, 2), *((32, 6, 1),) * 2, (64, 6, 2),
    *((64, 6, 1),) * 3, *((96, 6, 1),) * 3, (160, 6, 2), *((160, 6, 1),) * 2, (320, 6, 1),
)  # fmt: skip


class MobileNet(Classifier):
    """Convolutions of each channel by itself, then across channels; `multiplier` scales all."""

    def __init__(self, multiplier: float = 1.0, classes: Positive = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            width = int(32 * multiplier)
            self.features = sequence(*_convolution(width, 3, 2, act=nn.Activation))
            for channels, stride in _PAIRS:
                self.features.add(*_convolution(width, 3, stride, width, nn.Activation))
                width = int(channels * multiplier)
                self.features.add(*_convolution(width, act=nn.Activation))
            self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(Classifier):
    """Bottlenecks turned inside out: wide within, narrow between."""

    def __init__(self, multiplier: float = 1.0, classes: Positive = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                width = int(32 * multiplier)
                self.features.add(*_convolution(width, 3, 2, act=RELU6))
                for channels, widening, stride in _BOTTLENECKS:
                    before, width = width, int(channels * multiplier)
                    self.features.add(LinearBottleneck(before, width, widening, stride))
                last = int(1280 * max(multiplier, 1.0))
                self.features.add(*_convolution(last, act=RELU6), nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())


def _suffix(multiplier: float) -> str:
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


def get_mobilenet(
    multiplier: float, pretrained: bool = False, ctx: Any = None, root: str | None = None,
    **kwargs: Any,
) -> MobileNet:  # fmt: skip
    """MobileNet with the channels of all layers times `multiplier`."""
    name = f"mobilenet{_suffix(multiplier)}"
    return finished(MobileNet(multiplier, **kwargs), name, pretrained, ctx, root)


def get_mobilenet_v2(
    multiplier: float, pretrained: bool = False, ctx: Any = None, root: str | None = None,
    **kwargs: Any,
) -> MobileNetV2:  # fmt: skip
    """MobileNet version 2 with the channels of all layers times `multiplier`."""
    name = f"mobilenetv2_{_suffix(multiplier)}"
    return finished(MobileNetV2(multiplier, **kwargs), name, pretrained, ctx, root)


def mobilenet1_0(**kwargs: Any) -> MobileNet:
    """MobileNet."""
    return get_mobilenet(1.0, **kwargs)


def mobilenet0_75(**kwargs: Any) -> MobileNet:
    """MobileNet with three quarters of the channels."""
    return get_mobilenet(0.75, **kwargs)


def mobilenet0_5(**kwargs: Any) -> MobileNet:
    """MobileNet with half of the channels."""
    return get_mobilenet(0.5, **kwargs)


def mobilenet0_25(**kwargs: Any) -> MobileNet:
    """MobileNet with a quarter of the channels."""
    return get_mobilenet(0.25, **kwargs)


def mobilenet_v2_1_0(**kwargs: Any) -> MobileNetV2:
    """MobileNet version 2."""
    return get_mobilenet_v2(1.0, **kwargs)


def mobilenet_v2_0_75(**kwargs: Any) -> MobileNetV2:
    """MobileNet version 2 with three quarters of the channels."""
    return get_mobilenet_v2(0.75, **kwargs)


def mobilenet_v2_0_5(**kwargs: Any) -> MobileNetV2:
    """MobileNet version 2 with half of the channels."""
    return get_mobilenet_v2(0.5, **kwargs)


def mobilenet_v2_0_25(**kwargs: Any) -> MobileNetV2:
    """MobileNet version 2 with a quarter of the channels."""
    return get_mobilenet_v2(0.25, **kwargs)
