"""Calls of every operation in a captured program, alone and amid others."""

from __future__ import annotations

from functools import cache

import numpy

from heterosis import np
from heterosis.ir.types import is_float
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, KEY, SEQUENCE
from tests.capture.comparison import same, with_gradients
from tests.choose import spread
from tests.ops.harness import LAYOUTS, arguments, lay_out

CASES = 4  # of an operation's samples
_DTYPES = ("float32", "int32")  # or the first that the operation takes


def sampled():
    """Every operation with samples, by its name, with one or two element types."""
    for name, record in sorted(REGISTRY.items()):
        if record.samples:
            chosen = [d for d in _DTYPES if d in record.samples.dtypes]
            yield from ((name, dtype) for dtype in chosen or record.samples.dtypes[:1])


class Calls:
    """Cases of one operation, as one function of all their arrays."""

    def __init__(self, record, dtype, cases):
        self.names = [
            p.name
            for p, use in zip(record.parameters, record.uses, strict=True)
            if use in (ARRAY, SEQUENCE)
        ]
        self.record = record
        self.cases = [arguments(record, case, dtype) for case in cases]

    @cache  # noqa: B019 - as long as the test
    def operands(self):
        """What the function takes: for each case its arrays, in one of the layouts."""
        return [
            [_laid_out(a, LAYOUTS[i % 3]) for a in arrays]
            for i, (arrays, _) in enumerate(self.cases)
        ]

    def single(self, operands):
        """The operation alone."""
        return [
            self.record.operation(**dict(zip(self.names, given, strict=False)), **attributes)
            for given, (_, attributes) in zip(operands, self.cases, strict=True)
        ]

    def turned(self, operands):
        """The arrays with their signs changed, but for indices."""
        indices = self.record.samples.integer_arrays
        return [
            [a if i in indices else _each(a, _turned) for i, a in enumerate(given)]
            for given in operands
        ]

    def amid(self, turned):
        """The operation with others before and behind it, that it may be fused with."""
        return _each(self.single(self.turned(turned)), _turned)


def _each(tree, function):
    if isinstance(tree, list | tuple):
        return [_each(item, function) for item in tree]
    return function(tree) if isinstance(tree, np.ndarray) else tree


def _turned(x):
    return ~x if x.dtype == "bool" else -x


def _laid_out(value, layout):
    if isinstance(value, list):
        return [_laid_out(item, layout) for item in value]
    is_array = isinstance(value, numpy.ndarray | numpy.generic)
    return lay_out(value, layout) if is_array else value


# Has no gradient, which `autograd.test_gradients` shows.
_REFUSED = "while_loop"


def differentiable():
    """The names of all operations with samples that gradients may flow through."""
    for name, record in sorted(REGISTRY.items()):
        chosen = record.samples and KEY not in record.uses
        if name != _REFUSED and chosen and any(map(is_float, record.samples.dtypes)):
            yield name


def _precise(record):
    """The float type with the most bits that the operation computes in."""
    return max(filter(is_float, record.samples.dtypes), key=lambda d: np.dtype(d).itemsize)


def _variables(calls, operands):
    """The arrays that gradients flow to."""
    indices = calls.record.samples.integer_arrays
    for given in operands:
        for i, a in enumerate(given):
            if i not in indices:
                for item in a if isinstance(a, list) else [a]:
                    if isinstance(item, np.ndarray) and is_float(item.dtype.name):
                        yield item


def results_agree(name, dtype, hybridize, ulps, some=list):
    """An operation gives the same captured by `hybridize`, to some units in the last place; of its
    cases, what `some` takes of them."""
    record = REGISTRY[name]
    calls = Calls(record, dtype, some(spread(record.samples.cases, CASES)))

    def all_of(operands, turned):
        return calls.single(operands), calls.amid(turned)

    compiled = hybridize(all_of)
    given = calls.operands(), calls.turned(calls.operands())
    wanted = all_of(*given)
    for _ in range(2):
        same(compiled(*given), wanted, ulps)
    assert compiled.captures == 1


def gradients_agree(name, hybridize, ulps):
    """The same for the gradients of an operation amid others."""
    record = REGISTRY[name]
    calls = Calls(record, _precise(record), spread(record.samples.cases, CASES))
    operands = calls.turned(calls.operands())
    variables = list(_variables(calls, operands))
    wanted = with_gradients(lambda: calls.amid(operands), variables)
    compiled = hybridize(calls.amid)
    for _ in range(2):
        same(with_gradients(lambda: compiled(operands), variables), wanted, ulps)
    assert compiled.captures == 1
