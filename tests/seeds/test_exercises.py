"""The exercises at the end of the chapter, answered; docs/exercises.md shows the same."""

import numpy
import pytest

from heterosis import autograd, np
from heterosis.gluon import nn
from heterosis.gluon.contrib.nn import HybridConcurrent
from heterosis.runtime.errors import CaptureError

X = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)


class HybridNet(nn.HybridBlock):
    """The network of the chapter, smaller."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(4, in_units=3)
        self.output = nn.Dense(2, in_units=4)

    def hybrid_forward(self, F, x):
        return self.output(F.npx.relu(self.hidden(x)))


def made(kind):
    np.random.seed(3)
    net = kind()
    net.initialize()
    return net


def called(net, x):
    """What a network gives, with the gradients of its parameters."""
    with autograd.record():
        y = net(np.array(x))
    y.backward()
    grads = [parameter.grad() for parameter in net.collect_params().values()]
    return [one.asnumpy() for one in (y, *grads)]


def agree(net, inputs):
    expected = [called(net, x) for x in inputs]
    net.hybridize()
    for x, arrays in zip(inputs, expected, strict=True):
        for found, array in zip(called(net, x), arrays, strict=True):
            numpy.testing.assert_allclose(found, array, rtol=1e-5, atol=1e-5)


def test_parts_side_by_side():
    def parts():
        net, second = HybridConcurrent(axis=1), nn.HybridSequential()
        second.add(nn.Dense(4, in_units=3, activation="relu"), nn.Dense(2, in_units=4))
        net.add(nn.Dense(3, in_units=3), second, HybridNet())
        return net

    net = made(parts)
    assert net(np.array(X)).shape == (2, 7)
    agree(net, [X, -X])


class Looks(HybridNet):
    def hybrid_forward(self, F, x):
        x.asnumpy()
        return super().hybrid_forward(F, x)


def test_asnumpy_first_in_hybrid_forward():
    """The line is named, and nothing of ours stands between it and the reader."""
    net = made(Looks)
    assert net(np.array(X)).shape == (2, 2)
    net.hybridize()
    with pytest.raises(CaptureError) as caught:
        net(np.array(X))
    place, *_, page = str(caught.value).split("\n")
    code = Looks.hybrid_forward.__code__
    name = getattr(code, "co_qualname", code.co_name)  # Python 3.10 does not know the class
    line = code.co_firstlineno + 1
    assert place.startswith(f"{__file__}:{line} in {name}: x.asnumpy()")
    assert page.startswith("  More: docs/blockers.md")
    net.hybridize(active=False)
    assert net(np.array(X)).shape == (2, 2)


class Deciding(HybridNet):
    def hybrid_forward(self, F, x):
        h = self.hidden(x)
        if h.sum() > 0:  # noqa: SIM108 - it is the exercise
            h = F.npx.relu(h)
        else:
            h = F.np.tanh(h)
        for _ in range(3):
            h = h * 0.5 + 1
        for row in x:
            h = h + row.sum()
        while F.np.abs(h).sum() < 20:
            h = h * 1.5
        return self.output(h)


def test_if_and_for_in_hybrid_forward(capsys):
    turns = []

    class Counting(Deciding):
        def hybrid_forward(self, F, x):
            turns.append(F.__name__)
            return super().hybrid_forward(F, x)

    inputs = [X, -X, X * 10, X - 5]
    agree(made(Counting), inputs)
    assert turns == ["heterosis.ndarray"] * 4 + ["heterosis.symbol"]
