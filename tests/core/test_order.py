"""Reads, in-place writes and views keep the order of the program: the results are NumPy's."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heterosis import _core, np

SIDE = 6
ARRAYS = 5

# Whole numbers wrap around, so that results are equal or wrong. Each entry takes (x, y) and
# returns a new array or view, or None where it has written into x.
NEW = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * 3,
    "xor": lambda x, y: x ^ y,
    "add to transpose": lambda x, y: x + y.T,
}
VIEWS = {
    "transpose": lambda x, y: x.T,
    "reverse": lambda x, y: x[::-1],
    "mirror": lambda x, y: x[:, ::-1],
    "same": lambda x, y: x[:],
}


def _add_rows(x, y):
    x[1:4] += y[2:5]


def _add_own_rows(x, y):
    x[1:] += x[:-1]


def _set_all(x, y):
    x[:] = y


def _set_columns(x, y):
    x[:, ::2] = y[:, 1::2]


def _set_row_to_number(x, y):
    x[2] = 7


def _add_transpose(x, y):
    x += x.T


def _subtract(x, y):
    x -= y


WRITES = {
    f.__name__: f
    for f in (
        _add_rows, _add_own_rows, _set_all, _set_columns, _set_row_to_number, _add_transpose,
        _subtract,
    )
}  # fmt: skip
STEPS = NEW | VIEWS | WRITES

steps = st.tuples(st.sampled_from(sorted(STEPS)), *[st.integers(0, ARRAYS - 1) for _ in range(3)])


def _run(program, arrays):
    for name, x, y, target in program:
        result = STEPS[name](arrays[x], arrays[y])
        if result is not None:
            arrays[target] = result
    return arrays


def _start(library):
    values = numpy.arange(ARRAYS * SIDE * SIDE, dtype="int32").reshape(ARRAYS, SIDE, SIDE)
    return [library.array(values[i]) for i in range(ARRAYS)]


def _same(program):
    ours, expected = _run(program, _start(np)), _run(program, _start(numpy))
    for a, b in zip(ours, expected, strict=True):
        numpy.testing.assert_array_equal(a.asnumpy(), b)


@pytest.mark.lengthy
@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=40))
def test_random_programs_queued(program):
    before = _core.inline_nanoseconds()
    _core.set_inline_nanoseconds(0)
    try:
        _same(program)
    finally:
        _core.set_inline_nanoseconds(before)


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=40))
def test_random_programs_at_once_or_queued(program):
    _same(program)


@pytest.mark.parametrize("seed", range(4))
def test_long_random_programs(seed, queued):
    generator = numpy.random.default_rng(seed)
    names = sorted(STEPS)
    program = [
        (names[generator.integers(len(names))], *map(int, generator.integers(0, ARRAYS, 3)))
        for _ in range(2000)
    ]
    _same(program)


def test_writes_through_views_are_seen_by_all_views(queued):
    x = np.array(numpy.zeros((3, 4), "float32"))
    row, column, flipped = x[1], x[:, 2], x[::-1]
    row += 1
    column += 10
    flipped[0] = 5
    assert x.tolist() == [[0, 0, 10, 0], [1, 1, 11, 1], [5, 5, 5, 5]]


def test_a_result_is_of_the_values_at_its_call(queued):
    x = np.array(numpy.zeros(100_000, "float32"))
    seen = []
    for _ in range(20):
        seen.append(x + 0)
        x += 1
    assert [y[-1].item() for y in seen] == list(range(20))


@pytest.mark.parametrize("size", [3, 1000, 200_000])
def test_queued_and_immediate_results_are_equal(size):
    values = numpy.random.default_rng(size).normal(size=size).astype("float32")

    def program():
        x = np.array(values)
        y = np.tanh(x * 2 + 1) - np.exp(-np.abs(x))
        y[::2] *= 3
        return [y.asnumpy(), y.sum().asnumpy(), y.mean().asnumpy(), (x @ y).asnumpy()]

    before = _core.inline_nanoseconds()
    results = []
    for limit in (0, 1e12):
        _core.set_inline_nanoseconds(limit)
        results.append(program())
    _core.set_inline_nanoseconds(before)
    for a, b in zip(*results, strict=True):
        numpy.testing.assert_array_equal(a, b)
