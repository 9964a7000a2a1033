"""Gradients of every differentiable operation, and their gradients, by central differences."""

import math

import numpy
import pytest

from heterosis import autograd, np
from heterosis.ir.types import is_float
from heterosis.ops import REGISTRY
from heterosis.ops.record import KEY
from tests.ops.harness import arguments, call

_STEP = 1e-6
_CASES = 4  # of an operation's samples: the first ones with elements


def _differentiable():
    for name, record in sorted(REGISTRY.items()):
        if not record.samples or not record.differentiable or KEY in record.uses:
            continue
        arrays = any(shape is not None for case in record.samples.cases for shape in case.shapes)
        if arrays and any(map(is_float, record.samples.dtypes)):
            yield name


class Function:
    """The sum of an operation's results, each element with a weight of its own, as a function of
    all its float operands."""

    def __init__(self, record, case):
        self.record = record
        self.arrays, self.attributes = arguments(record, case, "float64")
        self.rng = numpy.random.default_rng(0)
        self.weights = None

    @property
    def operands(self):
        """(position, position in a sequence or None) of what is differentiated."""
        for i, value in enumerate(self.arrays):
            if i in self.record.samples.integer_arrays:
                continue
            if isinstance(value, list):
                yield from ((i, k) for k in range(len(value)))
            elif isinstance(value, numpy.ndarray):
                yield i, None

    def values(self):
        return [self.arrays[i] if k is None else self.arrays[i][k] for i, k in self.operands]

    def __call__(self, values):
        """Of NumPy or of our arrays, in the order of `operands`."""
        full = [list(a) if isinstance(a, list) else a for a in self.arrays]
        for (i, k), value in zip(self.operands, values):
            if k is None:
                full[i] = value
            else:
                full[i][k] = value
        results = call(self.record, full, self.attributes, "contiguous")
        results = results if isinstance(results, tuple | list) else [results]
        floats = [r for r in results if is_float(r.dtype.name)]
        if self.weights is None:
            self.weights = [np.array(self.rng.uniform(0.5, 1.5, r.shape)) for r in floats]
        total = np.zeros((), dtype="float64")
        for weight, result in zip(self.weights, floats):
            total = total + (weight * result).sum()
        return total


def _along(f, point, direction, scalar):
    """The change of `scalar(f, point)` along `direction`, by central differences."""

    def at(step):
        return scalar(f, [p + step * d for p, d in zip(point, direction)])

    return (at(_STEP) - at(-_STEP)) / (2 * _STEP)


def _value(f, point):
    return f([np.array(p) for p in point]).item()


def _slope(f, point, towards, again=False):
    """The derivative of `f` in the direction `towards`, by our gradients."""
    variables = [np.array(p) for p in point]
    for v in variables:
        v.attach_grad()
    with autograd.record():
        y = f(variables)
        if y._autograd is None:
            return (0.0, None) if again else 0.0
        gradients = autograd.grad(y, variables, create_graph=again)
        slope = np.zeros((), dtype="float64")
        for g, t in zip(gradients, towards):
            slope = slope + (g * np.array(t)).sum()
    if not again:
        return slope.item()
    if slope._autograd is None:
        return slope.item(), None
    slope.backward()
    return slope.item(), [v.grad.asnumpy() for v in variables]


def _close(got, expected, scale):
    assert math.isclose(got, expected, rel_tol=2e-5, abs_tol=2e-6 * max(scale, 1.0)), (
        got,
        expected,
    )


@pytest.mark.parametrize("name", list(_differentiable()))
def test_gradients(name):
    record = REGISTRY[name]
    tried = 0
    for case in record.samples.cases:
        f = Function(record, case)
        point = f.values()
        singular = name == "std" and case.shapes == ((),)  # the root of zero
        if not point or not all(p.size for p in point) or tried == _CASES or singular:
            continue
        tried += 1
        v = [f.rng.uniform(-1, 1, p.shape) for p in point]
        u = [f.rng.uniform(-1, 1, p.shape) for p in point]
        first, second = _slope(f, point, v, again=True)
        _close(first, _along(f, point, v, _value), abs(first))
        expected = _along(f, point, u, lambda f, p, v=v: _slope(f, p, v))
        got = 0.0 if second is None else sum(float((s * t).sum()) for s, t in zip(second, u))
        _close(got, expected, abs(expected) + abs(first))
    assert tried
