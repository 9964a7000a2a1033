"""Operations with several results, written into arrays that exist."""

import numpy
import pytest

from heterosis import np
from heterosis.ops import REGISTRY
from heterosis.runtime.errors import ArgumentError

divmod_ = REGISTRY["divmod"].operation
X = numpy.arange(1.0, 301.0).reshape(3, 100)


def test_results_go_where_they_are_wanted():
    x, quotient, rest = np.array(X), np.zeros(X.shape, dtype="float64"), np.zeros(X.shape)
    given = (quotient, rest)
    assert divmod_(x, 7.0, out=given) is given
    assert (quotient.asnumpy() == X // 7).all() and (rest.asnumpy() == X % 7).all()


@pytest.mark.parametrize("turned", [False, True])
def test_operands_may_be_written_over(turned):
    x, y = np.array(X), np.array(X[::-1].copy() % 7 + 1)
    quotient, rest = X // (X[::-1] % 7 + 1), X % (X[::-1] % 7 + 1)
    out = (y, x) if turned else (x, y)
    divmod_(x, y, out=out)
    assert (out[0].asnumpy() == quotient).all() and (out[1].asnumpy() == rest).all()


def test_parts_of_operands_may_be_written_over():
    x = np.array(X)
    divmod_(x[:2], 7.0, out=(x[1:], np.zeros((2, 100))))
    assert (x.asnumpy()[1:] == X[:2] // 7).all() and (x.asnumpy()[0] == X[0]).all()


def test_one_array_for_each_result():
    with pytest.raises(ArgumentError, match="1 arrays in `out` for 2 results"):
        divmod_(np.array(X), 7.0, out=(np.zeros(X.shape),))


def test_many_calls_at_once():
    arrays = [np.array(X + i) for i in range(5)]
    REGISTRY["multiply"].operation.each([((x, float(i)), x) for i, x in enumerate(arrays)])
    for i, x in enumerate(arrays):
        assert (x.asnumpy() == (X + i) * i).all()
    with pytest.raises(TypeError):
        REGISTRY["multiply"].operation.each([1])
