"""A gradient that nobody else has is not copied to where its variable keeps it; others are."""

import numpy
import pytest

from heterosis import autograd, np, npx
from heterosis.np.convert import shared
from heterosis.runtime.errors import HeterosisError
from tests.core.native import closed_gate, fail, pass_gate


def _address(array):
    return shared(array).__array_interface__["data"][0]


in_main_memory = pytest.mark.main_memory("gates and addresses are in main memory")


@pytest.fixture(params=["at once", pytest.param("queued", marks=in_main_memory)])
def run(request):
    """Calls a function with another one, which copies an array: at once, or when the function has
    returned, so that all that follows from the copy is queued before."""

    def at_once(function):
        function(np.copy)

    def queued(function):
        with closed_gate() as gate:
            zero = pass_gate(gate, np.zeros(3, dtype="int64")) * 0
            function(lambda array: array + zero.astype("float32"))
        npx.waitall()

    return at_once if request.param == "at once" else queued


def _variable():
    x = np.array([1.0, 2, 3])
    x.attach_grad()
    return x


@in_main_memory
def test_memory_changes_hands(run):
    x, w = _variable(), np.array([4.0, 5, 6])
    kept, before = x.grad, _address(x.grad)

    def steps(late):
        with autograd.record():
            y = x * late(w)
        y.backward()

    run(steps)
    assert x.grad is kept
    assert kept.tolist() == [4, 5, 6]
    assert w.tolist() == [4, 5, 6]
    assert _address(kept) != before


def test_what_two_variables_receive_together_is_apart(run):
    x, y, w = _variable(), _variable(), np.array([4.0, 5, 6])

    def steps(late):
        with autograd.record():
            z = (x + y) * late(w)
        z.backward()

    run(steps)
    x.grad[0] = 7
    assert x.grad.tolist() == [7, 5, 6]
    assert y.grad.tolist() == [4, 5, 6]


@pytest.mark.parametrize("function", [lambda x: x + 0, lambda x: x.reshape(3, 1).reshape(3)])
def test_a_gradient_that_was_given_stays(run, function):
    x, given, seeds = _variable(), np.array([4.0, 5, 6]), []

    def steps(late):
        seeds.append(late(given))
        with autograd.record():
            y = function(x)
        y.backward(seeds[0])

    run(steps)
    x.grad[0] = 7
    assert seeds[0].tolist() == [4, 5, 6]
    seeds[0][1] = 8
    assert x.grad.tolist() == [7, 5, 6]


def test_what_the_record_keeps_stays(run):
    x, found = _variable(), []

    def steps(late):
        with autograd.record():
            y = np.exp(x)
        for _ in range(2):
            y.backward(late(np.ones(3)), retain_graph=True)
            found.append(x.grad.copy())
            x.grad[:] = 0
        found.append(y)

    run(steps)
    for one in found:
        numpy.testing.assert_allclose(one.asnumpy(), numpy.exp([1, 2, 3]), rtol=1e-6)


@in_main_memory
def test_others_who_see_the_gradient_see_the_new_one(run):
    x, w = _variable(), np.array([4.0, 5, 6])
    part, seen = x.grad[1:], shared(x.grad)

    def steps(late):
        with autograd.record():
            y = x * late(w)
        y.backward()

    run(steps)
    assert x.grad.tolist() == [4, 5, 6]
    assert part.tolist() == [5, 6]
    assert seen.tolist() == [4, 5, 6]


def test_gradients_are_added_to_what_is_there(run):
    x, w = np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    x.attach_grad("add")

    def steps(late):
        for _ in range(2):
            with autograd.record():
                y = x * late(w)
            y.backward()

    run(steps)
    assert x.grad.tolist() == [8, 10, 12]


@in_main_memory
def test_an_error_is_the_gradients():
    x = _variable()
    with autograd.record():
        y = x * fail(np.ones(3))
    y.backward()
    with pytest.raises(HeterosisError, match="not to its liking"):
        x.grad.wait_to_read()
    with autograd.record():
        y = x * 2
    y.backward()
    assert x.grad.tolist() == [2, 2, 2]
