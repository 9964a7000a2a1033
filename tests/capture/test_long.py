"""Functions of more steps than Python's stack has room for: each step needs the one before."""

import inspect
import sys

import numpy
import pytest

import heterosis
from heterosis import np

TURNS = 240
STACK = 480  # calls; by default there are 1,000, and the programs would be as much longer


def rows_one_by_one(x):
    y = np.zeros((TURNS, 4))
    for i in range(TURNS):
        y[i] = x * i
    return y


def views_one_by_one(x):
    y = np.concatenate([x] * (TURNS // 4))
    for view in [y[i : i + 1] for i in range(TURNS)]:
        view[:] = view * 2
    return y


def chosen_rows(x):
    y, rows = np.zeros((9, 4)), np.array([5, 1, 2], dtype="int32")
    for i in range(TURNS):
        y[rows] = y[rows] * 0.5 + x * i
    return y


def joined_anew(x):
    for _ in range(TURNS // 2):
        x = np.concatenate([x[1:], x[:1] + 1])
    return x


def summed_up(x):
    for _ in range(TURNS // 2):
        x = np.cumsum(x * 0.5) - 1
    return x


def rolled(x):
    for _ in range(TURNS // 2):
        x = np.flip(np.roll(x, 1), 0) * 0.99
    return x


@pytest.fixture
def low_stack():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + STACK)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    "function",
    [
        rows_one_by_one,
        joined_anew,
        rolled,
        pytest.param(views_one_by_one, marks=pytest.mark.release),
        pytest.param(chosen_rows, marks=pytest.mark.release),
        pytest.param(summed_up, marks=pytest.mark.release),
    ],
)
def test_long_functions(function, low_stack):
    x = np.array([0.5, -1.25, 2.0, 0.75])
    expected = function(x.copy()).asnumpy()
    found = heterosis.hybridize(function)(x.copy()).asnumpy()
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
