"""Functions that record operations by themselves: what flows back, inside and after a call."""

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.autograd import derivative
from heterosis.runtime.errors import AutogradError, CaptureError, CaptureWarning


class Outside:
    """What the functions below find outside: variables, and an array that they may write to."""

    def __init__(self):
        self.w, self.u = np.array([0.5, -1.0, 2.0, 1.5]), np.array([1.0, 0.3, -0.7, 2.0])
        self.state = np.array([1.0, 2.0, -1.0, 0.5])
        for variable in (self.w, self.u):
            variable.attach_grad()


# -- the record that a call leaves behind ---------------------------------------------------------


def _plain(o, x):
    with autograd.record():
        return (o.w * x * o.w).sum()


def _after_a_mask(o, x):
    x[x > 1] = 0.5
    with autograd.record():
        return o.w * x


def _after_a_view(o, x):
    part = x[1:]
    part[...] = 2
    with autograd.record():
        return (o.w[::-1] * x)[1:] * part


def _of_what_was_not_recorded(o, x):
    squares = o.w * o.w
    with autograd.record():
        return squares * o.w * x


def _paused(o, x):
    with autograd.record():
        y = o.w * x
        with autograd.pause():
            z = o.u * o.w
        return y * z


def _mask_inside(o, x):
    with autograd.record():
        y = o.w * x
        y[y > 2] = 0
        return y * o.u


def _only_some(o, x):
    with autograd.record():
        y = o.w * x
    return y * 2, y


def _detached(o, x):
    with autograd.record():
        y = o.w * x
        return y.detach(), y * o.u


def _another_was_gone_back(o, x):
    with autograd.record():
        y, z = (o.w * x).sum(), o.u * x
    y.backward()
    return y.detach(), z


def _kept(o, x):
    with autograd.record():
        y = o.w * o.w * x
    y.backward(retain_graph=True)
    return (y,)


def _into_an_argument(o, x):
    with autograd.record():
        x[...] = o.w * o.u
    return x * 1


def _into_a_state(o, x):
    with autograd.record():
        o.state[...] = o.w * x
    return o.state


def _own_variable(o, x):
    v = o.w * x
    v.attach_grad()
    with autograd.record():
        return v * o.u


def _views_of_one(o, x):
    with autograd.record():
        y = o.w * x
    return y.reshape(2, 2)[:1] * 1, y[1:]


def _gradient_of_a_gradient(o, x):
    with autograd.record():
        (g,) = autograd.grad((o.w**3 * x).sum(), [o.w], create_graph=True)
        return (g * o.u).sum()


def _unlike_paths(o, x):
    with autograd.record():
        y, z = o.w * x, o.u * x
    y.backward(retain_graph=True)
    return z, y


FUNCTIONS = [
    _plain, _after_a_mask, _after_a_view, _of_what_was_not_recorded, _paused, _mask_inside,
    _only_some, _detached, _another_was_gone_back, _kept, _into_an_argument, _into_a_state,
    _own_variable, _views_of_one, _gradient_of_a_gradient, _unlike_paths,
]  # fmt: skip


def _seen(function, hybridize):
    """Results, arguments and gradients of three calls, with what goes back from the last result
    that has a record."""
    outside, seen = Outside(), []

    def call(x):
        return function(outside, x)

    run = hybridize(call)
    for turn in range(3):
        x = np.array([1.0, 2.0, -1.5, 0.25]) * (turn + 1)
        for variable in (outside.w, outside.u):
            variable.grad[...] = 7
        found = run(x)
        results = found if isinstance(found, tuple) else (found,)
        seen += [[r.tolist() for r in results], x.tolist(), outside.state.tolist()]
        recorded = [r for r in (*results, x, outside.state) if r._autograd is not None]
        seen.append([r._autograd is not None for r in (*results, x, outside.state)])
        for head in recorded[-1:]:
            head.backward()
        seen += [outside.w.grad.tolist(), outside.u.grad.tolist()]
        outside.state._autograd = None
    return seen


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_is_recorded_inside_can_be_gone_back_outside(function):
    record_agrees(function, heterosis.hybridize)


def record_agrees(function, hybridize):
    """Results, and what goes back from them, are the same captured by `hybridize`."""
    eager, hybridized = _seen(function, lambda call: call), _seen(function, hybridize)
    for a, b in zip(hybridized, eager, strict=True):
        if b and isinstance(b[0], bool):
            assert a == b
            continue
        for one, other in zip(a, b, strict=True):
            numpy.testing.assert_allclose(one, other, 1e-6)


def test_a_training_step_keeps_nothing():
    o = Outside()

    @heterosis.hybridize
    def step(x):
        with autograd.record():
            loss = (np.exp(o.w * x) ** 2).sum()
        loss.backward()
        return loss

    loss = step(np.ones(4))
    assert loss._autograd is None
    ((program,),) = step._programs.values()
    assert len(program.kept.program.outputs) == 2  # the loss and the gradient


def test_gradients_inside_of_what_is_recorded_outside():
    def function(o, x):
        y = o.w * x
        with autograd.record():
            head = (y * y).sum()
        head.backward(retain_graph=True)
        return y * o.u

    found = []
    for wrap in (lambda f: f, heterosis.hybridize):
        o = Outside()
        run = wrap(lambda x, o=o: function(o, x))
        for turn in range(2):
            with autograd.record():
                y = run(np.ones(4) * (turn + 1))
            found.append([y.tolist(), o.w.grad.tolist()])
            y.backward()
            found[-1] += [o.w.grad.tolist(), o.u.grad.tolist()]
    assert found[:2] == found[2:]


# -- where gradients go ---------------------------------------------------------------------------


def _step(o):
    @heterosis.hybridize
    def step(x):
        with autograd.record():
            y = (x * o.w * o.w).sum() + (x * o.state).sum()
        y.backward()
        return y

    return step


def test_another_gradient_array():
    o = Outside()
    step, x = _step(o), np.ones(4)
    step(x), step(x)
    o.w.attach_grad()
    step(x)
    assert o.w.grad.tolist() == (2 * o.w).tolist()
    o.w.attach_grad("add")
    step(x), step(x)
    assert o.w.grad.tolist() == (4 * o.w).tolist()


def test_a_variable_that_becomes_one_later():
    o = Outside()
    step, x = _step(o), np.array([1.0, 2.0, 3.0, 4.0])
    step(x), step(x)
    assert step.captures == 1
    o.state.attach_grad()
    step(x)
    assert o.state.grad.tolist() == x.tolist()


def test_an_argument_that_becomes_a_variable_later():
    o = Outside()
    step, x = _step(o), np.ones(4)
    step(x), step(x)
    variable = np.ones(4)
    variable.attach_grad()
    with pytest.raises(CaptureError, match=r"an argument .* has a gradient"):
        step(variable)


@pytest.mark.parametrize("first", [False, True])
def test_a_detached_array_beside_its_variable(first):
    found = []
    for wrap in (lambda f: f, heterosis.hybridize):
        w = np.array([1.0, 2.0, 3.0])
        w.attach_grad()
        a, b = (w.detach(), w) if first else (w, w.detach())
        run = wrap(lambda x, a=a, b=b: (a * x * 2).sum() + (b * x * 5).sum())
        with autograd.record():
            y = run(np.ones(3))
        y.backward()
        found.append(w.grad.tolist())
    assert found == [[5.0] * 3 if first else [2.0] * 3] * 2


def test_variables_made_of_arrays_from_outside():
    w = np.ones(3)

    @heterosis.hybridize
    def function(x):
        w.attach_grad()
        return w * x

    with pytest.raises(CaptureError, match=r"Call attach_grad\(\) on it before"):
        function(np.ones(3))
    assert w.grad is None


def test_variables_made_of_arguments():
    """What the capture hands in stands for the caller's array, which stays as it is."""

    @heterosis.hybridize
    def slope(x):
        x.attach_grad()
        with autograd.record():
            y = (x * x).sum()
        y.backward()
        return x.grad

    x = np.ones(3)
    with pytest.warns(CaptureWarning, match="made a variable, by attach_grad, .* stays as it is"):
        assert slope(x).tolist() == [2.0] * 3
    assert x.grad is None


def test_a_write_through_a_view_of_what_is_recorded():
    o = Outside()

    def function(x):
        with autograd.record():
            y = o.w * x
            part = y[1:]
        y[...] = 0
        with autograd.record():
            return part * 2

    for run in (function, heterosis.hybridize(function)):
        with pytest.raises(AutogradError, match="written to through another"):
            run(np.ones(4))


# -- arrays that are written to, recorded outside -------------------------------------------------


def _first_masked(w, x):
    x[x > 1] = 0.5
    return w * x * w


def _scaled(w, x):
    x *= 2
    return w * x


def _moved(w, x):
    x[1:] = x[:-1] * 2
    return w * x * x


def _chosen(w, x):
    y = np.where(x > 2, w, w * 3)
    x[...] = 9
    return y * x


def _through_a_view(w, x):
    np.multiply(x, 2, out=x)
    part = x[::-1]
    part[part > 3] = 1
    return w * x


@pytest.mark.parametrize("function", [_first_masked, _scaled, _moved, _chosen, _through_a_view])
def test_an_argument_that_is_written_to(function):
    found = []
    for wrap in (lambda f: f, heterosis.hybridize):
        w = np.array([0.5, -1.0, 2.0])
        w.attach_grad()
        run = wrap(lambda x, w=w: function(w, x))
        for turn in range(3):
            x = np.array([1.0, 2.0, 3.0]) * (turn + 1)
            with autograd.record():
                y = run(x)
            y.backward()
            found.append([y.tolist(), x.tolist(), w.grad.tolist()])
    for a, b in zip(found[:3], found[3:], strict=True):
        numpy.testing.assert_allclose(a, b, 1e-6)


def test_a_variable_written_to_through_a_view():
    o = Outside()
    view = heterosis.hybridize(lambda x: _into_a_view(o, x))
    for run in (lambda x: _into_a_view(o, x), view):
        with pytest.raises(AutogradError, match="a variable with a gradient is written to"):
            run(np.ones(4))


def _into_a_view(o, x):
    part = o.u.reshape(2, 2)
    with autograd.record():
        part[0] = (o.w * x)[:2]
    return part * 1


def test_a_variable_that_is_written_to_before_it_is_used():
    o, x = Outside(), np.ones(4)

    def clipped(x):
        with autograd.pause():
            o.w[...] = np.clip(o.w, -0.5, 0.5)
        return o.w * x

    def stepped(x, inside):
        o.w[...] = np.clip(o.w, -0.5, 0.5)
        with autograd.record():
            y = o.w * x
        if inside:
            y.backward()
        return y

    with autograd.record(), pytest.raises(CaptureError, match=r"a variable of shape .* is written"):
        heterosis.hybridize(clipped)(x)
    with pytest.raises(CaptureError, match=r"a variable of shape .* is written"):
        heterosis.hybridize(lambda x: stepped(x, False))(x)
    step = heterosis.hybridize(lambda x: stepped(x, True))
    for _ in range(2):
        o.w.grad[...] = 0
        step(x)
        assert o.w.grad.tolist() == [1.0] * 4


def test_a_part_of_an_array_written_over_itself():
    o = Outside()

    def function(x):
        with autograd.record():
            y = o.w * x
            y[1:3] = y[:2]
            return y * 2

    found = []
    for run in (function, heterosis.hybridize(function)):
        run(np.ones(4)).backward()
        found.append(o.w.grad.tolist())
    assert found[0] == found[1]


@pytest.mark.parametrize("view", [lambda x: x[1:, 0], lambda x: x.T, lambda x: x[::-1]])
def test_a_write_to_a_part_is_refused_as_eager_ones_are(view):
    """The whole array, which the tape does not know, would hold what it should follow."""
    c = np.array(0.5)
    c.attach_grad()

    def function(x):
        with autograd.record():
            part = view(x)
            part[1] = c
            head = np.sin(part).sum() + np.sin(x).sum()
        head.backward()
        return head

    for run in (function, heterosis.hybridize(function)):
        with pytest.raises(AutogradError, match="is written to through a view"):
            run(np.ones((3, 2)))


def test_calls_that_are_alike_are_differentiated_once(monkeypatch):
    made = []
    differentiated = derivative._differentiated

    def counted(*arguments):
        made.append(arguments)
        return differentiated(*arguments)

    monkeypatch.setattr(derivative, "_differentiated", counted)
    w = np.array([0.5, -1.0, 2.0])
    w.attach_grad()

    def function(x):
        with autograd.record():
            y = w
            for turn in range(12):  # of sums, two have another axis
                y = np.tanh(y) * x + np.sum(x * y, axis=0 if turn else None)
        y.backward()
        return w.grad.copy()

    x = np.array([0.3, 0.2, -0.4])
    found = heterosis.hybridize(function)(x).asnumpy()
    inside = len(made)
    numpy.testing.assert_allclose(found, function(x).asnumpy(), rtol=1e-5)
    assert 4 <= inside <= 10
