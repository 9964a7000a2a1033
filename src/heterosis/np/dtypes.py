"""Element types of what comes from outside: NumPy has more of them than arrays have."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir import types
from heterosis.ir.types import DEFAULT_FLOAT, DTYPES, numpy_dtype
from heterosis.runtime.errors import DTypeError

# The type nearest to one that is none of ours; NumPy names a long double by its bits.
_HOLDS = {numpy.dtype("longdouble").name: "float64"}


def dtype_name(given: Any) -> str:
    """The name of an element type; `None` is the default, float32."""
    return DEFAULT_FLOAT if given is None else types.dtype_name(given)


def kept_dtype(source: numpy.dtype) -> str | None:
    """The type that a NumPy array's elements get, `None` if no type holds them."""
    return source.name if source.name in DTYPES else _HOLDS.get(source.name)


def default_dtype(source: numpy.ndarray) -> str:
    """The type that a NumPy array's elements get."""
    name = kept_dtype(source.dtype)
    if name is None:
        raise DTypeError(
            f"array: elements of NumPy's type {source.dtype} have no counterpart here; convert "
            f"them first, for instance with .astype('float32'). Types: {', '.join(DTYPES)}."
        )
    return name


__all__ = ["default_dtype", "dtype_name", "kept_dtype", "numpy_dtype"]
