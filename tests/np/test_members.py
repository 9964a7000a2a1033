"""Members of arrays that are more than an operation: protocols, views, MXNet's own."""

import copy
import math
import pickle

import numpy
import pytest

from heterosis import hybridize, np, npx
from heterosis.ir.types import DTYPES, numpy_dtype
from heterosis.np.members import decoded_shape
from heterosis.runtime.errors import DTypeError, ShapeError, UnsupportedError

M = numpy.array([[1, -2, 3], [-4, 5, 0.5]], "float32")


@pytest.fixture
def m():
    return np.array(M)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "bfloat16"])
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies(dtype, duplicate):
    x = np.array([0, 1, 1], dtype=dtype)
    y = duplicate(x[::-1])
    x[...] = 0
    assert y.dtype == x.dtype
    assert y.astype("int32").tolist() == [1, 1, 0]


def test_containers_of_arrays_copy(m):
    state = copy.deepcopy({"weight": m, "again": m})
    assert state["weight"] is not m
    assert state["weight"].tolist() == M.tolist()


def test_pythons_protocols(m):
    v = np.array([1.567, 2.5])
    assert round(v, 1).tolist() == pytest.approx([1.6, 2.5])
    assert math.floor(v).tolist() == [1, 2]
    assert math.ceil(v).tolist() == [2, 3]
    assert math.trunc(v).tolist() == [1, 2]
    quotient, remainder = divmod(np.array([5.0, -5.0]), 3)
    assert (quotient.tolist(), remainder.tolist()) == ([1, -2], [2, 1])
    assert [a.tolist() for a in divmod(7, np.array([2.0]))] == [[3], [1]]
    assert 5 in m
    assert 7 not in m
    assert [row.shape for row in m] == [(3,), (3,)]
    assert len(m) == 2
    assert complex(np.array(1.0)) == 1
    for act in (lambda: hash(m), lambda: len(np.array(1.0)), lambda: list(np.array(1.0))):
        with pytest.raises(TypeError):
            act()
    with pytest.raises(ValueError, match="truth value"):
        bool(m)


@pytest.mark.main_memory("the current context is cpu(0)")
def test_places(m):
    assert m.ctx == m.context == npx.cpu()
    assert m.as_in_ctx(npx.cpu()) is m
    assert m.as_in_context(npx.cpu()) is m
    assert m.as_np_ndarray() is m.as_nd_ndarray() is m
    assert m.stype == "default"
    assert m.tostype("default") is m
    assert m.writable
    assert m.copyto(npx.cpu()).tolist() == M.tolist()
    target = np.zeros((2, 3))
    assert m.copyto(target) is target
    assert target.tolist() == M.tolist()
    with pytest.raises(UnsupportedError):
        m.as_in_ctx(npx.gpu(9))
    with pytest.raises(UnsupportedError):
        m.tostype("csr")
    with pytest.raises(TypeError):
        m.copyto("cpu")


def test_detach_shares_memory(m):
    m.detach()[0, 0] = 9
    assert m[0, 0].item() == 9


def test_reshape_and_transpose_take_numbers_or_a_tuple(m):
    for shape in ((3, 2), ((3, 2),), ([3, -1],)):
        assert m.reshape(*shape).shape == (3, 2)
    assert m.reshape(shape=(3, 2)).shape == m.reshape(newshape=(3, 2)).shape == (3, 2)
    for axes in ((), (1, 0), ((1, 0),), (None,)):
        assert m.transpose(*axes).tolist() == M.T.tolist()
    flat = m.flatten()
    flat[0] = 9
    assert m[0, 0].item() == 1


@pytest.mark.parametrize(
    "codes, shape",
    [
        ((6, 4), (6, 4)),
        ((-1,), (-1,)),
        ((0, -1), (2, -1)),
        ((-2,), (2, 3, 4)),
        ((-3, 0), (6, 4)),
        ((0, -3), (2, 12)),
        ((-4, 1, 2, -2), (1, 2, 3, 4)),
        ((-4, -1, 2, -2), (1, 2, 3, 4)),
        ((0, -4, 3, -1, -2), (2, 3, 1, 4)),
    ],
)
def test_codes_of_reshape_view(codes, shape):
    assert decoded_shape((2, 3, 4), codes) == shape


def test_reshape_view(m):
    m.reshape_view(3, 2)[0, 0] = 9
    assert m[0, 0].item() == 9
    assert m.reshape_view((0, -1)).shape == (2, 3)
    with pytest.raises(ShapeError, match="do not fit"):
        m.reshape_view(-4)


def test_slice_assign(m):
    assert m.slice_assign(np.ones((1, 3)), (0,), (1,), (None,)) is m
    assert m[0].tolist() == [1, 1, 1]
    m.slice_assign_scalar(9.0, (0, 1), (2, 2), (None, None))
    assert m[:, 1].tolist() == [9, 9]


def test_clip_takes_both_spellings(m):
    expected = M.clip(0, 1).tolist()
    assert m.clip(0, 1).tolist() == m.clip(min=0, max=1).tolist() == expected
    assert m.clip(a_min=0, a_max=1).tolist() == expected
    with pytest.raises(TypeError, match="unknown"):
        m.clip(low=0)


@pytest.mark.parametrize("prepare", [lambda f: f, hybridize], ids=["eager", "hybridized"])
def test_products_take_their_places(prepare):
    @prepare
    def multiplied(x, y):
        x @= y

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    row = x[1:]
    multiplied(x, np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert row.tolist() == [[4, 3]]
    multiplied(x, x)
    assert x.tolist() == [[8, 5], [20, 13]]


def test_products_of_other_shapes_and_types_take_no_place():
    x, counts = np.ones((2, 2)), np.ones((2, 2), dtype="int32")
    with pytest.raises(ShapeError, match=r"shape \(2, 1\) does not take the place"):
        x @= np.ones((2, 1))
    with pytest.raises(DTypeError):
        counts @= x
    x @= [[1, 2], [3, 4]]
    assert x.tolist() == [[4, 6], [4, 6]]


def test_sort_is_in_place(m):
    assert m.sort() is None
    assert m.tolist() == numpy.sort(M).tolist()
    m.sort(axis=0)
    assert m.tolist() == numpy.sort(numpy.sort(M), 0).tolist()


SAME_AS_NUMPY = [
    "all",
    "any",
    "argmax",
    "argmin",
    "cumsum",
    "max",
    "mean",
    "min",
    "nonzero",
    "prod",
    "round",
    "squeeze",
    "std",
    "sum",
    "var",
]


@pytest.mark.parametrize("name", SAME_AS_NUMPY)
def test_methods_of_numpy(m, name):
    got, expected = getattr(m, name)(), getattr(M, name)()
    pairs = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
    for ours, numpys in pairs:
        numpy.testing.assert_allclose(ours.asnumpy(), numpys, rtol=1e-6)


def test_methods_with_arguments(m):
    for two in (2, [2], numpy.array(2), np.array(2, dtype="int64"), np.array([2], dtype="int64")):
        assert m.repeat(two, axis=1).shape == (2, 6)
    assert m.take(np.array([2, 0], dtype="int32"), axis=1).tolist() == M[:, [2, 0]].tolist()
    assert m.swapaxes(0, 1).tolist() == M.T.tolist()
    assert m.broadcast_to((2, 2, 3)).shape == (2, 2, 3)
    assert m.expand_dims(1).shape == (2, 1, 3)
    assert m.dot(m.T).shape == (2, 2)
    assert m.sum(1, keepdims=True).shape == (2, 1)
    assert m.sum(axis=[0, 1]).shape == ()
    assert m.argsort().tolist() == M.argsort().tolist()
    assert [part.shape for part in m.split(3, axis=1)] == [(2, 1)] * 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [0, 1, 100, -1, -5.5, 2**31, -(2**63), numpy.nan, numpy.inf])
def test_one_element_is_the_number_that_numpy_gives(dtype, number):
    with numpy.errstate(all="ignore"):
        source = numpy.array([number, 1]).astype(numpy_dtype(dtype))
    x, expected = np.array(source, dtype=dtype), source.item(0)
    for one in (x[0], x[:1], x[:1].reshape(1, 1), x[::2]):
        assert type(one.item()) is type(expected)
        numpy.testing.assert_equal(one.item(), expected)
        numpy.testing.assert_equal(float(one), float(expected))
        assert bool(one) == bool(expected)
