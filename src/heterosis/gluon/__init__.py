"""Gluon: models made of blocks, their parameters, and how they are trained."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from heterosis.gluon import block, contrib, data, loss, model_zoo, nn, parameter, rnn, utils
from heterosis.gluon.block import Block
from heterosis.gluon.hybrid_block import HybridBlock
from heterosis.gluon.parameter import Constant, DeferredInitializationError, Parameter
from heterosis.gluon.parameter_dict import ParameterDict
from heterosis.gluon.symbol_block import SymbolBlock
from heterosis.gluon.trainer import Trainer
from heterosis.gluon.training import ExponentialMovingAverage, History, fit
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.elsewhere import explain as _explain
from heterosis.runtime.elsewhere import lookup as _lookup
from heterosis.runtime.public import listing as _listing

# Programs written for MXNet look for these names in these modules too.
block.HybridBlock, block.SymbolBlock = HybridBlock, SymbolBlock
parameter.ParameterDict = ParameterDict

_check_members(globals())
for _name, _class in (("Block", Block), ("Trainer", Trainer), ("Parameter", Parameter)):
    _explain(_name, _class)

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)
__dir__ = _listing(globals(), ("contrib", "data", "loss", "model_zoo", "nn", "rnn", "utils"))

__all__ = [
    "Block",
    "Constant",
    "DeferredInitializationError",
    "ExponentialMovingAverage",
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
