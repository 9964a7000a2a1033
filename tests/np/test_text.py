"""How arrays print: NumPy's form, float32 and bool going without saying, as in MXNet."""

import numpy
import pytest

from heterosis import np

TEXTS = [
    (lambda: np.ones(2), "array([1., 1.])"),
    (lambda: np.array(1.5), "array(1.5)"),
    (lambda: np.array(3, dtype="int32"), "array(3, dtype=int32)"),
    (lambda: np.array([1, 2], dtype="int64"), "array([1, 2], dtype=int64)"),
    (lambda: np.array([1, 2], dtype="float64"), "array([1., 2.], dtype=float64)"),
    (lambda: np.array([0.5, 2], dtype="bfloat16"), "array([0.5, 2. ], dtype=bfloat16)"),
    (lambda: np.array([True, False], dtype=bool), "array([ True, False])"),
    (lambda: np.zeros((0,)), "array([])"),
    (lambda: np.zeros((0, 3)), "array([], shape=(0, 3))"),
    (lambda: np.zeros((0,), dtype="int32"), "array([], dtype=int32)"),
    (lambda: np.array([[1.5, -2], [3, 4]]), "array([[ 1.5, -2. ],\n       [ 3. ,  4. ]])"),
    (lambda: np.array([1e-10, 1e10]), "array([1.e-10, 1.e+10])"),
    (
        lambda: np.arange(2000),
        "array([0.000e+00, 1.000e+00, 2.000e+00, ..., 1.997e+03, 1.998e+03,\n       1.999e+03])",
    ),
]


@pytest.mark.parametrize("make, text", TEXTS)
def test_representation(make, text):
    assert repr(make()) == text


def test_long_facts_take_a_line_of_their_own():
    text = repr(np.array(numpy.full(5, 0.123456789012), dtype="float64"))
    assert text.endswith(",\n      dtype=float64)")


def test_str():
    assert str(np.ones(2)) == "[1. 1.]"
    assert str(np.array(1.5)) == "1.5"
    assert f"{np.array([[1.5, -2]])}" == "[[ 1.5 -2. ]]"


def test_format():
    assert f"{np.array(1.5):.2f}" == "1.50"
    assert "%.2f" % np.array(1.5) == "1.50"  # noqa: UP031
    with pytest.raises(TypeError, match="cannot format"):
        f"{np.array([1.5]):.2f}"


def test_print_options_are_for_these_arrays_only():
    with np.printoptions(precision=2):
        assert repr(np.array([1.23456])) == "array([1.23])"
        assert repr(numpy.array([1.23456])) == "array([1.23456])"
    assert repr(np.array([1.23456])) == "array([1.23456])"


def test_set_printoptions():
    np.set_printoptions(precision=3)
    try:
        assert str(np.array([1.23456])) == "[1.235]"
    finally:
        np.set_printoptions(precision=None)
    assert str(np.array([1.23456])) == "[1.23456]"
    with pytest.raises(TypeError):
        np.set_printoptions(nonsense=1)
