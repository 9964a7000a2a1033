"""Branches that run side by side: which they are, where their memory is, and what they compute."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heterosis
from heterosis import np, npx
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.schedule import branches
from heterosis.backends.native.schedule.arena import ALIGNMENT, touched
from heterosis.backends.native.schedule.branches import _touches
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir.program import INPUT, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY

matmul, exp, add, sort, concatenate, inv = (
    REGISTRY[n].operation for n in ("matmul", "exp", "add", "sort", "concatenate", "inv")
)


def array(*shape):
    return apply(INPUT, (), TensorType(shape, "float32"))


def planned(inputs, *outputs, workers=2):
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    program = Program(tuple(inputs), outputs)
    machine = Machine(AVX2, workers)
    return schedule(
        program, layouts, [None] * len(outputs), machine, views=False, side_by_side=True
    )  # fmt: skip


def two_ways(size=100):
    x, v, w = inputs = [array(size, size) for _ in range(3)]
    return inputs, sort(matmul(x, v)), sort(matmul(x, w))


@pytest.fixture
def at_no_cost(monkeypatch):
    """Small programs too: whatever can run side by side does."""
    monkeypatch.setattr(branches, "_MEETING", 0.0)


# -- which branches -------------------------------------------------------------------------------


def test_two_ways_to_one_product_run_side_by_side():
    inputs, *ways = two_ways()
    found = planned(inputs, matmul(*ways))
    assert found.branches == {0: (len(found.kernels) // 2,) * 2}


def test_one_thread_runs_them_in_their_order():
    inputs, *ways = two_ways()
    assert planned(inputs, matmul(*ways), workers=1).branches == {}


def test_what_is_too_little_stays_in_its_order():
    inputs, *ways = two_ways(size=8)
    assert planned(inputs, matmul(*ways)).branches == {}


def test_a_long_way_beside_a_short_one_is_shared_by_the_threads():
    x, v, w = inputs = [array(200, 200) for _ in range(3)]
    long, short = x, exp(matmul(x, w))
    for _ in range(9):
        long = matmul(long, v)
    assert planned(inputs, matmul(long, sort(short))).branches == {}


def test_what_may_fail_is_not_among_them(at_no_cost):
    x, w = inputs = [array(8, 8), array(8, 8)]
    found = planned(inputs, add(inv(x), matmul(inv(w), w)))
    for first, lengths in found.branches.items():
        for kernel in found.kernels[first : first + sum(lengths)]:
            assert not getattr(kernel, "code", None) or not kernel.code.failures


def test_parts_of_one_result_are_written_side_by_side(at_no_cost):
    x, w = inputs = [array(1, 30, 30), array(30, 30)]
    parts = [sort(matmul(x, w)), sort(matmul(exp(x), w))]
    found = planned(inputs, concatenate(parts, axis=1))
    assert any(len(lengths) == 2 for lengths in found.branches.values())


# -- where their memory is, and what they compute -------------------------------------------------

_STEPS = {
    "matmul": lambda a, b: matmul(a, b),
    "add": lambda a, b: add(exp(a), b),
    "sort": lambda a, b: sort(add(a, b)),
    "join": lambda a, b: matmul(concatenate([a, b], axis=0), b),
    "cut": lambda a, b: matmul(a, concatenate([b, a], axis=1)),
}


@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 9), st.integers(0, 9)),
        min_size=3,
        max_size=14,
    )
)
@settings(deadline=None, max_examples=100)
def test_chains_touch_nothing_that_another_one_writes(steps):
    values = inputs = [array(8, 8) for _ in range(3)]
    for name, i, j in steps:
        a, b = values[-1 - i % len(values)], values[-1 - j % len(values)]
        if a.shape == b.shape == (8, 8):
            values = [*values, _STEPS[name](a, b)]
    before = branches._MEETING
    branches._MEETING = 0.0
    try:
        found = planned(inputs, *values[-3:])
    finally:
        branches._MEETING = before
    for first, lengths in found.branches.items():
        chains, at = [], first
        for length in lengths:
            chains.append(found.kernels[at : at + length])
            at += length
        for i, chain in enumerate(chains):
            for other in chains[i + 1 :]:
                assert not _meet(found, chain, other)


def _meet(found, chain, other):
    """Whether the order of two chains matters, by what they touch or by where that stands."""
    ours, theirs = ([t for k in kernels for t in _touches(k)] for kernels in (chain, other))
    if any(a.buffer == b.buffer and a.meets(b) for a in ours for b in theirs):
        return True
    mine, others = ({i for k in kernels for i in touched(k)} for kernels in (chain, other))
    spans = [
        (found.starts[i], found.starts[i] + -(-found.temporaries[i] // ALIGNMENT) * ALIGNMENT)
        for i in (*(mine - others), *(others - mine))
    ]
    cut = len(mine - others)
    return any(a[0] < b[1] and b[0] < a[1] for a in spans[:cut] for b in spans[cut:])


@pytest.mark.lengthy
def test_a_network_of_paths_computes_what_it_does_eagerly(at_no_cost):
    def paths(x, v, w):
        one = npx.relu(x @ v) @ w
        two = np.sort(x @ w, axis=1) @ v
        three = npx.softmax(x) @ v
        joined = np.concatenate([one, two, three], axis=0)
        return joined @ w, (one + two).sum(axis=0), np.cumsum(three, axis=1)

    generator = numpy.random.default_rng(0)
    arrays = [np.array(generator.normal(size=(40, 40)), dtype="float64") for _ in range(3)]
    hybrid = heterosis.hybridize(paths)
    for _ in range(20):
        for found, wanted in zip(hybrid(*arrays), paths(*arrays), strict=True):
            numpy.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-11, atol=1e-11)
