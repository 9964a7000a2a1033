"""No array has a negative extent, whatever makes its shape: two of them give a positive size."""

import numpy
import pytest

import heterosis
from heterosis import _core, np, npx
from heterosis import ndarray as nd
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import HeterosisError, ShapeError

_one, _index = np.ones(()), np.array([1, 2])

_CALLS = {
    "broadcast_to": lambda: np.broadcast_to(_one, (-20, -30)),
    "broadcast_to, then read": lambda: np.broadcast_to(_one, (-20, -30)).reshape(600),
    "broadcast_axes": lambda: npx.broadcast_axes(np.ones((1, 1)), axis=(0, 1), size=(-2, -3)),
    "nd.broadcast_to": lambda: nd.broadcast_to(np.ones((1, 1)), (-2, -3)),
    "one_hot": lambda: npx.one_hot(_index, -3),
    "one_hot of two": lambda: npx.one_hot(np.array([[1, 2]]), -3),
    "zeros": lambda: np.zeros((-2, -3)),
    "ones": lambda: np.ones((-2, -3)),
    "empty": lambda: np.empty((-2, -3)),
    "full": lambda: np.full((-2, -3), 1.0),
    "eye": lambda: np.eye(-2, -3),
    "tri": lambda: np.tri(-2, -3),
    "indices": lambda: np.indices((-2, -3)),
    "identity": lambda: np.identity(-2),
    "reshape": lambda: np.ones(6).reshape(-2, -3),
    "resize": lambda: np.resize(np.ones(6), (-2, -3)),
    "tile": lambda: np.tile(np.ones(2), (-1, -1)),
    "repeat": lambda: np.repeat(np.ones(2), -1),
    "pad": lambda: np.pad(np.ones((2, 2)), ((-2, -2), (-2, -2))),
    "linspace": lambda: np.linspace(0, 1, -3),
    "uniform": lambda: np.random.uniform(size=(-2, -3)),
    "nd.uniform": lambda: nd.random.uniform(shape=(-2, -3)),
    "nd.zeros": lambda: nd.zeros((-2, -3)),
}


@pytest.mark.parametrize("mode", ["eager", "hybridized"])
@pytest.mark.parametrize("name", list(_CALLS))
def test_operations(name, mode):
    call = _CALLS[name] if mode == "eager" else heterosis.hybridize(_CALLS[name])
    with pytest.raises(HeterosisError):
        call()


@pytest.mark.parametrize("shape", [(-1,), (-2, -3), (2, -3), (0, -1)])
def test_all_shapes_pass_one_place(shape):
    with pytest.raises(ShapeError, match="extents from 0 on"):
        TensorType(shape, "float32")
    with pytest.raises(ShapeError, match="expected numbers from 0 on"):
        _core.empty("float32", shape)


_MANY = (1,) * 33
_TOO_MANY = {
    "zeros": lambda: np.zeros(_MANY),
    "empty": lambda: np.empty(_MANY),
    "from NumPy": lambda: np.array(numpy.zeros(_MANY)),
    "reshape": lambda: np.ones(1).reshape(_MANY),
    "expand_dims": lambda: np.expand_dims(np.ones(_MANY[1:]), 0),
    "a key": lambda: np.ones(_MANY[1:])[None],
    "broadcast_to": lambda: np.broadcast_to(_one, _MANY),
    "hundreds": lambda: np.add(np.empty((1,) * 600), 1),
}


@pytest.mark.parametrize("call", _TOO_MANY.values(), ids=_TOO_MANY)
def test_arrays_have_at_most_32_dimensions(call):
    with pytest.raises(HeterosisError, match="dimensions"):
        call().wait_to_read()
    assert np.zeros(_MANY[1:]).sum().item() == 0


def test_shapes_from_other_libraries():
    assert np.from_dlpack(numpy.ones((2, 0), "float32")).shape == (2, 0)
