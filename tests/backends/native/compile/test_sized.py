"""Plans for open sizes: for few ranges of these, and what they share."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.backends.native.compile.sized import SizedPlans
from heterosis.gluon import nn
from heterosis.runtime.errors import UnsupportedError


def plans_of(compiled):
    """The plans of the one program with open extents that a function has."""
    (known,) = compiled._kinds.values()
    (program,) = known.programs
    found = program.executable.ranges
    assert isinstance(found, SizedPlans)
    return found


def convolutions():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(16, 3, padding=1, activation="relu"), nn.BatchNorm(),
        nn.Conv2D(32, 3, strides=2), nn.MaxPool2D(2, 2), nn.Conv2D(64, 1), nn.Dense(10),
    )  # fmt: skip
    net.initialize()
    return net


def attention(query, key, value):
    return np.matmul(npx.softmax(np.matmul(query, key) / 4), value)


_SIZES = (2, 3, 5, 9, 11, 16, 20, 24, 31, 33, 48, 57, 64)


@pytest.mark.lengthy
@pytest.mark.parametrize("make, shape, most", [(convolutions, (3, 20, 20), 7)])
def test_few_ranges_serve_all_sizes(make, shape, most):
    net = make()
    net.hybridize(dynamic=True)
    for n in _SIZES:
        assert net(np.ones((n, *shape))).shape == (n, 10)
    assert len(plans_of(net._compiled).ranges) <= most


class Residual(nn.HybridBlock):
    """Convolutions of which many have sizes and places of their own in memory."""

    def __init__(self):
        super().__init__()
        widths = 8, 8, 16, 16, 32, 32, 64, 64
        self.body, self.short = [], []
        for i, width in enumerate(widths):
            self.body.append(nn.Conv2D(width, 3, padding=1, strides=1 + i % 2, use_bias=False))
            self.short.append(nn.Conv2D(width, 1, strides=1 + i % 2, use_bias=False))
            self.register_child(self.body[-1])
            self.register_child(self.short[-1])
        self.last = nn.Dense(10)

    def forward(self, x):
        for body, short in zip(self.body, self.short, strict=True):
            x = npx.relu(body(x) + short(x))
        return self.last(x)


@pytest.mark.lengthy
def test_places_in_memory_part_no_ranges():
    net = Residual()
    net.initialize()
    net.hybridize(dynamic={"x": (0,)})
    for n in _SIZES:
        x = np.array(numpy.random.default_rng(n).normal(size=(n, 3, 32, 32)).astype("float32"))
        numpy.testing.assert_allclose(net(x).asnumpy(), net.forward(x).asnumpy(), 1e-3, 1e-4)
    ranges = plans_of(net._compiled).ranges
    assert len(ranges) <= 5
    assert all(len(condition) < 40 for one in ranges for condition in one.conditions)


@pytest.mark.lengthy
def test_few_ranges_serve_all_lengths_of_attention():
    run = heterosis.hybridize(attention, dynamic=True)
    for n in _SIZES:
        generator = numpy.random.default_rng(n)
        shapes = (4, n, 16), (4, 16, n), (4, n, 16)
        given = [np.array(generator.normal(size=shape).astype("float32")) for shape in shapes]
        want = attention(*given).asnumpy()
        numpy.testing.assert_allclose(run(*given).asnumpy(), want, rtol=1e-4, atol=1e-5)
    last = next(reversed(run._kinds.values())).programs  # 16, the width too, is another program
    assert sum(len(one.executable.ranges.ranges) for one in last) <= 8


def test_ranges_share_what_is_computed_ahead():
    net = convolutions()
    net.hybridize(dynamic=True)
    for n in (4, 11, 40):
        net(np.ones((n, 3, 20, 20)))
    plans = plans_of(net._compiled)
    ahead = [found.preparation for found in plans.ranges]
    assert len(ahead) > 1 and all(one is not None and not one.varies for one in ahead)
    assert len(plans._prepared) < len(ahead)


@pytest.mark.lengthy
def test_a_changed_parameter_is_packed_anew_for_all_ranges():
    net = convolutions()
    sizes = (4, 11, 40)
    inputs = [np.array(numpy.random.default_rng(n).normal(size=(n, 3, 20, 20))) for n in sizes]
    net(inputs[0])
    compiled = heterosis.hybridize(lambda x: net(x), dynamic=True)
    for x in inputs:
        compiled(x)
    weight = net[0].weight.data()
    weight[:] = weight * 2 + 1
    for x in inputs:
        want = net(x).asnumpy()
        numpy.testing.assert_allclose(compiled(x).asnumpy(), want, rtol=1e-3, atol=1e-3)


def test_what_cannot_be_planned_with_sizes_is_told_once(monkeypatch):
    def refused(self, values):
        raise UnsupportedError("(n0*m)//(n0 + 1): no such quotient.")

    monkeypatch.setattr(SizedPlans, "_planned", refused)
    compiled = heterosis.hybridize(lambda x: x + 1, dynamic=True)
    with pytest.warns(UserWarning, match="for every size by itself: .*no such quotient"):
        assert compiled(np.ones((4,))).tolist() == [2.0] * 4
    assert compiled(np.ones((5,))).tolist() == [2.0] * 5  # and no second warning, an error here


def test_other_errors_of_planning_are_not_hidden(monkeypatch):
    def broken(self, values):
        raise ZeroDivisionError("a fault in the planner")

    monkeypatch.setattr(SizedPlans, "_planned", broken)
    with pytest.raises(ZeroDivisionError, match="a fault in the planner"):
        heterosis.hybridize(lambda x: x + 1, dynamic=True)(np.ones((4,)))
