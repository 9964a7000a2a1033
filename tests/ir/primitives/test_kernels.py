"""Reductions, scans, products, windows, recurrent layers, and the tables of all kernels."""

import itertools
import math
from importlib import import_module

import numpy
import pytest

from heterosis import ir
from heterosis.backends.native.codegen import tables
from heterosis.backends.native.codegen.lowerings import native
from heterosis.backends.native.compile import stored
from heterosis.backends.native.compile.plans import machine
from heterosis.ir.primitives import (
    boxes,
    checks,
    control,
    counting,
    factorizations,
    is_declared,
    products,
    recurrent,
    reductions,
    shuffling,
    sorting,
    windows,
)
from heterosis.ir.primitives.families import Opaque, Reduction
from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, FLOATS, INTEGERS, is_float, numpy_dtype
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from tests.ir.made_up import made_up
from tests.ir.primitives.kernel_checks import WIDE, check, drawn, node, types_of
from tests.processes import run_python

NUMBERS = (*INTEGERS, *FLOATS)
REDUCED = [
    *itertools.product((reductions.SUM, reductions.PROD), NUMBERS),
    *itertools.product((reductions.MAX, reductions.MIN), DTYPES),
    *itertools.product((reductions.ANY, reductions.ALL), ("bool",)),
]
OF_NUMBERS = (reductions.SUM, reductions.PROD, reductions.MAX, reductions.MIN)
SCANS = (reductions.CUMSUM, reductions.CUMPROD)


# -- reductions and scans -------------------------------------------------------------------------

AXES = [((5,), (0,)), ((3, 70), (1,)), ((70, 3), (0,)), ((3, 4, 5), (0, 2)),
        ((3, 0), (1,)), ((0, 3), (1,)), ((2, 33), (0, 1))]  # fmt: skip


def reduced(primitive, x, axes):
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    if primitive in SCANS:
        shape = x.shape
    return node(primitive, [types_of(x)], [(shape, x.dtype.name)], axes=axes)


@pytest.mark.parametrize("shape, axes", AXES)
@pytest.mark.parametrize("primitive, dtype", REDUCED)
def test_reductions(primitive, dtype, shape, axes):
    x = drawn(shape, dtype, low=0.7, high=1.4)
    ulps = 4 if primitive is not reductions.PROD else 4 + x.size / 2
    check(reduced(primitive, x, axes), [x], ulps=ulps)


@pytest.mark.parametrize("shape, axis", [((5,), 0), ((3, 70), 1), ((70, 3), 0), ((3, 0), 1)])
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("primitive", SCANS, ids=str)
def test_scans(primitive, dtype, shape, axis):
    x = drawn(shape, dtype, low=0.9, high=1.1)
    check(reduced(primitive, x, (axis,)), [x], ulps=4 + (x.size if is_float(dtype) else 0))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("primitive", OF_NUMBERS + SCANS, ids=str)
def test_numbers_that_are_none(primitive, dtype):
    x = numpy.array([[1, numpy.nan, 2], [1, numpy.inf, 2], [-numpy.inf, 1, numpy.inf], [0, 0, 0]])
    x = x.astype(numpy_dtype(dtype))
    check(reduced(primitive, x, (1,)), [x])


@pytest.mark.parametrize("primitive", OF_NUMBERS + SCANS, ids=str)
def test_axes_that_are_none(primitive):
    for axes in ((2,), (-1,), (1, 0), (0, 0), ()):
        with pytest.raises(ShapeError):
            primitive.types(node(primitive, [((3, 4), "float32")], [((), "float32")], axes=axes))
    with pytest.raises(ArgumentError):
        primitive.types(node(primitive, [((3,), "float32")] * 2, [((), "float32")], axes=(0,)))


def test_element_types_that_have_no_reduction():
    for primitive in (reductions.SUM, reductions.PROD, *SCANS):
        with pytest.raises(DTypeError):
            primitive.types(node(primitive, [((3,), "bool")], [((), "bool")], axes=(0,)))
    for primitive in (reductions.ANY, reductions.ALL):
        with pytest.raises(DTypeError):
            primitive.types(node(primitive, [((3,), "int32")], [((), "bool")], axes=(0,)))


# -- matrix products ------------------------------------------------------------------------------


def multiplied(a, b):
    shape = (*a.shape[:-1], b.shape[-1])
    return node(products.MATMUL, [types_of(a), types_of(b)], [(shape, a.dtype.name)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "m, k, n, lead", [(3, 4, 5, ()), (1, 70, 33, ()), (17, 9, 1, (2,)), (0, 4, 3, ()),
                      (3, 0, 2, ()), (5, 7, 6, (2, 3)), (2, 3, 4, (0,))],
)  # fmt: skip
def test_products(m, k, n, lead, dtype):
    a, b = drawn((*lead, m, k), dtype), drawn((*lead, k, n), dtype, seed=1)
    check(multiplied(a, b), [a, b], ulps=8)


@pytest.mark.parametrize("dtype", FLOATS)
def test_products_of_numbers_that_are_none(dtype):
    a, b = drawn((4, 5), dtype), drawn((5, 3), dtype, seed=1)
    a[0, 1], a[1, 2], b[3, 1] = numpy.nan, numpy.inf, -numpy.inf
    check(multiplied(a, b), [a, b], ulps=8)


@pytest.mark.parametrize(
    "a, b", [((3, 4), (3, 4)), ((4,), (4, 3)), ((2, 3, 4), (4, 3)), ((2, 3, 4), (1, 4, 3))]
)
def test_shapes_that_have_no_product(a, b):
    with pytest.raises(ShapeError):
        found = node(products.MATMUL, [(a, "float32"), (b, "float32")], [((3, 3), "float32")])
        products.MATMUL.types(found)


def test_element_types_that_have_no_product():
    with pytest.raises(DTypeError):
        operands = [((3, 4), "float32"), ((4, 3), "float64")]
        products.MATMUL.types(node(products.MATMUL, operands, [((3, 3), "float32")]))


# -- windows --------------------------------------------------------------------------------------

# taps, stride, dilate, origin, extents of the input, positions
WINDOWS = [
    ((1, 1, 1), (1, 1, 1), (1, 1, 1), (0, 0, 0), (1, 4, 5), (1, 4, 5)),
    ((1, 3, 3), (1, 1, 1), (1, 1, 1), (0, -1, -1), (1, 9, 20), (1, 9, 20)),
    ((1, 3, 2), (1, 2, 3), (1, 1, 2), (0, -1, 0), (1, 9, 11), (1, 5, 3)),
    ((2, 2, 3), (1, 2, 1), (2, 1, 1), (-1, 0, -2), (3, 5, 6), (3, 2, 8)),
    ((1, 3, 3), (1, 1, 1), (1, -1, -1), (0, 1, 1), (1, 6, 7), (1, 6, 7)),
]
windowed = pytest.mark.parametrize("facts", WINDOWS)
sized = pytest.mark.parametrize(
    "images, groups, rows, channels", [(1, 1, 5, 3), (2, 3, 1, 1), (3, 2, 4, 2)]
)


def placed(facts):
    names = ("kernel", "stride", "dilate", "origin")
    return dict(zip(names, facts[:4], strict=True))


@windowed
@sized
@pytest.mark.parametrize("dtype", WIDE)
def test_filters_on_windows(images, groups, rows, channels, facts, dtype):
    taps, *_, extents, out = facts
    x = drawn((images, groups, channels, *extents), dtype)
    a = drawn((groups, rows, channels, *taps), dtype, seed=1)
    results = [((images, groups, rows, *out), dtype)]
    found = node(windows.CONVOLVE, [types_of(x), types_of(a)], results, **placed(facts))
    check(found, [x, a], ulps=16)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("images, rows, taps, extents", [
    (1, 1, (1, 1), (1, 1)), (2, 3, (5, 5), (8, 8)), (1, 2, (2, 7), (5, 17)), (3, 1, (1, 3), (4, 2)),
    (1, 2, (4, 1), (3, 40)), (2, 1, (3, 33), (2, 3)), (0, 2, (3, 3), (4, 4)),
])  # fmt: skip
def test_planes_of_taps_are_added_up(images, rows, taps, extents, dtype):
    x = drawn((images, 1, rows * math.prod(taps), 1, *extents), dtype)
    out = [n + t - 1 for n, t in zip(extents, taps, strict=True)]
    found = node(native.FOLD, [types_of(x)], [((images, 1, rows, 1, *out), dtype)], kernel=taps)
    check(found, [x], ulps=16)


@windowed
@sized
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("chunks", [1, 2])
def test_sums_over_windows(images, groups, rows, channels, facts, dtype, chunks):
    taps, *_, extents, out = facts
    a = drawn((images, groups, rows, math.prod(out)), dtype)
    x = drawn((images, groups, channels, *extents), dtype, seed=1)
    results = [((min(chunks, images), groups, rows, channels * math.prod(taps)), dtype)]
    operands = [types_of(a), types_of(x)]
    found = node(windows.CORRELATE, operands, results, out=out, **placed(facts))
    check(found, [a, x], ulps=16)


@pytest.mark.parametrize("wrong", [
    {"operands": [((1, 1, 3, 1, 4, 4), "float32"), ((1, 2, 2, 1, 3, 3), "float32")]},
    {"operands": [((1, 1, 3, 1, 4, 4), "float32"), ((2, 2, 3, 1, 3, 3), "float32")]},
    {"operands": [((1, 3, 4, 4), "float32"), ((1, 2, 3, 1, 3, 3), "float32")]},
    {"results": [((1, 1, 3, 1, 2, 2), "float32")]},
    {"results": [((1, 1, 2, 4), "float32")]},
    {"kernel": (1, 3, 2)},
    {"stride": (1, 1)},
    {"stride": (1, 0, 1)},
])  # fmt: skip
def test_windows_that_do_not_fit(wrong):
    facts = {
        "operands": [((1, 1, 3, 1, 4, 4), "float32"), ((1, 2, 3, 1, 3, 3), "float32")],
        "results": [((1, 1, 2, 1, 2, 2), "float32")],
        **placed(((1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 0, 0))),
    }
    right = node(windows.CONVOLVE, **facts)
    assert windows.CONVOLVE.types(right) == right.types
    with pytest.raises((ShapeError, ArgumentError)):
        windows.CONVOLVE.types(node(windows.CONVOLVE, **facts | wrong))


@pytest.mark.parametrize("dtype", ["int32", "float16", "bfloat16"])
def test_element_types_that_have_no_windows(dtype):
    operands = [((1, 1, 3, 1, 4, 4), dtype), ((1, 2, 3, 1, 3, 3), dtype)]
    results = [((1, 1, 2, 1, 2, 2), dtype)]
    facts = placed(((1, 3, 3), (1, 1, 1), (1, 1, 1), (0, 0, 0)))
    with pytest.raises(DTypeError):
        windows.CONVOLVE.types(node(windows.CONVOLVE, operands, results, **facts))


# -- recurrent layers -----------------------------------------------------------------------------

layers = pytest.mark.parametrize("mode", recurrent.GATES)
lengths = pytest.mark.parametrize(
    "steps, rows, units", [(3, 2, 5), (4, 9, 16), (1, 1, 1), (0, 2, 3)]
)


def layer(mode, steps, rows, units, dtype, keep, reverse):
    wide = recurrent.GATES[mode] * units
    shapes = [(wide, units), (steps, rows, wide), (rows, units)]
    shapes += {"lstm": [(rows, units)], "gru": [(units,)]}.get(mode, [])
    widths = recurrent.widths(mode, keep)
    return node(
        recurrent.FORWARD[mode], [(s, dtype) for s in shapes],
        [((steps, rows, n * units), dtype) for n in widths], reverse=reverse, keep=keep,
    )  # fmt: skip


def layer_back(mode, steps, rows, units, dtype, reverse):
    wide = recurrent.GATES[mode] * units
    every, end = (steps, rows, units), (rows, units)
    read = {"lstm": [(steps, rows, 4 * units), *[every] * 4],
            "gru": [(steps, rows, 4 * units), *[every] * 2]}.get(mode, [every] * 2)  # fmt: skip
    results = {"lstm": [end], "gru": [(steps, rows, wide), end]}.get(mode, [])
    results = [(steps, rows, wide), *results, end]
    return node(
        recurrent.BACK[mode], [(s, dtype) for s in [(wide, units), *read]],
        [(s, dtype) for s in results], reverse=reverse,
    )  # fmt: skip


def operands(node, **facts):
    return [drawn(v.shape, v.dtype, seed=i, **facts) for i, v in enumerate(node.inputs)]


@layers
@lengths
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("reverse, keep", [(False, False), (True, True)])
def test_recurrent_layers(mode, steps, rows, units, dtype, reverse, keep):
    found = layer(mode, steps, rows, units, dtype, keep, reverse)
    check(found, operands(found, low=-0.9, high=0.9), ulps=16)


@layers
@lengths
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrent_layers_back(mode, steps, rows, units, dtype, reverse):
    found = layer_back(mode, steps, rows, units, dtype, reverse)
    check(found, operands(found, low=-0.9, high=0.9), ulps=16)


@layers
def test_states_that_do_not_fit_a_layer(mode):
    for right in (
        layer(mode, 3, 2, 5, "float32", False, False),
        layer_back(mode, 3, 2, 5, "float32", False),
    ):
        types = [types_of(v.type) for v in right.inputs]
        results = [types_of(t) for t in right.types]
        for place, (shape, dtype) in enumerate(types):
            other = (*shape[:-1], shape[-1] + 1)
            for wrong, error in (((other, dtype), ShapeError), ((shape, "float16"), DTypeError)):
                given = [*types[:place], wrong, *types[place + 1 :]]
                with pytest.raises(error):
                    right.primitive.types(node(right.primitive, given, results, **right.attributes))
        with pytest.raises(ArgumentError):
            right.primitive.types(node(right.primitive, types[:-1], results, **right.attributes))


# -- the tables -----------------------------------------------------------------------------------

PRIMITIVES = [
    found
    for module in (boxes, checks, control, counting, factorizations, products, recurrent,
                   reductions, shuffling, sorting, windows)
    for found in vars(module).values() if isinstance(found, (Opaque, Reduction))
]  # fmt: skip


def test_every_primitive_has_a_name_of_its_own_and_a_line_about_it():
    assert len({p.name for p in PRIMITIVES}) == len(PRIMITIVES)
    assert all(p.about.endswith(".") and p.types and p.meaning for p in PRIMITIVES)


def test_every_primitive_stands_under_its_name():
    assert [p.name for p in ir.PRIMITIVES.values() if not is_declared(p)] == []
    assert not is_declared(made_up(products.MATMUL.name, Opaque))


def test_every_primitive_has_a_row_and_every_row_a_primitive():
    import_module("heterosis.backends.native.codegen.lowerings.rows")
    import_module("heterosis.backends.native.schedule.control")
    declared = (
        *vars(native).values(),
        *native.RECURRENT_PACKED.values(),
        *native.RECURRENT_JOINED.values(),
    )
    own = {p for p in declared if isinstance(p, Opaque)} - {*PRIMITIVES}
    assert {*tables.KERNELS, *tables.REDUCERS} == {*PRIMITIVES, *own}
    assert not {p.name for p in own} & {p.name for p in PRIMITIVES}


IMPORTED = """
import sys
from heterosis import np
from heterosis.ir.primitives.products import MATMUL
from heterosis.backends.native.codegen import tables

print(tables.kernel(MATMUL).scales[0])
print([name for name in ("boxes", "windows", "recurrent") if
       f"heterosis.backends.native.codegen.lowerings.{name}" in sys.modules])
"""


def test_the_kernels_of_another_subject_are_not_imported(tmp_path):
    assert run_python("-c", IMPORTED, folder=tmp_path).stdout.split("\n")[:2] == ["2", "[]"]


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=str)
def test_what_is_captured_is_known_by_its_text(primitive):
    found = node(primitive, [((2,), "float32")], [((2,), "float32")])
    program = Program(found.inputs, found.outputs)
    assert stored.key(program, [Strided.contiguous((2,))], (), machine()) is not None


def test_what_is_packed_is_known_to_the_processor_alone():
    found = node(native.PACK_RIGHT, [((2, 3), "float32")], [((6,), "float32")])
    assert native.PACK_RIGHT.types(found) == found.types
    with pytest.raises(UnsupportedError):
        native.PACK_RIGHT.evaluate(found, numpy.ones((2, 3), "float32"))
