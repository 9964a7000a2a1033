"""Elements of 16 bits: every operation's result is rounded, however operations are put together."""

import numpy
import pytest

import heterosis
from heterosis import autograd, np, npx
from heterosis.ir.program import INPUT, Program, apply
from heterosis.ir.types import HALVES, TensorType, numpy_dtype
from heterosis.ops import REGISTRY
from heterosis.passes.halves import rounded, widened
from tests.capture.comparison import leaves, with_gradients

_lengths = np.array([3, 37, 1, 20, 9], dtype="int32")


def _layer_norm(x):
    return npx.layer_norm(x, x[0], x[1]) * 2


_CHAINS = {
    "masked softmax": lambda x: np.cbrt(npx.softmax(x, axis=-1, length=_lengths, use_length=True)),
    "elementwise": lambda x: np.exp(x) * x + x / 3,
    "kept": lambda x: -np.maximum(np.where(x > 1, x * 3, abs(x)), 0.1) + x,
    "floor": lambda x: np.floor(x * 1.7) * 0.3,
    "underflow": lambda x: (x * 1e-4) * 1e-4 * 1e4,
    "overflow": lambda x: (x * 3e4) * 1e-3,
    "reduction": lambda x: np.sum(x * x, axis=1) / 7,
    "large sum": lambda x: np.sum(x + 3000, axis=1) * 1e-3,
    "mean": lambda x: (x - x.mean(axis=1, keepdims=True)) ** 2,
    "variance": lambda x: np.var(x * 100, axis=1) * 0.01,
    "scan": lambda x: np.cumsum(np.exp(x), axis=1) + 1,
    "product": lambda x: np.maximum(x @ x.T + 1, 0) * 3,
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x * 0.3) / 3,
    "layer norm": _layer_norm,
    "activations": lambda x: npx.sigmoid(npx.activation(x, act_type="softrelu")) * x,
    "softmax of softmax": lambda x: npx.log_softmax(npx.softmax(x)) * 0.3,
    "sort": lambda x: np.sort(np.exp(x) / 3, axis=1) * 2,
    "equal": lambda x: (np.exp(x) / 3) == np.exp(x) / 3,
    "spacing": lambda x: np.spacing(np.exp(x)),
    "cast": lambda x: (np.exp(x) / 3).astype("float32") * 3,
    "cast back": lambda x: ((np.exp(x) / 3).astype("float32") / 3).astype(x.dtype),
    "rearranged": lambda x: np.concatenate([np.exp(x), x[::-1] / 3], axis=1).T * 0.7,
    "gathered": lambda x: (np.exp(x) / 3)[[2, 0, 1]] * 3,
    "written": lambda x: _written(x / 3),
    "integers": lambda x: (np.exp(x) * 7).astype("int32") * 0.5,
    "number first": lambda x: (0.1 + x) * 0.1 - 0.3,
}  # fmt: skip


def _written(x):
    x[:, 1] = np.exp(x[:, 0])
    x += 0.1
    return x * 3


def _array(dtype):
    values = numpy.random.default_rng(5).uniform(-3, 3, (5, 37))
    return np.array(values, dtype=dtype)


def _bits(result):
    return [leaf.asnumpy().tobytes() for leaf in leaves([result])]


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", list(_CHAINS))
def test_chains(name, dtype):
    chain = _CHAINS[name]
    assert _bits(heterosis.hybridize(chain)(_array(dtype))) == _bits(chain(_array(dtype)))


@pytest.mark.parametrize("dtype", HALVES)
def test_out_of_another_type(dtype):
    x = _array(dtype)

    def into(x):
        wide = np.zeros(x.shape)
        np.multiply(x, x, out=wide)
        return wide

    rounded_product = (x * x).astype("float32")
    assert _bits(into(x)) == _bits(heterosis.hybridize(into)(x)) == _bits(rounded_product)


@pytest.mark.parametrize("dtype", HALVES)
def test_eager_results_are_rounded_once(dtype):
    """Inside an operation float32 goes on: a mean does not overflow where its sum would."""
    x = np.full((4096,), 60000, dtype=dtype)
    assert float(x.mean()) == float(x[0])
    assert float(heterosis.hybridize(lambda x: x.mean())(x)) == float(x[0])


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients(dtype):
    x = _array(dtype)

    def chain(x):
        return np.exp(x) * x

    eager = with_gradients(lambda: chain(x), [x])
    compiled = heterosis.hybridize(chain)
    hybridized = with_gradients(lambda: compiled(x), [x])
    assert _bits(hybridized[0]) == _bits(eager[0])
    unit = 2.0 ** (-10 if dtype == "float16" else -7)
    a, b = (g.asnumpy().astype("float64") for (g,) in (eager[1], hybridized[1]))
    numpy.testing.assert_allclose(a, b, 4 * unit, 4 * unit)


def test_recorded_inside():
    weight = np.full((5, 37), 0.3, dtype="float16")
    weight.attach_grad()

    @heterosis.hybridize
    def step(x):
        with autograd.record():
            loss = np.exp(x * weight) / 3
        loss.backward()
        return loss

    x = _array("float16")
    found = _bits(step(x)), _bits(weight.grad)
    with autograd.record():
        loss = np.exp(x * weight) / 3
    loss.backward()
    assert found == (_bits(loss), _bits(weight.grad))


# -- the pass itself ------------------------------------------------------------------------------


def _program(dtype, compute):
    x = apply(INPUT, (), TensorType((4,), dtype))
    return Program((x,), rounded((compute(x),), (x,)), "f")


def _lines(program):
    return [line.split(" = ")[1] for line in str(widened(program)).splitlines() if " = " in line]


_F = {name: record.operation for name, record in REGISTRY.items()}


def test_one_operation_is_rounded_once():
    assert _lines(_program("float16", lambda x: _F["exp"](_F["sin"](x)))) == [
        "to_float32(%0)", "sin(%1)", "exp(%2)", "to_float16(%3)",
    ]  # fmt: skip


def test_what_chooses_among_elements_is_not_rounded():
    program = _program("float16", lambda x: _F["maximum"](_F["negative"](x), x))
    assert "nearest" not in str(program)


def test_other_types_are_left_alone():
    program = _program("float32", _F["exp"])
    assert widened(program) is program


# -- rounding -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", HALVES)
def test_all_values_round_as_they_are_stored(dtype):
    """Every number between two neighbours, ties, the ends of the range, NaN and infinities."""
    every = numpy.arange(1 << 16, dtype="uint16").view(numpy_dtype(dtype)).astype("float32")
    with numpy.errstate(all="ignore"):
        steps = numpy.nextafter(every, numpy.float32(numpy.inf)), numpy.nextafter(every, -every)
        ties = numpy.sort(every[numpy.isfinite(every)])
        ties = (ties[1:].astype("float64") + ties[:-1]) / 2
    values = numpy.concatenate([every, *steps, ties.astype("float32")])
    x = np.array(values)

    def twice(x):
        return (x.astype(dtype) * 1).astype("float32"), x.astype(dtype)

    wide, narrow = heterosis.hybridize(twice)(x)
    with numpy.errstate(all="ignore"):
        expected = values.astype(numpy_dtype(dtype))
    numpy.testing.assert_array_equal(wide.asnumpy(), expected.astype("float32"))
    numpy.testing.assert_array_equal(narrow.asnumpy().astype("float32"), expected.astype("float32"))
    known = ~numpy.isnan(values)
    assert (numpy.signbit(wide.asnumpy()) == numpy.signbit(values))[known].all()
