"""Whole programs as one function: what layers share, and that each has its own numbers."""

import itertools

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.compile.whole import scheduled
from heterosis.ir.program import INPUT, NUMBER, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY
from heterosis.passes.pipeline import optimized

matmul, maximum, exp, add, multiply = (
    REGISTRY[n].operation for n in ("matmul", "maximum", "exp", "add", "multiply")
)


def array(*shape):
    return apply(INPUT, (), TensorType(shape, "float32"))


def code_of(inputs, *outputs):
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    program = optimized(Program(tuple(inputs), outputs))
    return function_for_known_sizes(scheduled(program, layouts))


def layers(widths):
    x = array(3, widths[0])
    weights = [array(*pair) for pair in itertools.pairwise(widths)]
    value = x
    for w in weights:
        value = maximum(matmul(value, w), 0)
    return code_of([x, *weights], value)


def test_layers_of_all_sizes_share_their_kernels():
    code = layers([40, 30, 20, 50, 60, 70, 33])
    assert len(code.calls) == 6
    assert len(code.units) == 1
    assert len(code.emit(AVX2)) < 1.4 * len(layers([40, 30, 20]).emit(AVX2))


def number():
    return apply(NUMBER, (), TensorType((), "float64", weak=True))


@pytest.mark.parametrize("dense", [False, True])
def test_updates_with_numbers_of_their_own_share_their_code(dense):
    """As nests of loops, and as what ends a product."""
    rates = [number() for _ in range(6)]
    arrays = [array(16, 16) for _ in range(12)]
    pairs = zip(arrays[::2], arrays[1::2], strict=True)
    found = [matmul(*pair) if dense else exp(add(*pair)) for pair in pairs]
    outputs = [multiply(value, rate) for value, rate in zip(found, rates, strict=True)]
    code = code_of([*arrays, *rates], *outputs)
    assert len(code.calls) == 6
    assert len(code.units) == 1


@pytest.mark.lengthy
def test_each_update_takes_its_own_numbers():
    generator = numpy.random.default_rng(0)
    a, b = generator.normal(size=(2, 5, 16, 16))

    @heterosis.hybridize
    def run(arrays, others, rates):
        sums = [np.exp(-np.abs(x + y)) * r for x, y, r in zip(arrays, others, rates)]
        products = [(x @ y) * r - r for x, y, r in zip(arrays, others, rates)]
        return sums, products

    for rates in ([1.5, -2.0, 0.25, 3.0, 7.0], [2.5, 1.0, 0.5, -3.0, 11.0], [4.0] * 5):
        sums, products = run([*map(np.array, a)], [*map(np.array, b)], rates)
        for x, y, r, total, product in zip(a, b, rates, sums, products, strict=True):
            wanted = numpy.exp(-numpy.abs(x + y)) * r
            numpy.testing.assert_allclose(total.asnumpy(), wanted, rtol=1e-9)
            wanted = x @ y * r - r
            numpy.testing.assert_allclose(product.asnumpy(), wanted, rtol=1e-9, atol=1e-9)


def test_sizes_are_part_of_the_key():
    assert layers([40, 30]).key != layers([40, 31]).key
    assert layers([40, 30]).key == layers([40, 30]).key


def test_nothing_to_run():
    x = array(0, 3)
    assert code_of([x], exp(x)).parts == ()


@pytest.mark.lengthy
@pytest.mark.parametrize("widths", [(5, 7, 1, 9, 64, 33), (16, 16, 16, 16)])
def test_every_layer_computes_with_its_own_numbers(widths):
    generator = numpy.random.default_rng(0)
    weights = [generator.normal(size=pair) for pair in itertools.pairwise(widths)]
    x = generator.normal(size=(3, widths[0]))

    @heterosis.hybridize
    def run(x, *weights):
        for i, w in enumerate(weights):
            x = np.maximum(x @ w, 0) * (i + 1)
        return x, np.exp(-x)

    wanted = x
    for i, w in enumerate(weights):
        wanted = numpy.maximum(wanted @ w, 0) * (i + 1)
    for found, own in zip(
        run(np.array(x), *map(np.array, weights)), (wanted, numpy.exp(-wanted)), strict=True
    ):
        numpy.testing.assert_allclose(found.asnumpy(), own, rtol=1e-9)


def test_the_failure_of_a_later_kernel_is_told():
    @heterosis.hybridize
    def both(a, b):
        return np.linalg.inv(a) @ np.linalg.inv(b)

    good, bad = np.eye(3), np.zeros((4, 4))
    assert both(good, good).shape == (3, 3)

    @heterosis.hybridize
    def apart(a, b):
        return np.linalg.inv(a), np.linalg.inv(b)

    with pytest.raises(numpy.linalg.LinAlgError, match="ingular"):
        apart(good, bad)[1].asnumpy()


def test_kernels_that_need_rows_without_gaps_get_them():
    x = numpy.random.default_rng(0).normal(size=(9, 4))

    @heterosis.hybridize
    def both(x):
        y = x * 2
        return np.sort(y, axis=0), np.argsort(y.T, axis=1), np.matmul(y.T, y)

    found = [a.asnumpy() for a in both(np.array(x))]
    numpy.testing.assert_array_equal(found[0], numpy.sort(x * 2, axis=0))
    numpy.testing.assert_array_equal(found[1], numpy.argsort(x.T * 2, axis=1))
    numpy.testing.assert_allclose(found[2], 4 * x.T @ x)
