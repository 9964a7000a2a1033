"""The larger and the smaller of an element and a number that is written in the code: NaN if either
is, and of two zeros the second."""

from math import inf, nan

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.ir.types import FLOATS
from tests.capture.special_values import equal_elements, special

NUMBERS = (0.0, -0.0, 1.0, -1.0, inf, -inf, nan)
OPERATIONS = {"maximum": numpy.greater, "minimum": numpy.less}


def wanted(name, a, b):
    with numpy.errstate(invalid="ignore"):
        chosen = numpy.where(OPERATIONS[name](a, b), a, b)
    return numpy.where(numpy.isnan(a), a, chosen)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_of_an_element_and_a_number(name, dtype):
    operation = getattr(np, name)
    a = special(dtype)
    x = np.array(a, dtype=dtype)
    for number in NUMBERS:
        b = numpy.full_like(a, number)
        found = heterosis.hybridize(lambda x, number=number: operation(x, number))(x)
        assert equal_elements(found.asnumpy(), wanted(name, a, b)).all(), number
        found = heterosis.hybridize(lambda x, number=number: operation(number, x))(x)
        assert equal_elements(found.asnumpy(), wanted(name, b, a)).all(), number


@pytest.mark.parametrize("name", OPERATIONS)
def test_at_the_end_of_a_product(name):
    """Sums that are NaN, infinite, or zero, in the tiles of a product."""
    a = numpy.zeros((7, 5), "float32")
    a[:, 0] = (nan, inf, -inf, 0.0, -0.0, 2.0, -2.0)
    bias = numpy.zeros((24,), "float32")
    weight = numpy.ones((24, 5), "float32")
    with numpy.errstate(invalid="ignore"):
        sums = (a @ weight.T) + bias
    for number in NUMBERS:

        def layer(x, w, b, number=number):
            y = getattr(np, name)(heterosis.npx.fully_connected(x, w, b, num_hidden=24), number)
            return y, 1 / y

        found, inverse = heterosis.hybridize(layer)(np.array(a), np.array(weight), np.array(bias))
        want = wanted(name, sums, numpy.full_like(sums, number))
        assert equal_elements(found.asnumpy(), want).all(), number
        with numpy.errstate(divide="ignore", invalid="ignore"):
            assert equal_elements(inverse.asnumpy(), 1 / want).all(), number
