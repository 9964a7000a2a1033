"""Between floats and the integers that stand, read as unsigned ones, in the same order.

Equal numbers have equal keys, zeros of both signs among them; NaN has the last.
"""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir.primitives.element_types import fixed
from heterosis.ir.primitives.families import Elementwise


def _key(x: Any) -> Any:
    bits = (x + 0.0).view(f"int{8 * x.itemsize}")
    ends = numpy.iinfo(bits.dtype)
    return numpy.where(numpy.isnan(x), -1, bits ^ (bits >> (ends.bits - 1) | ends.min))


def _number(key: Any) -> Any:
    bits = key ^ numpy.where(key < 0, numpy.iinfo(key.dtype).min, -1).astype(key.dtype)
    return numpy.where(key == -1, numpy.nan, bits.view(f"float{8 * key.itemsize}"))


def _from(dtype: str, key: str) -> Elementwise:
    about = f"An integer that stands where the {dtype} does in the order, NaN last."
    types = fixed(dtype, result=key)
    return Elementwise(f"sort_key_{dtype}", types=types, meaning=_key, about=about)


def _back(dtype: str, key: str) -> Elementwise:
    about = f"The {dtype} that an integer was made from by sort_key_{dtype}."
    types = fixed(key, result=dtype)
    return Elementwise(f"from_sort_key_{dtype}", types=types, meaning=_number, about=about)


SORT_KEY_FLOAT32 = _from("float32", "int32")
SORT_KEY_FLOAT64 = _from("float64", "int64")
FROM_SORT_KEY_FLOAT32 = _back("float32", "int32")
FROM_SORT_KEY_FLOAT64 = _back("float64", "int64")
