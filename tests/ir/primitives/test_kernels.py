"""Primitives with kernels of their own, reductions, scans: compiled, they give what they mean."""

import itertools
import math
from importlib import import_module

import numpy
import pytest

from heterosis import _core, ir, np
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
from heterosis.ir.program import INPUT, Node, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, FLOATS, INTEGERS, UNSIGNED, TensorType, is_float, numpy_dtype
from heterosis.ops import eager
from heterosis.runtime.errors import (
    ArgumentError,
    DTypeError,
    HeterosisError,
    IndexingError,
    LinearAlgebraError,
    ShapeError,
    UnsupportedError,
)
from tests.ir.made_up import made_up
from tests.processes import run_python

WIDE = ("float32", "float64")
NUMBERS = (*INTEGERS, *FLOATS)
REDUCED = [
    *itertools.product((reductions.SUM, reductions.PROD), NUMBERS),
    *itertools.product((reductions.MAX, reductions.MIN), DTYPES),
    *itertools.product((reductions.ANY, reductions.ALL), ("bool",)),
]
OF_NUMBERS = (reductions.SUM, reductions.PROD, reductions.MAX, reductions.MIN)
SCANS = (reductions.CUMSUM, reductions.CUMPROD)


def inputs(*types):
    return tuple(apply(INPUT, (), TensorType(shape, dtype)) for shape, dtype in types)


def node(primitive, operands, results, **attributes):
    made = tuple(TensorType(shape, dtype) for shape, dtype in results)
    return Node(primitive, inputs(*operands), attributes, made)


def types_of(array):
    return tuple(array.shape), getattr(array.dtype, "name", array.dtype)


def compiled(node, arrays):
    """What the native back end makes of the node."""
    program = Program(node.inputs, node.outputs)
    layouts = [Strided.contiguous(a.shape) for a in arrays]
    plan = eager.plan(program, layouts, None, views=True, freely=False)
    results = _core.run_plan(plan, [np.array(a, dtype=a.dtype.name) for a in arrays])
    return [y.asnumpy() for y in results]


def meant(node, arrays):
    """What the node means, of the types that its rule gives."""
    assert node.primitive.types(node) == node.types
    assert node.attributes.keys() == node.primitive.attributes.keys()
    for name, kind in node.primitive.attributes.items():
        assert isinstance(node.attributes[name], kind)
    found = node.primitive.evaluate(node, *arrays)
    for array, type_ in zip(found, node.types, strict=True):
        assert (array.shape, array.dtype) == (type_.shape, numpy_dtype(type_.dtype))
    return found


def epsilon(dtype):
    return float(numpy.asarray(1, numpy_dtype(dtype)) * 2.0 ** -{
        "float16": 10, "bfloat16": 7, "float32": 23, "float64": 52
    }[dtype])  # fmt: skip


def check(node, arrays, *, ulps=4.0):
    """Both agree: integers exactly, floats within `ulps` of the largest result."""
    for got, want in zip(compiled(node, arrays), meant(node, arrays), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        if want.dtype.kind in "biu":
            numpy.testing.assert_array_equal(got, want)
            continue
        dtype = want.dtype.name
        got, want = got.astype("float64"), want.astype("float64")
        finite = numpy.where(numpy.isfinite(want), abs(want), 0.0)
        near = ulps * epsilon(dtype) * finite.max(initial=0.0)
        numpy.testing.assert_allclose(got, want, rtol=ulps * epsilon(dtype), atol=near)


def drawn(shape, dtype, *, seed=0, low=-3, high=3):
    generator = numpy.random.default_rng(seed)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype("bool")
    if is_float(dtype):
        return generator.uniform(low, high, shape).astype(numpy_dtype(dtype))
    return generator.integers(0 if dtype in UNSIGNED else -100, 100, shape).astype(dtype)


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


# -- counting -------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 1, 5, 100, 5000])
@pytest.mark.parametrize("length", [0, 1, 7, 64, 1000])
def test_counting(length, room):
    generator, result = numpy.random.default_rng(length), [((room,), "int64")]
    for dtype in ("int32", "int64"):
        numbers = generator.integers(-3, 20, length).astype(dtype)
        check(node(counting.OCCURRENCES, [types_of(numbers)], result), [numbers])
    truths = generator.random(length) < 0.5
    check(node(counting.TRUE_PLACES, [types_of(truths)], result), [truths])


@pytest.mark.parametrize("primitive", [counting.OCCURRENCES, counting.TRUE_PLACES], ids=str)
def test_what_is_not_counted(primitive):
    for operand, error in ((((3, 7), "bool"), ShapeError), (((7,), "float32"), DTypeError)):
        with pytest.raises(error):
            primitive.types(node(primitive, [operand], [((3,), "int64")]))


# -- sorting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 7), (2, 100), (1, 1000), (0, 3), (3, 0), (5, 1)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sorting(shape, dtype):
    generator = numpy.random.default_rng(0)
    for few in (False, True):
        bounds = (0, 5) if few else (numpy.iinfo(dtype).min, numpy.iinfo(dtype).max)
        keys = generator.integers(*bounds, shape, dtype)
        check(node(sorting.SORT, [types_of(keys)], [types_of(keys)]), [keys])
        results = [types_of(keys), (shape, "int64")]
        check(node(sorting.SORT_PLACES, [types_of(keys)], results), [keys])
        for count in {1, 2, 3, 16, shape[1]} & {*range(1, min(shape[1], 16) + 1)}:
            result = ((shape[0], count), "int64")
            check(node(sorting.FIRST_PLACES, [types_of(keys)], [result], count=count), [keys])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sorting_rows_by_themselves(dtype):
    """As long as parts in lanes are, one less and one more; and longer than the longest."""
    generator = numpy.random.default_rng(1)
    powers = {2**n + more for n in range(4, 15) for more in (-1, 0, 1)}
    for length in sorted(powers | {17, 20, 100, 300, 500, 1000, 5000}):
        info = numpy.iinfo(dtype)
        keys = generator.integers(info.min, info.max, (1 + length % 2, length), dtype)
        keys[:, generator.integers(0, length, 3)] = info.max, info.min, -1
        check(node(sorting.SORT, [types_of(keys)], [types_of(keys)]), [keys])


@pytest.mark.parametrize("primitive", [sorting.SORT, sorting.SORT_PLACES], ids=str)
def test_keys_that_are_none(primitive):
    results = [((3, 7), "int32")] * (1 + (primitive is sorting.SORT_PLACES))
    for operand, error in ((((21,), "int32"), ShapeError), (((3, 7), "float32"), DTypeError)):
        with pytest.raises(error):
            primitive.types(node(primitive, [operand], results))


@pytest.mark.parametrize("length", [4, 19, 20, 21, 36, 37, 300])
@pytest.mark.parametrize("order", ["falling", "rising", "equal", "ends"])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_first_places_of_rows_in_order(length, order, dtype):
    """What is moved most, and never; the largest key, which is that of no number."""
    rising = numpy.arange(length, dtype=dtype)
    ends = numpy.where(rising % 3, -1, numpy.iinfo(dtype).min).astype(dtype)
    orders = {"falling": rising[::-1], "rising": rising, "equal": rising * 0 - 1, "ends": ends}
    keys = numpy.stack([orders[order], numpy.roll(orders[order], 1)])
    for count in (1, 4):
        result = ((2, count), "int64")
        check(node(sorting.FIRST_PLACES, [types_of(keys)], [result], count=count), [keys])


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("right", [False, True])
def test_searching(right, dtype):
    generator = numpy.random.default_rng(0)
    for length, shape in itertools.product((1, 2, 7, 300), ((), (0,), (5, 9))):
        row = numpy.sort(generator.integers(-20, 20, length)).astype(dtype)
        numbers = generator.integers(-22, 22, shape).astype(dtype)
        given = [types_of(row), types_of(numbers)]
        check(node(sorting.SEARCH, given, [(shape, "int64")], right=right), [row, numbers])


def test_rows_that_are_not_searched():
    row, numbers, result = ((7,), "int32"), ((3,), "int32"), [((3,), "int64")]
    for given, error in (
        ([((0,), "int32"), numbers], ShapeError),
        ([((7, 1), "int32"), numbers], ShapeError),
        ([row, ((3,), "int64")], DTypeError),
        ([((7,), "uint8"), ((3,), "uint8")], DTypeError),
    ):
        with pytest.raises(error):
            sorting.SEARCH.types(node(sorting.SEARCH, given, result, right=False))


@pytest.mark.parametrize("shape", [(3, 1), (2, 15), (5, 65), (0, 3), (1, 4097), (2, 9000)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_places_of_extremes(dtype, shape):
    generator = numpy.random.default_rng(0)
    for few in (False, True):
        rows = generator.integers(0, 3 if few else 100, shape).astype(numpy_dtype(dtype))
        if is_float(dtype) and few:
            rows[generator.random(shape) < 2 / shape[1]] = numpy.nan
            rows[rows == 0] = -0.0
        for smallest in (False, True):
            result = [((shape[0],), "int64")]
            found = node(sorting.EXTREME_PLACES, [types_of(rows)], result, smallest=smallest)
            check(found, [rows])


def test_nothing_has_no_extreme_place():
    with pytest.raises(ShapeError, match="some elements"):
        made = node(sorting.EXTREME_PLACES, [((3, 0), "int32")], [((3,), "int64")], smallest=True)
        sorting.EXTREME_PLACES.types(made)


@pytest.mark.parametrize("count", [0, 8])
def test_first_places_that_are_none(count):
    with pytest.raises(ArgumentError, match="from 1 to 7 places"):
        made = node(sorting.FIRST_PLACES, [((3, 7), "int32")], [((3, count), "int64")], count=count)
        sorting.FIRST_PLACES.types(made)


# -- checks ---------------------------------------------------------------------------------------


def failure_of(node, arrays):
    """The class and the message of the error that both raise; the kernel's names the program."""
    with pytest.raises(HeterosisError) as of_kernel:
        compiled(node, arrays)
    with pytest.raises(HeterosisError) as of_meaning:
        node.primitive.evaluate(node, *arrays)
    assert of_kernel.type is of_meaning.type
    assert str(of_kernel.value).endswith(f": {of_meaning.value}")
    return of_meaning.type


def indexing(given, count):
    facts = {"count": count, "subject": (2, count), "axis": 1}
    return node(checks.CHECK_INDICES, [types_of(given)], [(given.shape, "int64")], **facts)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (0, 2), (7,), (8,), (9,), (17,), (3, 33)])
def test_indices(dtype, shape):
    given = drawn(shape, dtype, low=-9.9, high=9.9)
    check(indexing(given, 101), [given])


@pytest.mark.parametrize("dtype", FLOATS)
def test_fractions_of_indices_are_cut_off(dtype):
    given = numpy.array([-0.5, -3.0, 0.0, -0.0, 2.75]).astype(numpy_dtype(dtype))
    check(indexing(given, 3), [given])


@pytest.mark.parametrize("given", [
    numpy.array([0, 1, 3, -9]), numpy.array([-4, 7]), numpy.array([[1.0, numpy.nan, 5.0]]),
    numpy.array([1.0, numpy.inf]), numpy.array([-1e300]), numpy.array([2.0**46]),
    numpy.array([-(2**46)]), numpy.array([-(2**46) - 1]), numpy.array([2**63 - 1]),
    numpy.array([200], "uint8"), numpy.array([3], "int8"), numpy.array([numpy.nan], "float16"),
], ids=str)  # fmt: skip
def test_indices_outside(given):
    assert failure_of(indexing(given, 3), [given]) is IndexingError


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64", "float32"])
@pytest.mark.parametrize("length", [8, 9, 16, 19, 40])
def test_one_index_outside_is_named_wherever_it_stands(length, dtype):
    x = np.arange(50)
    for place in range(length):
        indices = numpy.arange(length).astype(dtype)
        indices[place] = 77
        with pytest.raises(IndexingError, match="77"):
            x.take(np.array(indices, dtype)).asnumpy()


def test_what_cannot_be_an_index():
    with pytest.raises(DTypeError):
        checks.CHECK_INDICES.types(indexing(numpy.array([True]), 3))
    with pytest.raises(ArgumentError):
        checks.CHECK_INDICES.types(indexing(numpy.array([1]), -1))


def requiring(holds, numbers):
    operands = [types_of(holds), types_of(numbers)]
    return node(checks.REQUIRE, operands, [types_of(numbers)], failure="numbers must rise")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("conditions, count", [(3, 5), (0, 5), (3, 0)])
def test_requirements(dtype, conditions, count):
    holds, numbers = numpy.ones(conditions, "bool"), drawn((count,), dtype)
    check(requiring(holds, numbers), [holds, numbers])


@pytest.mark.parametrize("place", [0, 2])
def test_requirements_that_do_not_hold(place):
    holds, numbers = numpy.arange(3) != place, drawn((4,), "float32")
    assert failure_of(requiring(holds, numbers), [holds, numbers]) is ArgumentError


def test_requirements_on_what_has_no_truth():
    for holds, error in ((numpy.ones(3), DTypeError), (numpy.ones((3, 1), "bool"), ShapeError)):
        with pytest.raises(error):
            checks.REQUIRE.types(requiring(holds, numpy.ones(4)))


# -- boxes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch, labels, anchors", [(2, 3, 7), (1, 9, 4), (3, 1, 1), (2, 0, 3),
                                                    (2, 3, 0), (0, 2, 2)])  # fmt: skip
def test_matching(batch, labels, anchors):
    overlaps = drawn((batch, labels, anchors), "float32", low=-0.2, high=1).round(1)  # with equals
    overlaps.flat[1::7] = numpy.nan
    counts = numpy.arange(batch)[::-1] % (labels + 1)
    operands = [types_of(overlaps), types_of(counts)]
    check(node(boxes.MATCH_BOXES, operands, [((batch, anchors), "int64")]), [overlaps, counts])


@pytest.mark.parametrize("batch, count", [(2, 9), (1, 40), (3, 1), (2, 0), (0, 4)])
@pytest.mark.parametrize("any_class", [False, True])
def test_suppression(batch, count, any_class):
    classes = drawn((batch, count), "float32", low=0, high=2.99).astype("int").astype("float32")
    classes[:, max(count - 2, 1) :] = -1
    planes = drawn((batch, 4, count), "float32", seed=1, low=0, high=1)
    planes[:, 2:] += planes[:, :2]
    arrays = [classes, planes, numpy.array([0.25], "float32")]
    attributes = {"any_class": any_class}
    check(
        node(boxes.SUPPRESS_BOXES, map(types_of, arrays), [types_of(classes)], **attributes), arrays
    )


def test_boxes_that_do_not_fit():
    overlaps, counts, result = ((2, 3, 7), "float32"), ((2,), "int64"), ((2, 7), "int64")
    for wrong in ([overlaps, ((3,), "int64")], [((2, 7), "float32"), counts]):
        with pytest.raises(ShapeError):
            boxes.MATCH_BOXES.types(node(boxes.MATCH_BOXES, wrong, [result]))
    with pytest.raises(DTypeError):
        boxes.MATCH_BOXES.types(node(boxes.MATCH_BOXES, [overlaps, ((2,), "int32")], [result]))
    classes, limit = ((2, 5), "float32"), ((1,), "float32")
    for planes, error in (
        (((2, 5, 4), "float32"), ShapeError),
        (((2, 4, 5), "float64"), DTypeError),
    ):
        with pytest.raises(error):
            given = [classes, planes, limit]
            boxes.SUPPRESS_BOXES.types(node(boxes.SUPPRESS_BOXES, given, [classes], any_class=True))


# -- shuffling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [0, 1, -1, 123456789123456789, -(2**63)])
@pytest.mark.parametrize(
    "count, wanted",
    [(1, 1), (10, 10), (100, 7), (5, 0), (0, 0), (63, 63), (64, 64), (65, 65), (300, 190)],
)
def test_shuffles_have_the_same_bits(key, count, wanted):
    found = node(shuffling.SHUFFLED_PLACES, [((), "int64")], [((count,), "int64")], wanted=wanted)
    check(found, [numpy.array(key)])


def test_shuffles_of_too_few():
    with pytest.raises(ArgumentError):
        given = node(shuffling.SHUFFLED_PLACES, [((), "int64")], [((3,), "int64")], wanted=4)
        shuffling.SHUFFLED_PLACES.types(given)


# -- factorisations -------------------------------------------------------------------------------


def factorized(primitive, *arrays):
    """What the kernel gives and what the primitive means: results of the same types."""
    bare = Node(primitive, inputs(*map(types_of, arrays)), {}, ())
    whole = Node(primitive, bare.inputs, {}, primitive.types(bare))
    return compiled(whole, arrays), meant(whole, arrays)


def near(got, want, dtype, scale=1.0):
    near = 300 * epsilon(dtype) * scale
    numpy.testing.assert_allclose(got, want, rtol=near, atol=near)


def square(dtype, count=2, n=5, *, symmetric=False):
    a = drawn((count, n, n), "float64", low=-1, high=1)
    if symmetric:
        a = a @ a.swapaxes(1, 2) + numpy.eye(n)
    return a.astype(dtype)


def wide(*arrays):
    return [a.astype("float64") for a in arrays]


SIZES = [(2, 5), (1, 1), (3, 17), (0, 3), (2, 0)]
sizes = pytest.mark.parametrize("count, n", SIZES)
floats = pytest.mark.parametrize("dtype", WIDE)


@sizes
@floats
@pytest.mark.parametrize(
    "name", ["CHOLESKY", "INVERSE", "SYMMETRIC_VALUES_L", "SYMMETRIC_VALUES_U"]
)
def test_factorisations_that_are_unique(name, dtype, count, n):
    a = square(dtype, count, n, symmetric=True)
    got, want = factorized(getattr(factorizations, name), a)
    near(*got, *want, dtype, scale=max(n, 1))


@sizes
@floats
def test_systems_of_equations(dtype, count, n):
    a, b = square(dtype, count, n, symmetric=True), drawn((count, 3, n), dtype, seed=1)
    (got,), (want,) = factorized(factorizations.SOLVE, a, b)
    near(got, want, dtype, scale=max(n, 1))


@sizes
@floats
def test_triangular_factors(dtype, count, n):
    a = square(dtype, count, n)
    for packed, pivots in factorized(factorizations.LU, a):
        for one, own, places in zip(a, packed, pivots, strict=True):
            product = numpy.tril(own) @ (numpy.triu(own, 1) + numpy.eye(n))
            for i in reversed(range(n)):
                product[:, [i, places[i] - 1]] = product[:, [places[i] - 1, i]]
            near(product, one, dtype)


@sizes
@floats
@pytest.mark.parametrize("name", ["SYMMETRIC_L", "SYMMETRIC_U"])
def test_eigenvectors_of_symmetric_matrices(name, dtype, count, n):
    a = square(dtype, count, n, symmetric=True)
    got, want = factorized(getattr(factorizations, name), a)
    near(got[0], want[0], dtype, scale=n)
    for values, rows in (wide(*got), wide(*want)):
        near(rows.swapaxes(1, 2) @ (values[..., None] * rows), a, dtype, scale=n)
        near(rows @ rows.swapaxes(1, 2), numpy.broadcast_to(numpy.eye(n), a.shape), dtype)


@sizes
@floats
def test_eigenvectors_of_any_matrices(dtype, count, n):
    a = (numpy.triu(square("float64", count, n), 1) + numpy.diag(numpy.arange(n) + 1)).astype(dtype)
    for values, rows in factorized(factorizations.GENERAL, a):
        near(rows @ a.swapaxes(1, 2), values[..., None] * rows, dtype, scale=n)
    for (values,) in factorized(factorizations.GENERAL_VALUES, a):
        near(numpy.sort(values), numpy.broadcast_to(numpy.arange(n) + 1, values.shape), dtype)


@floats
@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 3, 5), (2, 4, 4), (0, 2, 3), (2, 1, 1)])
@pytest.mark.parametrize("name", ["SINGULAR", "SINGULAR_FULL"])
def test_singular_vectors(name, dtype, shape):
    a, k = drawn(shape, dtype), min(shape[1:])
    (values,) = factorized(factorizations.SINGULAR_VALUES, a)[1]
    for u, s, vt in factorized(getattr(factorizations, name), a):
        near(s, values, dtype, scale=10)
        near(u[:, :, :k] * s[:, None] @ vt[:, :k], a, dtype, scale=10)
        for own in (u.swapaxes(1, 2) @ u, vt @ vt.swapaxes(1, 2)):
            near(own, numpy.broadcast_to(numpy.eye(own.shape[1]), own.shape), dtype)
    (got,) = factorized(factorizations.SINGULAR_VALUES, a)[0]
    near(got, values, dtype, scale=10)


@floats
@pytest.mark.parametrize("shape", [(2, 5, 3), (1, 3, 5), (2, 4, 4), (0, 2, 3), (2, 1, 1)])
def test_reflectors(dtype, shape):
    a = drawn(shape, dtype)
    got, want = factorized(factorizations.ORTHOGONAL, a)
    for one, other in zip(got, want, strict=True):  # no sign is free
        near(one, other, dtype, scale=10)
    (got_q,), (want_q,) = factorized(factorizations.REFLECTORS, *want)
    near(got_q, want_q, dtype)
    k = min(shape[1:])
    near(want_q[:, :, :k] @ numpy.triu(want[0])[:, :k], a, dtype, scale=10)


@floats
@pytest.mark.parametrize("primitive, matrix", [
    (factorizations.CHOLESKY, [[1.0, 2.0], [2.0, 1.0]]),
    (factorizations.INVERSE, [[1.0, 1.0], [1.0, 1.0]]),
    (factorizations.GENERAL, [[0.0, 1.0], [-1.0, 0.0]]),
    (factorizations.GENERAL_VALUES, [[0.0, 1.0], [-1.0, 0.0]]),
    (factorizations.GENERAL, [[0.0, 1.0], [numpy.nan, 0.0]]),
    (factorizations.GENERAL_VALUES, [[0.0, numpy.inf], [1.0, 0.0]]),
], ids=str)  # fmt: skip
def test_matrices_without_a_factorisation(primitive, matrix, dtype):
    a = numpy.array([numpy.eye(2), matrix], dtype)
    shapes = [(2, 2), (2, 2, 2)] if primitive is factorizations.GENERAL else [a.shape]
    shapes = [(2, 2)] if primitive is factorizations.GENERAL_VALUES else shapes
    given = node(primitive, [types_of(a)], [(shape, dtype) for shape in shapes])
    assert primitive.types(given) == given.types
    assert failure_of(given, [a]) is LinearAlgebraError


def test_systems_without_a_solution():
    a, b = numpy.ones((1, 2, 2)), numpy.ones((1, 3, 2))
    given = node(factorizations.SOLVE, [types_of(a), types_of(b)], [types_of(b)])
    assert failure_of(given, [a, b]) is LinearAlgebraError


@pytest.mark.parametrize("name", [n for n in dir(factorizations) if isinstance(
    getattr(factorizations, n), factorizations.Opaque)])  # fmt: skip
def test_matrices_that_do_not_fit(name):
    primitive = getattr(factorizations, name)
    right = [((2, 3, 3), "float32")]
    right += {"SOLVE": [((2, 1, 3), "float32")], "REFLECTORS": [((2, 3), "float32")]}.get(name, [])
    given = node(primitive, right, [])
    assert {t.shape[0] for t in primitive.types(given)} == {2}
    with pytest.raises(DTypeError):
        primitive.types(node(primitive, [(shape, "int32") for shape, _ in right], []))
    with pytest.raises(ShapeError):
        primitive.types(node(primitive, [((3, 3), "float32"), *right[1:]], []))
    with pytest.raises(ArgumentError):
        primitive.types(node(primitive, [*right, *right, *right], []))


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
