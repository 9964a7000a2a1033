"""Rows of a few elements are reduced a vector of rows at a time."""

import itertools

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.ir.types import numpy_dtype


def softmax(x):
    shifted = numpy.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


FUNCTIONS = {
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "largest": (lambda x: x.max(-1), lambda x: x.max(-1)),
    "place of the largest": (lambda x: x.argmax(-1), lambda x: x.argmax(-1)),
    "product": (lambda x: x.prod(-1), lambda x: x.prod(-1)),
    "variance": (lambda x: x.var(-1), lambda x: x.var(-1)),
    "softmax": (lambda x: npx.softmax(x), softmax),
    "less the least": (lambda x: x - x.min(-1, keepdims=True),) * 2,
    "any": (lambda x: (x > 1).any(-1), lambda x: (x > 1).any(-1)),
    "all": (lambda x: np.all(x > -1, -1), lambda x: numpy.all(x > -1, -1)),
    "running sums": (lambda x: np.cumsum(x, -1), lambda x: numpy.cumsum(x, -1)),
    "logarithm of softmax": (lambda x: npx.log_softmax(x), lambda x: numpy.log(softmax(x))),
    "of a sum": (lambda x: (x * x + 1).sum(-1), lambda x: (x * x + 1).sum(-1)),
}


SIZES = [
    *itertools.product((1, 2, 3, 4, 5), (31, 33, 63, 64, 65, 200)),
    (7, 48), (10, 200), (16, 33), (21, 63), (32, 100), (39, 47), (41, 64),
]  # fmt: skip


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8", "float16"])
def test_short_rows(dtype, name, hybrid):
    function, reference = FUNCTIONS[name]
    if "int" in dtype and name in ("variance", "softmax", "logarithm of softmax"):
        return
    run = heterosis.hybridize(function) if hybrid else function
    generator = numpy.random.default_rng(3)
    for count, rows in SIZES:
        x = generator.integers(-8, 9, (rows, count)).astype(numpy_dtype(dtype)) / 4
        x = x.astype(numpy_dtype(dtype))
        x[rows // 2 + 1 :] = x[: rows - rows // 2 - 1]
        if name in ("sum", "product", "running sums", "of a sum") and dtype == "int8":
            continue  # MXNet keeps the type, NumPy does not
        found = run(np.array(x, dtype=dtype)).asnumpy()
        near = {"float16": 1e-2, "float32": 1e-6}.get(dtype, 1e-12)
        expected = reference(x.astype("float64") if x.dtype.kind == "f" else x)
        numpy.testing.assert_allclose(found.astype("float64"), expected, rtol=near, atol=near)
        numpy.testing.assert_array_equal(found[rows // 2 + 1 :], found[: rows - rows // 2 - 1])


@pytest.mark.parametrize("count", [3, 7, 20])
@pytest.mark.parametrize("name", ["sum", "softmax", "running sums"])
def test_short_rows_inside_of_others(name, count):
    """Those of views, of some axes more, and with what is written beside left as it is."""
    function, reference = FUNCTIONS[name]
    x = numpy.random.default_rng(5).standard_normal((3, 70, count)).astype("float32")
    for view in (lambda x: x, lambda x: x[:, 1:68], lambda x: x[1], lambda x: x[..., ::-1]):
        found = function(view(np.array(x))).asnumpy()
        expected = reference(view(x).astype("float64"))
        numpy.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    wide = np.full((3, 80, count), 7.0)
    wide[:, 4:74] = npx.softmax(np.array(x))
    assert (np.delete(wide, range(4, 74), 1) == 7).all()
    numpy.testing.assert_allclose(wide[:, 4:74], softmax(x), rtol=1e-6)


@pytest.mark.parametrize("count", [3, 7, 16, 20])
@pytest.mark.parametrize("name", ["softmax", "less the least", "running sums"])
def test_short_rows_written_over(name, count):
    """The elements of a row are read before those of its results are written."""
    function, reference = FUNCTIONS[name]

    @heterosis.hybridize
    def over(x):
        x[:] = function(x)
        return x.sum()

    x = numpy.random.default_rng(7).standard_normal((65, count)).astype("float32")
    array = np.array(x)
    over(array)
    numpy.testing.assert_allclose(array.asnumpy(), reference(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [32, 33, 47, 70])
@pytest.mark.parametrize("count", [3, 7, 20])
def test_short_rows_beside_others(rows, count):
    """Numbers for each row, for each column, for both, and where a row is."""
    generator = numpy.random.default_rng(11)
    shapes = (rows, count), (rows, 1), (count,), (count, rows)
    x, a, b, c = (generator.standard_normal(shape).astype("float32") for shape in shapes)

    @heterosis.hybridize
    def call(x, a, b, c):
        below = np.arange(rows).reshape(rows, 1) >= np.arange(count)
        return npx.softmax(np.where(below, x * a + b, c.T))

    below = numpy.arange(rows)[:, None] >= numpy.arange(count)
    expected = softmax(numpy.where(below, x * a + b, c.T))
    found = call(*map(np.array, (x, a, b, c))).asnumpy()
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
