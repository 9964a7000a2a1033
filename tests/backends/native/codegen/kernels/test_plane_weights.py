"""The gradient of few channels' filters by copied planes, against sums in double precision."""

from __future__ import annotations

import numpy
import pytest

from heterosis.backends.native.codegen.emit.builder import Module
from heterosis.backends.native.codegen.kernels.convolution import (
    NUMBERS,
    Problem,
    choose_for_weights,
    emit_correlate,
)
from heterosis.backends.native.codegen.target import AVX2, AVX512
from heterosis.backends.native.compile import compiler
from tests.backends.native.codegen.kernels.matmul_harness import guarded, loops_of, vector_spills
from tests.backends.native.codegen.kernels.weights_harness import Taps, exact, summed
from tests.backends.native.usable_targets import HERE

generator = numpy.random.default_rng(7)

# images, groups, rows, channels, height and width of the results, taps, chunks
SHAPES = [
    (2, 1, 4, 1, 8, 16, Taps(), 1),
    (3, 1, 7, 3, 9, 13, Taps(), 2),  # rows and taps that fill no tile
    (5, 1, 16, 16, 6, 32, Taps(), 2),  # several images together, the last of them fewer
    (2, 3, 5, 2, 10, 37, Taps(), 1),  # groups; two vectors and a rest
    (2, 4, 1, 1, 30, 30, Taps(), 1),  # depthwise
    (2, 1, 9, 3, 14, 14, Taps((7, 7), (2, 2), pad=(3, 3)), 1),
    (2, 2, 4, 2, 5, 11, Taps((3, 2), (2, 3), (2, 3), (2, 1)), 3),  # some chunks have no image
    (1, 1, 4, 2, 150, 40, Taps((1, 5), pad=(0, 2)), 1),  # several groups of lines
    (0, 1, 4, 2, 8, 8, Taps(), 3),
    (1, 1, 2, 2, 1, 1, Taps((5, 5), pad=(2, 2)), 1),
]


@pytest.mark.parametrize("beside", [True, False], ids=["beside", "apart"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_sums(target, dtype, beside):
    near = 4e-6 if dtype == "float32" else 1e-14
    for images, groups, rows, channels, high, wide, taps, chunks in SHAPES:
        dy = generator.standard_normal((images, groups, rows, high, wide)).astype(dtype)
        shape = (images, groups, channels, *taps.inside((high, wide)))
        x = generator.standard_normal(shape if beside else shape[::-1]).astype(dtype)
        x = guarded(x) if beside else guarded(x).transpose()
        found, _ = summed(target, guarded(dy), x, taps, chunks, planes=True)
        want = exact(dy, x, taps, chunks)
        assert abs(found - want).max() <= near * max(1, abs(want).max()), (shape, rows)


@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_what_a_tap_does_not_meet_is_not_multiplied_by_zero(target):
    """Lanes behind a line are no part of the sums: what the input has there may be no number."""
    dy = numpy.ones((1, 1, 5, 3, 5), "float32")
    x = numpy.ones((1, 1, 1, 3, 7), "float32")
    x[..., 5:] = numpy.nan
    taps = Taps((1, 3), pad=(0, 0))
    found, _ = summed(target, guarded(dy), guarded(x), taps, 1, planes=True)
    assert (found[..., 0] == 15).all() and numpy.isnan(found[..., 1:]).all()


@pytest.mark.parametrize("rows, channels, size, tasks, kind", [
    (16, 16, 32, 8, {"planes": True}), (16, 16, 32, 1, {"winograd": 4}),
    (4, 4, 28, 8, {"planes": True}), (64, 64, 16, 8, {"winograd": 4}),
    (64, 3, 32, 8, {"planes": True}), (16, 6, 3, 8, {}), (32, 16, 16, 8, {"planes": True}),
    (32, 32, 16, 8, {"winograd": 4}),
])  # fmt: skip
def test_planes_are_taken_where_they_pay(rows, channels, size, tasks, kind):
    facts = ("float32", 32, rows, channels, (1, 3, 3), (1, size, size), AVX512)
    assert choose_for_weights(*facts, small_steps=True, tasks=tasks) == kind


@pytest.mark.parametrize("rows, channels, size, kind", [
    (16, 16, 32, {"winograd": 4}), (24, 24, 28, {"winograd": 4}), (64, 16, 28, {"winograd": 4}),
    (8, 8, 28, {"planes": True}), (16, 3, 32, {"planes": True}), (4, 32, 28, {"planes": True}),
])  # fmt: skip
def test_with_narrower_vectors_tiles_pay_sooner(rows, channels, size, kind):
    """What is multiplied costs twice as much there, and a transform as much as with wide ones."""
    facts = ("float32", 8, rows, channels, (1, 3, 3), (1, size, size), AVX2)
    assert choose_for_weights(*facts, small_steps=True, tasks=8) == kind


@pytest.mark.parametrize("rows, channels, size, kind", [
    (50, 20, 8, {}), (16, 16, 8, {}), (16, 6, 10, {}), (20, 1, 24, {"planes": True}),
    (8, 8, 40, {"planes": True}),
])  # fmt: skip
def test_with_few_registers_lines_cost_more(rows, channels, size, kind):
    facts = ("float32", 64, rows, channels, (1, 5, 5), (1, size, size), AVX2)
    assert choose_for_weights(*facts, small_steps=True, tasks=8) == kind


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda t: t.name)
def test_the_loops_down_the_lines_spill_nothing(target, dtype):
    problem = Problem(dtype, 1, (1,) * len(NUMBERS), planes=True)
    module = Module()
    emit_correlate(module, target, "weights", problem)
    loops = loops_of(compiler.assembly(module.text(), target))
    multiplying = [loop for loop in loops if loop.count("vfmadd") > 4]
    assert multiplying and not any(vector_spills(target, loop) for loop in multiplying)
