"""What NumPy does not have: control of the engine, and neural-network operations."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from heterosis import _core as _core
from heterosis import backends as _backends
from heterosis.io.params import load, save
from heterosis.npx import image, random
from heterosis.npx.control import cond, foreach, while_loop
from heterosis.npx.network import (
    batch_norm,
    dropout,
    leaky_relu,
    nonzero,
    rnn,
    scaled_dot_product_attention,
)
from heterosis.npx.printing import print as print
from heterosis.ops.record import public_names as _public_names
from heterosis.runtime.arguments import check_members as _check_members
from heterosis.runtime.context import (
    Context,
    cpu,
    cpu_pinned,
    current_context,
    gpu,
    gpu_memory_info,
    num_gpus,
)
from heterosis.runtime.elsewhere import lookup as _lookup
from heterosis.runtime.public import listing as _listing
from heterosis.runtime.settings import EngineBounds, settings

if _TYPE_CHECKING:  # what the table below holds
    from heterosis._stubs.npx import *

globals().update(_public_names("npx"))


def waitall() -> None:
    """Wait until all queued work is done. Raises the first error that nobody has seen yet."""
    _backends.wait_all()


def set_np(shape: bool = True, array: bool = True, dtype: bool = False) -> None:
    """Accepted for MXNet programs: NumPy semantics are the only ones here."""


def reset_np() -> None:
    """Accepted for MXNet programs: there are no other semantics to go back to."""


def is_np_array() -> bool:
    """Always true: arrays are NumPy-like."""
    return True


def is_np_shape() -> bool:
    """Always true: 0-d and empty arrays are what NumPy makes of them."""
    return True


_check_members(globals())

if not _TYPE_CHECKING:  # else every name would be known
    __getattr__ = _lookup(__name__)
__dir__ = _listing(globals(), ("image", "random"))

# Without `print`, which a module that imports all of them means to be Python's.
__all__ = [
    "Context",
    "EngineBounds",
    "batch_norm",
    "cond",
    "cpu",
    "cpu_pinned",
    "current_context",
    "dropout",
    "foreach",
    "gpu",
    "gpu_memory_info",
    "image",
    "is_np_array",
    "is_np_shape",
    "leaky_relu",
    "load",
    "nonzero",
    "num_gpus",
    "random",
    "reset_np",
    "rnn",
    "save",
    "scaled_dot_product_attention",
    "set_np",
    "settings",
    "waitall",
    "while_loop",
]
