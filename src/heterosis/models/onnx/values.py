"""What names in a graph stand for.

Arrays of ours; NumPy's, whose elements are known before anything is computed, and may be sizes that
are not known yet; arrays that came with the file; lists of these; or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from heterosis import _core, np


class Stored:
    """An array that came with the file: as it was, and as the parameter that it became."""

    def __init__(self, host: numpy.ndarray, array: Callable[[], _core.ndarray]):
        self.host, self.array = host, array


def is_known(value: Any) -> bool:
    """Whether the elements of a value are there before anything is computed."""
    return isinstance(value, numpy.ndarray | Stored)


def on_host(value: Any) -> Any:
    """A value as NumPy's. What is computed is read, which a capture refuses."""
    if isinstance(value, Stored):
        return value.host
    return value if value is None or isinstance(value, numpy.ndarray) else value.asnumpy()


def array(value: Any) -> Any:
    """A value as an array of ours, or a list of them."""
    if isinstance(value, list):
        return [array(item) for item in value]
    if isinstance(value, Stored):
        return value.array()
    if not isinstance(value, numpy.ndarray):
        return value
    if value.dtype == object:  # sizes
        return np.array(value.tolist(), dtype="int64")
    return np.array(value, dtype=str(value.dtype))
