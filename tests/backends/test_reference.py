"""Whatever is hybridized runs on a back end that knows nothing of the native one, and gives what
eager operations give: the interface of back ends holds."""

from functools import partial

import numpy
import pytest

import heterosis
from heterosis import autograd, backends, np
from heterosis.backends.native import Native
from heterosis.ops import REGISTRY
from heterosis.runtime.errors import IndexingError
from tests.autograd.gradient_cases import POINTS
from tests.autograd.test_gradients import REFUSED, Total, check_hybridized
from tests.backends.reference import NAME
from tests.capture.calls import differentiable, gradients_agree, results_agree, sampled
from tests.capture.comparison import same, with_gradients
from tests.capture.test_layers import SCOPE, agree
from tests.capture.test_random import LAYERS as RANDOM_LAYERS
from tests.capture.test_random import agree as numbers_agree
from tests.capture.test_random import calls as random_calls
from tests.capture.test_recorded_inside import FUNCTIONS, record_agrees
from tests.capture.test_training import OPTIMIZERS, steps_agree
from tests.capture.test_writes import PROGRAMS, SHARING, sharing_agrees, writes_agree
from tests.gluon.cases import LAYERS, numbers

hybridize = partial(heterosis.hybridize, backend=NAME)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Nothing is compiled as a whole by the native back end, and something by the other."""
    refused = AssertionError("a program was handed to the native back end")

    def refuse(*arguments, **keywords):
        raise refused

    monkeypatch.setattr(Native, "compile", refuse)
    before = backends.named(NAME).compiled
    yield
    assert backends.named(NAME).compiled > before


# -- every operation ------------------------------------------------------------------------------


@pytest.mark.release("name")
@pytest.mark.parametrize("name, dtype", list(sampled()))
def test_results(name, dtype):
    results_agree(name, dtype, hybridize, max(4, 2 * REGISTRY[name].samples.ulps))


@pytest.mark.parametrize("name", list(differentiable()))
def test_gradients(name):
    gradients_agree(name, hybridize, max(16, 2 * REGISTRY[name].samples.ulps))


def _spectral(a):
    values, vectors = np.linalg.eigh(a + a.T)
    return values, vectors * values @ vectors.T


def _singular(a):
    u, values, v = np.linalg.svd(a)
    return values, u * values @ v


# The signs of vectors are free: each way of computing them has its own.
_FREE = {"eigh": _spectral, "svd": _singular}


@pytest.mark.parametrize("name", _FREE)
def test_factorisations_put_together_again(name):
    a = np.array(numpy.random.default_rng(2).normal(size=(4, 4)))
    wanted = with_gradients(lambda: _FREE[name](a), [a])
    same(with_gradients(lambda: hybridize(_FREE[name])(a), [a]), wanted, 64)


_POINTS = [n for n in sorted(POINTS) if not REGISTRY[n].samples and n not in _FREE]


@pytest.mark.parametrize("name", _POINTS)
def test_operations_without_samples(name):
    """At the points where their gradients are looked at."""
    for point in POINTS[name]:
        total = Total(REGISTRY[name], point)
        wanted = total.value(total.start)
        total.draw_again()
        found = hybridize(total)(*map(np.array, total.start)).item()
        near = 1e-4 if total.narrow else 1e-9
        numpy.testing.assert_allclose(found, wanted, near, near)
        if name not in REFUSED and (gradients := total.gradients(total.start)) is not None:
            check_hybridized(total, gradients, hybridize)


def test_no_operation_is_left_out():
    """What is in none of the tables above has a row here."""
    more = {"random_cauchy": lambda: np.random.standard_cauchy(size=(3, 5))}
    assert set(REGISTRY) == {*(name for name, _ in sampled()), *_POINTS, *_FREE, *more}
    for draw in more.values():
        numbers_agree(draw, hybridize(draw), near)


# What is drawn, and made of that by arithmetic that rounds the same everywhere.
_EXACT = (
    "np.uniform", "np.randint", "np.bernoulli", "np.choice", "np.shuffle", "np.permutation",
    "nd.uniform", "nd.randint", "dropout", "random_flip_left_right", "into rows of a part",
)  # fmt: skip


@pytest.mark.parametrize("name, run", [pytest.param(*row, id=row[0]) for row in random_calls()])
def test_random_numbers(name, run):
    """One key gives the same bits; logarithms and the like of these are rounded."""
    equal = numpy.testing.assert_array_equal if name in _EXACT else near
    with autograd.train_mode():
        numbers_agree(run, hybridize(run), equal)


def near(found, wanted):
    """Equal, floats to 16 units in the last place of the largest."""
    if found.dtype.kind != "f":
        numpy.testing.assert_array_equal(found, wanted)
    unit = numpy.finfo("float32").eps
    numpy.testing.assert_allclose(found, wanted, 16 * unit, 16 * unit * numpy.abs(wanted).max())


# -- networks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression, shape", [row for row in LAYERS if "nn.Lambda" not in row[0]], ids=str
)
def test_layers(expression, shape):
    """All but Lambda, which is no block to hybridize."""
    net = eval(expression, SCOPE)
    x = np.array(numbers(shape))
    # What is in front of a normalisation of two examples receives nothing but rounding.
    least = 0.1 if "BatchNorm" in expression else 0.0
    agree(net, [x], [] if shape[0] == "ints" else None, ulps=256, least=least, backend=NAME)


@pytest.mark.parametrize("name", RANDOM_LAYERS)
def test_layers_that_draw(name):
    layer, x = RANDOM_LAYERS[name](), np.ones((5, 4, 4))
    layer.initialize()
    layer(x)
    with autograd.train_mode():
        numbers_agree(lambda: layer(x), hybridize(lambda: layer(x)), near)


@pytest.mark.lengthy
@pytest.mark.parametrize("optimizer, settings", OPTIMIZERS)
def test_training_steps(optimizer, settings):
    """They write weights, statistics and states, and are supplied with numbers in every run."""
    steps_agree(optimizer, settings, hybridize)


# -- what calls leave behind ----------------------------------------------------------------------


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_writes_in_place(program):
    writes_agree(program, hybridize)


@pytest.mark.parametrize("program", SHARING, ids=lambda program: program.__name__)
def test_shared_memory(program):
    sharing_agrees(program, hybridize)


def _part(x):
    return x[1:, ::2]


def _turned(x):
    return x.T, x + 1


def _parts_of_parts(x):
    return {"row": x[1][::-1], "number": x[0, 3]}


@pytest.mark.parametrize("program", [_part, _turned, _parts_of_parts])
def test_rearranged_arguments(program):
    """Results that only show an argument share its memory, as the core's plans have it."""
    sharing_agrees(program, hybridize)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_records_that_functions_leave(function):
    record_agrees(function, hybridize)


def test_gradients_of_gradients():
    """Each derivative is compiled where its program was."""
    found, before = [], backends.named(NAME).compiled
    for wrap in (lambda function: function, hybridize):
        x, weight = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, 0.25])
        x.attach_grad()
        function = wrap(lambda a, w: np.sin(a * w) * a)
        with autograd.record():
            (slope,) = autograd.grad(function(x, weight), x, create_graph=True)
            (bend,) = autograd.grad((slope * slope).sum(), x, create_graph=True)
            head = (bend * weight).sum()
        head.backward()
        found.append([slope.asnumpy(), bend.asnumpy(), x.grad.asnumpy()])
    numpy.testing.assert_allclose(found[1], found[0], 1e-5, 1e-6)
    assert backends.named(NAME).compiled == before + 4  # the function and three derivatives


def test_what_a_function_reads_is_watched():
    factor = 2

    @hybridize
    def scaled(x):
        return x * factor

    for factor, captures in ((2, 1), (2, 1), (3, 2), (2, 2)):
        assert scaled(np.ones(2)).tolist() == [factor] * 2
        assert scaled.captures == captures


def test_errors_are_raised_by_the_call():
    taken = hybridize(lambda x, i: np.take(x, i, mode="raise"))
    x = np.arange(3)
    assert taken(x, np.array([2], dtype="int32")).item() == 2
    with pytest.raises(IndexingError):
        taken(x, np.array([3], dtype="int32"))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "bool"])
def test_element_types(dtype):
    x = np.array([0.5, 1.0, 3.0]).astype(dtype)
    found = hybridize(lambda a: (a * a, a[::-1] + a))(x)
    for one, other in zip(found, (x * x, x[::-1] + x), strict=True):
        assert one.dtype == other.dtype and one.tolist() == other.tolist()


def test_numpy_arrays_and_keywords():
    compiled = hybridize(lambda a, *, b, scale=1: (a + b) * scale)
    ones = numpy.ones(3, "float32")
    for scale in (1, 1, 2.5):
        assert compiled(ones, b=np.array(ones), scale=scale).tolist() == [2 * scale] * 3
    assert compiled.captures == 2
