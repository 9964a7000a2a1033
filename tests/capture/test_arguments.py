"""Which Python arguments one program serves: those that are the same, not those that are equal."""

import functools
import math

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.capture.compiled import Compiled
from heterosis.ops import REGISTRY
from heterosis.runtime.errors import ArgumentTypeError, AxisError

_x = np.array([1.0, -2.0])

# Values in the order of calls, and how many programs they need.
_ARGUMENTS = [
    ((0.0, -0.0, 0.0, -0.0), 2),
    ((math.nan, float("nan"), numpy.nan * 1), 1),
    ((1, True, 1.0, 1, True, 1.0), 3),
    ((numpy.float32(0), numpy.float32(-0.0), numpy.float32(0)), 2),
    ((numpy.float64("nan"), numpy.float64("nan")), 1),
    ((numpy.int64(2), numpy.int64(2), numpy.int32(2)), 2),
    ((numpy.bool_(True), numpy.bool_(True), True), 2),
    ((math.inf, -math.inf, math.inf), 2),
]
_STRUCTURES = {
    "alone": lambda value: value,
    "tuple": lambda value: (value, (value,)),
    "list": lambda value: [value],
    "dictionary": lambda value: {"scale": value},
}


def _number(given):
    while not isinstance(given, int | float | numpy.generic):
        given = next(iter(given.values() if isinstance(given, dict) else given))
    return given


def _same(found, wanted):
    assert found.dtype == wanted.dtype
    numpy.testing.assert_array_equal(found.asnumpy(), wanted.asnumpy())
    signs = numpy.signbit(found.asnumpy()), numpy.signbit(wanted.asnumpy())
    assert numpy.isnan(wanted.asnumpy()).all() or (signs[0] == signs[1]).all()


@pytest.mark.parametrize("structure", list(_STRUCTURES))
@pytest.mark.parametrize("values, programs", _ARGUMENTS)
def test_numbers(values, programs, structure):
    def divided(x, given):
        return x / _number(given)

    compiled = heterosis.hybridize(divided)
    for value in values:
        given = _STRUCTURES[structure](value)
        _same(compiled(_x, given), divided(_x, given))
    assert compiled.captures == programs


@pytest.mark.parametrize(
    "given",
    [slice(1, None), b"text", 2 + 1j, complex("nan"), {1: 2.0}, None, "text"],
    ids=repr,
)
def test_other_values_are_captured_once(given):
    compiled = heterosis.hybridize(lambda x, given: x + 1)
    for _ in range(3):
        compiled(_x, given)
    assert compiled.captures == 1


def test_keys_of_dictionaries():
    compiled = heterosis.hybridize(
        lambda x, given: x if isinstance(next(iter(given)), bool) else -x
    )
    assert compiled(_x, {True: 0}).tolist() == [1, -2]
    assert compiled(_x, {1: 0}).tolist() == [-1, 2]


# -- attributes of eager operations ---------------------------------------------------------------


_REPLACE = REGISTRY["nan_to_num"].operation
_nan = np.array([math.nan, 1.0])


def _replaced(value):
    """What `value` does as an attribute, the sign of a zero included."""
    return 1 / _REPLACE(_nan, nan=value)


@pytest.mark.parametrize("values, plans", _ARGUMENTS)
@pytest.mark.main_memory("arrays among its values are there")
def test_attributes_are_told_apart(values, plans):
    _replaced(0.123)
    before = _REPLACE.plans
    for value in values:
        if isinstance(value, bool | numpy.bool_):
            continue  # no number, says its annotation
        with numpy.errstate(all="ignore"):
            wanted = 1 / numpy.float32([value, 1])
        _same(_replaced(value), np.array(wanted))
        _same(heterosis.hybridize(_replaced)(value), np.array(wanted))
    assert _REPLACE.plans - before <= plans


def test_nan_as_an_attribute_needs_one_plan():
    _replaced(math.nan)
    before = _REPLACE.plans
    for _ in range(5):
        _replaced(float("nan"))
    assert _REPLACE.plans == before


def test_numbers_of_other_libraries_are_attributes():
    x = np.ones((2, 3))
    for axis in (numpy.int64(1), (numpy.int32(1),)):
        assert np.sum(x, axis=axis).tolist() == [3, 3]
    assert np.sum(x, axis=numpy.int64(0)).tolist() == [2, 2, 2]


@pytest.mark.parametrize("count, python", [(100, 0), (255, 0), (300, 2)])
@pytest.mark.main_memory("the core runs what is there")
def test_a_model_of_arrays_is_an_argument_that_the_core_takes(count, python, monkeypatch):
    asked = []
    wanted = Compiled._found
    monkeypatch.setattr(Compiled, "_found", lambda *key: asked.append(key) or wanted(*key))
    update = heterosis.hybridize(lambda model: {key: 2 * value for key, value in model.items()})
    model = {f"weight{i}": np.array([i, 1.0]) for i in range(count)}
    update(model)
    asked.clear()
    for _ in range(2):
        model = update(model)
    assert len(asked) == python
    assert [value.tolist() for value in model.values()] == [[4.0 * i, 4] for i in range(count)]


def test_texts_that_were_put_together_are_told_apart():
    texts = ["", "a", "ab", "ab" + "\0", "a" * 8, "a" * 9, "é", "\ud800", "b" * 128, "b" * 129]
    scaled = heterosis.hybridize(lambda x, text: x * texts.index(text))
    for _ in range(3):
        for i, text in enumerate(texts):
            assert scaled(_x, "".join(list(text))).tolist() == [i, -2 * i]
            assert scaled(_x, text).tolist() == [i, -2 * i]
    assert scaled.captures == len(texts)


def _called(x, y=1, *, z):
    return x + y + z


class _Bound:
    def imperative(self, x):
        return x * 2


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3)])
@pytest.mark.parametrize("keywords", [{}, {"x": 1}, {"w": 2}, {"z": 1, "w": 2}])
def test_wrong_calls_are_refused_as_python_does(arguments, keywords, known):
    compiled = heterosis.hybridize(_called)
    if known:
        compiled(np.ones((2,)), z=np.ones((2,)))
    with pytest.raises(TypeError) as expected:
        _called(*arguments, **keywords)
    with pytest.raises(ArgumentTypeError) as found:
        compiled(*arguments, **keywords)
    assert str(found.value) == str(expected.value)


class _Called:
    def __call__(self, x):
        return x * 2


@pytest.mark.parametrize(
    "function",
    [_Bound().imperative, _Called(), functools.partial(_called, y=2)],
    ids=["method", "object", "partial"],
)
def test_wrong_calls_of_what_is_no_plain_function(function):
    compiled = heterosis.hybridize(function)
    with pytest.raises(TypeError) as expected:
        function()
    with pytest.raises(ArgumentTypeError) as found:
        compiled()
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("how", ["auto", True, {"x": (0,)}], ids=str)
def test_wrappers_that_hand_on_other_arguments(how):
    """What they wrap says nothing about what they take."""

    def doubling(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(x, 2)

        return wrapper

    compiled = heterosis.hybridize(doubling(lambda x, times: x * times), dynamic=how)
    for dtype in ("float32", "int32"):
        for count in (2, 3, 4):
            assert compiled(np.ones((count,), dtype=dtype)).tolist() == [2] * count


def test_open_axes_that_are_not_there():
    compiled = heterosis.hybridize(lambda x: x * 2, dynamic={"x": (2,)})
    with pytest.raises(AxisError, match="axis 2 is out of bounds for an array of 1"):
        compiled(np.ones((2,)))
