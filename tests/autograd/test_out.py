"""Gradients of calls that write into an array of another type or a larger shape."""

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.runtime.errors import AutogradError


@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 3)])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("own", ["float64", "float32", "float16"])
def test_gradients_go_through_the_conversion(own, dtype, shape, hybridized):
    def written(x):
        into = np.zeros(shape, dtype=dtype)
        np.tanh(x, out=into)
        return into * 2

    x = np.array([-0.9, 0.1, 0.2], dtype=own)
    x.attach_grad()
    with autograd.record():
        y = (heterosis.hybridize(written) if hybridized else written)(x)
    y.backward()
    expected = (
        2 * (shape[0] if len(shape) > 1 else 1) / numpy.cosh(x.asnumpy().astype("float64")) ** 2
    )
    assert x.grad.dtype == own
    numpy.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=0.02)


def test_an_operand_that_is_written_to_in_another_type():
    x = np.array(-0.25, dtype="float64")
    x.attach_grad()
    with autograd.record():
        y = np.square(x).astype("float32")
        np.add(x, y, out=y)
    y.backward()
    assert x.grad.item() == 0.5


@pytest.mark.parametrize("hybridized", [False, True])
def test_a_derivative_reads_what_its_call_has_written_over_its_operand(hybridized):
    def written(x):
        y = x * 1
        np.exp(y, out=y)
        return y

    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = (heterosis.hybridize(written) if hybridized else written)(x)
    y.backward()
    numpy.testing.assert_array_equal(x.grad, y)


def test_a_derivative_cannot_read_what_its_call_has_written_over():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = x * 1
        np.sin(y, out=y)
    with pytest.raises(AutogradError, match="sin needs an array of shape"):
        y.backward()
