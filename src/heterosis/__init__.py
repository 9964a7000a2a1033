"""Heterosis: hybrid deep learning. Write NumPy-like code, run it eagerly, compile it whole."""

import atexit
import os

from heterosis import _core

_core.set_package_folder(os.path.dirname(__file__) + os.sep)
atexit.register(_core.shutdown)  # queued work is finished before Python's objects go

from heterosis import autograd, initializer, kvstore, lr_scheduler, metric, np, npx, optimizer
from heterosis import initializer as init
from heterosis.runtime.context import Context, cpu, gpu, num_gpus

__version__ = "0.1.0"
__all__ = [
    "Context",
    "autograd",
    "cpu",
    "gpu",
    "init",
    "initializer",
    "kvstore",
    "lr_scheduler",
    "metric",
    "np",
    "npx",
    "num_gpus",
    "optimizer",
]
