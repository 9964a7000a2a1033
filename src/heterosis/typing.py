"""What annotations of programs name: `def step(x: ArrayLike) -> ndarray`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy

from heterosis._core import ndarray

# What operations take where they take an array.
ArrayLike: TypeAlias = (
    "ndarray | numpy.ndarray[Any, Any] | numpy.generic | bool | int | float | Sequence[Any]"
)
# What `dtype` may be: "float32", np.float32, numpy.dtype("float32"), float.
DTypeLike: TypeAlias = "str | type[Any] | numpy.dtype[Any]"

__all__ = ["ArrayLike", "DTypeLike", "ndarray"]
