"""Primitives with kernels of their own, reductions and scans: compiled, they give what they mean."""

import itertools
import math

import numpy
import pytest

from heterosis import _core, np
from heterosis.ir.primitives import products, reductions, windows
from heterosis.ir.program import INPUT, Node, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, FLOATS, INTEGERS, TensorType, is_float, numpy_dtype
from heterosis.ops import eager
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError

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
    return tuple(array.shape), array.dtype.name


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
    found = node.primitive.meaning(node, *arrays)
    found = found if isinstance(found, tuple) else (found,)
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
    return generator.integers(0 if dtype == "uint8" else -100, 100, shape).astype(dtype)


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
    with pytest.raises(ShapeError):
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
