"""Initialisers: what parameters hold before training."""

from heterosis.initializer.base import (
    InitDesc,
    Initializer,
    Load,
    Mixed,
    alias,
    create,
    register,
)
from heterosis.initializer.fill import (
    Bilinear,
    Constant,
    LSTMBias,
    MSRAPrelu,
    Normal,
    One,
    Orthogonal,
    Uniform,
    Xavier,
    Zero,
)
from heterosis.initializer.fused_rnn import FusedRNN
from heterosis.runtime.arguments import check_members as _check_members

_check_members(globals())

__all__ = [
    "Bilinear",
    "Constant",
    "FusedRNN",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]
