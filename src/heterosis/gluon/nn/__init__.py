"""Layers."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from heterosis.gluon.block import Block
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.nn.activations import (
    ELU,
    GELU,
    SELU,
    Activation,
    Hardswish,
    LeakyReLU,
    Mish,
    PReLU,
    SiLU,
    Softplus,
    Swish,
)
from heterosis.gluon.nn.attention import MultiHeadAttention, TransformerEncoderLayer
from heterosis.gluon.nn.basic import Dense, Dropout, Embedding, Flatten
from heterosis.gluon.nn.containers import (
    Concurrent,
    HybridConcurrent,
    HybridLambda,
    HybridSequential,
    Identity,
    Lambda,
    Sequential,
)
from heterosis.gluon.nn.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from heterosis.gluon.nn.normalization import (
    BatchNorm,
    BatchNormReLU,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    RMSNorm,
)
from heterosis.gluon.nn.pooling import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    ReflectionPad2D,
)
from heterosis.gluon.symbol_block import SymbolBlock
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.elsewhere import lookup as _lookup

_check_members(globals())

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)

__all__ = [
    "ELU",
    "GELU",
    "SELU",
    "Activation",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "BatchNorm",
    "BatchNormReLU",
    "Block",
    "Concurrent",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "GroupNorm",
    "Hardswish",
    "HybridBlock",
    "HybridConcurrent",
    "HybridLambda",
    "HybridSequential",
    "Identity",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "LeakyReLU",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "Mish",
    "MultiHeadAttention",
    "PReLU",
    "RMSNorm",
    "ReflectionPad2D",
    "Sequential",
    "SiLU",
    "Softplus",
    "Swish",
    "SymbolBlock",
    "TransformerEncoderLayer",
]
