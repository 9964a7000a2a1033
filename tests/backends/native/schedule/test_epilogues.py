"""Elementwise work that products and convolutions do on their results before storing them."""

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.backends.native.compile.plans import machine
from heterosis.backends.native.schedule.epilogues import Uses, candidates
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir.program import INPUT, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY

exp, add, multiply, matmul = (REGISTRY[n].operation for n in ("exp", "add", "multiply", "matmul"))
sigmoid, relu = REGISTRY["sigmoid"].operation, REGISTRY["relu"].operation
total = REGISTRY["sum"].operation


def array(*shape):
    return apply(INPUT, (), TensorType(shape, "float32"))


def kernels(inputs, *outputs):
    layouts = [Strided.contiguous(v.shape) for v in inputs]
    program = Program(tuple(inputs), outputs)
    none = [None] * len(outputs)
    return schedule(program, layouts, none, machine(), views=False).kernels


def reach(inputs, source, *outputs):
    """What may be stored in place of `source`, the last first."""
    uses = Uses(Program(tuple(inputs), outputs))
    return [
        value for value, _ in candidates(source, uses, lambda value: not _follows(source, value))
    ]


def _follows(source, value):
    return source.node in Program((), (value,)).nodes()


def test_a_chain_is_followed_to_its_end():
    a, b, c = inputs = [array(9, 8), array(8, 7), array(9, 7)]
    y = matmul(a, b)
    z = relu(add(y, c))
    assert reach(inputs, y, z)[0] == z
    assert len(kernels(inputs, z)) == 1


def test_paths_that_meet_again_are_one_epilogue():
    a, b = inputs = [array(9, 8), array(8, 7)]
    y = matmul(a, b)
    z = multiply(y, sigmoid(y))
    assert z in reach(inputs, y, z)
    assert len(kernels(inputs, z)) == 1


def test_what_others_need_is_stored():
    a, b = inputs = [array(9, 8), array(8, 7)]
    y = matmul(a, b)
    z = exp(y)
    assert reach(inputs, y, y, z) == []
    assert len(kernels(inputs, y, z)) == 2
    w = relu(add(z, 1.0))
    assert reach(inputs, y, total(z, axis=0), w) == [z]


@pytest.mark.parametrize("rows", [1, 3, 40, 300])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_products_finish_as_separate_kernels_would(rows, dtype):
    generator = numpy.random.default_rng(0)
    x, w, b, r = (
        generator.normal(size=s).astype(dtype) for s in ((rows, 70), (37, 70), (37,), (rows, 37))
    )

    @heterosis.hybridize
    def layer(x, w, b, r):
        return np.tanh(npx.fully_connected(x, w, b, num_hidden=37) * 0.125 + r)

    found = layer(*(np.array(v) for v in (x, w, b, r))).asnumpy()
    wide = [v.astype("float64") for v in (x, w, b, r)]
    wanted = numpy.tanh((wide[0] @ wide[1].T + wide[2]) * 0.125 + wide[3])
    near = {"float32": 3e-6, "float64": 1e-14, "float16": 3e-3}[dtype]
    numpy.testing.assert_allclose(found, wanted, rtol=near, atol=near)


@pytest.mark.parametrize("groups", [1, 4, 8])
@pytest.mark.parametrize("batch", [1, 3])
def test_convolutions_finish_with_a_residual_in_another_layout(groups, batch):
    generator = numpy.random.default_rng(0)
    x = generator.normal(size=(batch, 8, 7, 9)).astype("float32")
    w = generator.normal(size=(8, 8 // groups, 3, 3)).astype("float32")
    r = np.array(generator.normal(size=(batch, 7, 9, 8)).astype("float32")).transpose(0, 3, 1, 2)

    def block(x, w, r):
        y = npx.convolution(x, w, kernel=(3, 3), pad=(1, 1), num_group=groups, no_bias=True)
        return npx.relu(y + r)

    arguments = np.array(x), np.array(w), r
    plain = npx.convolution(
        *arguments[:2], kernel=(3, 3), pad=(1, 1), num_group=groups, no_bias=True
    ).asnumpy()
    found = heterosis.hybridize(block)(*arguments).asnumpy()
    wanted = numpy.maximum(plain + r.asnumpy(), 0)
    numpy.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_branches_write_where_they_are_joined():
    x = np.array(numpy.random.default_rng(0).normal(size=(1, 3, 6, 6)).astype("float32"))
    w = np.array(numpy.random.default_rng(1).normal(size=(4, 3, 1, 1)).astype("float32"))

    def branches(x, w):
        y = npx.convolution(x, w, kernel=(1, 1), no_bias=True)
        z = npx.relu(npx.convolution(x * 2, w, kernel=(1, 1), no_bias=True))
        return np.concatenate([np.exp(y), z], axis=1)

    found = heterosis.hybridize(branches)(x, w).asnumpy()
    numpy.testing.assert_allclose(found, branches(x, w).asnumpy(), rtol=1e-5, atol=1e-6)


def test_the_steps_of_an_epilogue():
    a, b, c = inputs = [array(9, 8), array(8, 7), array(7)]
    (call,) = kernels(inputs, relu(add(matmul(a, b), c)))
    assert len(call.inputs) == 3
    assert "Beside(number=0, dtype='float32', along=1, of_columns=True)" in call.code.key
