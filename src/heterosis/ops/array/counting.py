"""What is counted, or placed, by values: the parts of `bincount` and `nonzero` that do not wait."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir.primitives.counting import OCCURRENCES, TRUE_PLACES
from heterosis.ir.program import Value, apply
from heterosis.ir.types import TensorType
from heterosis.ops.record import operation
from heterosis.ops.rules import cast
from heterosis.ops.samples import Case, Samples
from heterosis.runtime.kinds import Natural


def roomy(count: int) -> int:
    """A length that has room for so many, a quarter more at most: few lengths, so that what has
    been compiled for one serves many numbers of elements."""
    step = max(64, 1 << max(count.bit_length() - 3, 0))
    return -(-count // step) * step


def _true(a: Any, length: int) -> Any:
    found = numpy.zeros(length, "int64")
    (places,) = numpy.nonzero(a)
    found[: len(places)] = places[:length]
    return found


@operation(
    numpy=lambda a, length: numpy.bincount(a, minlength=length)[:length],
    public=(),
    samples=Samples(
        [Case(((n,),), {"length": length}) for n in (0, 9, 300) for length in (0, 3, 40)],
        (0, 20),
        ("uint8", "int32", "uint32", "int64"),
    ),
)
def occurrences(a: Value, length: Natural) -> Value:
    """How often each number below `length` occurs among the elements of a row of integers."""
    numbers = cast(a, "int64" if a.dtype in ("uint32", "int64") else "int32")
    return apply(OCCURRENCES, (numbers,), TensorType((length,), "int64"))


@operation(
    numpy=_true,
    public=(),
    samples=Samples(
        [Case(((n,),), {"length": length}) for n in (0, 9, 300) for length in (0, 3, 400)],
        (0, 1),
    ),
)
def true_places(a: Value, length: Natural) -> Value:
    """Where the elements of a row are not zero, up to `length` places; zeros behind them."""
    return apply(TRUE_PLACES, (cast(a, "bool"),), TensorType((length,), "int64"))
