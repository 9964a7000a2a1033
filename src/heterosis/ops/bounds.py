"""Values that a program checks as it runs: indices within an array, which may also be brought to
the nearest end or wrapped around, and numbers that must be in order or within limits."""

from __future__ import annotations

from heterosis.ir import views
from heterosis.ir.primitives.checks import CHECK_INDICES, REQUIRE
from heterosis.ir.program import Value, apply, constant, extent
from heterosis.ir.types import TensorType
from heterosis.ops.math import elementwise as e
from heterosis.ops.rules import cast
from heterosis.runtime.errors import ArgumentError, IndexingError

# -- indices --------------------------------------------------------------------------------------


def checked(name: str, index: Value, count: int, axis: int, subject: tuple[int, ...]) -> Value:
    """`index` counted from the front; an index outside of `count` elements fails the program."""
    if index.dtype == "bool":
        index = cast(index, "int64")
    if not count and index.size:
        raise IndexingError(
            f"{name}: axis {axis} of an array of shape {subject} has no elements to index."
        )
    type_ = TensorType(index.shape, "int64")
    return apply(CHECK_INDICES, (index,), type_, count=count, subject=subject, axis=axis)


def bounded(
    name: str, index: Value, count: int, mode: str, axis: int, subject: tuple[int, ...]
) -> Value:
    """`index` within `count` elements: checked, brought to the nearest end, or wrapped around."""
    if mode == "raise":
        return checked(name, index, count, axis, subject)
    if mode not in ("clip", "wrap"):
        raise ArgumentError(f"{name}: mode={mode!r}; expected 'raise', 'clip' or 'wrap'.")
    if not count and index.size:
        raise IndexingError(f"{name}: axis {axis} of an array of shape {subject} has no elements.")
    index = cast(index, "int64")
    if mode == "wrap":
        return e.mod(index, extent(count))
    return e.minimum(e.maximum(index, 0), extent(max(count - 1, 0)))


# -- numbers whose order or size matters ----------------------------------------------------------


def required(numbers: Value, holds: Value, failure: str) -> Value:
    """`numbers`; the program fails with that message unless the condition `holds` everywhere."""
    operands = [views.reshape(v, (v.size,)) for v in (holds, numbers)]
    found = apply(REQUIRE, operands, operands[1].type, failure=failure)
    return views.reshape(found, numbers.shape)


def rising(numbers: Value, failure: str) -> Value:
    """`numbers`, of one dimension; the program fails where they decrease or are NaN."""
    count = max(numbers.shape[0] - 1, 0)
    before, after = (views.slice_(numbers, (i,), (1,), (count,)) for i in (0, 1))
    return required(numbers, e.greater_equal(after, before), failure)


def within(
    numbers: Value, low: float, high: float, failure: str, *, above_low: bool = False
) -> Value:
    """`numbers`; the program fails where one is not from `low` to `high`, or is `low` if they must
    be `above_low`; NaN is not."""
    least, most = (constant(n, "float64", weak=True) for n in (low, high))
    enough = e.greater(numbers, least) if above_low else e.greater_equal(numbers, least)
    inside = e.logical_and(enough, e.less_equal(numbers, most))
    return required(numbers, inside, failure)
