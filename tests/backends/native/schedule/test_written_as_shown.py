"""Products that are written where they will stand: heads of attention, side by side in rows."""

import numpy
import pytest

import heterosis
from heterosis import np, npx

# (batches, heads, rows, depth, columns): few rows and columns, halves of vectors, one batch.
SIZES = [
    (2, 3, 5, 7, 16), (1, 4, 64, 32, 32), (2, 2, 33, 40, 31), (2, 3, 1, 8, 16), (2, 3, 14, 1, 3),
    (1, 3, 2, 40, 65), (3, 2, 64, 64, 1), (2, 1, 5, 9, 32),
]  # fmt: skip


def merged(a, b, c, d, w):
    rows = np.matmul(a, b).swapaxes(1, 2).reshape(a.shape[0], a.shape[2], -1)
    return np.matmul(rows, w), rows.sum(axis=-1)


def joined(a, b, c, d, w):
    first, second = np.matmul(a, b) * 2 + 1, np.matmul(c, d)
    both = np.stack([first.swapaxes(1, 2), second.swapaxes(1, 2)], axis=2)
    return np.matmul(both.reshape(a.shape[0] * a.shape[2], 2, -1), w), both[:, :, 1]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int32"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("function", [merged, joined])
def test_as_imperatively(function, sizes, dtype):
    batches, heads, rows, depth, columns = sizes
    random = numpy.random.default_rng(sum(sizes))
    left, right = (batches, heads, rows, depth), (batches, heads, depth, columns)
    shapes = (left, right, left, right, (heads * columns, 4))
    given = [np.array(random.integers(-3, 4, shape), dtype=dtype) for shape in shapes]
    compiled, expected = heterosis.hybridize(function), function(*given)
    for _ in range(2):
        for ours, theirs in zip(compiled(*given), expected, strict=True):
            assert np.array_equal(ours, theirs)  # whole numbers, which no order of sums rounds


def test_rows_of_a_loop_that_are_shown_in_another_order():
    """A kernel of several results, of other shapes than the first."""

    @heterosis.hybridize
    def turned(x):
        first = np.zeros((7, 11))
        rows, state = npx.foreach(lambda row, state: (row * 2, state + row.sum()), x, first)
        return rows.T, state

    x = np.arange(24).reshape(4, 3, 2)
    for _ in range(2):
        rows, state = turned(x)
    assert np.array_equal(rows, (x * 2).T) and (state == x.sum()).all()
