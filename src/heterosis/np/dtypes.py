"""Element types as users name them: strings, NumPy's classes, Python's classes."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy

from heterosis.ir.types import DEFAULT_FLOAT, DTYPES, numpy_dtype
from heterosis.runtime.errors import DTypeError


@cache
def _name_of(given: Any) -> str:
    if given is None:
        return DEFAULT_FLOAT
    try:
        name = numpy.dtype(given).name
    except TypeError:
        name = str(given)
    if name not in DTYPES:
        raise DTypeError(f"{name} is no element type; expected one of {', '.join(DTYPES)}.")
    return name


def dtype_name(given: Any) -> str:
    """The name of an element type; `None` is the default, float32."""
    return _name_of(given)


def default_dtype(source: numpy.ndarray) -> str:
    """The type that a NumPy array's elements keep, or float32 for those that are none of ours."""
    return source.dtype.name if source.dtype.name in DTYPES else DEFAULT_FLOAT


__all__ = ["default_dtype", "dtype_name", "numpy_dtype"]
