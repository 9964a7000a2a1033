"""AlexNet (Krizhevsky and others, 2012)."""

from __future__ import annotations

from typing import Any

from heterosis.gluon import nn
from heterosis.gluon.model_zoo.vision.classifier import Classifier, sequence
from heterosis.gluon.model_zoo.weights import finished
from heterosis.runtime.kinds import Positive


class AlexNet(Classifier):
    """Five convolutions and three dense layers, for images of 224 x 224."""

    def __init__(self, classes: Positive = 1000, **kwargs: Any):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = sequence(
                nn.Conv2D(64, 11, strides=4, padding=2, activation="relu"),
                nn.MaxPool2D(3, 2),
                nn.Conv2D(192, 5, padding=2, activation="relu"),
                nn.MaxPool2D(3, 2),
                nn.Conv2D(384, 3, padding=1, activation="relu"),
                nn.Conv2D(256, 3, padding=1, activation="relu"),
                nn.Conv2D(256, 3, padding=1, activation="relu"),
                nn.MaxPool2D(3, 2),
                nn.Flatten(),
                nn.Dense(4096, activation="relu"),
                nn.Dropout(0.5),
                nn.Dense(4096, activation="relu"),
                nn.Dropout(0.5),
            )
            self.output = nn.Dense(classes)


def alexnet(
    pretrained: bool = False, ctx: Any = None, root: str | None = None, **kwargs: Any
) -> AlexNet:
    """AlexNet."""
    return finished(AlexNet(**kwargs), "alexnet", pretrained, ctx, root)
