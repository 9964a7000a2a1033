"""`hybridize(check=True)`: runs are compared with what the function gives imperatively."""

import random

import numpy
import pytest

import heterosis
from heterosis import autograd, backends, gluon, np, npx
from heterosis.backends import Backend
from heterosis.gluon import nn
from heterosis.ir.primitives.elementwise import NEGATIVE
from heterosis.ir.primitives.real import TANH
from heterosis.ir.program import Program, apply, substituted
from heterosis.runtime.errors import ArgumentError, CheckError


class Faulty(Backend):
    """Gives each tanh another sign: everywhere, or only where it is no result of the program."""

    def __init__(self, *, inside_alone):
        self.native, self.inside_alone = backends.named("native"), inside_alone

    def compile(self, program, layouts, fixed=()):
        values = [node.outputs[0] for node in program.nodes() if node.primitive is TANH]
        wrong = [v for v in values if not (self.inside_alone and v in program.outputs)]
        mapping = {value: apply(NEGATIVE, (value,), value.type) for value in wrong}
        outputs = substituted(program.outputs, mapping)
        return self.native.compile(Program(program.inputs, outputs, program.name), layouts, fixed)

    def has(self, primitive):
        return self.native.has(primitive)

    def is_dear(self, primitive):
        return self.native.is_dear(primitive)


@pytest.fixture(params=[False, True])
def faulty(request, monkeypatch):
    monkeypatch.setattr(backends, "_makers", dict(backends._makers))
    monkeypatch.setattr(backends, "_made", dict(backends._made))
    backends.register("faulty", lambda: Faulty(inside_alone=request.param))
    return "faulty"


def line_of(function, lines_behind):
    return rf"test_check\.py:{function.__code__.co_firstlineno + lines_behind}"


# -- what differs ---------------------------------------------------------------------------------


def through_tanh(x):
    y = np.exp(x) - 1
    y = np.tanh(y)
    return y * 2 + x


@pytest.mark.main_memory("the faulty back end computes there")
def test_the_first_operation_that_differs(faulty):
    hybridized = heterosis.hybridize(through_tanh, backend=faulty, check=True)
    # A fault that goes where tanh is a result by itself shows in what is computed with it.
    inside = backends.named(faulty).inside_alone
    operation = "multiply" if inside else "tanh"
    place = line_of(through_tanh, 3 if inside else 2)
    for _ in range(5):  # not in the first runs alone: it never gives what it should
        with pytest.raises(CheckError, match=f"operation that differs is {operation} at .*{place}"):
            hybridized(np.array([0.0, 0.5]))


def written(total, x):
    total += np.tanh(x)


@pytest.mark.main_memory("the faulty back end computes there")
def test_what_is_written_is_compared_and_undone(faulty):
    hybridized = heterosis.hybridize(written, backend=faulty, check=True)
    with pytest.raises(CheckError, match=r"an array float32\[2\] that is written to is"):
        hybridized(np.ones(2), np.ones(2))


@pytest.mark.main_memory("the faulty back end computes there")
def test_a_block_without_faults_passes(faulty):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dense(2))
    net.initialize()
    net.hybridize(backend=faulty, check=True)
    net(np.ones((2, 4)))
    wrong = nn.HybridSequential()
    wrong.add(nn.Dense(3, activation="tanh"), nn.Dense(2))
    wrong.initialize()
    wrong.hybridize(backend=faulty, check=True)
    with pytest.raises(CheckError):
        wrong(np.ones((2, 4)))


def test_what_python_reads_once():
    random.seed(0)  # and not twice nearly the same
    hybridized = heterosis.hybridize(lambda x: x + random.random(), check=True)
    with pytest.raises(CheckError, match=r"Python's random numbers, the time, files, .* read once"):
        hybridized(np.ones(2))


def test_a_structure_that_differs():
    seen = []

    def turned(x):
        seen.append(1)
        return (x, 1) if len(seen) == 1 else (x, "text")

    with pytest.raises(CheckError, match=r"what is returned\[1\] is 1; imperatively it is 'text'"):
        heterosis.hybridize(turned, check=True)(np.ones(2))


# -- what happens twice, and once -----------------------------------------------------------------


def counted(total, x):
    total += x
    turns = 0
    while total.sum() < 20:
        total += 1
        turns = turns + 1
    return turns


def dropped(x):
    return npx.dropout(x, 0.5, mode="always") + np.random.normal(size=x.shape)


def drawn_by_turns(x):
    while x.sum() < 20:
        x = x + np.random.uniform(size=x.shape)
    return x


@pytest.mark.parametrize("check", [False, True])
def test_writes_and_draws_are_made_once(check):
    hybridized = heterosis.hybridize(counted, check=check)
    total, mine = np.zeros(3), np.zeros(3)
    for _ in range(5):
        assert hybridized(total, np.ones(3)) == counted(mine, np.ones(3))
        assert (total == mine).all()
    for draw in (dropped, drawn_by_turns):
        np.random.seed(5)
        expected = [draw(np.ones(8)) for _ in range(5)]
        np.random.seed(5)
        hybridized = heterosis.hybridize(draw, check=check)
        assert all(np.allclose(hybridized(np.ones(8)), one) for one in expected)


def _trained(*, check):
    np.random.seed(1)
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(1))
    net.initialize()
    net.hybridize(check=check)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01})
    x = np.random.normal(size=(6, 3))

    def step(x):
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        trainer.step(6)
        return loss

    losses = [step(x).item() for _ in range(5)]
    compiled = heterosis.hybridize(step, check=check)
    losses += [compiled(x).item() for _ in range(5)]
    return losses, [p.data().asnumpy().tolist() for p in net.collect_params().values()]


@pytest.mark.lengthy
def test_training_is_as_without():
    assert _trained(check=True) == _trained(check=False)


def _by_a_function(inner, x):
    return inner(x) * 2


def _by_a_loop(inner, x):
    while x.sum() < 10:
        x = inner(x) + 1
    return x


def _by_a_branch(inner, x):
    return inner(x) if x.sum() > 0 else x


def _by_a_step(inner, x):
    w = np.ones(2)
    w.attach_grad()
    with autograd.record():
        loss = (inner(w * x)).sum()
    loss.backward()
    return w.grad


def _by_a_part(inner, x):
    net = nn.HybridLambda(lambda F, y: inner(y))
    net.hybridize()
    return net(x) + 1


@heterosis.hybridize
def _tanh_and_more(x):
    return np.tanh(x) + x


def _of_own(faulty):
    """A hybridized function with a program of its own, which has the fault."""
    inner = heterosis.hybridize(_tanh_and_more.function, backend=faulty)
    assert inner(np.array([0.25, 0.5]))[0] < 0.25
    return inner


@pytest.mark.parametrize("outer", [_by_a_function, _by_a_part])
@pytest.mark.main_memory("the faulty back end computes there")
def test_a_fault_that_functions_inside_have_too_is_found(faulty, outer):
    inner = _of_own(faulty)
    hybridized = heterosis.hybridize(outer, backend=faulty, check=True)
    for _ in range(2):
        with pytest.raises(CheckError, match="imperatively it is"):
            hybridized(inner, np.array([0.25, 0.5]))
    assert inner(np.array([0.25, 0.5]))[0] < 0.25  # as before


@pytest.mark.parametrize("outer", [_by_a_loop, _by_a_branch, _by_a_step])
@pytest.mark.main_memory("the faulty back end computes there")
def test_a_fault_of_functions_inside_alone_is_none_of_the_program_s(faulty, outer):
    """Their bodies are part of the program, whose loops and gradients have no fault."""
    x = np.array([0.25, 0.5])
    expected = outer(_tanh_and_more, x)
    found = heterosis.hybridize(outer, backend=faulty, check=True)(_of_own(faulty), x)
    assert numpy.allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5)


def test_hybridized_functions_inside_are_hybridized_still():
    inner = heterosis.hybridize(_tanh_and_more.function)
    hybridized = heterosis.hybridize(_by_a_function, check=True)
    x = np.array([0.25, 0.5])
    for _ in range(3):
        hybridized(inner, x)
    assert inner.captures == 0
    inner(x)
    inner(x)
    assert inner.captures == 1


def test_parts_run_imperatively_and_are_hybridized_still():
    net = nn.HybridSequential()
    net.add(nn.Dense(2), nn.Dense(1))
    net.initialize()
    net.hybridize(check=True)
    net(np.ones((1, 2)))
    assert [part._compiled.captures for part in net] == [0, 0]
    assert all(part._replay is not None for part in net)


def test_prints_are_made_once(capsys):
    def told(x):
        npx.print("value", x)
        return x

    hybridized = heterosis.hybridize(told, check=True)
    hybridized(np.ones(1))
    hybridized(np.ones(1))
    assert capsys.readouterr().out == "value [1.]\n" * 2


def test_what_fails_both_ways_is_the_program_s_error():
    @heterosis.hybridize(check=True)
    def positive(x):
        assert x.sum() > 0, "no"
        return x

    positive(np.ones(2))
    with pytest.raises((ArgumentError, AssertionError), match="no"):
        positive(-np.ones(2))


def test_after_the_first_runs_nothing_is_compared():
    runs = []

    def told(x):
        runs.append(1)
        return x * 2

    hybridized = heterosis.hybridize(told, check=True)
    for _ in range(10):
        hybridized(np.ones(2))
    assert len(runs) == 1 + 3
