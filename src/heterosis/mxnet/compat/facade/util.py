"""MXNet's switches between its older arrays and NumPy's semantics.

Here all arrays have NumPy's semantics: switching them on does nothing, switching them off warns
and does nothing else.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy

from heterosis.ir.types import DTYPES
from heterosis.npx import is_np_array, is_np_shape, num_gpus, reset_np, set_np
from heterosis.runtime.errors import DTypeError

Scoped = TypeVar("Scoped")

# MXNet has no other types, though there are more here.
_OF_UFUNCS = frozenset(DTYPES) - {"int16", "uint16", "uint32", "uint64"}
_CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")


def _keep(active: bool) -> None:
    if not active:
        warnings.warn(
            "NumPy semantics cannot be switched off: all arrays have them, also those of mx.nd. "
            "The program goes on; look at shapes with 0 and at results without dimensions.",
            stacklevel=4,
        )


def set_np_shape(active: bool) -> bool:
    """Accepted: NumPy's shapes are the only ones. Returns what was so before: True."""
    _keep(active)
    return True


@contextmanager
def np_shape(active: bool = True) -> Iterator[None]:
    """A scope in which nothing changes: NumPy's shapes are the only ones."""
    _keep(active)
    yield


@contextmanager
def np_array(active: bool = True) -> Iterator[None]:
    """A scope in which nothing changes: all arrays are NumPy-like."""
    _keep(active)
    yield


def use_np(func: Scoped) -> Scoped:
    """The function or class as it is: NumPy semantics hold everywhere."""
    if not (callable(func) or inspect.isclass(func)):
        raise DTypeError(f"use_np: {func!r} is neither a function nor a class.")
    return func


use_np_array = use_np_shape = use_np


def np_ufunc_legal_option(key: str, value: Any) -> bool:
    """Whether a ufunc takes the option `key` with this value."""
    if key == "dtype":
        return value is not None and numpy.dtype(value).name in _OF_UFUNCS
    known = {
        "where": True,
        "casting": value in _CASTINGS,
        "order": isinstance(value, str),
        "subok": isinstance(value, bool),
    }
    return known.get(key, False)


def get_gpu_count() -> int:
    """How many GPUs can be used: none."""
    return num_gpus()


__all__ = [
    "get_gpu_count",
    "is_np_array",
    "is_np_shape",
    "np_array",
    "np_shape",
    "np_ufunc_legal_option",
    "reset_np",
    "set_np",
    "set_np_shape",
    "use_np",
    "use_np_array",
    "use_np_shape",
]
