"""Names that only NumPy has run on the host."""

import numpy
import pytest

from heterosis import np
from heterosis.ir.program import INPUT, apply
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import UnsupportedError


def test_arrays_go_in_and_come_out():
    got = np.unwrap(np.array([0, 7.0]))
    assert isinstance(got, np.ndarray)
    assert got.dtype == "float32"
    numpy.testing.assert_allclose(got.asnumpy(), numpy.unwrap(numpy.float32([0, 7])))


def test_results_inside_tuples_and_other_results():
    quotient, remainder = np.polydiv(np.array([1.0, 3, 2]), np.array([1.0, 1]))
    assert isinstance(quotient, np.ndarray)
    assert isinstance(remainder, np.ndarray)
    assert np.array_equiv(np.ones(2), np.ones((3, 2))) is True
    assert isinstance(np.fft.fft(np.ones(2)), numpy.ndarray)  # complex: not among our types


def test_functions_that_write_write_into_the_array():
    x = np.zeros(3)
    np.put(x, [1], 5)
    assert x.tolist() == [0, 5, 0]


def test_types_and_constants_are_numpys():
    assert np.dtype("int32") == numpy.dtype("int32")
    assert np.int16 is numpy.int16
    assert np.float32 is numpy.float32


def test_unknown_names():
    with pytest.raises(AttributeError, match="nosuch"):
        np.nosuch()
    assert not hasattr(np, "__nosuch__")
    assert not hasattr(np.linalg, "nosuch")


def test_linalg_falls_back_too():
    numpy.testing.assert_allclose(np.linalg.matrix_norm(np.eye(2)).asnumpy(), 2**0.5, rtol=1e-6)


def test_captured_programs_are_told_what_to_do():
    value = apply(INPUT, (), TensorType((2,), "float32"))
    for arguments in ((value,), ([value],)):
        with pytest.raises(UnsupportedError, match=r"unwrap runs on the host.*Call it outside"):
            np.unwrap(*arguments)
