"""Networks that travel between MXNet and us: [name, expression, shape of the input]."""

from __future__ import annotations

import re

from tests.gluon.cases import LAYERS
from tests.gluon.model_zoo.zoo import NAMES

_NOT_HYBRID = ("nn.Lambda", "nn.Sequential", "contrib.nn.Concurrent")


_TOGETHER = (
    (
        "filled(nn.HybridSequential(), rnn.LSTM(3, dropout=0.5, num_layers=2), nn.Dense(2))",
        (4, 2, 3),
    ),
    ("filled(nn.HybridSequential(), nn.Dense(3), nn.Dropout(0.5), nn.BatchNormReLU())", (4, 5)),
)


def _name(expression: str) -> str:
    return re.sub(r"\W+", "_", expression).strip("_")[:80]


def layers() -> list[tuple[str, str, tuple]]:
    """The layers of gluon, and some together."""
    return [
        (_name(expression), expression, shape)
        for expression, shape in LAYERS
        if not any(kind in expression for kind in _NOT_HYBRID)
    ] + [(_name(expression), expression, shape) for expression, shape in _TOGETHER]


def _extent(name: str) -> int:
    """The smallest image that a model takes."""
    if name.startswith(("densenet", "squeezenet")):
        return 224
    return 299 if name.startswith("inception") else 64


def architectures() -> list[tuple[str, str, tuple]]:
    """All of the vision model zoo."""
    return [
        (name, f"vision.get_model('{name}', classes=10)", (1, 3, _extent(name), _extent(name)))
        for name in NAMES
    ]
