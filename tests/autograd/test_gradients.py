"""The gradient of every operation, and its gradient, by differences; eagerly and hybridized.

No operation on floats is left out. Each either has the gradient that differences find, or is known
to change in steps only (`piecewise_constant` in its record), or refuses (`REFUSED` below).
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.ir.types import is_float
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, KEY, SEQUENCE
from heterosis.runtime.errors import AutogradError, UnsupportedError
from tests.autograd.gradient_cases import MORE, POINTS, Point
from tests.ops.harness import arguments

CASES = 4  # of an operation's samples: the first ones with elements

# Operations whose gradients have none.
ONCE = {"rnn", "rnn_layer", "while_loop"}  # their steps back are a kernel of its own

# Operations that raise when they are asked for a gradient, and why there is none.
REFUSED = {
    "eig": "eigenvectors of general matrices are complex in general",
    "eigvals": "eigenvalues of general matrices are complex in general",
    "random_gamma": "the shape of a variate that is found by rejection",
    "random_chisquare": "as random_gamma",
    "random_beta": "as random_gamma",
    "random_f": "as random_gamma",
    "random_t": "as random_gamma",
    "random_dirichlet": "as random_gamma",
}


def _points(name):
    """Where the gradients of an operation are compared; none if it takes no floats."""
    record = REGISTRY[name]
    found = list(POINTS.get(name, ()))
    samples = record.samples
    if samples and any(map(is_float, samples.dtypes)):
        points = [_point(record, case) for case in samples.cases]
        points = [p for p in points if _variables(p) and all(v.size for _, v in _variables(p))]
        found += points[:CASES] + [_point(record, case) for case in MORE.get(name, ())]
    return found


def _point(record, case):
    arrays, attributes = arguments(record, case, "float64")
    uses = zip(record.parameters, record.uses, strict=True)
    names = [p.name for p, use in uses if use in (ARRAY, SEQUENCE)]
    return Point(dict(zip(names, arrays, strict=False)), attributes)


def _variables(point):
    """(name, position in a sequence or None) and elements of what is differentiated."""
    found = []
    for name, value in point.operands.items():
        if isinstance(value, list):
            found += [((name, k), item) for k, item in enumerate(value)]
        else:
            found.append(((name, None), value))
    return [(at, v) for at, v in found if isinstance(v, numpy.ndarray) and v.dtype == "float64"]


class Total:
    """The sum of an operation's float results, each element with a weight of its own, as a
    function of the operands that are floats."""

    def __init__(self, record, point):
        self.record, self.point = record, point
        self.places = [at for at, _ in _variables(point)]
        self.start = [v for _, v in _variables(point)]
        self.narrow = False  # whether the operation computes in float32 at most
        self.of_floats = True  # whether there is a result that a gradient may come from

    def __call__(self, *variables):
        operands = dict(self.point.operands)
        for (name, k), value in zip(self.places, variables, strict=True):
            if k is None:
                operands[name] = value
            else:
                operands[name] = [*operands[name][:k], value, *operands[name][k + 1 :]]
        if self.point.ready:
            operands = self.point.ready(**operands)
        results = self.record.operation(**_ours(operands), **self.point.attributes)
        return self._weighted(results if isinstance(results, tuple | list) else [results])

    def _weighted(self, results):
        floats = [r for r in results if is_float(r.dtype.name)]
        self.of_floats = bool(floats)
        self.narrow = any(r.dtype != "float64" for r in floats)
        rng = numpy.random.default_rng(0)
        total = np.zeros((), dtype="float64")
        for result in floats:
            weight = np.array(rng.uniform(0.5, 1.5, result.shape))
            total = total + (weight * result.astype("float64")).sum()
        return total

    def draw_again(self):
        """Let the next call use the random numbers of the last."""
        if KEY in self.record.uses:
            np.random.seed(0)

    def value(self, variables):
        """The number, with nothing recorded."""
        self.draw_again()
        return self(*map(np.array, variables)).item()

    def gradients(self, variables, function=None):
        """What each operand receives; None if nothing can come from the results."""
        arrays = [np.array(v) for v in variables]
        for a in arrays:
            a.attach_grad()
        self.draw_again()
        with autograd.record():
            total = (function or self)(*arrays)
        if not self.of_floats:
            return None
        total.backward()
        return [a.grad.asnumpy() for a in arrays]

    def along(self, scalar, directions):
        """The change of `scalar` of the operands in `directions`, by central differences."""
        step = 1e-3 if self.narrow else 1e-6

        def at(size):
            moved = (p + size * d for p, d in zip(self.start, directions, strict=True))
            return scalar(list(moved))

        return (at(step) - at(-step)) / (2 * step)

    def check(self, got, expected, scale, what):
        """Agree, as closely as differences can tell."""
        relative, absolute = (2e-2, 2e-3) if self.narrow else (2e-5, 2e-6)
        near = math.isclose(got, expected, rel_tol=relative, abs_tol=absolute * max(scale, 1.0))
        assert near, (what, self.point.attributes, got, expected)


def _ours(operands):
    return {
        name: list(map(_array, v)) if isinstance(v, list) else _array(v)
        for name, v in operands.items()
    }


def _array(value):
    return np.array(value) if isinstance(value, numpy.ndarray) else value


def _dot(xs, ys):
    return sum(float((x * y).sum()) for x, y in zip(xs, ys, strict=True))


def _check_first(total, gradients, rng):
    """Every operand alone, by differences."""
    for i, (gradient, place) in enumerate(zip(gradients, total.places, strict=True)):
        directions = [numpy.zeros_like(v) for v in total.start]
        directions[i] = rng.uniform(-1, 1, gradient.shape)
        expected = total.along(total.value, directions)
        total.check(_dot(gradients, directions), expected, abs(expected), place)


def _check_second(total, rng):
    """The gradient of the gradient along one direction, by differences along another."""
    if total.record.name in ONCE:
        with pytest.raises(UnsupportedError, match="has no gradient"):
            _second(total, rng)
    else:
        _second(total, rng)


def _second(total, rng):
    v, u = ([rng.uniform(-1, 1, s.shape) for s in total.start] for _ in range(2))
    arrays = [np.array(s) for s in total.start]
    for a in arrays:
        a.attach_grad()
    total.draw_again()
    with autograd.record():
        first = autograd.grad(total(*arrays), arrays, create_graph=True)
        slope = sum(((g * np.array(t)).sum() for g, t in zip(first, v, strict=True)), np.zeros(()))
    got = 0.0
    if slope._autograd is not None:
        slope.backward()
        got = _dot([a.grad.asnumpy() for a in arrays], u)
    expected = total.along(lambda p: _dot(total.gradients(p), v), u)
    total.check(got, expected, abs(expected) + abs(slope.item()), "second")


def check_hybridized(total, gradients, hybridize=heterosis.hybridize):
    """The same gradients flow through the operation captured by `hybridize`."""
    if total.record.stops_gradients:
        with pytest.raises(AutogradError, match="was not computed from variables"):
            total.gradients(total.start, hybridize(total))
        return
    found = total.gradients(total.start, hybridize(total))
    near = 1e-4 if total.narrow else 1e-9
    for a, b in zip(found, gradients, strict=True):
        numpy.testing.assert_allclose(a, b, near, near * numpy.abs(b).max(initial=1.0))


def _takes_floats(name):
    """Whether there is an operand whose gradient could be asked for."""
    record = REGISTRY[name]
    if record.samples:
        return bool(_points(name))
    return any(use in (ARRAY, SEQUENCE) for use in record.uses)


@pytest.mark.parametrize("name", [n for n in sorted(REGISTRY) if _takes_floats(n)])
def test_gradients(name, release):
    record, rng = REGISTRY[name], numpy.random.default_rng(0)
    totals = [Total(record, point) for point in _points(name)]
    assert totals, "there is no case: add one to gradient_cases"
    chosen = totals if name in POINTS else totals[:1]  # tests/capture/test_operations takes all
    seen = []
    for total in totals:
        try:
            gradients = total.gradients(total.start)
        except UnsupportedError:
            assert name in REFUSED
            with pytest.raises(UnsupportedError, match="has no gradient"):
                total.gradients(total.start, heterosis.hybridize(total))
            continue
        if gradients is None:
            continue
        if not record.stops_gradients:
            _check_first(total, gradients, rng)
            if total in chosen or release:
                _check_second(total, rng)
        if total in chosen:
            check_hybridized(total, gradients)
        seen += gradients
    if seen and all((g == 0).all() for g in seen):
        assert record.piecewise_constant or record.stops_gradients, "zero: say why in the record"
    elif seen:
        assert not record.piecewise_constant
    assert seen or name not in POINTS or name in REFUSED or not total.of_floats


def _emptied(value, axis):
    """Arrays without elements along an axis; those that lack it as they are."""
    if isinstance(value, list):
        return [_emptied(item, axis) for item in value]
    is_deep = isinstance(value, numpy.ndarray) and value.ndim > axis
    return value.take([], axis) if is_deep else value


@pytest.mark.parametrize("name", [n for n in sorted(REGISTRY) if _points(n)])
def test_gradients_of_empty_arrays(name):
    """Where an operation takes arrays without elements, so do its gradients."""
    for point in _points(name)[:CASES]:
        for axis in (0, 1):
            operands = {n: _emptied(v, axis) for n, v in point.operands.items()}
            total = Total(REGISTRY[name], Point(operands, point.attributes, point.ready))
            try:
                total.value(total.start)
            except Exception:  # noqa: BLE001, S112 - it needs elements
                continue
            with suppress(UnsupportedError):  # who may refuse is seen above
                total.gradients(total.start)
