"""Choices and loops in hybridized functions: as Python runs them, in every way of running."""

from typing import Any, NamedTuple

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.capture import capture
from heterosis.gluon import nn
from heterosis.ir.primitives.control import SCAN, WHILE_LOOP, WHILE_LOOP_BACK
from heterosis.passes.pipeline import optimized
from heterosis.runtime.errors import (
    ArgumentError,
    ArgumentTypeError,
    CaptureError,
    ShapeError,
    UnsupportedError,
)

X = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
W = np.array(numpy.linspace(-1, 1, 9, dtype="float32").reshape(3, 3))


class Pair(NamedTuple):
    left: Any
    right: Any


def one_of_two(x):
    return npx.cond(x.sum() > 0, lambda: x * 2, lambda: np.exp(x))


def of_inputs(x):
    return npx.cond(lambda a: a.sum() > 0, lambda a: a * 3, lambda a: -a, [x])


def structures(x):
    first = (x.sum() > 0, lambda: {"a": [x, x * 2], "b": Pair(x + 1, 7)})
    found = npx.cond(*first, lambda: {"a": [x - 1, x], "b": Pair(x * x, 7)})
    return found["a"][0] + found["a"][1] * found["b"].left * found["b"].right


def rows(x):
    return npx.foreach(lambda row, s: (np.tanh(row @ W + s), row @ W + s * 0.5), x, np.zeros(3))


def rows_of_several(x):
    def body(given, states):
        (a, b), (s, t) = given, states
        return [a * s, b + t], [s + b, t * a]

    (first, second), (s, t) = npx.foreach(body, [x, np.exp(x)], [np.ones(3), x[0] + 1])
    return first, second, s, t


def no_rows(x):
    return npx.foreach(lambda row, s: (row, s * 2), np.zeros((0, 3)), x)[1]


def bounded(x):
    made, (_, y) = npx.while_loop(
        lambda i, y: (y.sum() < 50) & (i < 20),
        lambda i, y: (y * 2, (i + 1, y * 1.5 + 1)),
        (np.array(0), x),
        max_iterations=12,
    )
    return made, y


def never(x):
    return npx.while_loop(lambda y: y.sum() > 100, lambda y: (y, y * 2), x, max_iterations=3)[1]


def within_each_other(x):
    def body(row, s):
        return npx.cond(row.sum() > 0, lambda: (row * s, s + 1), lambda: (row - s, s * 0.5))

    return npx.foreach(body, x, np.ones(3))


def around_a_loop(x):
    def loop():
        return npx.foreach(lambda row, s: (row * s, s + row), x, x[1])

    return npx.cond(x.sum() > 0, loop, lambda: (x, x[0] * 2))


NETWORK = nn.Dense(3, in_units=3)
NETWORK.initialize()


def blocks_with_parameters(x):
    return npx.cond(x.sum() > 0, lambda: NETWORK(x), lambda: NETWORK(NETWORK(x)))


PROGRAMS = [
    one_of_two,
    of_inputs,
    structures,
    rows,
    rows_of_several,
    no_rows,
    bounded,
    never,
    within_each_other,
    around_a_loop,
    pytest.param(blocks_with_parameters, marks=pytest.mark.main_memory("its parameters are there")),
]


def results(found):
    return [a.asnumpy() for a in (found if isinstance(found, tuple) else (found,))]


def agree(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shift", [0.5, -0.5])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_hybridized_as_python(function, shift, tmp_path):
    x = np.array(X + shift)
    expected = results(function(x))
    compiled = heterosis.hybridize(function)
    agree(results(compiled(np.array(X - shift))), results(function(np.array(X - shift))))
    agree(results(compiled(x)), expected)
    assert compiled.captures == 1
    heterosis.save(compiled, tmp_path / "program")
    loaded = heterosis.load(tmp_path / "program")
    agree(results(loaded(x)), expected)
    agree(results(loaded(np.array(X - shift))), results(function(np.array(X - shift))))
    heterosis.save(loaded, tmp_path / "again")
    again = heterosis.load(tmp_path / "again")
    assert again.signatures == loaded.signatures
    agree(results(again(x)), expected)


@pytest.mark.parametrize("shift", [0.5, -0.5])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_as_of_python(function, shift):
    def gradient(run):
        x = np.array(X + shift)
        x.attach_grad()
        with autograd.record():
            found = run(x)
            loss = sum(
                (a * np.sin(a)).sum() for a in (found if isinstance(found, tuple) else (found,))
            )
        loss.backward()
        return x.grad.asnumpy()

    expected = gradient(function)
    compiled = heterosis.hybridize(function)
    numpy.testing.assert_allclose(gradient(compiled), expected, rtol=2e-5, atol=1e-5)
    numpy.testing.assert_allclose(gradient(compiled), expected, rtol=2e-5, atol=1e-5)


def test_types_of_branches_are_joined():
    def function(x):
        return npx.cond(x.sum() > 0, lambda: x > 0, lambda: x)

    found = heterosis.hybridize(function)(np.array(X + 1))
    assert found.dtype == "float32"
    numpy.testing.assert_array_equal(found.asnumpy(), X + 1 > 0)


@pytest.mark.parametrize("function", [one_of_two, rows, bounded, around_a_loop])
def test_recorded_inside(function):
    def step(x, y):
        with autograd.record():
            found = function(x * y)
            loss = sum((a * a).sum() for a in (found if isinstance(found, tuple) else (found,)))
        (found,) = autograd.grad([loss], [y])
        return found

    y = np.array(X + 1.25)
    y.attach_grad()

    def inside(x):
        return step(x, y)

    x = np.array(X + 0.5)
    numpy.testing.assert_allclose(
        heterosis.hybridize(inside)(x).asnumpy(), inside(x).asnumpy(), rtol=1e-5, atol=1e-5
    )


def test_a_loop_without_bound():
    def newton(a):
        def goes_on(x):
            return np.abs(x * x - a).max() > 1e-4

        made, root = npx.while_loop(goes_on, lambda x: ([], (x + a / x) / 2), np.ones(3))
        assert made == []
        return root

    a = np.array([2.0, 9.0, 100.0])
    compiled = heterosis.hybridize(newton)
    numpy.testing.assert_allclose(compiled(a).asnumpy(), [2**0.5, 3, 10], rtol=1e-5)
    numpy.testing.assert_array_equal(compiled(a).asnumpy(), newton(a).asnumpy())


# -- back through loops without bound --------------------------------------------------------------


def newton(x):
    a = x * x + 1

    def goes_on(root):
        return np.abs(root * root - a).max() > 1e-4

    return npx.while_loop(goes_on, lambda root: ([], (root + a / root) / 2), np.ones((2, 3)))[1]


def many_turns(x):
    def turn(i, y, total):
        return [], (i + 1, y * 0.99 + np.tanh(x @ W) * 0.01, total + y.sum() * i)

    state = (np.array(0), x, np.array(0.0))
    return tuple(npx.while_loop(lambda i, y, total: i < 150, turn, state)[1][1:])


def as_many_turns_as_fit(x):
    """The first memory for what is carried is for 16 turns."""

    def turns(n):
        state = np.array(0), x
        return npx.while_loop(lambda i, y: i < n, lambda i, y: ([], (i + 1, np.sin(y) + x)), state)[
            1
        ][1]

    return sum(turns(n).sum() for n in (14, 15, 16, 17))


def no_turn(x):
    return npx.while_loop(lambda y: y.sum() > 100, lambda y: ([], y * 2), x * 3)[1]


def loop_within_a_turn(x):
    def inner(y):
        return npx.while_loop(lambda z: (z * z).sum() < 4, lambda z: ([], z * 1.5), y)[1]

    def turn(row, s):
        return inner(row + 0.1) * s, s + row

    return npx.foreach(turn, x, np.ones(3))


def loop_within_a_loop(x):
    def turn(y):
        z = npx.while_loop(lambda z: (z * z).sum() < 2, lambda z: ([], z * 1.5 + x), y * 0.1)[1]
        return [], y + np.abs(z)

    return npx.while_loop(lambda y: y.sum() < 9, turn, np.abs(x) + 0.1)[1]


def parts_written_in_turns(x):
    y = np.zeros((2, 3))

    def turn(i):
        y[i % 2] = x[i % 2] * y[(i + 1) % 2] + x[0] * i
        return [], i + 1

    npx.while_loop(lambda i: i < 5, turn, np.array(0))
    return y * 2


def dropped_until(x):
    def turn(i, y):
        return [], (i + 1, y + DROPPING(x * y))

    return npx.while_loop(lambda i, y: i < 20, turn, (np.array(0), x))[1][1]


REPEATED = [
    newton,
    many_turns,
    as_many_turns_as_fit,
    no_turn,
    loop_within_a_turn,
    loop_within_a_loop,
    parts_written_in_turns,
    dropped_until,
]


@pytest.mark.parametrize("shift", [0.3, -0.3])
@pytest.mark.parametrize("function", REPEATED, ids=lambda f: f.__name__)
def test_gradients_of_loops_without_bound(function, shift):
    def gradient(run):
        np.random.seed(5)
        x = np.array(X + shift)
        x.attach_grad()
        with autograd.record():
            found = run(x)
            loss = sum(
                (a * np.cos(a)).sum() for a in (found if isinstance(found, tuple) else (found,))
            )
        loss.backward()
        return [x.grad.asnumpy(), loss.asnumpy()]

    compiled, expected = heterosis.hybridize(function), gradient(function)
    for _ in range(2):
        for ours, theirs in zip(gradient(compiled), expected, strict=True):
            numpy.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=1e-4)


def test_a_step_of_training_with_a_loop_without_bound():
    def step(x):
        with autograd.record():
            loss = (newton(x * y) ** 2).sum()
        (found,) = autograd.grad([loss], [y])
        return found, loss

    y = np.array(X + 1.25)
    y.attach_grad()
    x = np.array(X + 0.5)
    agree(results(heterosis.hybridize(step)(x)), results(step(x)))


def test_a_gradient_of_a_gradient_of_a_loop_without_bound():
    x = np.array(X)
    x.attach_grad()
    compiled = heterosis.hybridize(newton)
    with autograd.record():
        found = compiled(x).sum()
        with pytest.raises(UnsupportedError, match="a loop with max_iterations has"):
            autograd.grad([found], [x], create_graph=True)


# -- random numbers -------------------------------------------------------------------------------


def draws_in_one_branch(x):
    first = np.random.uniform(size=2)
    found = npx.cond(
        x.sum() > 0,
        lambda: np.random.normal(size=3) + np.random.uniform(size=3),
        lambda: x[0] * np.random.uniform(size=3),
    )
    return first, found, np.random.uniform(size=2)


def draws_in_turns(x):
    def turn(row, s):
        return row + np.random.normal(size=3), s + np.random.randint(0, 9, size=3)

    return *npx.foreach(turn, x, np.zeros(3, "int64")), np.random.normal(size=4)


def draws_in_some_turns(x):
    def turn(row, s):
        found = npx.cond(row.sum() > 0, lambda: np.random.normal(size=3), lambda: row * 2)
        return found, s + np.random.uniform(size=3)

    return *npx.foreach(turn, x, np.zeros(3)), np.random.normal(size=4)


def draws_until(x):
    def turn(i, u):
        return i, (i + 1, u + np.random.uniform())

    found = npx.while_loop(lambda i, u: u < 2 + x.sum(), turn, (np.array(0), np.array(0.0)), 9)
    return found[0], *found[1], np.random.uniform(size=2)


def draws_in_a_condition(x):
    _, i = npx.while_loop(
        lambda i: np.random.uniform() + x[0, 0] * 0.1 < 0.7, lambda i: ([], i + 1), np.array(0)
    )
    return i, np.random.uniform(size=2)


def draws_in_a_condition_of_python(x):
    i = np.array(0)
    while np.random.uniform() + x[0, 0] * 0.1 < 0.7:
        i = i + 1
    return i, np.random.uniform(size=2)


DRAWING = [
    draws_in_one_branch,
    draws_in_turns,
    draws_in_some_turns,
    draws_until,
    draws_in_a_condition,
    draws_in_a_condition_of_python,
]


@pytest.mark.parametrize("shift", [0.1, -0.1])
@pytest.mark.parametrize("function", DRAWING, ids=lambda f: f.__name__)
def test_the_same_random_numbers_as_of_python(function, shift, tmp_path):
    def drawn(run):
        np.random.seed(7)
        np.random.uniform()
        found = [results(run(np.array(X + shift))) for _ in range(2)]
        return [*found[0], *found[1], np.random.uniform(size=3).asnumpy()]

    compiled, expected = heterosis.hybridize(function), drawn(function)
    agree(drawn(compiled), expected)
    heterosis.save(compiled, tmp_path / "program")
    agree(drawn(heterosis.load(tmp_path / "program")), expected)


def test_loops_of_many_seeds_draw_as_python_does():
    compiled = heterosis.hybridize(draws_in_some_turns)
    for seed in (0, 2**31, 2**63, 2**64 - 1):
        np.random.seed(seed)
        expected = results(draws_in_some_turns(np.array(X)))
        np.random.seed(seed)
        agree(results(compiled(np.array(X))), expected)


DROPPING = nn.Dropout(0.5)


def dropped_rows(x):
    def turn(row, s):
        s = np.tanh(DROPPING(row @ W) + s)
        return s, s

    return npx.foreach(turn, x, np.ones(3))


def dropped_in_a_branch(x):
    return npx.cond(x.sum() > 0, lambda: DROPPING(x * x), lambda: DROPPING(np.exp(x)))


@pytest.mark.main_memory("one of the weights is there")
@pytest.mark.parametrize("function", [dropped_rows, dropped_in_a_branch], ids=lambda f: f.__name__)
def test_backward_drops_what_forward_has_dropped(function):
    def gradient(run):
        np.random.seed(3)
        x = np.array(numpy.repeat(X, 4, 0))
        x.attach_grad()
        with autograd.record():
            found = run(x)
            loss = sum((a * a).sum() for a in (found if isinstance(found, tuple) else (found,)))
        loss.backward()
        return [x.grad.asnumpy(), loss.asnumpy(), np.random.uniform(size=2).asnumpy()]

    compiled = heterosis.hybridize(function)
    for _ in range(2):
        agree(gradient(compiled), gradient(function))


def test_supplied_numbers_are_refused_within_a_loop():
    parameter = gluon.Parameter("p", shape=(3,))
    parameter.initialize()
    trainer = gluon.Trainer([parameter], "sgd", {"learning_rate": 0.1})

    def function(x):
        def turn(row, s):
            parameter.grad()[:] = row
            trainer.update(1)
            return row, s

        return npx.foreach(turn, x, np.zeros(3))

    with pytest.raises(CaptureError, match="Let the optimizer step outside"):
        heterosis.hybridize(function)(np.array(X))


# -- writes in place ------------------------------------------------------------------------------


def test_what_is_written_within_is_written():
    def function(x, y):
        def then():
            y[0] = x[1]
            return y * 2

        found = npx.cond(x.sum() > 0, then, lambda: y + 1)
        return found, y * 1

    for shift in (1, -1):
        given = [[np.array(X + shift), np.zeros((2, 3))] for _ in range(2)]
        expected, found = function(*given[0]), heterosis.hybridize(function)(*given[1])
        agree(results(found), results(expected))
        agree(results(given[1][1]), results(given[0][1]))


def test_turns_write_to_a_view_of_an_array_outside():
    def function(x, y):
        def turn(row, total):
            y[:, 1] = y[:, 1] + row[:2]
            return y.sum(), total + y[0, 1]

        return npx.foreach(turn, x, np.zeros(()))

    given = [[np.array(X), np.ones((2, 3))] for _ in range(2)]
    expected, found = function(*given[0]), heterosis.hybridize(function)(*given[1])
    agree(results(found), results(expected))
    agree(results(given[1][1]), results(given[0][1]))


def test_what_may_be_one_array_is_not_written_to():
    def after(x, y):
        found = npx.cond(x.sum() > 0, lambda: x, lambda: y)
        found += 1
        return x * 1

    def before(x, y):
        found = npx.cond(x.sum() > 0, lambda: x[0], lambda: y[0])
        x[0, 0] = 5
        return found

    def state(x, y):
        _, last = npx.foreach(lambda row, s: (row, s), x, y)
        last += 1
        return y * 1

    for function in (after, before, state):
        with pytest.raises(CaptureError, match="may be another one as well"):
            heterosis.hybridize(function)(
                np.array(X), np.array(X) if function is not state else np.ones(3)
            )


def test_states_that_turns_write_to():
    def function(x, start):
        def turn(row, s):
            s += row
            return s * 2, s

        return npx.foreach(turn, x, start)

    given = [[np.array(X), np.ones(3)] for _ in range(2)]
    expected, found = function(*given[0]), heterosis.hybridize(function)(*given[1])
    agree(results(found), results(expected))
    agree(results(given[1][1]), results(given[0][1]))


def test_states_that_are_written_to_and_replaced():
    def function(x):
        def turn(row, s):
            s += row
            return s * 2, s + 1

        return npx.foreach(turn, x, np.zeros(3))

    with pytest.raises(CaptureError, match="is another array behind the turn"):
        heterosis.hybridize(function)(np.array(X))


def test_rows_are_what_a_turn_gave_whatever_later_turns_write():
    y = np.zeros((2, 3))

    def state(x):
        def turn(row, s):
            s += row
            return s, s

        return npx.foreach(turn, x, np.zeros(3))

    def part(x):
        def turn(row, s):
            s += row
            return s[1:], s

        return npx.foreach(turn, x, np.zeros(3))

    def outside(x):
        def turn(row, s):
            y[0] = row
            return y, s

        return npx.foreach(turn, x, np.zeros(3))

    def bounded(x):
        def turn(s):
            s += 1
            return s, s

        return npx.while_loop(lambda s: s.sum() < 9, turn, x[0] * 1, max_iterations=4)

    for function in (state, part, outside, bounded):
        expected = function(np.array(X))
        agree(results(heterosis.hybridize(function)(np.array(X))), results(expected))
        rows = expected[0].asnumpy()
        assert not numpy.array_equal(rows[0], rows[-1])


def test_rows_are_not_written_to():
    def function(x):
        def turn(row, s):
            row += 1
            return row, s

        return npx.foreach(turn, x, np.zeros(3))

    with pytest.raises(CaptureError, match="written to in place"):
        heterosis.hybridize(function)(np.array(X))


@pytest.mark.parametrize("pack", [lambda a: a, lambda a: [a], lambda a: [a, a * 2], lambda a: []])
def test_no_rows_give_what_rows_would_give(pack):
    def function(x):
        return npx.foreach(lambda row, s: (pack(row + s[0]), s), x, [np.ones(3)])

    for shape in ((0, 3), (2, 3)):
        found, (last,) = function(np.zeros(shape))
        expected, _ = heterosis.hybridize(function)(np.zeros(shape))
        assert type(found) is type(expected) is (list if type(pack(1)) is list else np.ndarray)
        found, expected = ([*made] if type(made) is list else [made] for made in (found, expected))
        pairs = zip(found, expected, strict=True)
        assert all(one.shape == other.shape == shape for one, other in pairs)
        assert last.tolist() == [1, 1, 1]


# -- what is refused ------------------------------------------------------------------------------

REFUSED = [
    (lambda x: npx.cond(x.sum() > 0, lambda: x, lambda: x[0]),
     CaptureError, r"shapes \(2, 3\) and \(3,\)"),
    (lambda x: npx.cond(x.sum() > 0, lambda: (x, x), lambda: x),
     CaptureError, "one structure"),
    (lambda x: npx.cond(x.sum() > 0, lambda: "a", lambda: "b"),
     CaptureError, "then, .*of type str; expected arrays"),
    (lambda x: npx.cond(x.sum() > 0, x, lambda: x),
     ArgumentTypeError, "then_func is .*; expected a function"),
    (lambda x: npx.foreach(lambda r, s: (r, s.astype("int32")), x, x[0]),
     CaptureError, r"state 0 is float32\[3\] before"),
    (lambda x: npx.foreach(lambda r, s: (r, [s, s]), x, x[0]),
     CaptureError, "gives 2 states; expected 1"),
    (lambda x: npx.foreach(lambda r, s: r, x, x[0]), ArgumentTypeError, "expected a pair"),
    (lambda x: npx.foreach(lambda r, s: (r, s), [x, x[0]], x[0]), ShapeError, "as many rows"),
    (lambda x: npx.foreach(lambda r, s: (r, s), [], x[0]), ArgumentError, "an empty list"),
    (lambda x: npx.while_loop(lambda s: s.sum() < 9, lambda s: (s, s * 2), x),
     ArgumentError, "give max_iterations"),
]  # fmt: skip


@pytest.mark.parametrize("function, error, message", REFUSED)
def test_refusals(function, error, message):
    def caught(x):
        try:
            return function(x)
        except CaptureError:
            return x  # a capture that refused once ends so, whoever catches it

    with pytest.raises(error, match=message):
        heterosis.hybridize(caught)(np.array(X))


# -- what goes back --------------------------------------------------------------------------------


def cached_in_a_for(x, weight):
    cache, state = np.zeros((len(x), 4)), np.zeros(4)
    for i, row in enumerate(x):
        state = np.tanh(np.dot(state, weight) + row)
        cache[i] = state
    return (cache * x).sum() + state.sum()


def cached_in_a_while(x, weight):
    cache, state = np.zeros((len(x), 4)), np.zeros(4)
    i = 0
    while i < state.sum() + len(x) - 2:
        state = np.tanh(np.dot(state, weight) + x[i])
        cache[i] = state
        i = i + 1
    return (cache * x).sum() + state.sum()


@pytest.mark.parametrize("function", [cached_in_a_for, cached_in_a_while])
def test_a_cache_that_is_only_written_is_not_kept(function):
    """The way back asks for the states, and not for all of the cache in every turn."""
    x, weight = np.random.normal(size=(50, 4)) * 0.1, np.random.normal(size=(4, 4)) * 0.1
    weight.attach_grad()

    def gradient():
        with autograd.record():
            y = function(x, weight)
        y.backward()
        return weight.grad * 1

    program = optimized(capture(gradient, (), {}).program)
    loops = [n for n in program.nodes() if n.primitive in (SCAN, WHILE_LOOP, WHILE_LOOP_BACK)]
    assert loops
    assert max(value.size for node in loops for value in node.outputs) <= 50 * 4
    kept = [n.attributes["carried"] for n in loops if n.primitive is WHILE_LOOP_BACK]
    assert kept == [2] * len(kept)  # the state and the number of the turn
    expected = gradient()
    numpy.testing.assert_allclose(
        heterosis.hybridize(gradient)().asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6
    )
    outside = heterosis.hybridize(function)
    with autograd.record():
        y = outside(x, weight)
    y.backward()
    numpy.testing.assert_allclose(weight.grad.asnumpy(), expected.asnumpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("extent", [0, 2])
def test_turns_may_hand_on_an_array_from_around_as_it_is(extent):
    """It is taken from there by being handed on, after all else was."""

    def rows(x, y):
        (handed, halved), last = npx.foreach(lambda row, s: ([y, s[0] * 0.5], [y]), x, [y])
        return handed, halved, last[0]

    def last(x, y):
        return npx.while_loop(
            lambda s, n: n < 3, lambda s, n: ([], [y, n + 1]), [y * 2, np.zeros(())]
        )[1]

    x, y = np.ones((3, extent)), np.arange(extent * 1.0)
    for function in (rows, last):
        expected, found = function(x, y), heterosis.hybridize(function)(x, y)
        for ours, theirs in zip(expected, found, strict=True):
            assert ours.shape == theirs.shape
            assert (ours == theirs).all()


def test_what_was_written_before_a_branch_is_not_read_there():
    kept = np.ones(3)

    @heterosis.hybridize
    def after_a_write(x):
        kept[:] = kept + 1
        if x.sum() > 0:
            x = x * float(kept.asnumpy()[0])
        return x

    @heterosis.hybridize
    def as_it_is(x):
        if x.sum() > 0:
            x = x * float(kept.asnumpy()[0])
        return x

    with pytest.raises(CaptureError, match="needs the elements of an array"):
        after_a_write(np.ones(2))
    for number in (1, 5):
        kept[:] = number
        assert as_it_is(np.ones(2)).tolist() == [number, number]
