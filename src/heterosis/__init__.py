"""Heterosis: hybrid deep learning. Write NumPy-like code, run it eagerly, compile it whole."""

import atexit
import importlib
import os
from typing import TYPE_CHECKING

from heterosis import _core

_core.set_package_folder(os.path.dirname(__file__) + os.sep)
atexit.register(_core.shutdown)  # queued work is finished before Python's objects go

from heterosis import autograd, np, npx
from heterosis.runtime.context import Context, cpu, gpu, num_gpus

__version__ = "0.1.0"
__all__ = [
    "Context",
    "array_api",
    "autograd",
    "cpu",
    "distributed",
    "export",
    "gluon",
    "gpu",
    "hybridize",
    "image",
    "init",
    "initializer",
    "install_as_mxnet",
    "kvstore",
    "load",
    "lr_scheduler",
    "metric",
    "models",
    "nd",
    "ndarray",
    "nn",
    "np",
    "npx",
    "num_gpus",
    "optim",
    "optimizer",
    "profiler",
    "recordio",
    "save",
    "symbol",
    "utils",
]

if TYPE_CHECKING:  # what editors and type checkers see of what comes on first use
    from heterosis import (
        array_api,
        distributed,
        gluon,
        image,
        initializer,
        kvstore,
        lr_scheduler,
        metric,
        models,
        ndarray,
        optimizer,
        profiler,
        recordio,
        symbol,
        utils,
    )
    from heterosis import initializer as init
    from heterosis import ndarray as nd
    from heterosis import optimizer as optim
    from heterosis.capture import export, hybridize, load, save
    from heterosis.gluon import nn

# What training needs; programs that only compute start without it.
_ON_FIRST_USE = {
    "array_api": "heterosis.array_api",
    "distributed": "heterosis.distributed",
    "gluon": "heterosis.gluon",
    "image": "heterosis.image",
    "init": "heterosis.initializer",
    "initializer": "heterosis.initializer",
    "kvstore": "heterosis.kvstore",
    "lr_scheduler": "heterosis.lr_scheduler",
    "metric": "heterosis.metric",
    "models": "heterosis.models",
    "nd": "heterosis.ndarray",
    "ndarray": "heterosis.ndarray",
    "nn": "heterosis.gluon.nn",
    "optim": "heterosis.optimizer",
    "optimizer": "heterosis.optimizer",
    "profiler": "heterosis.profiler",
    "recordio": "heterosis.recordio",
    "symbol": "heterosis.symbol",
    "utils": "heterosis.utils",
}


def install_as_mxnet() -> None:
    """From now on `import mxnet` gives Heterosis in this process, whose modules are the same."""
    from heterosis.mxnet.compat import alias

    alias.install_as_mxnet()


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


if not TYPE_CHECKING:  # else every name would be known

    def __getattr__(name: str) -> object:
        if name in ("export", "hybridize", "load", "save"):
            globals()[name] = getattr(importlib.import_module("heterosis.capture"), name)
            return globals()[name]
        if name not in _ON_FIRST_USE:
            raise importlib.import_module("heterosis.runtime.elsewhere").missing(__name__, name)
        globals()[name] = importlib.import_module(_ON_FIRST_USE[name])
        return globals()[name]
