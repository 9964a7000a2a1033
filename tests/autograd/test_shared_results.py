"""What a recorded call returns shares memory as it does imperatively, and gradients flow so."""

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.runtime.errors import AutogradError


def _view_of_argument(x, weight):
    y = x * weight
    view = y[..., 0:]
    y[y > 2] = 0.5
    return y, view


def _written_argument(x, weight):
    view = x[:]
    x[x > 2] = 0.5
    return view, x.T


def _rows(x, weight):
    y = np.tanh(x * weight)
    return y, y[1:], y[0]


def _turned(x, weight):
    y = x * weight
    return y, y.T, y.reshape(-1)


RESULTS = [_view_of_argument, _written_argument, _rows, _turned]


def _called(function, hybrid, many):
    """The argument and what the function returns, after its first result was written to."""
    called = heterosis.hybridize(function) if hybrid else function
    for _ in range(many):
        x, weight = np.arange(6.0).reshape(2, 3), np.array([0.5, 1.5, -1.0])
        with autograd.record():
            results = called(x, weight)
            results[0][...] += 1
    return [x, *results]


@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("function", RESULTS)
def test_writes_show_in_all_that_shares_the_memory(function, many):
    for one, other in zip(*(_called(function, h, many) for h in (False, True)), strict=True):
        numpy.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def _gradients(function, hybrid, many):
    called = heterosis.hybridize(function) if hybrid else function
    for _ in range(many):
        x, weight = np.arange(6.0).reshape(2, 3) / 5, np.array([0.5, 1.5, -1.0])
        x.attach_grad()
        weight.attach_grad()
        with autograd.record():
            parts = called(x, weight)
            total = sum((part * part * (i + 1)).sum() for i, part in enumerate(parts))
        total.backward()
    return x.grad, weight.grad


@pytest.mark.parametrize("many", [1, 3])
@pytest.mark.parametrize("function", [_rows, _turned])
def test_gradients_come_from_all_of_it(function, many):
    for one, other in zip(*(_gradients(function, h, many) for h in (False, True)), strict=True):
        numpy.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)


def test_what_is_written_to_afterwards_is_current_in_none_but_itself():
    x = np.ones((3,))
    x.attach_grad()

    @heterosis.hybridize
    def both(x):
        y = x * 2
        return y, y[:]

    with autograd.record():
        y, view = both(x)
        y += 1
        with pytest.raises(AutogradError, match="written to through another"):
            view * 2
        (y * y).sum().backward()
    numpy.testing.assert_array_equal(x.grad.asnumpy(), [12, 12, 12])


def test_gradients_of_gradients_flow_through_shared_results():
    x = np.array([1.0, 2.0, 3.0])
    x.attach_grad()

    @heterosis.hybridize
    def parts(x):
        y = x**3
        return y, y[1:]

    with autograd.record():
        y, some = parts(x)
        (slope,) = autograd.grad(y.sum() + (some * some).sum(), [x], create_graph=True)
        slope.sum().backward()
    expected = numpy.array([6, 12, 18]) + numpy.array([0, 30 * 2.0**4, 30 * 3.0**4])
    numpy.testing.assert_allclose(x.grad.asnumpy(), expected, rtol=1e-5)
