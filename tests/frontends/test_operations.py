"""Every operation in a library, as far as libraries have it: its code needs the C library alone."""

import itertools

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.ops import REGISTRY
from heterosis.ops.record import ARRAY, SEQUENCE
from heterosis.runtime.errors import UnsupportedError
from tests.frontends import python_front_end
from tests.ops.harness import arguments, cases

front_end = python_front_end()

# What is refused, and by what words.
REFUSED = {"asserted": "checks arrays"} | dict.fromkeys(
    ("cofactors", "cond", "det", "inv", "matrix_rank", "norm", "pinv", "slogdet", "solve",
     "tensorinv", "tensorsolve"),
    "linear algebra",
)  # fmt: skip

TARGETS = ("x86-64", "aarch64-linux")  # besides this machine's; in turns, but for a release


@pytest.fixture(autouse=True)
def one_thread():
    before = npx.settings.threads
    npx.settings.threads = 1
    yield
    npx.settings.threads = before


def _sample(record, dtype):
    """A function of arrays alone, and arrays for it: a case in the middle of the operation's."""
    samples = record.samples.cases
    case = samples[-1] if len(samples) < 3 else samples[len(samples) // 2]
    given, attributes = arguments(record, case, dtype)
    names = [
        parameter.name
        for parameter, use in zip(record.parameters, record.uses, strict=True)
        if use in (ARRAY, SEQUENCE)
    ]
    arrays = []

    def place(argument):
        if not isinstance(argument, numpy.ndarray | numpy.generic):
            return lambda _: argument
        at = len(arrays)
        arrays.append(np.array(argument))
        return lambda called: called[at]

    def of(argument):
        if not isinstance(argument, list):
            return place(argument)
        parts = [place(one) for one in argument]
        return lambda called: [part(called) for part in parts]

    places = [of(argument) for argument in given]

    def function(*called):
        named = zip(names, (place(called) for place in places), strict=False)
        return record.operation(**dict(named), **attributes)

    return function, arrays


@pytest.mark.lengthy
@pytest.mark.release("name")
@pytest.mark.parametrize("name, dtype", list(cases(REGISTRY)))
def test_an_operation_is_exported(name, dtype, tmp_path, release):
    function, arrays = _sample(REGISTRY[name], dtype)
    if not arrays:
        return
    expected = heterosis.hybridize(function)(*arrays)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    try:
        path, _ = heterosis.export(function, tmp_path / "own", *arrays)
        for target in TARGETS if release else (TARGETS[len(name) % 2],):
            heterosis.export(function, tmp_path / "other", *arrays, target=target)
    except UnsupportedError as error:
        assert REFUSED[name] in str(error)
        return
    assert name not in REFUSED
    found = front_end.Library(path)(*(array.asnumpy() for array in arrays))
    found = found if isinstance(found, tuple) else (found,)
    for ours, theirs in itertools.zip_longest(expected, found):
        assert ours.shape == theirs.shape
        assert ours.asnumpy().tobytes() == theirs.tobytes()
