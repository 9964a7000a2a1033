"""Random keys on small arrays, read and written, against NumPy."""

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heterosis import np

_EXAMPLES = settings(max_examples=150, deadline=None, derandomize=True)

_SHAPES = st.lists(st.integers(0, 3), min_size=0, max_size=3).map(tuple)


def _numbers(extent: int, shape: tuple[int, ...]):
    """Index arrays of a shape, nearly always within an axis of `extent` elements."""
    one = st.integers(-extent, max(extent - 1, 0)) if extent else st.just(0)
    size = int(numpy.prod(shape))
    return st.lists(one, min_size=size, max_size=size).map(
        lambda items: numpy.array(items, "int64").reshape(shape)
    )


def _slices(extent: int):
    bound = st.none() | st.integers(-extent - 1, extent + 1)
    return st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1, -2]))


@st.composite
def _keys(draw, shape):
    """A key for an array of `shape`: integers, slices, None, an ellipsis, arrays and masks."""
    broadcast = draw(st.sampled_from([(), (1,), (2,), (2, 2)]))
    items, axis, dots = [], 0, False
    stop = draw(st.integers(0, len(shape)))
    while axis < len(shape):
        if axis >= stop and not dots:
            break
        kind = draw(st.sampled_from(["int", "slice", "array", "mask", "none", "dots"]))
        n = shape[axis]
        if kind == "none" and len(items) < 5:
            items.append(None)
        elif kind == "dots" and not dots:
            items.append(Ellipsis)
            dots = True
            axis += draw(st.integers(0, len(shape) - axis))
        elif kind == "int" and n:
            items.append(draw(st.integers(-n, n - 1)))
            axis += 1
        elif kind == "array" and (n or 0 in broadcast):
            items.append(draw(_numbers(n, broadcast)))
            axis += 1
        elif kind == "mask" and not any(isinstance(i, numpy.ndarray) for i in items):
            chosen = st.lists(st.booleans(), min_size=n, max_size=n)
            items.append(numpy.array(draw(chosen), bool))
            axis += 1
        else:
            items.append(draw(_slices(n)))
            axis += 1
    return tuple(items)


@st.composite
def _cases(draw):
    shape = draw(_SHAPES)
    return shape, draw(_keys(shape))


def _ours(key, *, lists: bool):
    def convert(item):
        if not isinstance(item, numpy.ndarray):
            return item
        return item.tolist() if lists and item.size else np.array(item)

    return tuple(convert(item) for item in key)


def _outcome(action):
    try:
        return action(), None
    except (IndexError, ValueError) as error:
        return None, error


@pytest.mark.lengthy
@_EXAMPLES
@given(_cases(), st.booleans())
def test_reading(case, lists):
    shape, key = case
    values = numpy.arange(numpy.prod(shape), dtype="float32").reshape(shape)
    expected, fault = _outcome(lambda: values[key])
    got, found = _outcome(lambda: np.array(values)[_ours(key, lists=lists)].asnumpy())
    assert (fault is None) == (found is None), (key, fault, found)
    if fault is None:
        numpy.testing.assert_array_equal(got, expected, strict=False)
        assert got.shape == numpy.shape(expected)


@pytest.mark.lengthy
@_EXAMPLES
@given(_cases(), st.sampled_from(["number", "same", "row"]))
def test_writing(case, kind):
    shape, key = case
    expected = numpy.arange(numpy.prod(shape), dtype="float32").reshape(shape)
    x = np.array(expected)
    selected, fault = _outcome(lambda: expected[key])
    if fault is not None:
        return
    value = -1.5
    if kind != "number":
        part = selected.shape if kind == "same" else selected.shape[-1:]
        value = -1 - numpy.arange(numpy.prod(part), dtype="float32").reshape(part)
    expected[key] = value
    x[_ours(key, lists=False)] = np.array(value) if kind != "number" else value
    numpy.testing.assert_array_equal(x.asnumpy(), expected)
