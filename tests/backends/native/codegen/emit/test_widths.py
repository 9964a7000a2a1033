"""How wide vectors are: positions, which are numbers of 64 bits, do not narrow those beside them,
and loops that wait for memory take half of the widest."""

import re

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
from heterosis.backends.native.codegen.target import AVX2, AVX512
from heterosis.backends.native.compile.compiler import assembly
from heterosis.backends.native.compile.whole import scheduled
from heterosis.capture import capture
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, numpy_dtype


def causal(x):
    """Scores of what is not behind a place, which hides the rest."""
    rows, columns = np.arange(x.shape[-2]), np.arange(x.shape[-1])
    return np.where(columns <= rows.reshape((-1, 1)), x, np.zeros_like(x))


def striped(x):
    """Positions that are computed with."""
    at = np.arange(x.shape[-1])
    return np.where((at * 3 - 2) % 5 < 2, x, x + x)


def positions(x):
    """Positions as they are, as floats, and as truths, whose vectors would be the longest."""
    at = np.arange(x.shape[-1], dtype="int64")
    return at * 2, at.astype("float32") / 3, at % 3 == 1


def triangle(shape):
    return numpy.arange(shape[-1]) <= numpy.arange(shape[-2]).reshape(-1, 1)


SHAPES = [(2, n, m) for n, m in ((1, 1), (3, 5), (8, 8), (9, 17), (16, 33), (31, 64), (5, 300))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape, dtype):
    a = numpy.random.default_rng(3).integers(0, 2 if dtype == "bool" else 50, shape)
    a = a.astype(numpy_dtype(dtype))
    x = np.array(a)
    found = heterosis.hybridize(causal)(x).asnumpy()
    numpy.testing.assert_array_equal(found, numpy.where(triangle(shape), a, 0 * a))
    some = (numpy.arange(shape[-1]) * 3 - 2) % 5 < 2
    found = heterosis.hybridize(striped)(x).asnumpy()
    numpy.testing.assert_array_equal(found, numpy.where(some, a, a + a))
    at = numpy.arange(shape[-1])
    wanted = (at * 2, (at.astype("float32") / numpy.float32(3)), at % 3 == 1)
    for found, want in zip(heterosis.hybridize(positions)(x), wanted, strict=True):
        numpy.testing.assert_array_equal(found.asnumpy(), want)


def emitted(function, x, target):
    program = capture(function, (x,), {}).program
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    return function_for_known_sizes(scheduled(program, layouts)).emit(target)


@pytest.mark.parametrize("target, lanes", [(AVX2, 8), (AVX512, 16)], ids=["avx2", "avx512"])
def test_vectors_of_floats_are_whole(target, lanes):
    def softmax(x):
        return npx.softmax(causal(x))

    text = emitted(softmax, np.ones((4, 9, 40), dtype="float32"), target)
    assert f"fmul <{lanes} x float>" in text and f"fmul <{lanes // 2} x" not in text


@pytest.mark.parametrize(
    "function, dtype, widest",
    [
        (lambda x: x * 2 + x, "float32", "ymm"),
        (lambda x: x[::2] - 1, "float64", "ymm"),
        (lambda x: np.exp(x), "float32", "zmm"),
        (lambda x: np.maximum(x, 0), "float32", "zmm"),
        (lambda x: x * 2 + x, "int32", "zmm"),
        (lambda x: x.sum() * x, "float32", "zmm"),
        (lambda x: x[np.array([3, 1, 2])] * x[:3], "float32", "zmm"),
    ],
)
def test_arithmetic_on_arrays_takes_half_registers(function, dtype, widest):
    text = assembly(emitted(function, np.ones((999,), dtype=dtype), AVX512), AVX512)
    assert set(re.findall("%([yz]mm)", text)) >= {widest}
    assert (widest == "zmm") == ("zmm" in text)


@pytest.mark.parametrize(
    "function",
    ["log", "log2", "log1p", "exp", "expm1", "sinh", "tan", "arctan", "tanh", "sqrt"],
)
def test_functions_of_one_number_ahead_of_a_loop_over_memory(function):
    """They have the bits that they have elsewhere, for which some need the widest vectors."""

    def run(x):
        return getattr(np, function)(np.full((), 0.5)) + x, np.full((), 0.5) ** np.full((), 1.5) + x

    x = numpy.arange(40, dtype="float32")
    found = [r.asnumpy() for r in heterosis.hybridize(run)(np.array(x))]
    wanted = [r.asnumpy() for r in run(np.array(x))]
    numpy.testing.assert_array_equal(found, wanted)
