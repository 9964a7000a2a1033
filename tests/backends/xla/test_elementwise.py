"""What XLA makes of elementwise primitives is what they mean: for every combination of types, for
ordinary numbers and special ones.

XLA takes denormal numbers for zeros, and makes zeros of them; elsewhere they are left out.
"""

import ml_dtypes
import numpy
import pytest

from heterosis.ir.primitives import random_bits, random_loops, real
from heterosis.ir.types import is_float
from tests.backends.xla.rows import computed
from tests.ir.primitives.test_elementwise import (
    PRIMITIVES,
    combinations,
    extreme,
    node_of,
    ordinary,
)

# Units in the last place, where XLA's formulas are less exact than the usual 4; of 1, near zeros of
# the function.
ULPS = {
    real.GAMMA: 512.0,
    real.ERFINV: 16.0,
    real.LOG1P: 32.0,
    real.ARCTANH: 32.0,
    real.SINH: 16.0,
    real.COSH: 16.0,
}
ABSOLUTE = {
    real.GAMMALN: 16.0,
    random_bits.NORMAL_FLOAT32: 8.0,
    random_bits.NORMAL_FLOAT64: 8.0,
    random_loops.LOG_GAMMA_VARIATE: 16.0,
}


def cases_of(primitive):
    """Of each combination of types; numbers in the usual range where they are rounded."""
    for i, dtypes in enumerate(combinations(primitive)):
        shapes = ((7, 13), (), (0, 2)) if i == 0 else ((7, 13),) if is_float(dtypes[0]) else ()
        for shape in shapes:
            yield node_of(primitive, dtypes, shape), ordinary(primitive, dtypes, shape)
        arrays = extreme(dtypes)
        yield node_of(primitive, dtypes, arrays[0].shape), arrays


def normal(array):
    """Where there are no denormal numbers."""
    if not is_float(array.dtype.name):
        return numpy.ones(array.shape, "bool")
    least = float(ml_dtypes.finfo(array.dtype).smallest_normal)
    size = abs(array.astype("float64"))
    return ~(size < least) | (size == 0)


def assert_near(primitive, got, wanted, where):
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    got, wanted = got[where], wanted[where]
    if not is_float(got.dtype.name):
        numpy.testing.assert_array_equal(got, wanted)
        return
    unit = float(ml_dtypes.finfo(got.dtype).eps)
    ulps = 1.0 if got.dtype.itemsize == 2 else ULPS.get(primitive, 4.0)
    least = float(ml_dtypes.finfo(got.dtype).smallest_normal)
    a, b = got.astype("float64"), wanted.astype("float64")
    near = max(unit * ABSOLUTE.get(primitive, 0.0), 2 * least)  # of the least, XLA makes zero
    numpy.testing.assert_allclose(a, b, rtol=unit * ulps, atol=near)


@pytest.mark.lengthy
@pytest.mark.parametrize("name", PRIMITIVES)
def test_code_does_what_is_meant(name):
    primitive = PRIMITIVES[name]
    cases = list(cases_of(primitive))
    for (node, arrays), (got,) in zip(cases, computed(cases), strict=True):
        (wanted,) = primitive.evaluate(node, *arrays)
        where = numpy.logical_and.reduce([normal(a) for a in (*arrays, wanted)])
        assert_near(primitive, got, wanted, where)
