"""Functions with gradients of their own, inside hybridized functions."""

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np
from heterosis.runtime.errors import AutogradError, CaptureError


class Thrice(autograd.Function):
    """The logistic function with three times its gradient: none that could be found otherwise."""

    def forward(self, x):
        y = 1 / (1 + np.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return 3 * dy * y * (1 - y)


class Pair(autograd.Function):
    """Two results of two arguments; an attribute and a number of Python go along."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, a, b):
        self.a = a
        self.save_for_backward(b)
        return a * b * self.scale, a + b

    def backward(self, g, k):
        (b,) = self.saved_tensors
        return g * b * self.scale + k, g * self.a * self.scale - 5 * k


class Dropped(autograd.Function):
    """Random numbers in both directions, the same ones."""

    def forward(self, x):
        self.kept = np.random.uniform(size=x.shape) > 0.5
        return x * self.kept

    def backward(self, dy):
        return dy * self.kept + 10 * (1 - self.kept)


class Straight(autograd.Function):
    """Rounds, and hands the gradient on; one for a number, one that is repeated."""

    def forward(self, x, digits):
        return np.round(x, digits)

    def backward(self, dy):
        return np.ones(1), None


def _pair(x, y):
    product, total = Pair(2.0)(x * 1, y)
    return (product * total).sum() + total[0]


FUNCTIONS = {
    "one": lambda x, y: (Thrice()(x * 2) * y).sum(),
    "twice": lambda x, y: Thrice()(Thrice()(x)).sum() + y.sum(),
    "two results": _pair,
    "random": lambda x, y: (Dropped()(x * y) * y).sum(),
    "an argument that is no array": lambda x, y: (Straight()(x * y, 1) * 3).sum(),
    "in a branch that is stopped": lambda x, y: (Thrice()(x.detach()) * y + x).sum(),
}


def _gradients(function):
    x, y = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, -3.0])
    for v in (x, y):
        v.attach_grad()
    np.random.seed(3)
    with autograd.record():
        z = function(x, y)
    z.backward()
    return [z.item(), x.grad.asnumpy(), y.grad.asnumpy()]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_that_the_function_has(name):
    function = FUNCTIONS[name]
    compiled = heterosis.hybridize(function)
    wanted = _gradients(function)
    for _ in range(2):
        for a, b in zip(_gradients(compiled), wanted, strict=True):
            numpy.testing.assert_allclose(a, b, 1e-5, 1e-6)
    assert compiled.captures == 1


@pytest.mark.parametrize("name", ["one", "twice", "two results"])
def test_gradients_of_gradients(name):
    def again(function):
        x, y = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, -3.0])
        for v in (x, y):
            v.attach_grad()
        with autograd.record():
            gx, gy = autograd.grad(function(x, y), [x, y], create_graph=True)
            z = (gx * gx).sum() + (gy * gy).sum()
        z.backward()
        return [x.grad.asnumpy(), y.grad.asnumpy()]

    wanted = again(FUNCTIONS[name])
    assert any(g.any() for g in wanted)
    for a, b in zip(again(heterosis.hybridize(FUNCTIONS[name])), wanted, strict=True):
        numpy.testing.assert_allclose(a, b, 1e-5, 1e-5)


def test_what_forward_computes_in_between_has_no_second_gradient_eagerly():
    class Between(autograd.Function):
        def forward(self, x):
            self.square = x * x
            return self.square * x

        def backward(self, dy):
            return 3 * dy * self.square

    def second(function):
        x = np.array(2.0)
        x.attach_grad()
        with autograd.record():
            (g,) = autograd.grad(function(x), x, create_graph=True)
        g.backward()
        return x.grad.item()

    with pytest.raises(AutogradError, match="neither an argument nor a result"):
        second(lambda x: Between()(x))
    assert second(heterosis.hybridize(lambda x: Between()(x))) == pytest.approx(12)


def test_in_a_block_and_its_training_step():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.dense = gluon.nn.Dense(3, in_units=4)

        def forward(self, x):
            return Thrice()(self.dense(x))

    def trained(hybrid):
        np.random.seed(0)
        net = Net()
        net.initialize(heterosis.initializer.Uniform(0.5), force_reinit=True)
        net.dense.weight.set_data(np.arange(12).reshape(3, 4) / 10)
        if hybrid:
            net.hybridize()
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
        for _ in range(3):
            with autograd.record():
                loss = (net(np.ones((2, 4))) ** 2).sum()
            loss.backward()
            trainer.step(2)
        return net.dense.weight.data().asnumpy()

    numpy.testing.assert_allclose(trained(True), trained(False), 1e-5)


def test_recorded_inside_of_the_program():
    weight = np.array([0.5, -1.0])
    weight.attach_grad()

    def step(x):
        with autograd.record():
            loss = (Thrice()(x * weight)).sum()
        loss.backward()
        return weight.grad * 1

    x = np.array([1.0, 2.0])
    numpy.testing.assert_allclose(heterosis.hybridize(step)(x).asnumpy(), step(x).asnumpy(), 1e-6)

    argument = np.array([1.0, 2.0])
    argument.attach_grad()

    def inner(v):
        with autograd.record():
            return Thrice()(v)

    with pytest.raises(CaptureError, match="the gradient would not reach it"):
        heterosis.hybridize(inner)(argument)


def test_what_a_program_cannot_do():
    seen = np.zeros(3)

    class Writes(Thrice):
        def backward(self, dy):
            seen[...] = dy
            return super().backward(dy)

    class Reads(Thrice):
        def backward(self, dy):
            return super().backward(dy) * dy.asnumpy().max()

    class Wrong(Thrice):
        def backward(self, dy):
            return np.ones(7)

    for kind, error, message in (
        (Writes, CaptureError, "writes to an array from outside"),
        (Reads, CaptureError, "dy.asnumpy.*\n.*needs the elements of an array"),
        (Wrong, AutogradError, r"gradient of shape \(7,\) for an argument of shape \(3,\)"),
    ):
        with pytest.raises(error, match=message):
            _gradients(heterosis.hybridize(lambda x, y, kind=kind: kind()(x * y).sum()))
    with pytest.raises(AutogradError, match=r"gradient of shape \(7,\)"):
        _gradients(lambda x, y: Wrong()(x * y).sum())
    with autograd.predict_mode():  # nothing asks for a gradient
        heterosis.hybridize(lambda x: Reads()(x))(np.ones(3))


def test_saved_arrays_must_stay_as_they_are():
    x = np.array([1.0, 2.0])
    x.attach_grad()
    with autograd.record():
        y = Thrice()(x)
        head = y * 1
    y += 1
    with pytest.raises(AutogradError, match="written to since"):
        head.backward()


def _copied_then_written(x):
    y = x * 1
    copied = y.T.reshape(-1)[:4]  # strides cannot express it: no view
    y[...] = 3
    return copied


def _written_after_rows_in_a_row(x):
    copied_or_not = x.reshape(-1)
    x[...] = 9
    return copied_or_not * 1


def _rows_in_a_row_written(x):
    copied_or_not = x.reshape(-1)
    copied_or_not[:2] = 9
    return x * 1


@pytest.mark.parametrize("lie", [lambda x: x, lambda x: x.T, lambda x: x[::-1]])
@pytest.mark.parametrize(
    "function", [_copied_then_written, _written_after_rows_in_a_row, _rows_in_a_row_written]
)
def test_what_is_a_view_eagerly_is_one_in_a_program(function, lie):
    eager, given = lie(np.arange(6).reshape(2, 3)), lie(np.arange(6).reshape(2, 3))
    assert heterosis.hybridize(function)(given).tolist() == function(eager).tolist()
    assert given.tolist() == eager.tolist()


def test_gradients_inside_a_program_use_what_was_there_before_it_was_written_over():
    weight = np.array([[1.0], [2.0]])
    weight.attach_grad()

    def function(x):
        with autograd.record():
            head = (x @ weight).sum()
            x[None][...] = 0.5
        head.backward()
        return weight.grad.copy()

    assert heterosis.hybridize(function)(np.array([[3.0, 4.0]])).tolist() == [[3.0], [4.0]]
