"""Arrays that a loop's turns write parts of: in place where that is no matter, and right always."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.backends.native.schedule.updates import updates
from heterosis.capture import capture
from heterosis.ir.primitives.control import SCAN, WHILE_LOOP
from heterosis.passes.pipeline import optimized

N = 12


def _while(turn, *states):
    """The last states of `turn`, until the first of them is N."""
    return npx.while_loop(lambda i, *_: i < N, lambda *s: ([], turn(*s)), (np.array(1), *states))[1]


def written(x):
    def turn(i, cache):
        cache[i] = x * i
        return i + 1, cache

    return _while(turn, np.zeros((N, 6)))[1]


def written_and_read(x):
    def turn(i, cache, total):
        cache[i] = x * i + total.sum()
        return i + 1, cache, np.tanh(cache.sum(axis=0) * 0.1)

    return tuple(_while(turn, np.zeros((N, 6)), x)[1:])


def read_and_written(x):
    def turn(i, cache):
        cache[i] = np.sin(cache[i - 1]) * 2 + x
        return i + 1, cache

    return _while(turn, np.ones((N, 6)))[1]


def written_again(x):
    def turn(i, cache):
        before = cache[i - 1] * 1
        cache[i] = x
        cache[0] = before + 1
        cache[i] = cache[0] + cache[i]
        return i + 1, cache

    return _while(turn, np.ones((N, 6)))[1]


def crosswise(x):
    def turn(i, a, b):
        last = a[i - 1] * 1
        a[i] = b[i - 1] + x
        b[i] = last * 2 + b[i - 1]
        return i + 1, a, b

    return tuple(_while(turn, np.ones((N, 6)), np.zeros((N, 6)))[1:])


def new_of_the_other(x):
    def turn(i, a, b):
        a[i] = b[i - 1] + x
        b[i] = a[i] * 0.5 + a[0]
        return i + 1, a, b

    return tuple(_while(turn, np.ones((N, 6)), np.zeros((N, 6)))[1:])


def swapped(x):
    def turn(i, a, b):
        return i + 1, b * 1.0, a + x

    return tuple(_while(turn, np.ones((N, 6)), np.zeros((N, 6)))[1:])


def whole_read_before(x):
    def turn(i, cache, total):
        total = total + np.dot(cache, x)
        cache[i] = x + total[0]
        return i + 1, cache, total

    return tuple(_while(turn, np.ones((N, 6)), np.zeros(N))[1:])


def overlapping_parts(x):
    def turn(i, cache):
        cache[2:8] = cache[1:7] + x
        return i + 1, cache

    return _while(turn, np.ones((N, 6)))[1]


def reversed_parts(x):
    def turn(i, cache):
        cache[:, 1:4] = cache[:, 2:5][:, ::-1] + i
        return i + 1, cache

    return _while(turn, np.arange(N * 6).reshape(N, 6).astype("float32"))[1]


def left_alone(x):
    def turn(i, cache, total):
        return i + 1, cache, total + cache[i] * x

    return tuple(_while(turn, np.ones((N, 6)) * 3, x)[1:])


def several_rows(x):
    def turn(i, cache):
        rows = np.array([0, 3, 5, 3])
        cache[rows] = cache[rows[::-1]] * 0.5 + x
        return i + 1, cache

    return _while(turn, np.arange(N * 6).reshape(N, 6).astype("float32"))[1]


def handed_on(x):
    """The old one is a result of the turn, as rows."""

    def turn(row, cache):
        before = cache * 1
        cache[0] = row
        return before, cache

    return npx.foreach(turn, np.stack([x, x * 2, x * 3]), np.zeros((2, 6)))


def over_rows(x):
    def turn(row, cache):
        cache[0] = cache[1] + row
        cache[1] = row
        return cache.sum(), cache

    return npx.foreach(turn, np.stack([x, x * 2, x * 3, x]), np.zeros((N, 6)))


def of_both_types(x):
    def turn(i, tokens, scores):
        tokens[i] = (tokens[i - 1] * 3 + 1) % 7
        scores[tokens[i]] += x[0]
        return i + 1, tokens, scores

    return tuple(_while(turn, np.zeros(N, "int64"), np.zeros(7))[1:])


def within_a_choice(x):
    def turn(i, cache):
        def then():
            cache[i] = x
            return i + 1

        return npx.cond(i % 2 == 0, then, lambda: i + 1), cache

    return _while(turn, np.zeros((N, 6)))[1]


def along_the_second_axis(x):
    def turn(i, cache, total):
        cache[:, i] = x * i
        return i + 1, cache, total + cache.sum(axis=0)[0]

    return tuple(_while(turn, np.zeros((6, N)), np.array(0.0))[1:])


def read_along_the_second_axis(x):
    def turn(i, cache):
        cache[:, i] = np.tanh(cache[:, i - 1] + x)
        cache[0] = 1
        return i + 1, cache

    return _while(turn, np.ones((6, N)))[1]


def of_three_axes(x):
    def turn(i, cache):
        cache[:, i, 1] = cache[0, i - 1, 0] + x[:2]
        return i + 1, cache

    return _while(turn, np.ones((2, N, 3)))[1]


def turned(x):
    """The same elements, in another order."""

    def turn(i, cache):
        flipped = cache.T * 1
        flipped[0] = x
        return i + 1, flipped

    return _while(turn, np.ones((6, 6)))[1]


def written_to_itself(x):
    rows = np.array([5, 4, 3, 2, 1, 0])

    def turn(i, cache):
        cache.T[rows] = cache
        return i + 1, cache

    return _while(turn, np.arange(36).reshape(6, 6).astype("float32"))[1]


# With the positions of what is carried and updated in place, 0 being the count where there is one.
PROGRAMS = {
    written: {1}, written_and_read: {1}, read_and_written: {1}, written_again: set(),
    crosswise: {1, 2}, new_of_the_other: {1, 2}, swapped: set(), whole_read_before: set(),
    overlapping_parts: {1}, reversed_parts: {1}, left_alone: {1}, several_rows: {1},
    along_the_second_axis: {1}, read_along_the_second_axis: {1}, of_three_axes: {1},
    turned: set(), written_to_itself: set(), handed_on: set(), over_rows: {0},
    of_both_types: {1}, within_a_choice: set(),
}  # fmt: skip


def _results(found):
    return [a.asnumpy() for a in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_as_of_python(function):
    x = np.array(numpy.linspace(-1, 1, 6, dtype="float32"))
    compiled, expected = heterosis.hybridize(function), _results(function(x))
    for _ in range(2):
        for ours, theirs in zip(_results(compiled(x)), expected, strict=True):
            numpy.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_updated_in_place(function):
    program = optimized(capture(function, (np.ones(6),), {}).program)
    (loop,) = (n for n in program.nodes() if n.primitive in (SCAN, WHILE_LOOP))
    found = updates(loop.attributes["body"], loop.attributes["carried"])
    assert set(found) == PROGRAMS[function]
