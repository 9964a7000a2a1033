"""Temporaries share the workspace where their lives allow it, and nowhere else."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heterosis
from heterosis import np, npx
from heterosis.backends.native.codegen.kernel import Machine, Schedule
from heterosis.backends.native.codegen.nest import Load, Nest
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.schedule.arena import ALIGNMENT, Block, memory, placed
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir.program import INPUT, Program, apply
from heterosis.ir.sizes import named
from heterosis.ir.strided import Strided
from heterosis.ir.table_sizes import smallest
from heterosis.ir.traced_sizes import Decisions, function_of, number_at, value_of, written
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY

matmul, exp, softmax, total, sort, multiply = (
    REGISTRY[n].operation for n in ("matmul", "exp", "softmax", "sum", "sort", "multiply")
)


def array(*shape):
    return apply(INPUT, (), TensorType(shape, "float32"))


def planned(inputs, *outputs) -> Schedule:
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    program = Program(tuple(inputs), outputs)
    return schedule(program, layouts, [None] * len(outputs), Machine(AVX2, 1), views=False)


_lives = st.lists(
    st.builds(
        lambda size, first, length: Block(size, first, first + length),
        st.integers(0, 1000),
        st.integers(0, 20),
        st.integers(0, 8),
    ),
    max_size=30,
)


@given(_lives)
@settings(deadline=None, max_examples=200)
def test_what_lives_at_one_time_stands_apart(blocks):
    starts = placed(blocks)
    assert all(start % ALIGNMENT == 0 for start in starts)
    for i, one in enumerate(blocks):
        for j, other in enumerate(blocks[:i]):
            apart = starts[i] + one.size <= starts[j] or starts[j] + other.size <= starts[i]
            assert apart or not one.meets(other)


_OPEN = [  # bytes of blocks
    lambda n: n * 640,
    lambda n: (n // 2) * 100 + 30,
    lambda n: smallest(n * 64, 999) * 5,
    lambda n: 7777,
]


@given(_lives.map(lambda blocks: blocks[:12]), st.integers(2, 70))
@settings(deadline=None, max_examples=60)
def test_what_lives_at_one_time_stands_apart_at_all_sizes(blocks, value):
    decisions = Decisions({"n": value})
    n = decisions.traced(named("n"))
    for i, block in enumerate(blocks):
        block.size = _OPEN[i % 4](n)
    starts = placed(blocks)
    holds = function_of(["n"], [" and ".join(decisions.conditions) or "True"])
    for other in (m for m in (2, 3, 17, 40, 100) if holds(m)[0]):
        at = [
            (number_at(s, {"n": other}), number_at(b.size, {"n": other}))
            for s, b in zip(starts, blocks, strict=True)
        ]
        assert all(start % ALIGNMENT == 0 for start, _ in at)
        for i, (one, size) in enumerate(at):
            for j, (low, taken) in enumerate(at[:i]):
                assert one + size <= low or low + taken <= one or not blocks[i].meets(blocks[j])


def test_places_of_many_blocks_part_no_sizes():
    """Batches of any size: each block is a multiple of it, but for what products take."""
    for value in (2, 20, 70):
        decisions = Decisions({"n": value})
        n = decisions.traced(named("n"))
        sizes = [n * 65536 * (1 + i % 3) + (i % 4 == 0) * 9216 + i * 64 for i in range(60)]
        blocks = [Block(size, i, i + 1 + i % 3) for i, size in enumerate(sizes)]
        seen = [Block(value_of(block.size), block.first, block.last) for block in blocks]
        starts = placed(blocks)
        assert not decisions.conditions
        tops = [
            max(
                value_of(start) + value_of(block.size)
                for start, block in zip(at, blocks, strict=True)
            )
            for at in (starts, placed(seen))
        ]
        assert tops[0] <= 1.25 * tops[1]
        assert max(len(written(start)) for start in starts) < 100


def _chain(x, weights):
    for w in weights:
        x = exp(matmul(x, w))
    return x


def test_a_chain_of_layers_takes_the_room_of_two():
    x, *weights = inputs = [array(64, 64) for _ in range(6)]
    found = memory(planned(inputs, _chain(x, weights)))
    one = 64 * 64 * 4
    assert found.intermediates == 4 * one
    assert found.planned == found.least == 2 * one


def test_a_nest_works_in_place():
    x, w = inputs = [array(8, 8), array(8, 8)]
    found = planned(inputs, matmul(exp(sort(matmul(x, w))), w))
    *_, nest = (k for k in found.kernels if isinstance(k, Nest))
    (read,) = (s.operand.buffer for s in nest.steps if isinstance(s, Load))
    (written,) = (s.operand.buffer for s in nest.stores)
    assert read != written
    assert found.starts[read.index] == found.starts[written.index]


def test_what_is_still_needed_is_not_overwritten():
    x, w = inputs = [array(8, 8), array(8, 8)]
    y = matmul(x, w)
    found = planned(inputs, matmul(matmul(exp(y), w), y))
    nest = next(k for k in found.kernels if isinstance(k, Nest))
    (read,) = (s.operand.buffer for s in nest.steps if isinstance(s, Load))
    (written,) = (s.operand.buffer for s in nest.stores)
    assert abs(found.starts[read.index] - found.starts[written.index]) >= 256


@pytest.mark.parametrize(
    "normalised, in_place",
    [
        (softmax, True),  # its last pass reads back what the one before wrote
        (lambda y: multiply(y, softmax(y)), False),
    ],
)
def test_a_pass_that_reads_again_is_not_overwritten(normalised, in_place):
    x, w = inputs = [array(8, 40), array(40, 40)]
    found = planned(inputs, matmul(normalised(matmul(x, w)), w))
    nest = next(k for k in found.kernels if isinstance(k, Nest))
    assert len(nest.stores) == 2
    buffers = {s.operand.buffer.index for s in nest.steps if isinstance(s, Load)}
    assert len(buffers) == 2
    assert len({found.starts[i] for i in buffers}) == 2 - in_place


# -- random programs ------------------------------------------------------------------------------

_STEPS = {
    "matmul": lambda a, b: np.matmul(a, b) * 0.25,
    "transpose": lambda a, b: a.T @ b * 0.25,
    "softmax": lambda a, b: npx.softmax(np.matmul(a, b)),
    "gate": lambda a, b: (b @ a) * npx.softmax(b @ a),
    "add": lambda a, b: a + np.tanh(b),
    "centre": lambda a, b: np.matmul(a - a.mean(axis=1, keepdims=True), b) * 0.25,
    "cumsum": lambda a, b: np.cumsum(np.tanh(a @ b), axis=0) * 0.1,
    "concatenate": lambda a, b: np.concatenate([b[3:], a[:3]]) @ a * 0.25,
    "standardise": lambda a, b: (b - b.mean(0)) / (((b - b.mean(0)) ** 2).mean(0) + 1) + a[0],
    "statistics": lambda a, b: np.broadcast_to(a.mean(0) * a.var(0), (8, 8)) + b[:, :1] * 0.5,
    "heads": lambda a, b: (a @ b).reshape(8, 2, 4).transpose(1, 0, 2).reshape(8, 8) * 0.25,
    "turn": lambda a, b: np.where(a > b, a.T, b[::-1]) * 1.0 + 0,
    "largest": lambda a, b: (a == a.max(axis=1, keepdims=True)).astype("float64") + np.sin(b),
    "reduce": lambda a, b: np.matmul(a, b).sum(axis=0, keepdims=True) * 0.1 + a,
}


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(_STEPS)), st.integers(0, 5), st.integers(0, 5)),
        min_size=2,
        max_size=10,
    )
)
@settings(deadline=None, max_examples=12, derandomize=True)
def test_random_programs_compute_what_they_do_eagerly(steps):
    def run(*values):
        values = list(values)
        for name, i, j in steps:
            values.append(_STEPS[name](values[-1 - i % 3], values[-1 - j % len(values)]))
        return values[-1], values[-2], values[-3].T

    generator = numpy.random.default_rng(0)
    given_ = [np.array(generator.normal(size=(8, 8))) for _ in range(3)]
    for found, wanted in zip(heterosis.hybridize(run)(*given_), run(*given_), strict=True):
        numpy.testing.assert_allclose(found.asnumpy(), wanted.asnumpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(7, 33), (64, 17)])
def test_normalisation_in_place(shape):
    @heterosis.hybridize
    def layers(x, w):
        y = x @ w
        y = (y - y.mean(axis=1, keepdims=True)) / (y.var(axis=1, keepdims=True) + 1e-5)
        return y @ w

    generator = numpy.random.default_rng(0)
    x, w = generator.normal(size=shape), generator.normal(size=(shape[1], shape[1]))
    y = x @ w
    y = (y - y.mean(1, keepdims=True)) / (y.var(1, keepdims=True) + 1e-5)
    found = layers(np.array(x), np.array(w)).asnumpy()
    numpy.testing.assert_allclose(found, y @ w, rtol=1e-3, atol=1e-3)
