"""What all image classifiers share."""

from __future__ import annotations

from typing import Any

from heterosis.gluon import nn


class Classifier(nn.HybridBlock):
    """`features`, and an `output` layer on them."""

    features: nn.HybridSequential
    output: nn.HybridBlock

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """One number for each class."""
        return self.output(self.features(x))


def sequence(*blocks: nn.HybridBlock, prefix: str = "") -> nn.HybridSequential:
    """Blocks one after the other, named as parts of the enclosing scope."""
    made = nn.HybridSequential(prefix=prefix)
    made.add(*blocks)
    return made


def branches(*blocks: nn.HybridBlock) -> nn.HybridConcurrent:
    """Blocks side by side, their channels joined."""
    made = nn.HybridConcurrent(axis=1, prefix="")
    made.add(*blocks)
    return made
