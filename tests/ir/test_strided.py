"""`Strided` moves the same elements to the same places as NumPy's views do."""

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heterosis.ir.strided import Strided, row_major

SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def read(strided: Strided, memory: numpy.ndarray) -> numpy.ndarray:
    """The elements that `strided` describes, read one by one."""
    found = numpy.empty(strided.shape, memory.dtype)
    for index in numpy.ndindex(*strided.shape):
        steps = zip(index, strided.strides, strict=True)
        found[index] = memory[strided.offset + sum(i * s for i, s in steps)]
    return found


def counting(shape) -> tuple[Strided, numpy.ndarray, numpy.ndarray]:
    """An array without gaps, its memory, and the same array as NumPy's."""
    values = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape)
    return Strided.contiguous(tuple(shape)), values.ravel(), values


@pytest.mark.lengthy
@given(SHAPES, st.randoms())
def test_transpose(shape, random):
    strided, memory, values = counting(shape)
    axes = list(range(len(shape)))
    random.shuffle(axes)
    moved = strided.transpose(tuple(axes))
    numpy.testing.assert_array_equal(read(moved, memory), values.transpose(axes))


@given(SHAPES, st.lists(st.integers(1, 3), max_size=2))
def test_broadcast(shape, more):
    strided, memory, values = counting(shape)
    wanted = (*more, *(3 if n == 1 else n for n in shape))
    moved = strided.broadcast(wanted)
    numpy.testing.assert_array_equal(read(moved, memory), numpy.broadcast_to(values, wanted))


@pytest.mark.lengthy
@given(SHAPES, st.data())
def test_slice(shape, data):
    strided, memory, values = counting(shape)
    slices = tuple(data.draw(st.slices(n)) for n in shape)
    expected = values[slices]
    starts, steps = [], []
    for n, s in zip(shape, slices, strict=True):
        start, _, step = s.indices(n)
        starts.append(start)
        steps.append(step)
    moved = strided.slice(tuple(starts), tuple(steps), expected.shape)
    numpy.testing.assert_array_equal(read(moved, memory), expected)


@pytest.mark.lengthy
@given(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3), st.data())
def test_reshape_is_a_view_just_where_numpy_makes_one(shape, data):
    strided, memory, values = counting(shape)
    axes = data.draw(st.permutations(range(len(shape))))
    strided, values = strided.transpose(tuple(axes)), values.transpose(axes)
    wanted = data.draw(st.sampled_from(factorisations(values.size)))
    moved = strided.reshape(wanted)
    reshaped = values.reshape(wanted)
    is_view = numpy.shares_memory(reshaped, values)
    assert (moved is not None) == is_view
    if moved is not None:
        numpy.testing.assert_array_equal(read(moved, memory), reshaped)


def factorisations(size: int) -> list[tuple[int, ...]]:
    """Shapes of up to three extents with `size` elements."""
    pairs = [(a, size // a) for a in range(1, size + 1) if size % a == 0]
    triples = [(a, c, b // c) for a, b in pairs for c in range(1, b + 1) if b % c == 0]
    return [(size,), *pairs, *triples]


def test_diagonal():
    strided, memory, values = counting((3, 4, 5))
    moved = strided.diagonal(0, 2, 3, (0, 1))
    numpy.testing.assert_array_equal(read(moved, memory), values.diagonal(1, 0, 2))


def test_windows():
    strided, memory, values = counting((2, 5, 7))
    moved = strided.windows((2, 3), (2, 1))
    every = numpy.lib.stride_tricks.sliding_window_view(values, (2, 3), (1, 2))
    numpy.testing.assert_array_equal(read(moved, memory), every[:, ::2])


def test_empty_and_scalar():
    assert Strided.contiguous(()).is_contiguous
    assert Strided((0, 3), (7, 9)).is_contiguous
    assert row_major((2, 0, 3)) == (3, 3, 1)
    assert Strided.contiguous((0, 3)).reshape((3, 0)) == Strided((3, 0), (1, 1))
