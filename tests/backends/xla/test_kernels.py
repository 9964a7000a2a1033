"""What XLA makes of all other primitives is what they mean, as the native one's tests have them."""

import itertools
import math

import numpy
import pytest

from heterosis import backends, ir
from heterosis.backends.xla import tables
from heterosis.ir.primitives import (
    boxes,
    counting,
    products,
    recurrent,
    shuffling,
    sorting,
    windows,
)
from heterosis.ir.primitives.leaves import INPUT, NUMBER
from heterosis.ir.primitives.rows import SCATTER
from heterosis.ir.types import DTYPES, FLOATS, is_float, numpy_dtype
from tests.backends.xla.rows import computed
from tests.ir.primitives import kernel_checks
from tests.ir.primitives import test_factorizations as factorizations
from tests.ir.primitives import test_kernels as native
from tests.ir.primitives import test_places as places
from tests.ir.primitives.kernel_checks import WIDE, drawn, epsilon, meant, node, types_of
from tests.ir.primitives.test_kernels import operands


def test_every_primitive_has_a_row():
    assert backends.named("xla").has(products.MATMUL)
    given = {INPUT, NUMBER}
    assert {p for p in ir.PRIMITIVES.values() if not tables.has(p)} == given


def check(cases, *, ulps=4.0):
    """All agree: integers exactly, floats within `ulps` of the largest result."""
    for (made, arrays), found in zip(cases, computed(cases), strict=True):
        for got, want in zip(found, meant(made, arrays), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            if want.dtype.kind in "biu":
                numpy.testing.assert_array_equal(got, want)
                continue
            near = ulps * epsilon(want.dtype.name)
            got, want = got.astype("float64"), want.astype("float64")
            finite = numpy.where(numpy.isfinite(want), abs(want), 0.0)
            near_zero = near * finite.max(initial=0.0)
            numpy.testing.assert_allclose(got, want, rtol=near, atol=near_zero, err_msg=str(made))


def _computed(node, arrays):
    return computed([(node, arrays)])[0]


# -- reductions, products -------------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_and_scans(dtype):
    cases = []
    for (primitive, of), (shape, axes) in itertools.product(native.REDUCED, native.AXES):
        if of == dtype:
            x = drawn(shape, dtype, low=0.9, high=1.1)
            cases.append((native.reduced(primitive, x, axes), [x]))
    for primitive in native.SCANS if dtype != "bool" else ():
        for shape, axis in [((5,), 0), ((3, 70), 1), ((70, 3), 0), ((3, 0), 1)]:
            x = drawn(shape, dtype, low=0.9, high=1.1)
            cases.append((native.reduced(primitive, x, (axis,)), [x]))
    check(cases, ulps=250 if is_float(dtype) else 0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_that_are_none(dtype):
    x = numpy.array([[1, numpy.nan, 2], [1, numpy.inf, 2], [-numpy.inf, 1, numpy.inf], [0, 0, 0]])
    x = x.astype(numpy_dtype(dtype))
    primitives = (*native.OF_NUMBERS, *native.SCANS)
    check([(native.reduced(primitive, x, (1,)), [x]) for primitive in primitives])


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype):
    cases = []
    for m, k, n, lead in [(3, 4, 5, ()), (1, 70, 33, ()), (17, 9, 1, (2,)), (0, 4, 3, ()),
                          (3, 0, 2, ()), (5, 7, 6, (2, 3)), (2, 3, 4, (0,))]:  # fmt: skip
        a, b = drawn((*lead, m, k), dtype), drawn((*lead, k, n), dtype, seed=1)
        cases.append((native.multiplied(a, b), [a, b]))
    if is_float(dtype):
        a, b = drawn((4, 5), dtype), drawn((5, 3), dtype, seed=1)
        a[0, 1], a[1, 2], b[3, 1] = numpy.nan, numpy.inf, -numpy.inf
        cases.append((native.multiplied(a, b), [a, b]))
    check(cases, ulps=8)


# -- windows, recurrent layers --------------------------------------------------------------------


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", WIDE)
def test_filters_on_windows_and_sums_over_them(dtype):
    cases = []
    sizes = [(1, 1, 5, 3), (2, 3, 1, 1), (3, 2, 4, 2)]
    for (images, groups, rows, channels), facts in itertools.product(sizes, native.WINDOWS):
        taps, *_, extents, out = facts
        attributes = native.placed(facts)
        x = drawn((images, groups, channels, *extents), dtype)
        a = drawn((groups, rows, channels, *taps), dtype, seed=1)
        results = [((images, groups, rows, *out), dtype)]
        given = [types_of(x), types_of(a)]
        cases.append((node(windows.CONVOLVE, given, results, **attributes), [x, a]))
        a = drawn((images, groups, rows, math.prod(out)), dtype)
        shape = (min(2, images), groups, rows, channels * math.prod(taps))
        given = [types_of(a), types_of(x)]
        made = node(windows.CORRELATE, given, [(shape, dtype)], out=out, **attributes)
        cases.append((made, [a, x]))
    check(cases, ulps=16)


@pytest.mark.lengthy
@pytest.mark.parametrize("mode", recurrent.GATES)
def test_recurrent_layers(mode):
    cases = []
    for dtype, (steps, rows, units) in zip(
        ["float32", "float64", "float32", "float64"], [(3, 2, 5), (4, 9, 16), (1, 1, 1), (0, 2, 3)]
    ):
        for reverse in (False, True):
            forth = native.layer(mode, steps, rows, units, dtype, reverse, reverse)
            back = native.layer_back(mode, steps, rows, units, dtype, reverse)
            cases += [(made, operands(made, low=-0.9, high=0.9)) for made in (forth, back)]
    check(cases, ulps=16)


# -- rows, sorting, checks, boxes, shuffling ------------------------------------------------------


def test_rows_written_in_order():
    """Of rows for one place, the last one stays."""
    cases = []
    for dtype in ("float32", "int8", "bool", "bfloat16"):
        for base, index in (((5,), (9,)), ((4, 3), (7,)), ((3, 2, 2), (2, 4)), ((3, 2), (0,))):
            x, update = drawn(base, dtype), drawn((*index, *base[1:]), dtype, seed=1)
            places = numpy.random.default_rng(3).integers(0, base[0], index)
            given = [types_of(a) for a in (x, places, update)]
            made = node(SCATTER, given, [types_of(x)], combine=None)
            cases.append((made, [x, places, update]))
    check(cases)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sorting(dtype):
    cases, generator = [], numpy.random.default_rng(0)
    for shape in [(3, 7), (2, 100), (0, 3), (3, 0), (5, 1)]:
        for bounds in ((0, 5), (numpy.iinfo(dtype).min, numpy.iinfo(dtype).max)):
            keys = generator.integers(*bounds, shape, dtype)
            cases.append((node(sorting.SORT, [types_of(keys)], [types_of(keys)]), [keys]))
            results = [types_of(keys), (shape, "int64")]
            cases.append((node(sorting.SORT_PLACES, [types_of(keys)], results), [keys]))
            if count := min(shape[1], 2):
                result = ((shape[0], count), "int64")
                made = node(sorting.FIRST_PLACES, [types_of(keys)], [result], count=count)
                cases.append((made, [keys]))
    check(cases)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_searching(dtype):
    cases, generator = [], numpy.random.default_rng(0)
    for length, shape, right in itertools.product((1, 300), ((), (5, 9)), (False, True)):
        row = generator.integers(-20, 20, length).astype(dtype)
        if dtype == "float64":
            row[row > 15] = numpy.nan
            row[row == 0] = -0.0
        row = numpy.sort(row)
        numbers = generator.choice([*row, 0.0, 1.0], shape).astype(dtype)
        given = [types_of(row), types_of(numbers)]
        made = node(sorting.SEARCH, given, [(shape, "int64")], right=right)
        cases.append((made, [row, numbers]))
    check(cases)


def test_places_of_extremes():
    cases, generator = [], numpy.random.default_rng(0)
    for dtype, smallest in itertools.product(("int32", "float32", "bool"), (False, True)):
        rows = generator.integers(0, 2, (4, 40)).astype(dtype)
        if dtype == "float32":
            rows[1:3, 20:30] = numpy.nan
        result = [((4,), "int64")]
        made = node(sorting.EXTREME_PLACES, [types_of(rows)], result, smallest=smallest)
        cases.append((made, [rows]))
    check(cases)


def test_counting():
    cases, generator = [], numpy.random.default_rng(0)
    for length, room in itertools.product((0, 7, 100), (0, 5, 200)):
        result = [((room,), "int64")]
        for dtype in ("int32", "int64"):
            numbers = generator.integers(-3, 20, length).astype(dtype)
            cases.append((node(counting.OCCURRENCES, [types_of(numbers)], result), [numbers]))
        truths = generator.random(length) < 0.5
        cases.append((node(counting.TRUE_PLACES, [types_of(truths)], result), [truths]))
    check(cases)


@pytest.mark.lengthy
def test_indices():
    cases = []
    for dtype, shape in itertools.product(native.NUMBERS, [(), (5,), (3, 4), (0, 2)]):
        given = drawn(shape, dtype, low=-9.9, high=9.9)
        cases.append((places.indexing(given, 101), [given]))
    for dtype in FLOATS:
        given = numpy.array([-0.5, -3.0, 0.0, -0.0, 2.75]).astype(numpy_dtype(dtype))
        cases.append((places.indexing(given, 3), [given]))
    check(cases)


@pytest.mark.lengthy
def test_checks_that_fail(monkeypatch):
    """As the native one's do, at the same values."""
    monkeypatch.setattr(kernel_checks, "compiled", _computed)
    (marks,) = (mark for mark in places.test_indices_outside.pytestmark if mark.args)
    for given in marks.args[1]:
        places.test_indices_outside(given)
    places.test_requirements_that_do_not_hold(2)
    monkeypatch.undo()


@pytest.mark.lengthy
@pytest.mark.parametrize("dtype", WIDE)
def test_factorisations(monkeypatch, dtype):
    for module in (factorizations, kernel_checks):
        monkeypatch.setattr(module, "compiled", _computed)
    for count, n in [(2, 5), (0, 3), (2, 0)]:
        for name in ("CHOLESKY", "INVERSE", "SYMMETRIC_VALUES_U"):
            factorizations.test_factorisations_that_are_unique(name, dtype, count, n)
        factorizations.test_systems_of_equations(dtype, count, n)
        factorizations.test_triangular_factors(dtype, count, n)
        factorizations.test_eigenvectors_of_symmetric_matrices("SYMMETRIC_L", dtype, count, n)
        factorizations.test_eigenvectors_of_any_matrices(dtype, count, n)
    for shape in [(2, 5, 3), (1, 3, 5), (0, 2, 3)]:
        factorizations.test_singular_vectors("SINGULAR", dtype, shape)
        factorizations.test_reflectors(dtype, shape)
    factorizations.test_singular_vectors("SINGULAR_FULL", dtype, (1, 3, 5))
    without = factorizations.test_matrices_without_a_factorisation
    (marks,) = (m for m in without.pytestmark if m.args and m.args[0] == "primitive, matrix")
    for primitive, matrix in marks.args[1]:
        without(primitive, matrix, dtype)
    factorizations.test_systems_without_a_solution()


def test_the_first_of_several_checks_is_told():
    first, second = numpy.array([1, 7]), numpy.array([9])
    cases = [(places.indexing(first, 3), [first]), (places.indexing(second, 3), [second])]
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        computed(cases)


@pytest.mark.lengthy
def test_boxes():
    cases = []
    for batch, labels, anchors in [
        (2, 3, 7),
        (1, 9, 4),
        (3, 1, 1),
        (2, 0, 3),
        (2, 3, 0),
        (0, 2, 2),
    ]:
        overlaps = drawn((batch, labels, anchors), "float32", low=-0.2, high=1).round(1)
        overlaps.flat[1::7] = numpy.nan
        arrays = [overlaps, numpy.arange(batch)[::-1] % (labels + 1)]
        results = [((batch, anchors), "int64")]
        cases.append((node(boxes.MATCH_BOXES, map(types_of, arrays), results), arrays))
    for (batch, count), any_class in itertools.product(
        [(2, 9), (1, 40), (3, 1), (2, 0), (0, 4)], [False, True]
    ):
        classes = drawn((batch, count), "float32", low=0, high=2.99).astype("int").astype("float32")
        classes[:, max(count - 2, 1) :] = -1
        planes = drawn((batch, 4, count), "float32", seed=1, low=0, high=1)
        planes[:, 2:] += planes[:, :2]
        arrays = [classes, planes, numpy.array([0.25], "float32")]
        given, results = map(types_of, arrays), [types_of(classes)]
        made = node(boxes.SUPPRESS_BOXES, given, results, any_class=any_class)
        cases.append((made, arrays))
    check(cases)


def test_shuffles_have_the_same_bits():
    cases = []
    for key in (0, -1, 123456789123456789, -(2**63)):
        for count, wanted in [(1, 1), (10, 10), (100, 7), (5, 0), (0, 0)]:
            results = [((count,), "int64")]
            made = node(shuffling.SHUFFLED_PLACES, [((), "int64")], results, wanted=wanted)
            cases.append((made, [numpy.array(key)]))
    check(cases)


def test_requirements():
    cases = []
    for dtype, (conditions, count) in itertools.product(DTYPES, [(3, 5), (0, 5), (3, 0)]):
        arrays = [numpy.ones(conditions, "bool"), drawn((count,), dtype)]
        cases.append((places.requiring(*arrays), arrays))
    check(cases)
