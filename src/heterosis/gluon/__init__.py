"""Gluon: models made of blocks, their parameters, and how they are trained."""

from heterosis.gluon import contrib, data, loss, model_zoo, nn, rnn, utils
from heterosis.gluon.block import Block
from heterosis.gluon.hybrid_block import HybridBlock, SymbolBlock
from heterosis.gluon.parameter import Constant, DeferredInitializationError, Parameter
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.trainer import Trainer

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "Trainer",
    "contrib",
    "data",
    "loss",
    "model_zoo",
    "nn",
    "rnn",
    "utils",
]
