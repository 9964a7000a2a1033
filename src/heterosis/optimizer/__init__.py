"""Optimisers: rules that make better weights of weights and gradients."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from heterosis.optimizer.adaptive import (
    FTML,
    LAMB,
    AdaDelta,
    AdaGrad,
    Adam,
    Adamax,
    AdamW,
    Ftrl,
    Lion,
    Nadam,
    RMSProp,
)
from heterosis.optimizer.descent import (
    DCASGD,
    LARS,
    LBSGD,
    NAG,
    SGD,
    SGLD,
    Signum,
    Test,
    ccSGD,
)
from heterosis.optimizer.optimizer import Optimizer, create, register
from heterosis.optimizer.updater import Updater, get_updater
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.elsewhere import explain as _explain
from heterosis.runtime.elsewhere import lookup as _lookup

_check_members(globals())
_explain("Optimizer", Optimizer)

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "LARS",
    "LBSGD",
    "NAG",
    "SGD",
    "SGLD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lion",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Test",
    "Updater",
    "ccSGD",
    "create",
    "get_updater",
    "register",
]
