"""Gluon: models made of blocks, their parameters, and how they are trained."""

from heterosis.gluon import contrib, data, loss, model_zoo, nn, rnn, utils
from heterosis.gluon.block import Block
from heterosis.gluon.hybrid_block import HybridBlock, SymbolBlock
from heterosis.gluon.parameter import Constant, DeferredInitializationError, Parameter
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.trainer import Trainer
from heterosis.gluon.training import History, fit

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "History",
    "HybridBlock",
    "Parameter",
    "ParameterDict",
    "SymbolBlock",
    "Trainer",
    "contrib",
    "data",
    "fit",
    "loss",
    "model_zoo",
    "nn",
    "rnn",
    "utils",
]
