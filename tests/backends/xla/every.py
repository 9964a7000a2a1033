"""Every operation, layer, optimizer and program that others test, through XLA.

It takes ten minutes, so pytest leaves it out unless it is named: python -m pytest -n 4
tests/backends/xla/every.py
"""

from functools import partial

import numpy
import pytest

import heterosis
from heterosis import autograd, np
from heterosis.gluon.model_zoo import vision
from heterosis.ops import REGISTRY
from tests.capture.calls import differentiable, gradients_agree, results_agree, sampled
from tests.capture.control_programs import PROGRAMS as CONTROL
from tests.capture.control_programs import SHIFTS, called
from tests.capture.control_programs import agree as control_agrees
from tests.capture.test_layers import SCOPE
from tests.capture.test_layers import agree as layers_agree
from tests.capture.test_random import LAYERS as RANDOM_LAYERS
from tests.capture.test_random import agree as numbers_agree
from tests.capture.test_random import calls as random_calls
from tests.capture.test_recorded_inside import FUNCTIONS, record_agrees
from tests.capture.test_training import OPTIMIZERS, steps_agree
from tests.capture.test_writes import PROGRAMS, SHARING, sharing_agrees, writes_agree
from tests.gluon.cases import LAYERS, numbers
from tests.gluon.model_zoo import zoo

hybridize = partial(heterosis.hybridize, backend="xla")

# What is drawn, and made of that by arithmetic that rounds the same everywhere.
EXACT = (
    "np.uniform", "np.randint", "np.bernoulli", "np.choice", "np.shuffle", "np.permutation",
    "nd.randint", "dropout", "random_flip_left_right", "into rows of a part",
)  # fmt: skip


# Where nearly equal numbers are subtracted, as a mean's square from a mean of squares.
CANCELLING = {"rmspropalex_update": 4096}
# Programs whose result is a rounding error: XLA multiplies and subtracts in one instruction.
ROUNDING_ERRORS = {"fractions_carried": 1e-2}
# In gradients that are zero but for rounding, such as those of a bias before BatchNorm, errors are
# compared with numbers of this size.
LEAST = 0.01


def near(found, wanted):
    """Equal, floats to 64 units in the last place of the largest."""
    if found.dtype == "uint8":  # of images, whose floats are rounded to these
        numpy.testing.assert_allclose(found.astype("int"), wanted.astype("int"), atol=1)
        return
    if found.dtype.kind != "f":
        numpy.testing.assert_array_equal(found, wanted)
    unit = numpy.finfo("float32").eps
    numpy.testing.assert_allclose(found, wanted, 64 * unit, 64 * unit * numpy.abs(wanted).max())


@pytest.mark.parametrize("name, dtype", list(sampled()))
def test_results(name, dtype):
    ulps = max(4, 2 * REGISTRY[name].samples.ulps)
    results_agree(name, dtype, hybridize, ulps)


@pytest.mark.parametrize("name", list(differentiable()))
def test_gradients(name):
    ulps = max(CANCELLING.get(name, 16), 2 * REGISTRY[name].samples.ulps)
    gradients_agree(name, hybridize, ulps)


@pytest.mark.parametrize("name, run", [pytest.param(*row, id=row[0]) for row in random_calls()])
def test_random_numbers(name, run):
    equal = numpy.testing.assert_array_equal if name in EXACT else near
    with autograd.train_mode():
        numbers_agree(run, hybridize(run), equal)


@pytest.mark.parametrize(
    "expression, shape", [row for row in LAYERS if "nn.Lambda" not in row[0]], ids=str
)
def test_layers(expression, shape):
    net, x = eval(expression, SCOPE), np.array(numbers(shape))
    layers_agree(net, [x], [] if shape[0] == "ints" else None, ulps=512, least=LEAST, backend="xla")


@pytest.mark.parametrize("name, keywords, shape", zoo.RUNS, ids=[run[0] for run in zoo.RUNS])
def test_known_models(name, keywords, shape):
    """The known models give the same as natively: to 5 digits of the largest."""
    net = vision.get_model(name, prefix="net_", **keywords)
    wanted = numpy.array(zoo.outputs(net, shape, np.array))
    net.hybridize(backend="xla")
    found = numpy.array(zoo.outputs(net, shape, np.array))
    numpy.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4 * abs(wanted).max())


@pytest.mark.parametrize("name", RANDOM_LAYERS)
def test_layers_that_draw(name):
    layer, x = RANDOM_LAYERS[name](), np.ones((5, 4, 4))
    layer.initialize()
    layer(x)
    with autograd.train_mode():
        numbers_agree(lambda: layer(x), hybridize(lambda: layer(x)), near)


@pytest.mark.parametrize("optimizer, settings", OPTIMIZERS)
def test_training_steps(optimizer, settings):
    steps_agree(optimizer, settings, hybridize)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_writes_in_place(program):
    writes_agree(program, hybridize)


@pytest.mark.parametrize("program", SHARING, ids=lambda program: program.__name__)
def test_shared_memory(program):
    sharing_agrees(program, hybridize)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_records_that_functions_leave(function):
    record_agrees(function, hybridize)


@pytest.mark.parametrize("name", CONTROL)
def test_choices_and_loops(name):
    program = CONTROL[name]
    compiled = hybridize(program.function)
    for shift in SHIFTS[1:]:  # at the first, sums are zero but for rounding, and decide
        expected = called(program.function, program, shift)
        found = called(compiled, program, shift)
        control_agrees(program, found, expected, ROUNDING_ERRORS.get(name, 2e-5))
    assert compiled.captures == 1
