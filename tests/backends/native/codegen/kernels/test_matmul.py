"""Matrix products against NumPy: every element type, edge, stride, batch, variant and target."""

from __future__ import annotations

import ctypes
import itertools
import re

import ml_dtypes
import numpy
import pytest

from heterosis.backends.native.codegen.emit.builder import PTR, Module, Type, constant
from heterosis.backends.native.codegen.kernels.matmul import (
    Batch,
    Problem,
    choose,
    emit_pack_b,
    packed_b_layout,
    workspace_bytes,
)
from heterosis.backends.native.codegen.kernels.matmul.element import element
from heterosis.backends.native.codegen.kernels.matmul.tile import tile
from heterosis.backends.native.codegen.target import AVX2, AVX512, FALLBACK, NEON
from tests.backends.native.codegen.kernels.matmul_harness import (
    FILL,
    RUNTIME,
    WORKERS,
    Call,
    assembly,
    compile_text,
    guarded,
    loops_of,
    numbers,
    operand,
    problem_of,
    result,
    run,
    vector_spills,
)
from tests.backends.native.usable_targets import HERE

BEST = HERE[0]
DTYPES = [
    "float32", "float64", "float16", "bfloat16", "bool",
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
]  # fmt: skip
VARIANTS = ["blocked", "columns", "direct", "dots_of_columns", "dots_of_rows", "rows", "strips"]
VARIANTS += ["direct_transposed"]
AS_THEY_LIE = ["rows", "strips"]  # they do not copy the left operand
# (m, n, k): every tail of every tile, nothing at all, and more than one block of depth.
SHAPES = [
    (0, 3, 4), (3, 0, 4), (4, 3, 0), (1, 1, 1), (2, 3, 5), (3, 2, 1), (5, 8, 3), (6, 16, 8),
    (7, 17, 15), (8, 31, 16), (13, 33, 17), (16, 15, 31), (17, 64, 33), (1, 100, 64), (100, 1, 64),
    (31, 5, 100), (64, 64, 64), (33, 100, 257), (257, 7, 31),
]  # fmt: skip
LARGE = [(3, 300, 700), (150, 40, 600), (301, 257, 1100)]


def layouts(variant: str) -> list[tuple[str, str]]:
    every = ["rows", "columns", "spread", "reversed", "repeated"]
    if variant == "direct":
        return [(a, "rows") for a in every]
    if variant.startswith("dots"):
        return [("rows", "columns")]
    if variant in AS_THEY_LIE:
        return [("rows", b) for b in every]
    if variant == "direct_transposed":
        return [("columns", b) for b in every]
    return list(itertools.product(every, every))


def expected(a, b):
    kind = a.dtype.name
    if kind in ("float16", "bfloat16"):
        return a.astype("float64") @ b.astype("float64")
    return a @ b


def check(c, a, b) -> None:
    want, kind, k = expected(a, b), a.dtype.name, max(1, a.shape[-1])
    if "float" not in kind:
        numpy.testing.assert_array_equal(c, want)
        return
    relative = {"float64": 1e-15, "float32": 5e-7, "float16": 1e-3, "bfloat16": 8e-3}[kind]
    # The error of a sum grows with the sizes of what was added, not with the sum.
    sizes = numpy.abs(a.astype("float64")) @ numpy.abs(b.astype("float64"))
    scale = numpy.abs(want.astype("float64")) + sizes * (k**0.5 if "32" in kind else 1) * 1e-4
    if kind in ("float64", "float32"):
        scale = sizes
    error = numpy.abs(c.astype("float64") - want.astype("float64"))
    assert (error <= 4 * relative * scale + 1e-6 * (kind == "float16")).all()


# Computed with as they are: what is wider than in memory is packed.
KEPT = {"float32", "float64", "int32", "uint32", "int64", "uint64"}
# In memory or in registers like another one.
RARE = {"uint8", "int16", "uint16", "int32", "uint32", "uint64"}


@pytest.mark.parametrize(
    "variant, dtype",
    [
        pytest.param(v, d, marks=[pytest.mark.slow] * (d in RARE))
        for v, d in itertools.product(VARIANTS, DTYPES)
        if v not in AS_THEY_LIE or d in KEPT
    ],
)
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_matches_numpy(target, dtype, variant):
    turn = itertools.cycle(layouts(variant))
    for m, n, k in SHAPES:
        if variant == "direct_transposed":
            n = 1
        for a_layout, b_layout in itertools.islice(turn, 3):
            a, b = operand((m, k), dtype, a_layout), operand((k, n), dtype, b_layout)
            wide, c = result(m, n, a)
            if variant == "direct_transposed":
                wide = c = numpy.full((m, 1), 7).astype(a.dtype)
            actual = problem_of(a, b, c, variant=variant)
            run(target, actual.generic(), actual, a, b, c)
            check(c, a, b)
            assert (wide[:, n:] == wide.dtype.type(7)).all()


@pytest.mark.parametrize(
    "variant, dtype",
    [
        *itertools.product(
            ("blocked", "columns", "direct", "dots_of_columns"), ("float32", "float16", "int8")
        ),
        *itertools.product(AS_THEY_LIE, ("float32", "int64")),
    ],
)
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_several_blocks_of_depth(target, variant, dtype):
    for m, n, k in LARGE:
        a = operand((m, k), dtype, "rows")
        b = operand((k, n), dtype, "columns" if variant.startswith("dots") else "rows")
        _, c = result(m, n, a)
        actual = problem_of(a, b, c, variant=variant)
        run(target, actual.generic(), actual, a, b, c)
        check(c, a, b)


@pytest.mark.slow
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_more_than_is_packed_at_a_time(target):
    for m, n, k in [(40, 50, 5000), (9, 3000, 900)]:
        for variant in ("blocked", "columns", *AS_THEY_LIE):
            a, b = numbers((m, k), "float32"), numbers((k, n), "float32")
            _, c = result(m, n, a)
            actual = problem_of(a, b, c, variant=variant)
            run(target, actual.generic(), actual, a, b, c)
            check(c, a, b)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_chosen_variants(dtype):
    for m, n, k in SHAPES + LARGE:
        for a_layout, b_layout in layouts("blocked"):
            a, b = operand((m, k), dtype, a_layout), operand((k, n), dtype, b_layout)
            c = numpy.full((m, n), 7, dtype)
            actual = choose(problem_of(a, b, c), BEST, WORKERS)
            run(BEST, actual.generic(), actual, a, b, c)
            check(c, a, b)


@pytest.mark.parametrize(
    "dtype, cheap",
    [("float32", None), ("float64", None), ("float32", True), ("float32", False)],
)
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_a_turned_product(target, dtype, cheap):
    shape = tile(target, element(dtype, target))
    finish = None if cheap is None else BiasAndRelu(cheap)
    for vectors, n, k in [(1, 33, 5), (2, 64, 64), (3, 97, 257), (4, 256, 0), (5, 301, 31)]:
        m = vectors * shape.lanes
        a = guarded(operand((m, k), dtype, "rows"))
        b = guarded(operand((k, max(n, 2 * m)), dtype, "columns"))
        wide, c = result(m, b.shape[1], a)
        narrow = shape.ends_narrow(m)
        actual = problem_of(a, b, c, variant="turned", narrow=narrow)
        run(target, actual.generic(), actual, a, b, c, finish)
        want = a.astype("float64") @ b.astype("float64")
        if finish:
            want = numpy.maximum(want + BIAS[: b.shape[1]] + ROW_BIAS[:m, None], 0)
        near = 1e-4 if dtype == "float32" else 1e-9
        numpy.testing.assert_allclose(c, want, rtol=near, atol=near)
        assert (wide[:, b.shape[1] :] == 7).all()


BY_MASKS = [target for target in HERE if target.has_masks()]


@pytest.mark.parametrize(
    "dtype, cheap",
    [("float32", None), ("float64", None), ("float32", True), ("float32", False)],
)
@pytest.mark.parametrize("target", BY_MASKS, ids=lambda t: t.name)
def test_columns_are_stored_as_rows(target, dtype, cheap):
    """Of rows that are neighbours: less than a vector of them, and more than one block of depth."""
    finish = None if cheap is None else BiasAndRelu(cheap)
    turn = itertools.cycle(["rows", "columns", "spread", "reversed", "repeated"])
    sizes = [(1, 1, 1), (3, 2, 5), (16, 3, 3), (17, 10, 64), (40, 24, 0), (100, 13, 257)]
    for (m, n, k), layout in zip([*sizes, (397, 7, 700), (390, 20, 400)], turn, strict=False):
        a, b = guarded(operand((m, k), dtype, "columns")), operand((k, n), dtype, layout)
        wide, c = result(m, n, a)
        actual = problem_of(a, b, c, variant="direct_turned")
        run(target, actual.generic(), actual, a, b, c, finish)
        if finish:
            want = a.astype("float64") @ b.astype("float64")
            want = numpy.maximum(want + BIAS[:n] + ROW_BIAS[:m, None], 0)
            numpy.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-4)
        else:
            check(c, a, b)
        assert (wide[:, n:] == 7).all()


@pytest.mark.parametrize("over_batches", [False, True])
def test_columns_stored_as_rows_in_batches(over_batches):
    a, b = numbers((5, 40, 50), "float32").swapaxes(-1, -2), numbers((5, 40, 9), "float32")
    c = numpy.full((5, 50, 9), 7, "float32")
    actual = problem_of(a, b, c, variant="direct_turned", over_batches=over_batches)
    run(BY_MASKS[0], actual.generic(), actual, a, b, c)
    check(c, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", BY_MASKS, ids=lambda t: t.name)
def test_a_tall_product(target, dtype):
    """Fewer rows than a vector has lanes, parts of vectors, and more than one share."""
    heights = itertools.cycle([1, 15, 16, 17, 301, 64, 6005])
    for k in range(2, target.lanes(numpy.dtype(dtype).itemsize)):
        for n, layout in zip((1, 2, 3, 4), ("columns", "rows", "spread", "reversed"), strict=True):
            m = next(heights)
            a, b = guarded(operand((m, k), dtype, "rows")), operand((k, n), dtype, layout)
            a[m - m // 2 :] = a[: m // 2]
            c = guarded(numpy.full((m, n), 7, dtype))
            actual = problem_of(a, b, c, variant="tall")
            run(target, actual.generic(), actual, a, b, c)
            check(c, a, b)
            numpy.testing.assert_array_equal(c[m - m // 2 :], c[: m // 2])


@pytest.mark.parametrize("over_batches", [False, True])
def test_tall_products_in_batches(over_batches):
    a, b = numbers((5, 40, 3), "float32"), numbers((5, 3, 2), "float32")
    c = numpy.full((5, 40, 2), 7, "float32")
    actual = problem_of(a, b, c, variant="tall", over_batches=over_batches)
    run(BY_MASKS[0], actual.generic(), actual, a, b, c)
    check(c, a, b)


# How operands of few sums lie: along the depth, or as rows shorter than a vector.
DEEP = [("columns", "rows"), ("rows", "rows"), ("columns", "columns")]


@pytest.mark.parametrize(
    "dtype, cheap", [("float32", None), ("float64", None), ("float32", True), ("float32", False)]
)
@pytest.mark.parametrize("target", BY_MASKS, ids=lambda t: t.name)
def test_few_sums_over_tall_matrices(target, dtype, cheap):
    """None, less than a vector of them, parts of vectors; and epilogues."""
    finish = None if cheap is None else BiasAndRelu(cheap)
    depths = itertools.cycle([0, 1, 15, 16, 17, 301, 64])
    sizes = itertools.product(range(1, 5), range(1, 5))
    for (m, n), layout in itertools.product([*sizes, (10, 1), (1, 10), (7, 2)], DEEP):
        if max(m, n) >= target.lanes(numpy.dtype(dtype).itemsize):
            continue
        k = next(depths)
        a, b = guarded(operand((m, k), dtype, layout[0])), operand((k, n), dtype, layout[1])
        wide, c = result(m, n, a)
        actual = problem_of(a, guarded(b), c, variant="deep")
        run(target, actual.generic(), actual, a, b, c, finish)
        want = a.astype("float64") @ b.astype("float64")
        if finish:
            want = numpy.maximum(want + BIAS[:n] + ROW_BIAS[:m, None], 0)
        near = 1e-4 if dtype == "float32" else 1e-9
        numpy.testing.assert_allclose(c, want, rtol=near, atol=near)
        assert (wide[:, n:] == 7).all()


@pytest.mark.parametrize("over_batches", [False, True])
def test_few_sums_over_tall_matrices_in_batches(over_batches):
    a, b = numbers((5, 40, 3), "float32").swapaxes(-1, -2), numbers((5, 40, 2), "float32")
    c = numpy.full((5, 3, 2), 7, "float32")
    actual = problem_of(a, b, c, variant="deep", over_batches=over_batches)
    run(BY_MASKS[0], actual.generic(), actual, a, b, c)
    check(c, a, b)


@pytest.mark.parametrize("over_batches", [False, True])
def test_turned_products_in_batches(over_batches):
    a, b = numbers((2, 3, 16, 40), "float32"), numbers((3, 50, 40), "float32")
    b = numpy.broadcast_to(b.swapaxes(-1, -2), (2, 3, 40, 50))
    c = numpy.full((2, 3, 16, 50), 7, "float32")
    narrow = tile(BEST, element("float32", BEST)).ends_narrow(16)
    how = {"variant": "turned", "over_batches": over_batches, "narrow": narrow}
    actual = problem_of(a, b, c, **how)
    run(BEST, actual.generic(), actual, a, b, c)
    check(c, a, b)


@pytest.mark.lengthy
@pytest.mark.parametrize("over_batches", [False, True])
@pytest.mark.parametrize("variant", ["blocked", "columns", "direct", *AS_THEY_LIE])
def test_batches(variant, over_batches):
    cases = [((5,), (5,)), ((5,), (1,)), ((2, 3), (2, 3)), ((2, 1), (1, 3)), ((0,), (0,))]
    for left, right in cases:
        for m, n, k in [(3, 5, 4), (20, 33, 17), (4, 4, 0)]:
            a, b = numbers((*left, m, k), "float32"), numbers((*right, k, n), "float32")
            outer = numpy.broadcast_shapes(left, right)
            a = numpy.broadcast_to(a, (*outer, m, k))
            b = numpy.broadcast_to(b, (*outer, k, n))
            c = numpy.full((*outer, m, n), 7, "float32")
            actual = problem_of(a, b, c, variant=variant, over_batches=over_batches)
            run(BEST, actual.generic(), actual, a, b, c)
            check(c, a, b)


@pytest.mark.lengthy
@pytest.mark.parametrize("variant", ["blocked", "columns", "direct", *AS_THEY_LIE])
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_known_sizes(target, variant):
    for m, n, k in [(1, 1, 1), (7, 17, 15), (4, 3, 0), (0, 2, 2), (64, 64, 64), (33, 100, 300)]:
        a, b = numbers((m, k), "float32"), numbers((k, n), "float32")
        _, c = result(m, n, a)
        actual = problem_of(a, b, c, variant=variant)
        assert actual.parameters() == []
        run(target, actual, actual, a, b, c)
        check(c, a, b)


def pack(target, actual: Problem, b):
    """The packed right operand, in memory that ends where the layout says."""
    module = Module()
    emit_pack_b(module, target, "pack", actual)
    f = module.function("start", [("call", PTR), ("numbers", PTR)], linkage="external")
    call, given = f.parameters
    f.call("pack", [call, *(f.load(PTR, f.offset(PTR, given, i)) for i in range(2))])
    f.ret()
    _, entry = compile_text(target, module.text())
    layout = packed_b_layout(actual, target)
    packed = numpy.full(-(-layout.size // 4) + 16, FILL, numpy.uint32).view(numpy.uint8)
    packed = packed[-packed.ctypes.data % 64 :]
    call = Call(None, None, None, None, ctypes.pointer(RUNTIME))
    entry(ctypes.addressof(call), (ctypes.c_int64 * 2)(b.ctypes.data, packed.ctypes.data))
    behind = packed[-(-layout.size // 4) * 4 :].view(numpy.uint32)
    assert (behind == FILL).all()
    return packed


@pytest.mark.parametrize(
    "variant, dtype",
    [(v, d) for v in ("blocked", "columns") for d in ("float32", "float16", "int8")]
    + [(v, d) for v in ("panels", "copied") for d in ("float32", "float64")],
)
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_packed_right_operand(target, variant, dtype):
    for m, n, k in [(1, 1, 1), (7, 17, 15), (20, 100, 600), (150, 33, 300), (3, 4, 0)]:
        for layout in ("rows", "columns"):
            a, b = numbers((m, k), dtype), operand((k, n), dtype, layout)
            _, c = result(m, n, a)
            packed = pack(target, problem_of(a, b, c), b)
            actual = problem_of(a, b, c, variant=variant, b_packed=True)
            run(target, actual.generic(), actual, a, packed, c)
            check(c, a, b)


@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_every_number_of_rows_fills_tiles(target):
    """Tiles of three heights, and rows that fit none; what is beside the result is not touched."""
    b = operand((7, 40), "float32", "rows")
    packed = None
    for m in range(1, 62):
        a = numbers((m, 7), "float32")
        wide, c = result(m + 2, 40, a)
        c = c[1:-1]
        actual = problem_of(a, b, c, variant="panels")
        packed = pack(target, actual, b) if packed is None else packed
        actual = problem_of(a, b, c, variant="panels", b_packed=True)
        run(target, actual.generic(), actual, a, packed, c)
        check(c, a, b)
        assert (wide[[0, -1]] == 7).all()
        assert (wide[:, 40:] == 7).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
@pytest.mark.parametrize("halves, less", [(2, 0), (1, 0), (3, 0), (1, 1), (2, 1), (3, 1)])
def test_a_narrow_last_panel(halves, less, target, dtype):
    """No more is computed than the vectors of its columns, and what is beside the result is not
    touched."""
    shape = tile(target, element(dtype, target))
    last = max(halves * shape.lanes // 2 - less, 1)
    unit = shape.lanes // 2 if shape.halves else shape.lanes
    computed = -(-last // unit) * unit
    for panels, m, k in [(0, 1, 5), (0, 50, 33), (1, 7, 600), (2, 23, 1300), (1, 8, 1)]:
        n = panels * shape.columns + last
        a, b = numbers((m, k), dtype), operand((k, n), dtype, "rows")
        wide, c = result(m + 2, n, a)
        c = c[1:-1]
        actual = problem_of(a, b, c, variant="panels")
        packed = pack(target, actual, b)
        actual = choose(problem_of(a, b, c, b_packed=True), target, WORKERS)
        assert actual.narrow == (computed if computed < shape.columns else 0)
        run(target, actual.generic(), actual, a, packed, c)
        check(c, a, b)
        assert (wide[[0, -1]] == 7).all()
        assert (wide[:, n:] == 7).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "variant, layout", [("dots_of_several", "columns"), ("dots_of_few", "rows")]
)
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_several_dot_products_at_a_time(target, variant, layout, dtype):
    """Equal rows have equal results, wherever they stand; what is beside the result is not
    touched."""
    for m, n, k in itertools.product((1, 2, 5, 12, 67), range(1, 15), (3, 64, 85, 600)):
        a, b = numbers((m, k), dtype), operand((k, n), dtype, layout)
        a[1::2] = a[0]
        wide, c = result(m + 2, n, a)
        c = c[1:-1]
        actual = problem_of(a, b, c, variant=variant)
        run(target, actual.generic(), actual, a, b, c)
        check(c, a, b)
        assert (c[1::2] == c[0]).all()
        assert (wide[[0, -1]] == 7).all()
        assert (wide[:, n:] == 7).all()


BIAS, ROW_BIAS = numbers(400, "float32"), numbers(400, "float32")


def bias_and_relu(f, value, at):
    """max(value + bias[column] + row_bias[row], 0), the biases at fixed addresses."""
    lanes = value.type.lanes
    kind = Type("float", lanes)
    for bias, index, many in ((BIAS, at.column, lanes), (ROW_BIAS, at.row, 0)):
        address = f.convert("inttoptr", constant(Type("i64"), bias.ctypes.data), PTR)
        loaded = f.load(Type("float", many), f.offset(kind, address, index))
        value = f.add(value, loaded if many == lanes else f.splat(loaded, lanes))
    return f.select(f.compare("ogt", value, constant(kind, 0)), value, constant(kind, 0))


class BiasAndRelu:
    def __init__(self, is_cheap):
        self.is_cheap, self.digest = is_cheap, "bias_and_relu"

    def read_words(self, f, call):
        """The addresses are in the code."""

    def fetch(self, f, at, columns):
        """All of it is in the cache."""

    def __call__(self, f, value, at):
        return bias_and_relu(f, value, at)


@pytest.mark.parametrize(
    "variant, dtype, cheap",
    [
        (v, d, cheap)
        for v in VARIANTS[:-1]
        for d, cheap in (("float32", True), ("float32", False), ("bfloat16", False))
        if v not in AS_THEY_LIE or d in KEPT
    ],
)
def test_epilogue(variant, dtype, cheap):
    finish = BiasAndRelu(cheap)
    for m, n, k in [(1, 1, 1), (7, 17, 15), (5, 3, 0), (40, 100, 600), (150, 33, 20)]:
        a = numbers((m, k), dtype)
        b = operand((k, n), dtype, "columns" if variant.startswith("dots") else "rows")
        _, c = result(m, n, a)
        actual = problem_of(a, b, c, variant=variant)
        run(BEST, actual.generic(), actual, a, b, c, finish)
        want = a.astype("float64") @ b.astype("float64") + BIAS[:n] + ROW_BIAS[:m, None]
        near = 1e-4 if dtype == "float32" else 1e-2
        numpy.testing.assert_allclose(
            c.astype("float64"), numpy.maximum(want, 0), rtol=near, atol=near
        )


@pytest.mark.lengthy
@pytest.mark.parametrize("variant", ["panels", "copied"])
@pytest.mark.parametrize("cheap", [True, False])
def test_epilogue_of_packed_panels(cheap, variant):
    for m, n, k in [
        (1, 1, 1),
        (7, 17, 15),
        (5, 3, 0),
        (40, 100, 600),
        (150, 33, 20),
        (13, 32, 400),
        (50, 48, 20),
        (50, 24, 20),
        (50, 40, 20),
    ]:
        a, b = numbers((m, k), "float32"), numbers((k, n), "float32")
        _, c = result(m, n, a)
        narrow = tile(BEST, element("float32", BEST)).ends_narrow(n)
        actual = problem_of(a, b, c, variant=variant, b_packed=True, narrow=narrow)
        packed = pack(BEST, problem_of(a, b, c), b)
        run(BEST, actual.generic(), actual, a, packed, c, BiasAndRelu(cheap))
        want = a.astype("float64") @ b.astype("float64") + BIAS[:n] + ROW_BIAS[:m, None]
        numpy.testing.assert_allclose(c, numpy.maximum(want, 0), rtol=1e-4, atol=1e-4)


SPECIAL = [0.0, -0.0, 1.0, -1.5, 65504, 65519, 65520, 1e6, 6e-8, 2e-8, 6.1e-5, 3e-40, 1e-45]
SPECIAL += [float("inf"), -float("inf"), float("nan"), 1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8]


@pytest.mark.parametrize(
    "variant, dtype",
    [
        *itertools.product(("blocked", "direct"), ("float16", "bfloat16", "float32", "float64")),
        ("rows", "float32"),
        ("rows", "float64"),
    ],
)
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_special_values_pass_through(target, variant, dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    with numpy.errstate(all="ignore"):
        a = numpy.array(SPECIAL)[:, None].astype(kind)
        for scale in (1, -1, 2, 0.5, 1 / 3):
            b = numpy.full((1, 9), scale).astype(kind)
            c = numpy.zeros((len(a), 9), kind)
            actual = problem_of(a, b, c, variant=variant)
            run(target, actual.generic(), actual, a, b, c)
            wide = "float64" if dtype == "float64" else "float32"
            want = (a.astype(wide) * b.astype(wide)).astype(kind)
            numpy.testing.assert_array_equal(c.astype("float64"), want.astype("float64"))


@pytest.mark.parametrize("variant", VARIANTS[:6])
@pytest.mark.parametrize("target", HERE, ids=lambda t: t.name)
def test_reads_nothing_behind_the_operands(target, variant):
    pairs = [p for p in layouts(variant) if set(p) <= {"rows", "columns"}]
    for (m, n, k), (a_layout, b_layout) in itertools.product(
        [(1, 1, 1), (7, 17, 15), (13, 33, 17), (3, 5, 100), (64, 64, 64)], pairs
    ):
        a = guarded(operand((m, k), "float32", a_layout))
        b = guarded(operand((k, n), "float32", b_layout))
        c = guarded(numpy.zeros((m, n), "float32"))
        actual = problem_of(a, b, c, variant=variant)
        run(target, actual.generic(), actual, a, b, c)
        check(c, a, b)


@pytest.mark.parametrize("over_batches", [False, True])
def test_batches_of_copied_rows(over_batches):
    """Each product has copies of its own, and none begins in another one's."""
    m, n, k = 20, 33, 1024
    b = numbers((k, n), "float32")
    a, c = guarded(numbers((5, m, k), "float32")), guarded(numpy.zeros((5, m, n), "float32"))
    packed = pack(BEST, problem_of(a[0], b, c[0]), b)
    repeated = numpy.broadcast_to(b, (5, k, n))
    facts = {"variant": "copied", "b_packed": True, "over_batches": over_batches}
    actual = problem_of(a, repeated, c, **facts)
    run(BEST, actual.generic(), actual, a, packed, c)
    check(c, a, repeated)


def functions(text: str) -> dict[str, str]:
    """The assembly of every function by name."""
    pattern = r'^"?((?:matmul|product)[\w.]*)"?:(.*?)^\s*(?:\.cfi_endproc|\.size)'
    return dict(re.findall(pattern, text, re.MULTILINE | re.DOTALL))


# The rest differ from these in no instruction.
DISTINCT = ["float32", "float64", "float16", "bfloat16", "bool", "int8", "int16", "int32", "int64"]


@pytest.mark.parametrize(
    "dtype",
    [pytest.param(d, marks=[pytest.mark.slow] * (d in RARE or d == "bool")) for d in DISTINCT],
)
@pytest.mark.parametrize("target", [AVX512, AVX2, FALLBACK, NEON], ids=lambda t: t.name)
def test_kernels_spill_nothing_and_call_no_library(target, dtype):
    """Register allocation is fragile: a kernel that spills its sums is several times slower."""
    several = ["dots_of_several"] if dtype in ("float32", "float64") else []
    for variant in ("blocked", "direct", "dots_of_columns", *several):
        if variant != "blocked" and element(dtype, target).software_half:
            continue  # never chosen
        text = assembly(target, Problem(dtype, variant))
        called = set(re.findall(r"^\s*(?:callq|bl)\s+\"?([A-Za-z_][\w.]*)", text, re.MULTILINE))
        assert {name for name in called if not name.startswith(("matmul.", "product"))} == set()
        bodies = functions(text)
        kernels = [name for name in bodies if re.search(r"\.(micro|tile|dot)\.", name)]
        spilled = {name: vector_spills(target, bodies[name]) for name in kernels}
        assert kernels and not any(spilled.values()), {n: s for n, s in spilled.items() if s}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", [AVX512, AVX2, FALLBACK, NEON], ids=lambda t: t.name)
def test_the_loops_over_rows_as_they_lie_spill_nothing(target, dtype):
    shape = tile(target, element(dtype, target))
    for narrow in {shape.ends_narrow(halves * shape.lanes // 2) for halves in (1, 2, 3)}:
        text = assembly(target, Problem(dtype, "panels", a_column=1, b_packed=True, narrow=narrow))
        bodies = functions(text)
        own = f"matmul.{dtype}.narrow.{narrow}.rows" if narrow else f"matmul.{dtype}.rows"
        for name in {f"matmul.{dtype}.rows", own}:
            blocks = loops_of(bodies[name])
            multiplying = [b for b in blocks if re.search(r"\b(?:vfmadd|mulp|fmla)", b)]
            assert multiplying and not any(vector_spills(target, b) for b in multiplying)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda t: t.name)
def test_the_loops_of_turned_products_spill_nothing(target, dtype):
    text = assembly(target, Problem(dtype, "turned", a_column=1, b_row=1))
    body = functions(text)[f"matmul.{dtype}.turned"]
    blocks = loops_of(body)
    multiplying = [b for b in blocks if b.count("vfmadd") > 10 and "vperm" not in b]
    assert multiplying and not any(vector_spills(target, b) for b in multiplying)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_loops_of_columns_stored_as_rows_spill_nothing(dtype):
    bodies = functions(assembly(AVX512, Problem(dtype, "direct_turned", a_row=1)))
    tiles = [body for name, body in bodies.items() if ".turned.tile." in name]
    assert len(tiles) == 4 * 3  # of 8, 4, 2 and 1 rows: two vectors, one, and a part of one
    for body in tiles:
        blocks = loops_of(body)
        multiplying = [b for b in blocks if "vfmadd" in b]
        assert multiplying and not any(vector_spills(AVX512, b) for b in multiplying)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda t: t.name)
def test_tall_products_spill_nothing(target, n):
    for k in (2, 3, 4, 6, 7, 12):
        a, b = numbers((256, k), "float32"), numbers((k, n), "float32")
        actual = problem_of(a, b, numpy.empty((256, n), "float32"))
        if choose(actual, target, 1).variant == "tall":
            sizes = {"n": n, "k": k, "a_row": k, "a_column": 1, "c_row": n}
            bodies = functions(assembly(target, Problem("float32", "tall", **sizes)))
            body = bodies["product.one.share"]
            assert "vfmadd" in body and not vector_spills(target, body), (k, n)


@pytest.mark.parametrize("target", [AVX512, AVX2], ids=lambda t: t.name)
def test_few_sums_over_tall_matrices_spill_nothing(target):
    for m, n in [(1, 2), (3, 1), (1, 4), (3, 2), (2, 3), (4, 4), (8, 2), (1, 9)]:
        if m * n <= (16 if target is AVX512 else 6):
            for left, right in {(m, n), (1, n), (m, 1)} - {(1, 1)}:
                sizes = {"m": m, "n": n, "a_column": left, "b_row": right}
                body = functions(assembly(target, Problem("float32", "deep", **sizes)))
                assert not vector_spills(target, body["product.one"]), sizes


def test_workspace_does_not_grow_with_the_rows():
    """A product of many rows holds one block of them for every thread."""
    small, large = (
        workspace_bytes(Problem("float32", "blocked", m, 256, 256, 256, 1, 256, 1, 256), AVX2, 4)
        for m in (1000, 100000)
    )
    assert small == large


def test_batch_numbers_follow_the_sizes():
    generic = Problem("float32", k=8, batch=(Batch(), Batch(a=0)))
    labels = [label for label, _ in generic.parameters()]
    assert labels[:2] == ["m", "n"]
    assert labels[-7:] == [
        "batch0_count", "batch0_a", "batch0_b", "batch0_c",
        "batch1_count", "batch1_b", "batch1_c",
    ]  # fmt: skip
