"""Results that fill each other's gaps are stored together, without gaps."""

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
from heterosis.backends.native.codegen.target import AVX2, AVX512
from heterosis.backends.native.compile.whole import scheduled
from heterosis.capture import capture
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, numpy_dtype
from heterosis.ops import REGISTRY

pooling_gradient = REGISTRY["pooling_gradient"].operation
SHAPES = [(n,) for n in (1, 2, 7, 15, 16, 17, 31, 33, 64, 70)] + [(3, 12), (2, 5, 19)]


def drawn(shape, dtype, seed):
    found = numpy.random.default_rng(seed).integers(0, 100, shape)
    return np.array((found % 2 if dtype == "bool" else found).astype(numpy_dtype(dtype)))


def pair(x, y):
    """Two results that have work in common, so that one loop computes both."""
    least = np.minimum(x, y)
    return np.maximum(least, x[..., :1]), np.minimum(least, x[..., -1:])


def stacked(x, y):
    return np.stack(pair(x, y), -1)


def apart(x, y):
    """Two results with nothing in common."""
    return np.stack([x * 2, y + 1], -1)


def beside_a_product(x, y):
    """A product, which no kernel writes with gaps, and what stands in memory later than others."""
    return np.stack([np.matmul(x, np.matmul(x.T, y)), np.pad(x, ((0, 0), (1, 0)))[:, :-1] + y], -1)


def unpooled(x, y):
    """Four results, of one, two, two and four elements each, that lie between each other."""
    x, y = (np.repeat(v.reshape(1, 1, *v.shape), 25, -2)[..., :48] for v in (x, y))
    dy = y[..., :38, :24]
    return pooling_gradient(dy, x, (3, 3), stride=(2, 2), pad=(1, 1))


def written(z, x, y):
    """Into every second place, the later ones first, beside others that stay."""
    first, second = pair(x, y)
    z[..., 2:-1:2] = second
    z[..., 1:-1:2] = first
    return z


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pairs_of_results(shape, dtype):
    x, y = drawn(shape, dtype, 0), drawn(shape, dtype, 1)
    a, b = x.asnumpy(), y.asnumpy()
    least = numpy.minimum(a, b)
    expected = [numpy.maximum(least, a[..., :1]), numpy.minimum(least, a[..., -1:])]
    expected = numpy.stack(expected, -1)
    numpy.testing.assert_array_equal(heterosis.hybridize(stacked)(x, y).asnumpy(), expected)
    around = numpy.ones((*shape[:-1], 2 * shape[-1] + 2), a.dtype)
    around[..., 1:-1] = expected.reshape(*shape[:-1], -1)
    found = heterosis.hybridize(written)(np.ones(around.shape, dtype=dtype), x, y)
    numpy.testing.assert_array_equal(found.asnumpy(), around)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_channels_become_the_last_dimension(count, dtype):
    for shape in ((count, 3, 50), (2, count, 33, 17), (3, count, 1, 16)):
        x = drawn(shape, dtype, 0)
        turned = numpy.moveaxis(x.asnumpy(), -3, -1)
        other = numpy.moveaxis(drawn(shape, dtype, 1).asnumpy(), -3, -1)
        y = np.array(numpy.ascontiguousarray(other), dtype=dtype)
        numpy.testing.assert_array_equal(np.moveaxis(x, -3, -1).copy().asnumpy(), turned)
        found = heterosis.hybridize(channels_last)(x, y).asnumpy()
        numpy.testing.assert_array_equal(found[..., 1:, :], numpy.maximum(turned, other))
        assert not found[..., :1, :].any()


def channels_last(x, y):
    """Channels become the last dimension, of more than is written, beside what they are already."""
    return np.pad(
        np.maximum(np.moveaxis(x, -3, -1), y), ((0, 0),) * (x.ndim - 2) + ((1, 0), (0, 0))
    )


def of_images(x, y):
    """Rows of three channels each, which stand behind each other."""
    rows = np.stack([x, y]).reshape(2, 3, 50)
    return np.moveaxis(rows, 1, -1) * 2


@pytest.mark.parametrize("function", [stacked, apart, beside_a_product, unpooled, of_images])
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda target: target.name)
def test_nothing_is_scattered(target, function):
    x, y = drawn((3, 50), "float32", 0), drawn((3, 50), "float32", 1)
    program = capture(function, (x, y), {}).program
    found = heterosis.hybridize(function)(x, y)
    numpy.testing.assert_array_equal(found.asnumpy(), function(x, y).asnumpy())
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    assert "scatter" not in function_for_known_sizes(scheduled(program, layouts)).emit(target)
