"""`dtype=` of functions on elements: the type that they compute in, as NumPy's ufuncs have it."""

import numpy
import pytest

from heterosis import autograd, hybridize, np
from heterosis.runtime.errors import ArgumentError, ArgumentTypeError, DTypeError


def uint8(*numbers):
    return numpy.array(numbers, "uint8")


HALF = numpy.array([12.0], "float16")
CASES = [
    ("add", (uint8(200), uint8(100)), "int32"),
    ("add", (uint8(200), 300), "int32"),
    ("add", (300, uint8(200)), "float64"),
    ("add", (numpy.array([True]), numpy.array([True])), "int32"),
    ("subtract", (uint8(3), uint8(4)), "float64"),
    ("multiply", (0.1, uint8(3)), "float64"),
    ("power", (uint8(2), uint8(10)), "int32"),
    ("left_shift", (uint8(1), uint8(9)), "int32"),
    ("floor_divide", (uint8(7), uint8(2)), "float32"),
    ("divmod", (uint8(7), uint8(2)), "int32"),
    ("modf", (numpy.array([2.7], "float32"),), "float64"),
    ("ldexp", (numpy.array([2.5], "float32"), numpy.array([200], "int32")), "float64"),
    ("exp", (HALF,), "float32"),
    ("sqrt", (numpy.array([2.0], "float32"),), "float64"),
    ("sqrt", (2.0,), "float64"),
    ("add", (0.1, 0.2), "float64"),
    ("clip", (uint8(200), 300, 400), "float64"),
    ("less", (uint8(3), uint8(4)), "bool"),
    ("isnan", (HALF,), "bool"),
    ("logical_and", (HALF, uint8(4)), "bool"),
    ("matmul", (numpy.full((2, 2), 200, "uint8"), numpy.full((2, 2), 2, "uint8")), "int32"),
    ("matmul", (numpy.full((1, 2), 300, "float16"), numpy.full((2, 1), 300, "float16")), "float32"),
]


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    "name, operands, dtype", CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_functions_compute_in_the_type(name, operands, dtype, hybrid):
    def function(*given):
        return getattr(np, name)(*given, dtype=dtype)

    ours = [np.array(x) if isinstance(x, numpy.ndarray) else x for x in operands]
    got = (hybridize(function) if hybrid else function)(*ours)
    expected = getattr(numpy, name)(*operands, dtype=dtype)
    several = isinstance(expected, tuple)
    for one, other in zip(
        got if several else (got,), expected if several else (expected,), strict=True
    ):
        assert one.dtype == other.dtype
        numpy.testing.assert_allclose(one.asnumpy(), other, rtol=1e-6 if dtype == "float32" else 0)


@pytest.mark.parametrize("hybrid", [False, True])
def test_gradients_are_of_what_is_computed(hybrid):
    """The exponential of 12 is beyond float16; its slope, times 1e-3, is not."""
    x = np.array(HALF)
    x.attach_grad()

    def function(x):
        return np.exp(x, dtype="float32") * 1e-3

    with autograd.record():
        y = (hybridize(function) if hybrid else function)(x)
    y.backward()
    assert x.grad.dtype == "float16"
    assert x.grad.item() == pytest.approx(162.75, rel=1e-3)


@pytest.mark.parametrize(
    "name, operands, dtype",
    [
        ("add", (numpy.ones(1, "float32"), 1), "int32"),
        ("add", (numpy.ones(1, "int64"), 1), "uint8"),
        ("add", (uint8(1), 0.5), "int32"),
        ("add", (1, 0.5), "int32"),
        ("add", (uint8(1), uint8(1)), "bool"),
        ("true_divide", (uint8(1), uint8(2)), "int32"),
        ("less", (uint8(1), uint8(2)), "float32"),
        ("frexp", (numpy.ones(1, "float32"),), "float64"),
    ],
)
def test_what_no_loop_computes_is_refused(name, operands, dtype):
    ours = [np.array(x) if isinstance(x, numpy.ndarray) else x for x in operands]
    with pytest.raises(DTypeError, match=rf"{name}: .* and dtype='{dtype}'"):
        getattr(np, name)(*ours, dtype=dtype)
    with pytest.raises(TypeError):
        getattr(numpy, name)(*operands, dtype=dtype)


def test_numbers_fit_into_the_type():
    with pytest.raises(ArgumentError, match="add: 300 does not fit into uint8"):
        np.add(300, 1, dtype="uint8")


@pytest.mark.parametrize("where", [True, [True, False]])
@pytest.mark.parametrize("dtype", [None, "float64"])
def test_results_stand_in_out(dtype, where):
    where = where if where is True else np.array(where, dtype="bool")
    out = np.full((2,), 9.0)
    x, y = np.array([1, 2], dtype="int8"), np.array([0.5, 0.25], dtype="float16")
    assert np.subtract(x, y, out=out, dtype=dtype, where=where) is out
    assert out.tolist() == [0.5, 1.75 if where is True else 9]
    assert np.subtract(out, 1, out=(out,), dtype=dtype) is out


@pytest.mark.parametrize("name", ["std", "var", "cumsum", "sort"])
def test_where_is_for_elements(name):
    x = np.ones((2, 3))
    function = getattr(np, name)
    for run in (function, hybridize(lambda x, **more: function(x, **more))):
        with pytest.raises(ArgumentTypeError, match=f"{name}: takes no `where`"):
            run(x, where=x > 0)


def test_a_tuple_of_one_is_that_one():
    x, out = np.ones(2), np.zeros(2)
    for run in (np.exp, hybridize(lambda x, out: np.exp(x, out=out))):
        out[:] = 0
        assert run(x, out=(out,)).tolist() == out.tolist() == pytest.approx([2.718282] * 2)
    assert np.exp(x, out=(out,)) is out and np.exp(x, out=(x,)) is x
    assert np.exp(x, out=(None,)).shape == (2,)


@pytest.mark.parametrize("where", [True, [True, False]])
@pytest.mark.parametrize("dtype", [None, "int32"])
def test_several_results_stand_in_out(dtype, where):
    where = where if where is True else np.array(where, dtype="bool")
    outs = np.full((2,), 9.0), np.full((2,), 9, dtype="int64")
    got = np.divmod(np.array(uint8(7, 9)), 4, out=outs, dtype=dtype, where=where)
    assert got[0] is outs[0] and got[1] is outs[1]
    assert outs[0].tolist() == [1, 2 if where is True else 9]
    assert outs[1].tolist() == [3, 1 if where is True else 9]


def test_floats_are_not_written_among_integers():
    with pytest.raises(DTypeError, match="into an array of int32"):
        np.add(np.ones(1), 1, out=np.zeros(1, dtype="int32"), dtype="float64")
    with pytest.raises(ArgumentError, match="2 results"):
        np.divmod(np.ones(1), 2, out=np.zeros(1), dtype="float64")
