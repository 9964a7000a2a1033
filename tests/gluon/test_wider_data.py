"""NumPy's float64 handed to layers of float32: computed in float64, and said once."""

import warnings

import numpy
import pytest

from heterosis import np
from heterosis.gluon import nn


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("make, shape", [(nn.Dense, (2, 3)), (nn.Conv2D, (1, 2, 5, 5))])
def test_float64_data_is_told_of_once(make, shape, hybrid):
    width = 3 + hybrid  # what has been compiled before says nothing
    net = make(width, kernel_size=3) if make is nn.Conv2D else make(width)
    net.initialize()
    if hybrid:
        net.hybridize()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            y = net(numpy.ones(shape))
    said = [str(w.message) for w in told if "float64" in str(w.message)]
    assert y.dtype == "float64"
    assert len(said) == 1
    assert "astype('float32')" in said[0]
    assert hybrid or told[0].filename == __file__


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_other_types_are_not(dtype):
    net = nn.Dense(2, in_units=3)
    net.initialize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net(np.ones((2, 3), dtype=dtype))


def test_layers_of_float64_are_not():
    net = nn.Dense(2, in_units=3)
    net.cast("float64")
    net.initialize()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert net(numpy.ones((2, 3))).dtype == "float64"
