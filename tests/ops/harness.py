"""Cases of every registered operation, their arguments, and the comparison with the reference."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy

from heterosis import np
from heterosis.ir.types import UNSIGNED, is_float, numpy_dtype
from heterosis.ops.record import ARRAY, ATTRIBUTE, SEQUENCE, Record
from heterosis.ops.samples import Case

LAYOUTS = ("contiguous", "transposed", "strided")


def numbers(record: Record, position: int, shape, dtype: str, rng) -> numpy.ndarray:
    """Values within the operation's domain, as NumPy elements of `dtype`."""
    values = _any_order(record, position, shape, dtype, rng)
    return numpy.sort(values) if position in record.samples.rising_arrays else values


def _any_order(record: Record, position: int, shape, dtype: str, rng) -> numpy.ndarray:
    samples = record.samples
    low, high = samples.bounds(position)
    if position in samples.integer_arrays:
        return rng.integers(low, high, shape)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if not is_float(dtype):
        low, high = max(numpy.ceil(low), 0 if dtype in UNSIGNED else low), max(high, 2)
        return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
    return numpy.asarray(rng.uniform(low, high, shape)).astype(numpy_dtype(dtype))


def lay_out(values: numpy.ndarray, layout: str):
    """An array with these elements, standing in memory as `layout` says."""
    if layout == "transposed":
        return np.array(values.T.copy()).T
    if layout == "strided" and values.ndim:
        spread = numpy.zeros((*values.shape[:-1], 2 * values.shape[-1] + 1), values.dtype)
        spread[..., 1::2] = values
        backwards = np.array(spread[::-1].copy())[::-1]
        return backwards[..., 1::2]
    return np.array(values)


def arguments(record: Record, case: Case, dtype: str) -> tuple[list, dict]:
    """NumPy arguments of a case in the order of parameters: (arrays and numbers, attributes)."""
    rng = numpy.random.default_rng(zlib.crc32(repr((record.name, case, dtype)).encode()))
    arrays = []
    for position, shape in enumerate(case.shapes):
        if shape is None:
            value = numbers(record, position, (), dtype, rng).item()
            arrays.append(value)
        elif isinstance(shape, list):
            arrays.append([numbers(record, position, s, dtype, rng) for s in shape])
        else:
            arrays.append(numbers(record, position, shape, dtype, rng))
    return arrays, dict(case.attributes)


def call(record: Record, arrays: list, attributes: dict, layout: str):
    """The operation on our arrays."""
    ours = [
        [lay_out(item, layout) for item in a]
        if isinstance(a, list)
        else lay_out(a, layout)
        if isinstance(a, numpy.ndarray | numpy.generic)
        else a
        for a in arrays
    ]
    names = [p.name for p, use in zip(record.parameters, record.uses) if use in (ARRAY, SEQUENCE)]
    return record.operation(**dict(zip(names, ours)), **attributes)


def reference(record: Record, arrays: list, attributes: dict, got):
    """NumPy's answer, computed in float64 if our result is of floats."""
    first = got[0] if isinstance(got, tuple | list) else got
    to_float = is_float(first.dtype.name)

    def widen(a):
        if isinstance(a, list):
            return [widen(item) for item in a]
        if isinstance(a, numpy.ndarray | numpy.generic):
            return a.astype("float64") if to_float or is_float(a.dtype.name) else a
        return a

    indices = record.samples.integer_arrays
    widened = [a if i in indices else widen(a) for i, a in enumerate(arrays)]
    with numpy.errstate(all="ignore"):
        return record.numpy(*widened, **attributes)


def check(got, expected, record: Record) -> None:
    """Results agree: exactly for integers, within the operation's error bound for floats."""
    if isinstance(got, tuple | list):
        assert len(got) == len(expected)
        for a, b in zip(got, expected):
            check(a, b, record)
        return
    dtype, values = got.dtype.name, got.asnumpy()
    expected = numpy.asarray(expected)
    assert values.shape == expected.shape
    if not is_float(dtype):
        with numpy.errstate(all="ignore"):
            numpy.testing.assert_array_equal(values, expected.astype(dtype))
        return
    unit = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype) or numpy.finfo(dtype).eps
    samples = record.samples
    tolerance = unit * samples.ulps * (4 if dtype in ("float16", "bfloat16") else 1)
    numpy.testing.assert_allclose(
        values.astype("float64"), expected, rtol=tolerance, atol=unit * samples.absolute
    )


def cases(records: dict[str, Record]) -> Iterator[tuple[str, str]]:
    """Every operation with samples and a reference, with every element type it takes."""
    for name, record in sorted(records.items()):
        if record.samples and record.numpy:
            for dtype in record.samples.dtypes:
                yield name, dtype


__all__ = ["ATTRIBUTE", "LAYOUTS", "arguments", "call", "cases", "check", "reference"]
