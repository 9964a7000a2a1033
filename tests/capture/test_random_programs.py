"""Random programs give the same eagerly and captured, with their gradients."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import heterosis
from heterosis import np, npx
from tests.capture.comparison import same, with_gradients

_SHAPES = ((3, 4), (4,), (4, 3), (1, 4))
_UNARY = {
    "tanh": np.tanh,
    "negative": np.negative,
    "abs": np.abs,
    "sigmoid": npx.sigmoid,
    "relu": npx.relu,
    "square": lambda x: np.square(np.tanh(x)),
    "softmax": lambda x: npx.softmax(x, -1),
    "transpose": lambda x: x.T,
    "flip": lambda x: x[::-1],
    "part": lambda x: x[..., 1:],
    "row": lambda x: x[0] if x.ndim > 1 else x[:2],
    "flat": lambda x: x.reshape(-1),
    "lift": lambda x: np.expand_dims(x, 0) if x.ndim < 3 else x.sum(0),
    "sum": lambda x: x.sum(0),
    "mean": lambda x: x.mean(-1, keepdims=True),
    "max": lambda x: x.max(-1),
    "cumsum": lambda x: np.cumsum(x, 0),
    "sort": lambda x: np.sort(x, 0),
    "take": lambda x: np.take(x, np.array([0, 0], dtype="int32"), 0),
    "double": lambda x: np.concatenate([x, -x]),
    "centre": lambda x: x - x.mean(),
}
_BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": lambda a, b: np.tanh(a) * b,
    "maximum": np.maximum,
    "where": lambda a, b: np.where(a > b, a, b * 0.5),
    "outer": lambda a, b: np.tanh(np.outer(a.reshape(-1)[:3], b.reshape(-1)[:2])),
    "matmul": lambda a, b: np.tanh(a.reshape(-1)[:6].reshape(-1, 1) @ b.reshape(1, -1)),
    "dot": lambda a, b: np.tanh(np.dot(a.reshape(1, -1)[:, :2].T, b.reshape(-1, 1)[:1])),
}
_IN_PLACE = ("fill", "add", "part", "mask", "last", "copy")


def _broadcasts(a, b):
    try:
        numpy.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return False
    return max(a.size, b.size) < 400


def _write(kind, a, b):
    """Change `a` in place."""
    if kind == "fill":
        a[...] = 0.5
    elif kind == "add":
        a += 1
    elif kind == "part":
        a[..., :1] = 2
    elif kind == "mask":
        a[a > 0.5] = 0.25
    elif kind == "last":
        a[-1] *= 3
    elif b.size:
        a[...] = b.reshape(-1)[0]


def _run(steps, arrays):
    """The results of a program: each step takes earlier arrays by number."""
    made = list(arrays)
    for kind, name, i, j in steps:
        a, b = made[i % len(made)], made[j % len(made)]
        if kind == "unary" and a.ndim and a.size and min(a.shape) > 0:
            made.append(_UNARY[name](a))
        elif kind == "binary" and min(a.size, b.size) > 0:
            plain = name in ("add", "subtract", "multiply", "maximum", "where")
            if not plain or _broadcasts(a, b):
                made.append(_BINARY[name](a, b))
        elif kind == "write" and a.ndim and a.size:
            _write(name, a, b)
    return made[len(arrays) :]


_NUMBERS = st.integers(0, 40)
_PURE = st.one_of(
    st.tuples(st.just("unary"), st.sampled_from(list(_UNARY)), _NUMBERS, _NUMBERS),
    st.tuples(st.just("binary"), st.sampled_from(list(_BINARY)), _NUMBERS, _NUMBERS),
)
_WRITES = st.tuples(st.just("write"), st.sampled_from(_IN_PLACE), _NUMBERS, _NUMBERS)
_SETTINGS = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def _arrays():
    rng = numpy.random.default_rng(1)
    return [np.array(rng.normal(size=shape), dtype="float64") for shape in _SHAPES]


@pytest.mark.lengthy
@_SETTINGS
@given(st.lists(st.one_of(_PURE, _WRITES), min_size=3, max_size=15))
def test_programs_with_writes(steps):
    compiled = heterosis.hybridize(lambda arrays: _run(steps, arrays))
    given, expected = _arrays(), _arrays()
    for _ in range(2):  # what the first run has written, the second one reads
        wanted = _run(steps, expected)
        found = compiled(given)
        same(found, wanted, 64)
        same(given, expected, 64)


@pytest.mark.lengthy
@_SETTINGS
@given(st.lists(_PURE, min_size=3, max_size=15))
def test_gradients_of_programs(steps):
    arrays = _arrays()
    compiled = heterosis.hybridize(lambda arrays: _run(steps, arrays))
    wanted = with_gradients(lambda: _run(steps, arrays), arrays)
    for _ in range(2):
        same(with_gradients(lambda: compiled(arrays), arrays), wanted, 1024)
