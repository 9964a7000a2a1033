"""Every rewrite keeps NaN, infinities, zeros of both signs and the ends of every range."""

from dataclasses import replace

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.capture.attempts import capture
from heterosis.ir.types import DTYPES, FLOATS, UNSIGNED, is_float
from heterosis.passes.fold import FOLD
from heterosis.passes.halves import widened
from heterosis.passes.rewrite import rewritten
from heterosis.passes.simplify import SIMPLIFY
from tests.capture.special_values import same_bits, special

_numbers = [0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 1.0, -1.0, 3.0, 1e-45, 1e38, 1e300]


def _constants(x):
    """Arithmetic on every pair of numbers that are known."""
    made = [np.full((), number, dtype=x.dtype) for number in _numbers]
    for a in made:
        for b in made:
            yield from (
                a + b,
                a - b,
                a * b,
                a / b,
                -a,
                abs(b),
                a < b,
                a <= b,
                np.where(a > b, a, b),
            )


def _written_over(y, x):
    y[...] = x - x
    y[::2] = -0.0
    return y


def _sliced_of_joined(x):
    n = 12
    x = x[:n]
    y = np.concatenate([x / 3, -x, x * x])
    y[n + 1 : n + 3] = -0.0
    y[2 * n + 1 :: 2] = x[0]
    found = [y[:n], y[n - 1 :: -1], y[1:n:2], y[n : n + 1], y[n + 1 : n + 3], y[n:], y[n + 4 :: 3]]
    return [-part for part in found]


def _sums_of_padded(x):
    n = x.size

    def padded(part, before):
        return np.pad(part, (before, 3 * n - before - part.size))

    apart = [padded(-x, 0), padded(x / 3, n), padded(x * x, 2 * n)]
    meeting = padded(-x, n - 1)
    steps = [np.pad(x.reshape(1, -1), ((i, 2 - i), (0, 0))).T for i in range(3)]
    return [
        apart[0] + apart[1],
        apart[2] + (apart[0] + apart[1]),
        apart[1] + meeting,
        apart[0] + meeting + apart[2],
        steps[0] + steps[2] + steps[1],
        padded(x[:0], n) + apart[0],
        apart[0] + x[0],
    ]


# By the names of rules: functions of special values in which the rule finds something to do.
_ROWS = {
    "same shape": lambda x: x.detach() * 1,
    "whole slice": lambda x: (x * 2)[:],
    "one number, rearranged": lambda x: np.full((2, 3), -0.0, dtype=x.dtype).T + x[0],
    "reshaped twice": lambda x: x.reshape(-1, 1).reshape(1, -1) + 0,
    "repeated twice": lambda x: (
        np.broadcast_to(np.broadcast_to(x, (1, x.size)), (2, 1, x.size)) + x
    ),
    "transposed twice": lambda x: np.broadcast_to(x, (2, x.size)).T.T + x,
    "transposed in name only": lambda x: x.reshape(1, -1).T * x.reshape(-1, 1),
    "sliced twice": lambda x: x[1:][::-1] - x[:-1],
    "joined and sliced": lambda x: _sliced_of_joined(x),
    "padded and added": lambda x: _sums_of_padded(x),
    "converted to its own type": lambda x: [x.astype("float64") * 0.1, x.astype("float64") + -0.0],
    "converted there and back": lambda x: x.astype("float64").astype(x.dtype) * x,
    "written over": lambda x: _written_over(x / 3, x),
    "copied though new": lambda x: (x / 3).copy(),
    "neutral operand": lambda x: [x + -0.0, x * 1, x - 0.0, x / 1, x**1, 1 * x, -0.0 + x, x - 0],
    "not quite neutral": lambda x: [x + 0.0, x - -0.0, x * -1, x / -1, x**-1, 0 + x, 0 - x, x * 0],
    "numbers": lambda x: [x, *_constants(x)],
    "repeated numbers": lambda x: np.exp(np.full((3,), 2.0, dtype=x.dtype)) * x[0],
}
_NO_RULES = {"not quite neutral"}
_BY_HAND = {"repeated once"}  # no operation repeats what has the shape already


def _rules_used(program):
    used = set()

    def noted(rule):
        def replacement(node):
            used.add(rule.name)
            return rule.replacement(node)

        return replace(rule, replacement=replacement)

    rewritten(widened(program), [noted(rule) for rule in SIMPLIFY + FOLD])
    return used


# There are no special numbers among integers: test_passes.py folds those.
@pytest.mark.parametrize(
    "name, dtype",
    [(n, d) for n in _ROWS for d in (*FLOATS, "int8", "int64") if is_float(d) or n != "numbers"],
)
def test_rewrites(name, dtype):
    x = np.array(special(dtype), dtype=dtype)
    with numpy.errstate(all="ignore"):
        wanted = _ROWS[name](x)
        assert same_bits(heterosis.hybridize(_ROWS[name])(x), wanted)


@pytest.mark.parametrize("name", sorted(set(_ROWS) - _NO_RULES))
def test_rows_use_their_rule(name):
    x = np.array(special("float32"))
    assert name in _rules_used(capture(_ROWS[name], (x,), {}).program)


def test_every_rule_has_a_row():
    assert {rule.name for rule in SIMPLIFY + FOLD} == set(_ROWS) - _NO_RULES | _BY_HAND


@pytest.mark.parametrize("between", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_there_and_back(dtype, between):
    """Only a type that holds all values of another one may be left out between."""
    x = np.array(special(dtype), dtype=dtype)

    def through(x):
        return [x.astype(between).astype(last) for last in DTYPES]

    if is_float(dtype) and not is_float(between):
        x = np.array([0.0, -0.0, 1.0, -1.5, 100.0, 0.3], dtype=dtype)  # in every integer's range
        x = abs(x) if between in UNSIGNED else x
    assert same_bits(heterosis.hybridize(through)(x), through(x))
