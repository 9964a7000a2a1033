"""Optimisers: rules that make better weights of weights and gradients."""

from heterosis.optimizer.adaptive import (
    FTML,
    LAMB,
    AdaDelta,
    AdaGrad,
    Adam,
    Adamax,
    Ftrl,
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

_check_members(globals())

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
    "Adamax",
    "Ftrl",
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
