"""Writes where gradients flow: what is followed, and what is refused."""

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.runtime.errors import AutogradError
from tests.autograd.test_autograd import variable


def _write_an_item(x, value):
    x[0] = value
    return x * 2


def _write_all(x, value):
    x[...] = value
    return x * 2


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("write", [_write_an_item, _write_all])
def test_writes_into_variables_are_refused(write, hybrid):
    x, value = np.ones((2,)), np.array(3.0)
    x.attach_grad()
    value.attach_grad()
    function = heterosis.hybridize(write) if hybrid else write
    for _ in range(2):
        with autograd.record(), pytest.raises(AutogradError, match="variable"):
            function(x, value)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("write", [_write_an_item, _write_all])
def test_gradients_flow_through_what_is_written(write, hybrid):
    function = heterosis.hybridize(write) if hybrid else write
    for _ in range(2):
        x, value = np.ones((2,)), np.array(3.0)
        value.attach_grad()
        with autograd.record():
            function(x, value)
            y = (x * x).sum()
        y.backward()
        assert value.grad.item() == 6 * (1 if write is _write_an_item else 2)


@pytest.mark.parametrize("view", [lambda x: x[None], lambda x: x.reshape(-1), lambda x: x.T])
def test_a_view_of_a_whole_variable_is_not_written_to(view):
    x = np.ones((2, 2))
    x.attach_grad()
    with autograd.record():
        whole = view(x)
        with pytest.raises(AutogradError, match="variable"):
            whole[...] = 3


def test_arrays_outside_that_no_variable_reaches_are_not_recorded():
    """Or the second call's gradient would go back into the first call, whose record is gone."""
    x, scale = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    x.attach_grad()

    def function(x):
        scale[0] = 5.0
        np.multiply(scale, 1, out=scale)
        return x * scale[::-1], scale.reshape(-1)

    compiled = heterosis.hybridize(function)
    for _ in range(3):
        with autograd.record():
            y, _ = compiled(x)
        y.backward()
        assert x.grad.tolist() == [4.0, 5.0]


@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_do_not_go_back_into_arrays_outside_that_the_head_does_not_use(hybrid):
    x, total = np.array([1.0, 2.0]), np.zeros((2,))
    x.attach_grad()

    def function(x):
        total[0] = x[1]
        return x * 2

    called = heterosis.hybridize(function) if hybrid else function
    for _ in range(3):
        with autograd.record():
            y = called(x)
        y.backward()
        assert x.grad.tolist() == [2.0, 2.0]


VIEWS = {"reshaped": lambda x: x.reshape(-1), "whole": lambda x: x[:], "itself": lambda x: x}


def _written_through(view):
    """A function that writes to an array through a view of it, and reads both."""

    def function(x, c):
        part = view(x)
        part[1] = c
        return np.sin(part).sum() + np.sin(x).sum()

    return function


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("hybridized", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_what_is_written_through_another_array_is_followed_or_refused(name, hybridized, inside):
    """Gradients that reach what a recorded call has written may not be lost on the way."""
    c = np.array(0.5)
    c.attach_grad()
    write = _written_through(VIEWS[name])

    def recorded(x):
        with autograd.record():
            head = write(x, c)
        head.backward()
        return c.grad.copy()

    def run(x):
        if inside:
            return (heterosis.hybridize(recorded) if hybridized else recorded)(x)
        with autograd.record():
            head = (heterosis.hybridize(lambda x: write(x, c)) if hybridized else write)(
                *((x,) if hybridized else (x, c))
            )
        head.backward()
        return c.grad

    x = np.zeros((2, 2))
    expected = 2 * numpy.cos(0.5) * (1 if name == "reshaped" else 2)
    if name == "itself" or (hybridized and not inside):
        numpy.testing.assert_allclose(run(x).item(), expected, rtol=1e-6)
    else:
        with pytest.raises(AutogradError, match="written to through another array"):
            run(x)


def test_after_backward_other_arrays_may_be_read():
    x, c = np.zeros((2, 2)), np.array(0.5)
    c.attach_grad()
    for _ in range(3):  # a buffer that every step fills again
        with autograd.record():
            part = x.reshape(-1)
            part[1] = c * 2
            head = part.sum()
        head.backward()
        assert c.grad.item() == 2


def test_the_array_of_a_write_may_be_gone():
    x, c = np.zeros((2, 2)), np.array(0.5)
    c.attach_grad()
    with autograd.record():
        part = x.reshape(-1)
        part[1] = c
        del part
        with pytest.raises(AutogradError, match="written to through another array"):
            np.sin(x)


def test_what_is_detached_is_not_followed():
    x, c = np.zeros((2, 2)), np.array(0.5)
    c.attach_grad()
    with autograd.record():
        x[0] = c
        head = x.sum() + (x.detach() * 3).sum()
    head.backward()
    assert c.grad.item() == 2


PARTS = {
    "an item": lambda d: d[0],
    "a slice": lambda d: d[:, 1:],
    "rows": lambda d: next(iter(d)),
    "transposed": lambda d: d.T,
    "an operation": lambda d: np.split(d, 2)[1],
    "a view of a view": lambda d: d[0][::-1],
}


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("view", PARTS.values(), ids=PARTS)
def test_views_of_what_is_detached_are_detached(view, hybrid):
    """Their memory was written to by a recorded call, and they need no gradient through it."""

    def product(x):
        y = x * 2
        y[:] = x * 3
        return view(y.detach()) * view(x)

    x = variable([[1.0, 2.0], [3.0, 4.0]])
    with autograd.record():
        head = (heterosis.hybridize(product) if hybrid else product)(x).sum()
    head.backward()
    wanted = np.zeros_like(x)
    view(wanted)[:] = 3 * view(x.detach())
    assert x.grad.tolist() == wanted.tolist()


def test_views_of_what_is_written_to_are_followed():
    x = variable([[1.0, 2.0], [3.0, 4.0]])
    with autograd.record():
        y = x * 2
        with autograd.pause():
            row = y[0]
        y[:] = x * 3
        with pytest.raises(AutogradError, match="written to through another array"):
            row * 2
