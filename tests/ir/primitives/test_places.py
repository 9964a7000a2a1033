"""Kernels of counting, sorting, checks, boxes and shuffling: compiled, they give what they mean."""

import itertools

import numpy
import pytest

from heterosis import np
from heterosis.ir.primitives import boxes, checks, counting, shuffling, sorting
from heterosis.ir.types import DTYPES, FLOATS, INTEGERS, is_float, numpy_dtype
from heterosis.runtime.errors import ArgumentError, DTypeError, IndexingError, ShapeError
from tests.ir.primitives.kernel_checks import check, drawn, failure_of, node, types_of

NUMBERS = (*INTEGERS, *FLOATS)


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
