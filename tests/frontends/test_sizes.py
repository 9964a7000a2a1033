"""Exported libraries for many sizes: the bits of a hybridized call at each, or an error."""

import pytest

import heterosis
from heterosis import np, npx
from heterosis.gluon import nn
from tests.frontends import python_front_end
from tests.frontends.models import convolution_net, mlp, random, recurrent_net, until_small

front_end = python_front_end()


@pytest.fixture(autouse=True)
def one_thread():
    before = npx.settings.threads
    npx.settings.threads = 1
    yield
    npx.settings.threads = before


def _encoder():
    net = nn.TransformerEncoderLayer(16, 32, 2)
    net.initialize()
    return net


def _attention(q, k, v):
    return np.matmul(npx.softmax(np.matmul(q, k.swapaxes(1, 2))), v)


def _scaled(x):
    return x * (1.0 / x.shape[0]) + x.shape[0] * 0.5, x.shape[0] * x


# What makes each, the axes that are open, and the shapes that it is called with, the first one of
# which it is exported with.
PROGRAMS = {
    "mlp": (mlp, {"x": (0,)}, [[(5, 512)], [(1, 512)], [(2, 512)], [(4, 512)], [(64, 512)]]),
    "captured with one row": (mlp, {"x": (0,)}, [[(1, 512)], [(3, 512)]]),
    "convolution net": (
        convolution_net, {"x": (0,)},
        [[(2, 1, 28, 28)], [(1, 1, 28, 28)], [(3, 1, 28, 28)], [(9, 1, 28, 28)]],
    ),
    "attention": (
        lambda: _attention, True,
        [[(2, 9, 16)] * 3, [(3, 31, 8)] * 3, [(2, 2, 2)] * 3, [(1, 9, 16)] * 3, [(1, 1, 1)] * 3],
    ),
    "encoder": (
        _encoder, {"x": (0, 1)}, [[(2, 9, 16)], [(1, 9, 16)], [(3, 1, 16)], [(7, 64, 16)]],
    ),
    "lstm": (
        recurrent_net, {"inputs": (0, 1)},
        [[(7, 3, 8)], [(1, 3, 8)], [(9, 1, 8)], [(1, 1, 8)], [(30, 17, 8)]],
    ),
    "two lengths": (
        lambda: lambda x, y: x @ y, {"x": (0,), "y": (1,)},
        [[(3, 8), (8, 5)], [(1, 8), (8, 5)], [(3, 8), (8, 1)], [(70, 8), (8, 90)]],
    ),
    "loop": (lambda: until_small, True, [[(5,)], [(1,)], [(20,)]]),
    "floats of sizes": (lambda: _scaled, {"x": (0,)}, [[(5, 3)], [(4, 3)], [(1, 3)], [(777, 3)]]),
    "joined": (
        lambda: lambda x, y: np.concatenate([x, y, x * 2]), True,
        [[(5,), (3,)], [(2,), (2,)], [(1,), (9,)], [(600,), (601,)]],
    ),
    "halves": (lambda: lambda x: x[: x.shape[0] // 2], True, [[(8,)], [(9,)], [(1000,)]]),
    "views and what is given": (
        lambda: lambda x: (x.T, x, x[1:]), True, [[(4, 3)], [(3, 4)], [(9, 2)]]
    ),
    "in order": (lambda: np.sort, True, [[(100,)], [(3,)], [(5000,)]]),
    "windows": (
        lambda: lambda x, w: npx.convolution(x, w, kernel=(3, 3), stride=(2, 2), num_filter=4,
                                             no_bias=True),
        {"x": (0, 2, 3)},
        [[(2, 3, 9, 11), (4, 3, 3, 3)], [(5, 3, 8, 8), (4, 3, 3, 3)],
         [(1, 3, 33, 21), (4, 3, 3, 3)]],
    ),
}  # fmt: skip


def _called(function):
    return lambda *arrays: function(*arrays)


@pytest.mark.parametrize("label", PROGRAMS)
@pytest.mark.parametrize("weights", ["inside", "file"])
def test_one_library_for_all_sizes(label, weights, tmp_path):
    make, axes, calls = PROGRAMS[label]
    function = make()
    inputs = [[random(*shape) for shape in shapes] for shapes in calls]
    path, _ = heterosis.export(
        function, tmp_path / "model", *inputs[0], dynamic=axes, weights=weights
    )
    library = front_end.Library(path)
    assert len(library.entries) == 1
    compiled = heterosis.hybridize(_called(function), dynamic=True)
    for arrays in inputs:
        expected = compiled(*arrays)
        found = library(*(array.asnumpy() for array in arrays))
        expected = expected if isinstance(expected, tuple) else (expected,)
        found = found if isinstance(found, tuple) else (found,)
        for ours, theirs in zip(expected, found, strict=True):
            assert ours.shape == theirs.shape
            assert ours.asnumpy().tobytes() == theirs.tobytes(), arrays[0].shape
