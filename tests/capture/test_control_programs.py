"""Programs whose arrays decide how they go on: eager, hybridized, and as the reference evaluates
them, with their gradients; within a step of training, and saved and loaded."""

import dataclasses
import re

import numpy
import pytest

import heterosis
from heterosis import autograd, gluon, np, npx
from heterosis.gluon import nn, rnn
from heterosis.runtime.errors import AutogradError, CaptureError, UnsupportedError
from tests.backends.reference import NAME as REFERENCE
from tests.capture.control_programs import PROGRAMS, SHIFTS, agree, called, loss_of
from tests.capture.control_programs.refused import REFUSED
from tests.capture.control_programs.table import SHORT as X

RATE = 2.0**-20  # so small that every loop still comes to its end
# Writes to a part of what is recorded in the same function, which its tape does not follow.
UNFOLLOWED = ("writes_in_one_branch", "writes_in_both_branches")
WITH_GRADIENT = [name for name, program in PROGRAMS.items() if program.gradient and program.x.size]


@pytest.mark.parametrize("backend", [None, REFERENCE])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, backend):
    program = PROGRAMS[name]
    compiled = heterosis.hybridize(program.function, **({"backend": backend} if backend else {}))
    for shift in SHIFTS:
        expected = called(program.function, program, shift)
        agree(program, called(compiled, program, shift), expected)
    assert compiled.captures == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_and_loaded(name, tmp_path):
    program = PROGRAMS[name]
    compiled = heterosis.hybridize(program.function)
    expected = [_without_gradient(compiled, program, shift) for shift in SHIFTS]
    heterosis.save(compiled, tmp_path / "program")
    loaded = heterosis.load(tmp_path / "program")
    for shift, one in zip(SHIFTS, expected, strict=True):
        agree(program, _without_gradient(loaded, program, shift), one)


def _without_gradient(function, program, shift):
    return called(function, dataclasses.replace(program, gradient=False), shift)


@pytest.mark.parametrize("name", [name for name in WITH_GRADIENT if name not in UNFOLLOWED])
def test_within_a_step_of_training(name):
    """Recording, going back and the update are a part of one program."""
    program = PROGRAMS[name]
    eager, hybridized = _trained(program, lambda step: step), _trained(program, heterosis.hybridize)
    agree(program, hybridized, eager)


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_writes_that_a_tape_inside_does_not_follow(name):
    with pytest.raises(AutogradError, match="gradients cannot follow"):
        _trained(PROGRAMS[name], heterosis.hybridize)


def _trained(program, wrap):
    """The losses and weights of two steps."""
    weight = gluon.Parameter("weight", shape=program.x.shape)
    weight.initialize(heterosis.initializer.Zero())
    trainer = gluon.Trainer([weight], "sgd", {"learning_rate": RATE})

    def step(x, *others):
        with autograd.record():
            loss = loss_of(program.function(x + weight.data(), *others))
        loss.backward()
        trainer.step(1)
        return loss

    run, found = wrap(step), []
    np.random.seed(7)
    for shift in SHIFTS[1:3]:
        others = [np.array(one, dtype=one.dtype) for one in program.others]
        x = np.array(program.x + numpy.float32(shift), dtype="float32")
        found += [run(x, *others).asnumpy(), weight.data().asnumpy() / RATE]
    return found


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


def test_branches_read_several_views_of_an_array_from_outside():
    x = np.array(numpy.arange(12.0).reshape(3, 4))
    first, row = x.reshape(-1)[:1].reshape(()), x[1]

    def reads():
        if first.sum() < 5:
            return first + 1, x + 1, x * x, row + x, row * 2
        return first + 2, x + 2, x, x, row

    found, wanted = heterosis.hybridize(reads)(), reads()
    for one, other in zip(found, wanted, strict=True):
        numpy.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


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


def writes_to_what_a_state_is_a_part_of(x):
    a, n = x.reshape(-1)[:3], 0
    while n < 1 and a.sum() > -100:
        x[x < 0.5] = 0.5
        n += 1
        a = a  # noqa: PLW0127 - a loop that hands it on
    return a


def writes_to_a_part_and_reads_the_whole(x):
    def turn(n, a):
        a[...] = a + 1
        return [], [n + x.sum(), a]

    _, (n, _) = npx.while_loop(lambda n, a: n < 100, turn, [np.array(0.0), x[0]], 9)
    return n


def writes_in_a_loop_within_a_loop(x):
    """The loop inside has more states than the one around it."""
    seen = x
    while x.max() > 1:

        def turn(n, a, b):
            b[0] = 0.5
            return [], [n, a, a]

        _, (_, a, _) = npx.while_loop(lambda n, a, b: n < 1, turn, [np.array(0), x, seen], 2)
        seen = a
    return seen


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
        (writes_to_what_a_state_is_a_part_of, "a part of one, that turns write to by another name"),
        (
            writes_to_a_part_and_reads_the_whole,
            "known there or in the condition by another name too",
        ),
        (exchanges_and_writes, "may be another one as well"),
        (writes_in_a_loop_within_a_loop, "while_loop at .*: state . is written to in place"),
    ],
)
def test_writes_to_what_may_be_two_arrays_are_refused(function, why):
    with pytest.raises(CaptureError, match=why):
        heterosis.hybridize(function)(np.array(X))


@pytest.mark.parametrize("function, message", REFUSED, ids=lambda v: getattr(v, "__name__", ""))
def test_refusals(function, message):
    with pytest.raises(CaptureError, match=f"(?s){message}") as caught:
        heterosis.hybridize(function)(np.array(X))
    assert re.match(r"\S+\.py:\d+ in .*\n  ", str(caught.value))  # the user's line comes first


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


@pytest.mark.parametrize(
    "turn, why",
    [
        (lambda a, b: ([], [a, np.concatenate([b, b])]), r"state 1 is float32\[\d.*\] behind it"),
        (lambda a, b: ([], [a + 1]), "the body gives 1 states; expected 2"),
        (lambda a, b: ([], [a.astype("int32"), b]), "state 0 is float32.* and int32"),
    ],
)
def test_other_states_behind_a_turn_of_a_bounded_loop_are_refused(turn, why):
    def repeats(x):
        return npx.while_loop(lambda a, b: a.sum() < 5, turn, [x, x], 4)

    with pytest.raises(CaptureError, match=f"while_loop at .*{why}"):
        heterosis.hybridize(repeats)(np.array(X))


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


def of_two_types(x):
    y = x.astype("int32") if x.sum() > 0 else x * 2
    return (y * x).sum()


def of_two_types_the_other_way(x):
    y = x * 2
    if x.sum() < 0:
        y = x.astype("int32")
    return (y * x).sum()


@pytest.mark.parametrize("function", [of_two_types, of_two_types_the_other_way])
@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_where_one_branch_gives_integers(function, sign):
    found = []
    for one in (function, heterosis.hybridize(function)):
        x = sign * np.array([1.5, 2.5])
        x.attach_grad()
        with autograd.record():
            y = one(x)
        y.backward()
        found.append((y.item(), x.grad.tolist()))
    assert found[0] == found[1]


def test_integers_of_a_branch_have_no_slope():
    """Joined with floats they are floats, whose derivative is that of steps, where imperatively
    there would be no float to begin with."""
    function = heterosis.hybridize(lambda x: x.astype("int32") if x.sum() > 0 else x * 2)
    for sign, slope in ((1, 0), (-1, 2)):
        x = sign * np.array([1.5, 2.5])
        x.attach_grad()
        with autograd.record():
            y = function(x)
        y.backward()
        assert y.dtype == "float32"
        assert x.grad.tolist() == [slope, slope]
