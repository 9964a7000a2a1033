"""Which results may stand where an input does that they are written to after the run: those whose
kernels write nothing that is still to be read."""

from dataclasses import replace

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.target import AVX2
from heterosis.backends.native.compile.whole import scheduled
from heterosis.backends.native.schedule.overwriting import in_place
from heterosis.backends.native.schedule.proof import prove
from heterosis.capture import capture
from heterosis.capture.programs import _written
from heterosis.ir.strided import Strided
from heterosis.passes.pipeline import optimized
from heterosis.runtime.errors import IndexingError, ScheduleError

MACHINE = Machine(AVX2, 2)


def _stepped(x, y):
    x -= 0.1 * y
    return y.sum()


def _read_by_a_product_before(x, y):
    made = np.dot(x, y)
    x -= 0.1 * y
    return made


def _read_by_a_product_of_the_new(x, y):
    x += y
    return np.dot(x, x)


def _made_by_a_product(x, y):
    x[...] = np.dot(x, y)


def _made_by_a_product_of_others(x, y):
    x[...] = np.dot(y, y)
    return y + 1


def _by_its_sum(x, y):
    x /= x.sum()


def _softmax(x, y):
    x[...] = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)


def _turned(x, y):
    x[...] = x.T + y


def _of_a_row(x, y):
    x += x[0]


def _shifted(x, y):
    x[1:] += x[:-1]


def _running(x, y):
    x[...] = np.cumsum(x, axis=1)


def _crosswise(x, y):
    old = x * 1
    x += y
    y -= old


def _exchanged(x, y):
    old = x * 1
    x[...] = y
    y[...] = old


def _both(x, y):
    x += 1
    y *= 2


def _row_written(x, y):
    x[2] = y[0]


def _gathered(x, y):
    x[...] = x[np.array([[0]]) * 0 + 1][0] + y


def _returned_as_it_was(x, y):
    before = x[1:].copy()
    x += y
    return before


# With the inputs that results may be written over, by position.
PROGRAMS = {
    _stepped: {0}, _read_by_a_product_before: {0}, _read_by_a_product_of_the_new: {0},
    _made_by_a_product: set(), _made_by_a_product_of_others: {0}, _by_its_sum: {0},
    _softmax: {0}, _turned: set(), _of_a_row: set(), _shifted: set(), _running: set(),
    _crosswise: {0, 1}, _exchanged: {1}, _both: {0, 1}, _row_written: {0}, _gathered: set(),
    _returned_as_it_was: {0},
}  # fmt: skip
COULD = {_running}  # if it were looked at in which order nests compute what runs on


def _planned(function):
    captured = capture(function, (np.ones((5, 5)), np.ones((5, 5))), {})
    program, written = optimized(captured.program), _written(captured)
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    return program, layouts, written, scheduled(program, layouts, MACHINE, written=written)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_results_over_inputs(function):
    _, _, written, found = _planned(function)
    assert {i for i, result in written.items() if result in found.over} == PROGRAMS[function]
    assert all(written[array] == result for result, array in found.over.items())


@pytest.mark.parametrize(
    "function", [f for f in PROGRAMS if f not in COULD], ids=lambda f: f.__name__
)
def test_others_may_not(function):
    """The proof finds something wrong where one more stood there."""
    program, layouts, written, found = _planned(function)
    rooms = [None] * len(program.outputs)
    for position, result in written.items():
        if result in found.over or result in found.views:
            continue
        wrong = replace(found, over={result: position})
        with pytest.raises(ScheduleError):
            prove(program, layouts, rooms, in_place(program, wrong), updated=wrong.over)


@pytest.mark.parametrize("dynamic", [False, True], ids=["one size", "any size"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.main_memory("addresses")
def test_arrays_stay_where_they_are(function, dynamic):
    compiled = heterosis.hybridize(function, dynamic=dynamic)
    sizes = (5, 7, 6, 6) if dynamic else (5, 5)
    for size in sizes:
        x = np.arange(size * size).reshape(size, size) / size**3
        given = x, np.cos(x)
        expected = [array.copy() for array in given]
        before = [*map(_address, given)]
        compiled(*given)
        function(*expected)
        for ours, theirs in zip(given, expected, strict=True):
            assert np.allclose(ours, theirs, rtol=1e-5)
    stayed = {i for i, array in enumerate(given) if _address(array) == before[i]}
    assert stayed >= PROGRAMS[function]


@pytest.mark.main_memory("addresses")
def test_a_run_that_fails_leaves_arrays_as_they_were():
    @heterosis.hybridize
    def written(x, place, row):
        x[place] = row
        x *= 2

    x, row = np.ones((4, 3)), np.zeros(3)
    before = _address(x)
    for place in (0, 1):
        written(x, np.array(place, dtype="int64"), row)
    assert _address(x) == before
    expected = x.asnumpy()
    with pytest.raises(IndexingError):
        written(x, np.array(4, dtype="int64"), row)
    assert numpy.array_equal(x.asnumpy(), expected)


def _address(array):
    return numpy.from_dlpack(array).__array_interface__["data"][0]
