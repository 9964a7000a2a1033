"""Plain `if`, `while` and `for` that arrays decide, in hybridized functions: as in Python."""

import functools
from contextlib import nullcontext

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.gluon import nn
from heterosis.gluon.block import HybridBlock
from heterosis.runtime.errors import CaptureError

X = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
SHIFTS = (0.3, -0.3, 1.2, -3)


# -- choices --------------------------------------------------------------------------------------


def one_of_two(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = np.exp(x)
    return y


def no_else(x):
    y = x * 1
    if x.sum() > 0:
        y = y + 1
        z = y * 2
        y = z - x
    return y


def several(x):
    if x.sum() > 5:
        return x * 2
    if x.max() > 0.7:
        return x - 1
    z = x * x
    return z + 1


def returns_within(x):
    y = x
    if x.sum() > 0:
        if x.max() > 1.5:
            return x * 3
        y = x + 5
    y = y * 2
    return y


def numbers(x):
    scale = 2
    if x.sum() > 0:
        scale = 3.5
    return x * scale


def expressions(x):
    a = x * 2 if x.sum() > 0 else -x
    positive = (x.sum() > 0) and (x.max() > 1)
    if not positive and -2 < x.max() < 3:
        a = a + 1
    if x.sum() > 0 or x.min() > -2:
        a = a * 1.5
    return a


def known_by_python(x, flag=True, items=(1, 2, 3)):
    found = []
    for i in items:
        if i == 2:
            continue
        if flag and x.ndim == 2:
            found.append(x * i)
    return sum(found)


def several_results(x):
    a, (b, c) = x, (x + 1, [x + 2])
    if x.sum() > 0:
        (a, b), c = (b, a), [x * 5]
    return a + b * 2 + c[0] if isinstance(c, list) else a


def of_one_structure(x):
    a, b = x, x + 1
    if x.sum() > 0:
        a, b = b, a
    return a * 2 + b


# -- loops ----------------------------------------------------------------------------------------


def until_large(x):
    i = 0
    while x.sum() < 50 and i < 20:
        x = x * 1.5 + 1
        i += 1
    return x, np.zeros(1) + i


def left_early(x):
    total = np.zeros(())
    for row in x:
        if row.sum() > 5:
            break
        if row.sum() < -2:
            continue
        total = total + row.sum()
    return total


def returned_from_a_loop(x):
    for row in x:
        if row.sum() > 0:
            return row * 2
    return x[0]


def loop_in_a_loop(x):
    total = np.zeros(3)
    for row in x:
        count = 0
        while row.max() < 4:
            row = row + 1.5
            count += 1
        total = total + row * count
    return total


def halves(x):
    step = 1.0
    while step * np.abs(x).max() > 0.1:
        step = step / 2
    return x * step


def numbers_of_python(x):
    for i in range(3):
        if x.sum() > i:
            x = x - 0.25
    return x


def while_true(x):
    n = 0
    while True:
        x = x * 2 + 1
        n += 1
        if x.max() > 30 or n > 9:
            break
    return x


# -- what is called -------------------------------------------------------------------------------


def doubled(v, limit=10):
    while np.abs(v).sum() < limit:
        v = v * 2 + 1
    return v


class Plain:
    def __init__(self, limit):
        self.__limit = limit

    def run(self, v):
        if v.sum() > self.__limit:
            return v - self.__limit
        return doubled(v)


def calls(x):
    within = lambda v: v * 3 if v.sum() > 0 else v  # noqa: E731
    partly = functools.partial(doubled, limit=4)
    return within(doubled(x)) + partly(x) + Plain(2).run(x) + max(1, 2)


def closures(x):
    total = x.sum()

    def chosen(y):
        if total > 0:
            return y + total
        return y - total

    return chosen(x) * 2


def recursion(x, n=3):
    if n == 0:
        return x
    if x.sum() > 0:
        return recursion(x * 0.5 - 1, n - 1)
    return recursion(x + 1, n - 1)


class Base:
    factor = 2

    def run(self, x):
        return x * self.factor


class Derived(Base):
    def run(self, x, *more, scale=1, **named):
        if x.sum() > 0:
            return super().run(x) * scale
        return -super().run(x)


def methods(x):
    return Derived().run(x, scale=3)


def finally_done(x):
    n = 0
    try:
        if x.sum() > 0:
            return x * 2
        n += 1
    finally:
        n += 1
    with autograd.pause():
        if x.max() > 0:
            return x * 3
    return x * n


def comprehension(x):
    return sum([row * 2 if row.sum() > 0 else -row for row in x])


def own_lists(x):
    if x.sum() > 0:
        parts = [x]
        parts.append(x * 2)
        named = {"c": x}
        named["d"] = x + 1
        parts[0] = parts[1] + named["d"]
        return sum(parts)
    return x


def tuple_from_a_loop(x):
    for row in np.concatenate([x] * 4):
        if row.sum() > 0.5:
            return row, (row * 2).sum()
    return x[0], x[1].sum()


def endless(x):
    while True:
        x = x + 1
        if x.sum() > 4:
            return x, x.max()


def backwards(x):
    state = np.zeros(3)
    for i, row in enumerate(reversed(np.concatenate([x] * 4))):
        state = np.tanh(state * 0.5 + row * i)
    return state


def callbacks(x):
    def doubled(row):
        if row.sum() > 0:
            return row * 2
        return -row

    def added(state, row):
        if row.max() > 0.5:
            state = state + row * 3
        return state

    rows = list(map(doubled, x))
    return np.stack(rows), functools.reduce(added, x, np.zeros(3))


def explicit_bodies(x):
    def body(row, state):
        if row.sum() > 0:
            state = state + row
        return state * row, state

    def positive():
        return x * 2 if x.max() > 1 else x * 3

    outputs, state = npx.foreach(body, x, np.zeros(3))
    return outputs, state, npx.cond(x.sum() > 0, positive, lambda: x)


ROWS_OUTSIDE = np.array([[0.5, 1.0, -1.0], [0.1, 0.2, 0.3], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]] * 2)


def rows_from_outside(x):
    y = x * 0
    for i, row in enumerate(ROWS_OUTSIDE):
        y = y + x * row.sum() * i
        if y.sum() > 3:
            break
    return y


def items_from_outside(x):
    for i, (row, text) in enumerate(zip([x[0], x[1], -x[0]], ["a", "b", "a"])):
        if row.sum() > 0.5:
            return row * i * (2 if text == "a" else 3)
    return x[0]


class Steps:
    """Can be gone through, and called."""

    def __iter__(self):
        return iter([1, 2, 3])

    def __call__(self, step):
        return -step if step > 1 else step * 2


def callables_that_are_gone_through(x):
    steps = Steps()
    found = [*map(float, steps), max(steps, key=steps), *filter(None, steps)]
    return x * sum(found) if x.sum() > 0 else x * sorted(steps, key=steps)[1]


PROGRAMS = [
    callables_that_are_gone_through,
    rows_from_outside, items_from_outside,
    tuple_from_a_loop, endless, backwards, callbacks, explicit_bodies,
    own_lists, one_of_two, no_else, several, returns_within, numbers, expressions,
    known_by_python, several_results, of_one_structure, until_large, left_early,
    returned_from_a_loop, loop_in_a_loop, halves, numbers_of_python, while_true, calls, closures,
    comprehension, recursion, methods, finally_done,
]  # fmt: skip


def results(found):
    return [a.asnumpy() for a in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_hybridized_as_python(function):
    compiled = heterosis.hybridize(function)
    for shift in SHIFTS:
        expected = results(function(np.array(X + numpy.float32(shift))))
        found = results(compiled(np.array(X + numpy.float32(shift))))
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.dtype == theirs.dtype
            numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    assert compiled.captures == 1


def test_integers_stay_integers():
    def counted(x):
        count = 2**24
        while x.sum() < 10:
            x, count = x + 1, count + 1
        return count

    x = np.array(X)
    found = heterosis.hybridize(counted)(x)
    assert found.dtype == "int64"
    assert int(found) == counted(x) > 2**24


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_as_of_python(function, shift):
    def gradient(run):
        x = np.array(X + numpy.float32(shift))
        x.attach_grad()
        with autograd.record():
            found = run(x)
            found = found if isinstance(found, tuple) else (found,)
            loss = sum((a * np.sin(a)).sum() for a in found) + (x * x).sum()
        loss.backward()
        return x.grad.asnumpy()

    compiled = heterosis.hybridize(function)
    expected = gradient(function)
    numpy.testing.assert_allclose(gradient(compiled), expected, rtol=5e-5, atol=1e-4)


class Gated(HybridBlock):
    """A block whose `hybrid_forward` has an `if` and a `for`."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Dense(3, in_units=3)

    def hybrid_forward(self, F, x):
        y = self.dense(x)
        if F.np.sum(y) > 0:
            y = F.npx.relu(y)
        for row in x:
            y = y + row
        return y


class Outer(HybridBlock):
    def __init__(self):
        super().__init__()
        self.inner = Gated()

    def forward(self, x):
        y = self.inner(x)
        while y.sum() < 20:
            y = y + np.abs(self.inner(y)) + 1
        return y


@pytest.mark.parametrize("block", [Gated, Outer])
def test_blocks(block):
    net = block()
    net.initialize()
    expected = [net(np.array(X + numpy.float32(s))).asnumpy() for s in SHIFTS]
    net.hybridize()
    for shift, theirs in zip(SHIFTS, expected, strict=True):
        found = net(np.array(X + numpy.float32(shift))).asnumpy()
        numpy.testing.assert_allclose(found, theirs, rtol=1e-5, atol=1e-5)


def test_writes_in_branches_and_loops():
    def function(x, y):
        if x.sum() > 0:
            y[0] = x[1]
        for row in x:
            y += row
        while np.abs(y).sum() < 10:
            y *= 2
            y += 1
        return y * 2

    for shift in SHIFTS:
        given = [[np.array(X + numpy.float32(shift)), np.ones((2, 3))] for _ in range(2)]
        expected, found = function(*given[0]), heterosis.hybridize(function)(*given[1])
        numpy.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5)
        numpy.testing.assert_allclose(given[1][1].asnumpy(), given[0][1].asnumpy(), rtol=1e-5)


def test_types_of_loops_in_float64():
    def function(x):
        step = 0.1
        while x.sum() < 3:
            x = x + step
            step = step * 1.1
        return x

    x = numpy.linspace(0, 1, 3)
    expected = function(np.array(x, dtype="float64"))
    found = heterosis.hybridize(function)(np.array(x, dtype="float64"))
    assert found.dtype == "float64"
    numpy.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-14)


# -- what else happens ----------------------------------------------------------------------------


def test_other_functions_are_captured_as_they_are():
    calls = []

    def function(x):
        calls.append(len(calls))
        return x * 2

    heterosis.hybridize(function)(np.array(X))
    assert calls == [0]


def test_random_numbers_of_branches_and_turns():
    def function(x):
        if x.sum() > 0:
            x = x + np.random.normal(size=(2, 3))
        while np.abs(x).max() < 4 and np.random.uniform() < 0.9:
            x = x * np.random.uniform(1, 2, size=(2, 3))
        for row in x:
            x = x + np.random.uniform() * row
        return x, np.random.uniform(size=2)

    compiled = heterosis.hybridize(function)
    for seed in range(5):
        for shift in SHIFTS:
            both = []
            for run in (function, compiled):
                np.random.seed(seed)
                both.append(results(run(np.array(X + numpy.float32(shift)))))
            for ours, theirs in zip(*both, strict=True):
                numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("recorded", [False, True])
def test_gradients_asked_for_within(recorded):
    y = np.ones((2, 3))
    y.attach_grad()

    def function(x):
        with autograd.record():
            loss = (x * y).sum()
        if x.sum() > 0:
            loss.backward()
        return y.grad * 1

    def within(x):
        if x.sum() > 0:
            with autograd.record():
                loss = (x * y).sum()
            loss.backward()
        return x

    for one in (function, within):
        recording = autograd.record() if recorded else nullcontext()
        with recording, pytest.raises(CaptureError, match="within a branch"):
            heterosis.hybridize(one)(np.array(X + 1))


def test_no_update_is_counted_twice():
    """A function is captured once, so that an optimizer in it steps once."""

    def losses(wrap):
        net = nn.Dense(2, in_units=3, weight_initializer="ones")
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

        def step(x):
            with autograd.record():
                loss = (net(x) ** 2).sum()
            loss.backward()
            trainer.step(1)
            if loss > 1:
                loss = loss * 2
            return loss

        run = wrap(step)
        return [run(np.array(X)).item() for _ in range(5)]

    expected = losses(lambda step: step)
    numpy.testing.assert_allclose(losses(heterosis.hybridize), expected, rtol=1e-5)


class Own(heterosis.optimizer.Adam):
    """May remember more of its updates than their number."""


@pytest.mark.parametrize("optimizer", ["adam", Own])
def test_no_update_is_counted_twice_for_arrays_with_two_names(optimizer):
    net = nn.Dense(2, in_units=3)
    net.initialize()
    chosen = optimizer if isinstance(optimizer, str) else optimizer(learning_rate=0.1)
    trainer = gluon.Trainer(net.collect_params(), chosen)

    @heterosis.hybridize
    def step(x, other):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(1)
        other += 1
        return loss

    x = np.array(X)
    if optimizer == "adam":  # which takes back what it has counted
        step(x, x)
        assert trainer._optimizer.num_update == 1
    else:
        with pytest.raises(CaptureError, match="under two names"):
            step(x, x)


def test_no_update_is_counted_twice_where_gradients_are_asked_for_later():
    net, other = (nn.Dense(1, in_units=3) for _ in range(2))
    for block in (net, other):
        block.initialize()
    trainer = gluon.Trainer(net.collect_params(), Own(learning_rate=0.1))
    with autograd.record():
        loss = net(np.array(X)).sum()
    loss.backward()

    @heterosis.hybridize
    def step(x):
        with autograd.pause():
            trainer.step(1, ignore_stale_grad=True)
        with autograd.record():
            loss = other(x).sum()
        loss.backward()
        return loss

    with pytest.raises(CaptureError, match="an optimizer steps in the function"), autograd.record():
        step(np.array(X))


def test_steps_behind_a_choice():
    def losses(wrap):
        net = nn.Dense(2, in_units=3, weight_initializer="ones")
        net.initialize()
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})

        def step(x):
            with autograd.record():
                loss = (net(x) ** 2).sum()
                if loss > 1:
                    loss = loss * 0.5
            loss.backward()
            trainer.step(1)
            return loss

        run = wrap(step)
        return [run(np.array(X)).item() for _ in range(5)]

    expected = losses(lambda step: step)
    numpy.testing.assert_allclose(losses(heterosis.hybridize), expected, rtol=1e-4)


def test_modes_are_kept():
    def function(x):
        if x.sum() > 0:
            return npx.relu(x)
        return x

    assert heterosis.hybridize(function)(np.array(X + 1)).shape == (2, 3)


def reads_an_alias(x):
    y, n = x * 1, x[0] * 0
    z = y
    while n < 9 and z[0] < 20:
        y += 10
        n = n + 1
    return y


def reads_the_whole(x):
    y, n = x * 1, x[0] * 0
    part = y[:1]
    while n < 9 and y.sum() < 30:
        part += 10
        n = n + 1
    return y


def reads_an_item(x):
    found, n = {"x": x}, x[0] * 0
    while n < 9 and found["x"].sum() < 30:
        x += 10
        n = n + 1
    return x


@pytest.mark.parametrize("function", [reads_an_alias, reads_the_whole, reads_an_item])
def test_conditions_see_what_turns_write(function):
    with pytest.raises(CaptureError, match="or in the condition by another name"):
        heterosis.hybridize(function)(np.array([1.0, 2.0]))


def test_conditions_see_what_turns_write_to_an_argument_that_is_known_outside():
    outside = np.array([1.0, 2.0])

    def function(x):
        n = x[0] * 0
        while n < 9 and outside.sum() < 30:
            x[:] += 3
            n = n + 1
        return x

    with pytest.raises(CaptureError, match="the condition of the loop reads by another name"):
        heterosis.hybridize(function)(outside)
    assert outside.asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize(
    "repeated", [lambda x, n: [x] * n, lambda x, n: n * [x], lambda x, n: (x, x) * n]
)
def test_lists_of_arrays_are_not_repeated_as_often_as_arrays_say(repeated):
    def function(x):
        n = 2
        if x.sum() > 0:
            n = 3
        return repeated(x, n)

    with pytest.raises(CaptureError, match="a list or a tuple, and a number that arrays have"):
        heterosis.hybridize(function)(np.array([1.0, 2.0]))


def asked_by_if(x):
    if x:
        return x + 1
    return x


def asked_by_while(x):
    while x:
        x = x - 1
    return x


def asked_by_assert(x):
    assert x
    return x


@pytest.mark.parametrize(
    "function",
    [asked_by_if, asked_by_while, asked_by_assert, lambda x: x and x + 1, lambda x: not x],
)
def test_several_elements_have_no_truth(function):
    for run in (function, heterosis.hybridize(function)):
        with pytest.raises(ValueError, match=r"needs exactly one element, .* is float32\[2\]"):
            run(np.array([1.0, 2.0]))
