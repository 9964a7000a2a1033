"""Special values for every element type, and whether results agree in every bit that means
something."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy

from heterosis import np
from heterosis.ir.types import is_float, numpy_dtype
from tests.ops.harness import arguments


def special(dtype: str) -> numpy.ndarray:
    """NaN, infinities, zeros of both signs, the ends of the range, and some ordinary numbers."""
    if dtype == "bool":
        return numpy.array([True, False, True])
    if not is_float(dtype):
        facts = numpy.iinfo(dtype)
        numbers = [facts.min, facts.max, 0, 1, 2, facts.min + 1, facts.max - 1, 7]
        return numpy.array(numbers + [-1] * (facts.min < 0), dtype=dtype)
    facts = ml_dtypes.finfo(numpy_dtype(dtype))
    tiny, least, largest = float(facts.tiny), float(facts.smallest_subnormal), float(facts.max)
    positive = [numpy.nan, numpy.inf, 0.0, least, tiny * 0.75, tiny, largest, largest / 2, 1.0]
    positive += [0.5, 2.0, 3.0, 1e-3, 88.0, 1.0 + float(facts.eps)]
    return numpy.array([sign * n for n in positive for sign in (1, -1)]).astype(numpy_dtype(dtype))


def special_arguments(record: Any, case: Any, dtype: str, turn: int) -> tuple[list, dict]:
    """The arguments of a case with special values in its arrays, but for those of indices."""
    arrays, attributes = arguments(record, case, dtype)
    indices = record.samples.integer_arrays

    def replaced(value: Any, position: int) -> Any:
        if isinstance(value, list):
            return [replaced(item, position + i) for i, item in enumerate(value)]
        if not isinstance(value, numpy.ndarray) or position in indices:
            return value
        # A step without common divisor walks through all pairs of values of two operands.
        values = special(value.dtype.name)
        places = turn + (1 + position) * numpy.arange(value.size) + position * 5
        if position == 1:
            places += numpy.arange(value.size) // len(values)
        return values[places % len(values)].reshape(value.shape)

    return [replaced(a, i) for i, a in enumerate(arrays)], attributes


def same_bits(found: Any, wanted: Any) -> bool:
    """Whether two results are equal: a NaN is a NaN, and a zero has its sign."""
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(same_bits, found, wanted))
    if not isinstance(wanted, np.ndarray):
        return bool(found == wanted)
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return False
    return bool(equal_elements(found.asnumpy(), wanted.asnumpy()).all())


def equal_elements(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """Where two arrays have the same: a NaN is a NaN, and a zero has its sign."""
    if not is_float(b.dtype.name):
        return a == b
    a, b = a.astype("float64"), b.astype("float64")
    equal = (a == b) & (numpy.signbit(a) == numpy.signbit(b))
    return equal | numpy.isnan(a) & numpy.isnan(b)
