"""Copies, and conversions to each element type."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

from heterosis.ir.primitives.element_types import ElementTypes, alike
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.types import DTYPES, HALVES, as_type, is_integer

# Signed types that floats become first: what is out of range there is so for the machine.
BY_WAY_OF = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), "int32"),
    **dict.fromkeys(("uint32", "uint64"), "int64"),
}


def _converted(x: Any, dtype: str) -> Any:
    """Floats to integers by truncation; those out of range, and NaN, as the lowest integer.

    Types of 8 and 16 bits take the last bits of what a number is as int32, uint32 those of int64.
    uint64 has them too, but for numbers that int64 does not hold.
    """
    if not is_integer(dtype) or x.dtype.kind != "f":
        return as_type(x, dtype)
    wide = numpy.iinfo(BY_WAY_OF.get(dtype, dtype))
    inside = (x >= float(wide.min)) & (x < -float(wide.min))
    whole = numpy.where(inside, x, 0).astype(wide.dtype)
    found = numpy.where(inside, whole, wide.min).astype(dtype)
    if dtype != "uint64":
        return found
    large = (x >= 2.0**63) & (x < 2.0**64)
    return numpy.where(large, numpy.where(large, x, 0).astype(dtype), found)


def _to(dtype: str) -> Elementwise:
    return Elementwise(
        f"to_{dtype}",
        types=ElementTypes((DTYPES,), dtype),
        meaning=partial(_converted, dtype=dtype),
        exact=True,
        about=f"The element as {dtype}, rounded once; floats to integers by truncation."
        if dtype != "bool"
        else "Whether the element is not zero.",
    )


TO_BOOL = _to("bool")
TO_INT8 = _to("int8")
TO_UINT8 = _to("uint8")
TO_INT32 = _to("int32")
TO_INT64 = _to("int64")
TO_FLOAT16 = _to("float16")
TO_BFLOAT16 = _to("bfloat16")
TO_FLOAT32 = _to("float32")
TO_FLOAT64 = _to("float64")
TO_INT16 = _to("int16")
TO_UINT16 = _to("uint16")
TO_UINT32 = _to("uint32")
TO_UINT64 = _to("uint64")

_CONVERSIONS: dict[str, Elementwise] = dict(
    zip(
        DTYPES,
        (
            TO_BOOL, TO_INT8, TO_UINT8, TO_INT32, TO_INT64,
            TO_FLOAT16, TO_BFLOAT16, TO_FLOAT32, TO_FLOAT64,
            TO_INT16, TO_UINT16, TO_UINT32, TO_UINT64,
        ),
        strict=True,
    )
)  # fmt: skip


def conversion(dtype: str) -> Elementwise:
    """The primitive that converts to `dtype`."""
    return _CONVERSIONS[dtype]


COPY = Elementwise(
    "copy", types=alike(1), meaning=numpy.copy, keeps=True, about="The element itself."
)
NEAREST = Elementwise(
    "nearest",
    types=alike(1, HALVES),
    meaning=numpy.copy,
    keeps=True,
    about="What the type of 16 bits holds of a number that was computed in float32.",
)
