"""Programs whose arrays decide how they go on: eager, hybridized, and as the reference evaluates
them, with their gradients."""

from functools import partial

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.gluon import nn, rnn
from heterosis.runtime.errors import CaptureError, UnsupportedError
from tests.backends.reference import NAME as REFERENCE

X = numpy.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)
SHIFTS = (0.0, 0.4, -0.6, 2.5)
PROGRAMS: dict[str, tuple] = {}


def program(*arrays, gradient=True):
    """Put a function into the table, with the arrays that it is called with besides `x`."""

    def register(function):
        PROGRAMS[function.__name__] = (function, arrays, gradient)
        return function

    return register


# -- choices ---------------------------------------------------------------------------------------


@program()
def a_choice_in_a_choice(x):
    if x.sum() > 0:
        y = x * 2 if x.max() > 2 else x * 3
        y = y + 1
    else:
        y = np.exp(x)
    return y * x


@program()
def writes_in_one_branch(x):
    y = x * 1
    if x.mean() > 0:
        y[0] = y[1] * 3
    return y


@program()
def writes_in_both_branches(x):
    y, z = x * 1, x * 2
    if x.mean() > 0:
        y[:, 1] = z[:, 0]
        z[...] = 0
    else:
        z += y
    return y * z


@program(gradient=False)
def writes_through_a_view(x):
    y = x * 1
    part = y[:, 1:]
    if x.mean() > 0:
        part[...] = part * 5
    return y, part


@program(gradient=False)
def a_view_made_in_a_branch(x):
    y = x * 1
    if x.mean() > 0:
        y[1][1:] *= 4
    return y


@program(gradient=False)
def an_update_before_and_after(x):
    y = x * 1
    y[0] = 2
    if x.mean() > 0:
        y[0] += x[1]
    y[1] -= y[0]
    return y


@program()
def three_ways(x):
    if x.sum() > 5:
        return x * 2
    elif x.sum() > 0:  # noqa: RET505 - it is what is tested
        return x - 1
    return np.tanh(x)


@program()
def return_in_a_loop_in_a_branch(x):
    if x.sum() > -2:
        for row in x:
            if row.max() > 0.5:
                return row * 2
    return x[0] - 1


@program()
def chained_comparison(x):
    return x * 2 if -1 < x.sum() < 10 else x + 1


@program()
def both_and_either(x):
    y = x
    if (x.sum() > 0 and x.max() < 3) or x.min() < -1.5:
        y = y * 3
    if not (x.sum() > 0):
        y = y + 1
    return y


@program()
def a_tuple_of_two(x):
    if x.sum() > 0:
        low, high = x.min(), x.max()
    else:
        low, high = x.max(), x.min()
    return low * x, high + x


@program()
def numbers_of_python(x):
    scale, power = 1, 2
    if x.sum() > 0:
        scale, power = 3, 4
    return x * scale + power


@program()
def a_choice_by_cond(x):
    return npx.cond(x.sum() > 0, lambda: (x * 2, x + 1), lambda: (x, x * x))


@program()
def cond_with_inputs(x):
    return npx.cond(lambda a, b: a.sum() > b.sum(), lambda a, b: a * b, lambda a, b: a + b,
                    [x, np.cos(x)])  # fmt: skip


# -- loops -----------------------------------------------------------------------------------------


@program(gradient=False)
def halves_until_small(x):
    y, turns = x, 0
    while np.abs(y).max() > 0.3:
        y = y * 0.5
        turns += 1
    return y, turns * np.ones(2)


@program(gradient=False)
def newton(x):
    target = np.abs(x) + 1
    root = target * 1
    while np.abs(root * root - target).max() > 1e-4:
        root = 0.5 * (root + target / root)
    return root


@program()
def newton_with_a_bound(x):
    target = np.abs(x) + 1

    def step(root):
        return [], [0.5 * (root + target / root)]

    start = np.ones_like(target) * 2
    _, (root,) = npx.while_loop(
        lambda root: np.abs(root * root - target).max() > 1e-3, step, [start], 12
    )
    return root


@program(gradient=False)
def adaptive_step(x):
    """Euler's method with a step that doubles and halves by the error of half steps."""
    time, step, y = np.array(0.0), np.array(0.5), x
    while time < 1:
        whole = y - step * y
        half = y - 0.5 * step * y
        half = half - 0.5 * step * half
        error = np.abs(whole - half).max()
        if error < 0.05:
            y, time = half, time + step
            step = np.minimum(step * 2, 1 - time + 1e-6)
        else:
            step = step * 0.5
    return y, time


@program(gradient=False)
def greedy_until_the_end(x):
    """A token after the other, the likeliest each time, until token 0."""
    table = np.arange(36).reshape(6, 6) * 7 % 11
    tokens = np.zeros(8)
    token, n = np.argmax(x.reshape(-1)).astype("int64"), np.array(0)
    while n < 8:
        tokens[...] = np.where(np.arange(8) == n, token, tokens)
        token = np.argmax(table[token] + token)
        if token == 0:
            break
        n = n + 1
    return tokens, n


@program(gradient=False)
def beam_search(x):
    """Three beams over six tokens, until all have ended or four tokens have come."""
    scores = np.log(npx.softmax((np.arange(36).reshape(6, 6) * 7 % 11) * 0.3 + x.sum()))
    best, tokens = np.array([0.0, -50.0, -50.0]), np.array([1, 1, 1], dtype="int64")
    history, n = np.zeros((3, 4)), np.array(0)
    while n < 4:
        total = (best.reshape(3, 1) + scores[tokens]).reshape(-1)
        chosen = np.argsort(-total)[:3]
        best, tokens = total[chosen], (chosen % 6).astype("int64")
        history = np.where(np.arange(4) == n, tokens.reshape(3, 1), history[chosen // 6])
        n = n + 1
        if np.all(tokens == 0):
            break
    return best, history


@program()
def sums_of_rows(x):
    total = np.zeros(3)
    for row in x:
        total = total + row * row
    return total


@program()
def rows_with_break(x):
    total = np.zeros(3)
    for row in x:
        if row.sum() > 0.5:
            break
        total = total + row
    return total + x


@program()
def rows_with_continue(x):
    total = x[0] * 1
    for row in x:
        if row.sum() > 0.5:
            continue
        total = total * row + 1
    return total


@program()
def a_loop_in_a_loop(x):
    total = np.zeros(3)
    for row in x:
        for other in x:
            if row.sum() > other.sum():
                total = total + row * other
    return total + x[0]


@program(gradient=False)
def writes_in_a_loop(x):
    y = np.zeros(3)
    for row in x:
        y[1:] = y[:-1] * row[1:]
        y[0] += row[0]
    return y * x


@program()
def swapped_in_a_loop(x):
    a, b = x[0] * 1, x[1] * 1
    for row in x:
        a, b = b + row, a
    return a * b


@program()
def scan_with_outputs(x):
    return npx.foreach(lambda row, s: (np.tanh(row * s), s + row), x, np.ones(3))


@program()
def scan_over_two(x):
    def body(rows, states):
        a, b = rows
        return [a * b, states[0]], [states[0] + a, states[1] * b]

    (one, other), (first, second) = npx.foreach(body, [x, np.cos(x)], [np.zeros(3), np.ones(3)])
    return one, other, first, second


@program()
def outputs_copied_from_what_turns_write_to(x):
    state = np.zeros(3)

    def body(row, s):
        s[0] += row
        return np.copy(s[0]), s

    return npx.foreach(body, x, [state])[0]


@program()
def bounded_with_outputs(x):
    def body(n, s):
        return s * 2, [n + 1, s + x[0]]

    outputs, (_, s) = npx.while_loop(
        lambda n, s: np.logical_or(n < 1, s.sum() < 3), body, [np.array(0), np.zeros(3)], 5
    )
    return outputs, s


@program(numpy.array([2, 3], "int64"))
def recurrent_over_true_lengths(x, lengths):
    sequence = np.stack([x, x * 2, np.sin(x)])
    state, n = np.zeros((2, 3)), np.array(0)
    for step in sequence:
        new = np.tanh(step + state * 0.5)
        state = np.where((n < lengths).reshape(2, 1), new, state)
        n = n + 1
    return state


# -- functions ------------------------------------------------------------------------------------


def _scaled(x, *, by=2, **others):
    if x.sum() > 0:
        return x * by
    return x + others.get("shift", 0)


@program()
def keywords_are_handed_on(x):
    return _scaled(x, by=3) + _scaled(-x, shift=4, by=1)


@program()
def closures(x):
    scale = x.max()

    def inner(y):
        if y.sum() > 0:
            return y * scale
        return y

    return inner(x) + inner(-x)


@program()
def partial_functions(x):
    return partial(_scaled, by=5)(x)


def _power(x, n):
    if n == 0:
        return x
    half = _power(x, n - 1)
    return half * 2 if half.sum() > 0 else half + 1


@program()
def recursion_that_numbers_bound(x):
    return _power(x, 3)


@program()
def a_loop_unrolled_around_a_choice(x):
    parts = [x * k if x.sum() > k else x + k for k in range(3)]
    return np.stack(parts)


# -- the table ------------------------------------------------------------------------------------


def _flat(found):
    if isinstance(found, list | tuple):
        return [array for one in found for array in _flat(one)]
    return [found]


def _called(function, x, arrays, *, gradient):
    given = np.array(x)
    if not gradient:
        return [a.asnumpy() for a in _flat(function(given, *map(np.array, arrays)))]
    given.attach_grad()
    with autograd.record():
        found = _flat(function(given, *map(np.array, arrays)))
        heads = [np.sum(a * a) for a in found if a.dtype == "float32"]
        total = sum(heads[1:], heads[0])
    total.backward()
    return [*(a.asnumpy() for a in found), given.grad.asnumpy()]


@pytest.mark.parametrize("backend", [None, REFERENCE])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, backend):
    function, arrays, gradient = PROGRAMS[name]
    compiled = heterosis.hybridize(function, **({"backend": backend} if backend else {}))
    for shift in SHIFTS:
        expected = _called(function, X + shift, arrays, gradient=gradient)
        found = _called(compiled, X + shift, arrays, gradient=gradient)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            numpy.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


# -- blocks ----------------------------------------------------------------------------------------


class _Chosen(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Dense(4, in_units=3), nn.Dense(4, in_units=3, activation="relu")

    def forward(self, x):
        return npx.cond(x.sum() > 0, lambda: self.one(x), lambda: self.other(x))


def test_branches_with_parameters():
    net = _Chosen()
    net.initialize()
    found = []
    for hybridized in (False, True):
        net.hybridize(active=hybridized)
        for shift in SHIFTS:
            for parameter in net.collect_params().values():
                parameter.zero_grad()
            with autograd.record():
                y = net(np.array(X + shift))
            y.backward()
            grads = [p.grad().asnumpy() for p in net.collect_params().values()]
            found.append([y.asnumpy(), *grads])
    half = len(found) // 2
    for one, other in zip(found[:half], found[half:], strict=True):
        for a, b in zip(one, other, strict=True):
            numpy.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


class _Dropped(gluon.HybridBlock):
    def forward(self, x):
        if autograd.is_training():
            return x * 2 if x.sum() > 0 else x * 3
        return x


def test_the_training_mode_freezes_no_branch():
    net = _Dropped()
    net.hybridize()
    x = np.ones(3)
    for _ in range(2):
        assert net(x).asnumpy().tolist() == [1, 1, 1]
        with autograd.record():
            assert net(x).asnumpy().tolist() == [2, 2, 2]
            assert net(-x).asnumpy().tolist() == [-3, -3, -3]


def test_a_cell_over_rows():
    cell = rnn.LSTMCell(4, input_size=3)
    cell.initialize()

    def run(sequence, h, c):
        for row in sequence:
            _, (h, c) = cell(row.reshape(1, 3), [h, c])
        return h, c

    states = np.zeros((1, 4)), np.ones((1, 4))
    for one, other in zip(run(np.array(X), *states),
                          heterosis.hybridize(run)(np.array(X), *states), strict=True):  # fmt: skip
        numpy.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-5)


# -- what is refused -------------------------------------------------------------------------------


def writes_to_what_may_be_the_argument(x):
    y = x
    while y.sum() > 100:
        y = y * 0.5
    y[...] = 1
    return x


def writes_to_a_view_of_a_state(x):
    def turn(n, s):
        return [], [n + 1, s]

    _, (_, s) = npx.while_loop(lambda n, s: n < 3, turn, [np.array(0), x], 4)
    part = s[None]
    part[0] = 7
    return x


def writes_behind_a_break(x):
    y = x
    for row in x:
        if row.sum() > 0:
            break
        y = y  # noqa: PLW0127 - a loop that hands it on
    y[0] = 5
    return x


def writes_by_another_name(x):
    a, b, n = x, x, 0
    while b.sum() > 0.5 and n < 3:
        a[...] = a * 0.5
        b = b + 0 * a
        n += 1
    return b


def exchanges_and_writes(x):
    a, b, c = x, x + 1, x + 2
    while a.sum() < 30:
        a, b, c = b, c, c + 1
    a[...] = 7
    return b


@pytest.mark.parametrize(
    "function, why",
    [
        (writes_to_what_may_be_the_argument, "may be another one as well"),
        (writes_to_a_view_of_a_state, "may be another one as well"),
        (writes_behind_a_break, "may be another one as well"),
        (writes_by_another_name, "turns write to by another name"),
        (exchanges_and_writes, "may be another one as well"),
    ],
)
def test_writes_to_what_may_be_two_arrays_are_refused(function, why):
    with pytest.raises(CaptureError, match=why):
        heterosis.hybridize(function)(np.array(X))


def grows(x):
    y = x
    while y.sum() < 10:
        y = np.concatenate([y, y])
    return y


def test_a_shape_that_changes_is_refused_with_both_types():
    with pytest.raises(CaptureError, match=r"2, 3\].*4, 3\]"):
        heterosis.hybridize(grows)(np.array(X))


def _without_end(x):
    return x if x.sum() > 0 else _without_end(x + 1)


def test_recursion_that_arrays_bound_is_refused():
    with pytest.raises((CaptureError, UnsupportedError), match="calls itself"):
        heterosis.hybridize(_without_end)(np.array(X))


def test_a_variable_chosen_before_it_is_recorded_is_refused():
    w = np.array([1.0, 2.0])
    w.attach_grad()

    def function(x):
        v = w if x.sum() > 0 else w * 2
        with autograd.record():
            head = np.sum(v * 3) + np.sum(w)
        head.backward()
        return w.grad.copy()

    with pytest.raises(CaptureError, match="may be a variable"):
        heterosis.hybridize(function)(np.array(X))
