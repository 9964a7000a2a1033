"""Products, a nest on their rows, and products of what comes of it: one kernel, band by band."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.backends.native.codegen.kernel import Machine, OpaqueCall
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.schedule import bands
from heterosis.backends.native.schedule.arena import memory
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir import views
from heterosis.ir.program import INPUT, Program, apply, constant
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY
from heterosis.ops.rules import iota
from heterosis.runtime.settings import settings

matmul, multiply, softmax, where, exp = (
    REGISTRY[n].operation for n in ("matmul", "multiply", "softmax", "where", "exp")
)


def array(*shape, dtype="float32"):
    return apply(INPUT, (), TensorType(shape, dtype))


def operands(lead=(2, 3), rows=20, keys=24, depth=8):
    return [array(*lead, rows, depth), array(*lead, keys, depth), array(*lead, keys, depth)]


def scores(query, key, scale=0.25):
    turned = views.transpose(key, (*range(key.ndim - 2), key.ndim - 1, key.ndim - 2))
    return multiply(matmul(query, turned), constant(scale, query.dtype))


def planned(inputs, *outputs, workers=1):
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    program = Program(tuple(inputs), outputs)
    machine = Machine(AVX2, workers)
    return schedule(program, layouts, [None] * len(outputs), machine, views=False)


# -- what is joined -------------------------------------------------------------------------------


def test_attention_is_one_kernel_without_its_scores_in_memory():
    query, key, value = inputs = operands(lead=(8, 8), rows=256, keys=256)
    found = planned(inputs, matmul(softmax(scores(query, key)), value))
    (kernel,) = found.kernels
    assert isinstance(kernel, OpaqueCall)
    assert memory(found).planned < 64 * 256 * 256 * 4 / 16


@pytest.mark.parametrize("shape", [(1, 1, 20, 24), (2, 1, 1, 24), (2, 1, 20, 24), (2, 3, 20, 24)])
def test_masks_that_repeat_are_read_where_they_stand(shape):
    query, key, value = operands()
    mask = array(*shape, dtype="bool")
    kept = where(mask, scores(query, key), constant(-1e9, "float32"))
    assert len(planned([query, key, value, mask], matmul(softmax(kept), value)).kernels) == 1


CAUSAL = {
    "alone": ((2, 3), 20, 24, {}, None),
    "many bands": ((8, 8), 250, 600, {}, None),
    "blocks": ((8, 8), 256, 256, {}, None),
    "with a mask": ((2, 3), 20, 24, {}, (2, 1, 1, 24)),
    "one row": ((2, 3), 1, 24, {}, None),
    "heads share keys": ((2, 4), 20, 24, {"enable_gqa": True}, None),
}


@pytest.mark.parametrize("name", CAUSAL)
def test_rows_that_are_counted_begin_anew_in_each_matrix(name):
    lead, rows, keys, more, mask = CAUSAL[name]
    inputs = operands(lead, rows, keys)
    if more:
        inputs[1:] = operands((lead[0], lead[1] // 2), rows, keys)[1:]
    masks = [] if mask is None else [array(*mask, dtype="bool")]
    given = [*inputs, *masks] + [None] * (not masks)
    found = REGISTRY["attention"].operation(*given, is_causal=True, **more)
    kernels = planned([*inputs, *masks], found).kernels
    # Where heads share keys, their rows stand below each other, and are not those of one matrix.
    # Blocks of a long sequence are kernels, which write where their rows are.
    assert len(kernels) == (3 if more else 4 if name == "blocks" else 1)


def test_matrices_that_are_counted_are_left_apart():
    query, key, value = inputs = operands(lead=(6,))
    matrices = views.reshape(iota(6), (6, 1, 1))
    shifted = REGISTRY["add"].operation(scores(query, key), matrices)
    assert len(planned(inputs, matmul(softmax(shifted), value)).kernels) >= 3


def test_the_right_operand_may_come_late():
    query, key, value, weights = inputs = [*operands(), array(8, 8)]
    of_rows = softmax(scores(query, key))
    found = planned(inputs, matmul(of_rows, exp(matmul(value, weights))))
    assert len(found.kernels) == 2


@pytest.mark.parametrize(
    "several",
    [
        pytest.param(lambda s, v: (matmul(softmax(s), v), s), id="the scores are a result"),
        pytest.param(
            lambda s, v: (matmul(p := softmax(s), v), multiply(p, p)),
            id="the nest's has other users",
        ),
        pytest.param(lambda s, v: (matmul(softmax(s, axis=-2), v),), id="across the rows"),
        pytest.param(lambda s, v: (matmul(p := softmax(s), p),), id="on both sides"),
        pytest.param(lambda s, v: (matmul(multiply(s, softmax(s)), v),), id="scores are read late"),
    ],
)
def test_what_needs_more_than_a_band_is_left_apart(several):
    query, key, value = inputs = operands(rows=24)
    found = planned(inputs, *several(scores(query, key), value))
    assert len(found.kernels) >= 3


def test_of_three_products_in_a_row_two_are_joined():
    query, key, value, other = inputs = [*operands(), array(2, 3, 8, 5)]
    once = matmul(softmax(scores(query, key)), value)
    assert len(planned(inputs, matmul(softmax(once), other)).kernels) == 3


# -- what it computes -----------------------------------------------------------------------------


def reference(query, key, value, mask=None):
    query, key, value = (x.astype("float64") for x in (query, key, value))
    found = query @ numpy.swapaxes(key, -1, -2) / 3
    found = found if mask is None else numpy.where(mask, found, -1e9)
    found = numpy.exp(found - found.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True) @ value


def attention(query, key, value, mask=None):
    found = np.matmul(query, np.swapaxes(key, -1, -2)) / 3
    found = found if mask is None else np.where(mask, found, -1e9)
    return np.matmul(npx.softmax(found), value)


def check(shape, dtype="float32", mask=None, heads_last=False):
    batch, heads, rows, keys, depth = shape
    generator = numpy.random.default_rng(0)
    given = [
        generator.normal(size=(batch, heads, n, depth)).astype(dtype) for n in (rows, keys, keys)
    ]
    masks = [] if mask is None else [generator.random(mask) < 0.7]
    wanted = reference(*given, *masks)
    arrays = [np.array(x) for x in (*given, *masks)]
    if heads_last:  # as they come of one product for all heads
        arrays[:3] = [x.swapaxes(1, 2).copy().swapaxes(1, 2) for x in arrays[:3]]
    found = heterosis.hybridize(attention)(*arrays)
    near = {"float16": 3e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    numpy.testing.assert_allclose(found.asnumpy(), wanted, rtol=near, atol=near)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("band", [1 << 19, 1 << 12])
@pytest.mark.parametrize("shape", [(2, 3, 70, 65, 33), (1, 2, 1, 40, 16), (2, 1, 33, 3, 5)])
def test_results(shape, band, dtype, monkeypatch):
    monkeypatch.setattr(bands, "_BAND_BYTES", band)
    check(shape, dtype)


@pytest.mark.parametrize(
    "mask", [(1, 1, 40, 48), (2, 1, 1, 48), (2, 1, 40, 48), (2, 3, 40, 48), (48,)]
)
def test_masks(mask, monkeypatch):
    monkeypatch.setattr(bands, "_BAND_BYTES", 1 << 12)
    check((2, 3, 40, 48, 16), mask=mask)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(2, 3, 70, 70, 16), (2, 1, 33, 50, 8), (3, 2, 129, 40, 8)])
def test_causal_results(shape, dtype, monkeypatch):
    """Each band counts its rows from the matrix's first one."""
    monkeypatch.setattr(bands, "_BAND_BYTES", 1 << 12)
    batch, heads, rows, keys, depth = shape
    generator = numpy.random.default_rng(0)
    given = [
        generator.normal(size=(batch, heads, n, depth)).astype(dtype) for n in (rows, keys, keys)
    ]
    causal = numpy.arange(rows)[:, None] >= numpy.arange(keys)

    @heterosis.hybridize
    def call(query, key, value):
        return npx.scaled_dot_product_attention(query, key, value, is_causal=True, scale=1 / 3)

    near = {"float16": 3e-3, "float32": 2e-6, "float64": 1e-14}[dtype]
    found = call(*map(np.array, given)).asnumpy()
    numpy.testing.assert_allclose(found, reference(*given, causal), rtol=near, atol=near)


@pytest.mark.parametrize("shape", [(2, 1, 48, 100, 64), (2, 4, 16, 40, 16), (1, 2, 80, 170, 33)])
def test_products_that_would_be_turned_are_not(shape, monkeypatch):
    """How a product is computed as a whole says nothing of its bands: in which order, and how many
    columns of its last panel there are."""
    monkeypatch.setattr(settings, "threads", 1)
    check(shape)


def test_strided_operands():
    check((2, 4, 50, 50, 16), heads_last=True)


def test_a_bias_for_every_row_and_column(monkeypatch):
    """The first products' epilogue reads its operand where the band begins."""
    monkeypatch.setattr(bands, "_BAND_BYTES", 1 << 12)
    generator = numpy.random.default_rng(0)
    query, key, value, bias = (
        generator.normal(size=s).astype("float32")
        for s in ((2, 3, 70, 8), (2, 3, 40, 8), (2, 3, 40, 8), (3, 70, 40))
    )

    @heterosis.hybridize
    def biased(query, key, value, bias):
        found = np.matmul(query, np.swapaxes(key, -1, -2)) + bias
        return np.matmul(npx.softmax(found), value)

    found = query.astype("float64") @ numpy.swapaxes(key, -1, -2) + bias
    found = numpy.exp(found - found.max(-1, keepdims=True))
    wanted = found / found.sum(-1, keepdims=True) @ value
    made = biased(*map(np.array, (query, key, value, bias))).asnumpy()
    numpy.testing.assert_allclose(made, wanted, rtol=2e-6, atol=2e-6)


def test_three_products_in_a_row():
    generator = numpy.random.default_rng(0)
    shapes = ((2, 3, 20, 8), (2, 3, 8, 16), (2, 3, 16, 4), (2, 3, 4, 5))
    arrays = [np.array(generator.normal(size=s), dtype="float64") for s in shapes]

    def thrice(a, b, c, d):
        return npx.softmax(npx.softmax(a @ b) @ c) @ d

    found, wanted = heterosis.hybridize(thrice)(*arrays).asnumpy(), thrice(*arrays).asnumpy()
    numpy.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.lengthy
def test_gradients_are_those_of_the_eager_operations():
    generator = numpy.random.default_rng(0)
    arrays = [np.array(generator.normal(size=(2, 3, 20, 8)), dtype="float64") for _ in range(3)]
    found = []
    for function in (attention, heterosis.hybridize(attention)):
        for x in arrays:
            x.attach_grad()
        with heterosis.autograd.record():
            y = (function(*arrays) ** 2).sum()
        y.backward()
        found.append([x.grad.asnumpy() for x in arrays])
    for own, wanted in zip(*found, strict=True):
        numpy.testing.assert_allclose(own, wanted, rtol=1e-10, atol=1e-10)
