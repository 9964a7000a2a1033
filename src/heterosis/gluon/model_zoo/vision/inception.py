"""Inception version 3 (Szegedy and others, 2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis.gluon import nn
from heterosis.gluon.model_zoo.vision.classifier import Classifier, branches, sequence
from heterosis.gluon.model_zoo.weights import finished
from heterosis.runtime.kinds import Positive


def _convolution(
    channels: int, kernel: Any, strides: Any = 1, padding: Any = 0
) -> nn.HybridSequential:
    return sequence(
        nn.Conv2D(channels, kernel, strides, padding, use_bias=False),
        nn.BatchNorm(epsilon=0.001),
        nn.Activation("relu"),
    )


def _branch(*convolutions: tuple, pooling: nn.HybridBlock | None = None) -> nn.HybridSequential:
    """Convolutions, as (channels, kernel, strides, padding), behind a pooling layer if given."""
    first = [] if pooling is None else [pooling]
    return sequence(*first, *(_convolution(*facts) for facts in convolutions))


def _mean() -> nn.HybridBlock:
    return nn.AvgPool2D(3, strides=1, padding=1)


def _named(prefix: str, *make: Callable[[], nn.HybridBlock]) -> nn.HybridConcurrent:
    """Branches made in a scope of their own."""
    block = nn.HybridConcurrent(axis=1, prefix=prefix)
    with block.name_scope():
        block.add(*(branch() for branch in make))
    return block


def _a(prefix: str, pooled: int) -> nn.HybridConcurrent:
    return _named(
        prefix,
        lambda: _branch((64, 1)),
        lambda: _branch((48, 1), (64, 5, 1, 2)),
        lambda: _branch((64, 1), (96, 3, 1, 1), (96, 3, 1, 1)),
        lambda: _branch((pooled, 1), pooling=_mean()),
    )


def _b(prefix: str) -> nn.HybridConcurrent:
    return _named(
        prefix,
        lambda: _branch((384, 3, 2)),
        lambda: _branch((64, 1), (96, 3, 1, 1), (96, 3, 2)),
        lambda: _branch(pooling=nn.MaxPool2D(3, 2)),
    )


def _wide(channels: int) -> tuple:
    return (channels, (1, 7), 1, (0, 3))


def _tall(channels: int) -> tuple:
    return (channels, (7, 1), 1, (3, 0))


def _c(prefix: str, n: int) -> nn.HybridConcurrent:
    return _named(
        prefix,
        lambda: _branch((192, 1)),
        lambda: _branch((n, 1), _wide(n), _tall(192)),
        lambda: _branch((n, 1), _tall(n), _wide(n), _tall(n), _wide(192)),
        lambda: _branch((192, 1), pooling=_mean()),
    )


def _d(prefix: str) -> nn.HybridConcurrent:
    return _named(
        prefix,
        lambda: _branch((192, 1), (320, 3, 2)),
        lambda: _branch((192, 1), _wide(192), _tall(192), (192, 3, 2)),
        lambda: _branch(pooling=nn.MaxPool2D(3, 2)),
    )


def _forked(*convolutions: tuple) -> nn.HybridSequential:
    """A branch that ends in two."""
    trunk = _branch(*convolutions)
    return sequence(
        trunk, branches(_branch((384, (1, 3), 1, (0, 1))), _branch((384, (3, 1), 1, (1, 0))))
    )


def _e(prefix: str) -> nn.HybridConcurrent:
    return _named(
        prefix,
        lambda: _branch((320, 1)),
        lambda: _forked((384, 1)),
        lambda: _forked((448, 1), (384, 3, 1, 1)),
        lambda: _branch((192, 1), pooling=_mean()),
    )


class Inception3(Classifier):
    """Blocks of convolutions of several sizes side by side, for images of 299 x 299."""

    def __init__(self, classes: Positive = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = sequence(
                _convolution(32, 3, 2),
                _convolution(32, 3),
                _convolution(64, 3, 1, 1),
                nn.MaxPool2D(3, 2),
                _convolution(80, 1),
                _convolution(192, 3),
                nn.MaxPool2D(3, 2),
                *(_a(f"A{i}_", n) for i, n in enumerate((32, 64, 64), 1)),
                _b("B_"),
                *(_c(f"C{i}_", n) for i, n in enumerate((128, 160, 160, 192), 1)),
                _d("D_"),
                _e("E1_"),
                _e("E2_"),
                nn.AvgPool2D(8),
                nn.Dropout(0.5),
            )
            self.output = nn.Dense(classes)


def inception_v3(
    pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> Inception3:
    """Inception version 3."""
    return finished(Inception3(**kwargs), "inceptionv3", pretrained, ctx, root)
