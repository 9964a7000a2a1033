"""How meanings compute with NumPy: wide, without a word on infinities, and rounded once."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir.types import as_type

# Every overflow and every NaN is a result here, and no reason for a warning.
silent = numpy.errstate(all="ignore")


def widened(elements: Any) -> Any:
    """Floats as float64, so that a result is rounded once; all others as they are, and they wrap."""
    return elements if elements.dtype.kind in "biu" else elements.astype("float64")


def rounded(elements: Any, dtype: str) -> Any:
    """An array of elements of `dtype`."""
    return numpy.asarray(as_type(numpy.asarray(elements), dtype))
