"""Which variant of a product is chosen for its sizes, layouts and target."""

from __future__ import annotations

import numpy
import pytest

from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.kernels import recurrent
from heterosis.backends.native.codegen.kernels.matmul import Problem, choose
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK
from heterosis.ir.traced_sizes import Decisions
from tests.backends.native.codegen.kernels.matmul_harness import (
    WORKERS,
    operand,
    problem_of,
    result,
)
from tests.backends.native.usable_targets import HERE

BEST = HERE[0]


@pytest.mark.parametrize(
    "shape, layout, variant",
    [
        ((1, 64, 512), ("rows", "columns"), "dots_of_columns"),
        ((512, 1, 64), ("rows", "rows"), "dots_of_rows"),
        ((64, 10, 512), ("rows", "columns"), "dots_of_several"),
        ((5, 10, 512), ("rows", "columns"), "dots_of_several"),
        ((64, 3, 512), ("rows", "columns"), "dots_of_several"),
        ((64, 10, 512), ("rows", "rows"), "dots_of_few"),
        ((6, 10, 512), ("rows", "rows"), "direct"),
        ((64, 16, 512), ("rows", "rows"), "direct"),
        ((64, 10, 20), ("rows", "columns"), "rows"),
        ((4, 10, 512), ("rows", "columns"), "dots_of_columns"),
        ((512, 1, 64), ("columns", "rows"), "direct_transposed"),
        ((1, 64, 512), ("rows", "rows"), "direct_row"),
        ((8, 8, 8), ("rows", "rows"), "direct"),
        ((32, 768, 3072), ("rows", "columns"), "columns"),
        ((512, 512, 512), ("rows", "rows"), "strips"),
        ((2048, 384, 128), ("rows", "rows"), "rows"),
        ((20, 24, 2000), ("rows", "rows"), "rows"),
        ((20, 24, 1000), ("rows", "rows"), "direct"),  # the second-level cache has the columns
        ((6, 512, 512), ("rows", "rows"), "direct"),  # they are read once
        ((12, 512, 512), ("rows", "rows"), "direct"),  # or twice, from near
        ((12, 1024, 512), ("rows", "rows"), "strips"),
        ((100, 3, 5), ("rows", "columns"), "rows"),  # dot products too short for vectors
        ((100, 1, 5), ("rows", "columns"), "dots_of_rows"),
        ((3, 100, 5), ("rows", "columns"), "strips"),
        ((512, 512, 512), ("columns", "rows"), "blocked"),
        ((512, 513, 513), ("rows", "rows"), "blocked"),
        ((512, 512, 1024), ("rows", "rows"), "blocked"),
        ((2000, 512, 5000), ("rows", "rows"), "blocked"),
    ],
)
def test_choice(shape, layout, variant):
    m, n, k = shape
    a, b = operand((m, k), "float32", layout[0]), operand((k, n), "float32", layout[1])
    assert choose(problem_of(a, b, numpy.empty((m, n), "float32")), AVX2, 2).variant == variant


@pytest.mark.parametrize(
    "shape, variant",
    [
        ((128, 768, 3000), "panels"),
        ((128, 768, 3072), "copied"),
        ((1024, 768, 3072), "blocked"),
        ((128, 768, 512), "panels"),
        ((8, 768, 3072), "panels"),
    ],
)
def test_choice_for_packed_right_operands(shape, variant):
    """Rows that a first-level cache holds too few of at a time are copied, or packed."""
    m, n, k = shape
    a, b = operand((m, k), "float32", "rows"), operand((k, n), "float32", "columns")
    problem = problem_of(a, b, numpy.empty((m, n), "float32"), b_packed=True)
    assert choose(problem, AVX2, 2).variant == variant


@pytest.mark.parametrize(
    "shape, layout, variant",
    [
        ((512, 10, 64), ("columns", "rows"), "direct_turned"),
        ((512, 24, 64), ("columns", "columns"), "direct_turned"),
        ((512, 25, 64), ("columns", "columns"), "blocked"),
        ((15, 10, 64), ("columns", "rows"), "direct"),  # less than a vector of rows
        ((512, 1, 64), ("columns", "rows"), "direct_transposed"),
        ((16, 1024, 512), ("rows", "rows"), "direct"),
        ((17, 1024, 512), ("rows", "rows"), "strips"),
    ],
)
def test_choice_with_wide_vectors(shape, layout, variant):
    m, n, k = shape
    a, b = operand((m, k), "float32", layout[0]), operand((k, n), "float32", layout[1])
    problem = problem_of(a, b, numpy.empty((m, n), "float32"))
    assert choose(problem, AVX512, 1).variant == variant
    assert choose(problem, AVX2, 1).variant != "direct_turned"


@pytest.mark.parametrize(
    "shape, workers, variant",
    [
        ((64, 256, 512), 1, "turned"),
        ((64, 256, 512), 2, "strips"),
        ((1024, 2048, 256), 1, "turned"),
        ((60, 256, 512), 1, "strips"),  # the last rows would be no whole vector
        ((64, 100, 512), 1, "strips"),  # the columns are packed in no more time
        ((64, 256, 1024), 1, "columns"),  # rows that share lines of the cache
        ((64, 256, 1028), 1, "strips"),  # more than one block of depth
        ((1040, 2080, 256), 1, "blocked"),
    ],
)
def test_choice_of_what_is_turned(shape, workers, variant):
    m, n, k = shape
    a, b = operand((m, k), "float32", "rows"), operand((k, n), "float32", "columns")
    problem = problem_of(a, b, numpy.empty((m, n), "float32"))
    assert choose(problem, AVX512, workers).variant == variant
    assert choose(problem, AVX2, workers).variant != "turned"


@pytest.mark.parametrize(
    "shape, layout, is_tall",
    [
        ((256, 1, 7), "rows", True),
        ((255, 1, 7), "rows", False),
        ((5000, 4, 2), "rows", True),
        ((5000, 5, 2), "rows", False),
        ((5000, 4, 1), "rows", False),
        ((5000, 4, 16), "rows", False),
        ((5000, 4, 4), "rows", True),
        ((5000, 1, 3), "columns", False),
        ((5000, 1, 3), "spread", False),
    ],
)
def test_choice_of_tall_products(shape, layout, is_tall):
    m, n, k = shape
    for dtype in ("float32", "int32", "bfloat16"):
        a, b = operand((m, k), dtype, layout), operand((k, n), dtype, "rows")
        for c, lies in ((numpy.empty((m, n), dtype), True), (result(m, n, a)[1], False)):
            problem = problem_of(a, b, c, dtype=dtype)
            for target in (AVX512, AVX2):
                expected = is_tall and lies and dtype == "float32"
                assert (choose(problem, target, 1).variant == "tall") == expected
                assert choose(problem, target, 1, epilogue=True).variant != "tall"
            assert choose(problem, FALLBACK, 1).variant != "tall"


@pytest.mark.parametrize(
    "shape, layout, targets",
    [
        ((3, 1, 256), ("columns", "rows"), (AVX512, AVX2)),
        ((3, 1, 255), ("columns", "rows"), ()),
        ((1, 3, 256), ("rows", "rows"), (AVX512, AVX2)),
        ((1, 3, 256), ("columns", "columns"), ()),  # a dot product for each column
        ((4, 4, 256), ("columns", "rows"), (AVX512,)),
        ((4, 4, 256), ("columns", "columns"), (AVX512,)),
        ((4, 4, 256), ("rows", "rows"), (AVX512,)),
        ((4, 4, 256), ("rows", "columns"), ()),
        ((4, 5, 256), ("columns", "rows"), ()),
        ((11, 1, 256), ("columns", "rows"), ()),
        ((3, 2, 256), ("spread", "rows"), ()),
    ],
)
def test_choice_of_few_sums(shape, layout, targets):
    m, n, k = shape
    for dtype in ("float32", "int32"):
        a, b = operand((m, k), dtype, layout[0]), operand((k, n), dtype, layout[1])
        problem = problem_of(a, b, numpy.empty((m, n), dtype))
        for target in (AVX512, AVX2, FALLBACK):
            expected = target in targets and dtype == "float32"
            assert (choose(problem, target, 1).variant == "deep") == expected


def test_open_columns_have_no_narrow_panel():
    """Code for such a number of columns would serve no other one."""
    decisions = Decisions({"n": BEST.lanes(4)})
    for n, narrow in ((decisions.number("n"), 0), (BEST.lanes(4), BEST.lanes(4))):
        sizes = {"m": 8, "n": n, "k": 16, "a_row": 16, "a_column": 1, "c_row": n}
        actual = choose(Problem("float32", **sizes, b_packed=True), BEST, WORKERS)
        assert (actual.variant, actual.narrow) == ("panels", narrow)


@pytest.mark.parametrize("near, by_rows", [(1 << 20, False), (2 << 20, True)])
def test_threads_have_sequences_of_their_own_where_a_cache_holds_the_weights_twice(near, by_rows):
    """They read all weights in each step then, and meet once."""
    facts = (recurrent.CELLS["lstm"], "float32", False, False, 32, 256)
    loop, *_ = recurrent.plan(*facts, Machine(AVX512, 2, near), packed=True)
    assert loop.by_rows is by_rows
