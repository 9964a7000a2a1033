"""NumPy, DLPack, the buffer protocol, lists: arrays among others."""

import numpy
import pytest

from heterosis import np
from heterosis._core import Operation
from heterosis.ir.types import DTYPES, numpy_dtype
from heterosis.runtime.errors import DTypeError

PLAIN = [dtype for dtype in DTYPES if dtype != "bfloat16"]
ONES = numpy.array([1.0, 2.0])


@pytest.mark.main_memory("others can write there")
@pytest.mark.parametrize("dtype", PLAIN)
def test_buffer_protocol(dtype):
    x = np.array([[0, 1, 2], [3, 4, 5]], dtype=dtype)
    seen = numpy.asarray(memoryview(x[:, ::2]))
    assert seen.dtype == dtype
    assert seen.astype(int).tolist() == x[:, ::2].astype("int64").tolist()
    seen[0, 0] = 1
    assert x[0, 0].item() == 1


@pytest.mark.main_memory("others can write there")
def test_as_numpy_shares_unless_told_otherwise():
    x = np.zeros(3)
    numpy.asarray(x)[0] = 1
    numpy.array(x)[1] = 1
    numpy.asarray(x, copy=True)[2] = 1
    assert x.tolist() == [1, 0, 0]
    assert numpy.asarray(x, dtype="float64").dtype == "float64"
    assert numpy.asarray(np.ones(2, dtype="bfloat16")).dtype == numpy_dtype("bfloat16")
    with pytest.raises(ValueError, match="copy"):
        x.__array__("float64", copy=False)


@pytest.mark.parametrize("dtype", PLAIN)
def test_dlpack_both_ways_without_a_copy(dtype):
    host = numpy.zeros((3, 4), dtype)
    ours = np.from_dlpack(host[:, ::2])
    host[1, 2] = 1
    assert ours[1, 1].item() == 1
    back = numpy.from_dlpack(ours)
    assert back.dtype == dtype
    assert numpy.shares_memory(back, host)


@pytest.mark.main_memory("others can write there")
def test_dlpack_arguments():
    x = np.ones(2)
    assert x.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(x.to_dlpack_for_read()).tolist() == [1, 1]
    copied = np.from_dlpack(x.__dlpack__(copy=True))
    np.from_dlpack(x.to_dlpack_for_write())[0] = 7
    assert (x.tolist(), copied.tolist()) == ([7, 1], [1, 1])
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


def test_torch_and_back():
    torch = pytest.importorskip("torch")
    x = np.ones((2, 3))
    tensor = torch.from_dlpack(x)
    tensor[0, 0] = 5
    assert x[0, 0].item() == 5
    assert np.from_dlpack(tensor).tolist() == x.tolist()
    assert (np.ones((2, 3)) + tensor).tolist() == (x + 1).tolist()


CALLS = [
    (lambda x: numpy.add(x, x), [2, 4]),
    (lambda x: x + ONES, [2, 4]),
    (lambda x: ONES + x, [2, 4]),
    (lambda x: [1, 2] + x, [2, 4]),
    (lambda x: x * (1, 2), [1, 4]),
    (lambda x: numpy.float64(2) * x, [2, 4]),
    (lambda x: numpy.sin(x) * 0, [0, 0]),
    (lambda x: numpy.mean(x), 1.5),
    (lambda x: numpy.sum(x, axis=0), 3),
    (lambda x: numpy.add.reduce(x), 3),
    (lambda x: numpy.add.accumulate(x), [1, 3]),
    (lambda x: numpy.median(x), 1.5),
    (lambda x: numpy.linalg.norm(x * 0), 0),
    (lambda x: numpy.concatenate([x, x]), [1, 2, 1, 2]),
    (lambda x: numpy.where(x > 1, x, 0), [0, 2]),
]


@pytest.mark.parametrize("call, expected", CALLS)
def test_numpy_functions_return_our_arrays(call, expected):
    got = call(np.array([1, 2]))
    assert isinstance(got, np.ndarray)
    assert got.tolist() == expected


def test_numpy_writes_into_what_it_is_told_to():
    ours, host = np.zeros(2), numpy.zeros(2)
    assert numpy.add(np.ones(2), 1, out=ours) is ours
    assert numpy.add(np.ones(2), 1, out=host) is host
    host += np.ones(2)
    assert (ours.tolist(), host.tolist()) == ([2, 2], [3, 3])
    narrow = np.zeros(1, dtype="uint8")
    for act in (numpy.add, numpy.float_power):  # one of ours, and one that runs on the host
        with pytest.raises(TypeError, match="into an array of uint8"):
            act(np.array([300], dtype="int64"), 1, out=narrow)


def test_scalars_of_numpy_adapt():
    x = np.ones(2, dtype="int32")
    assert (x * numpy.int64(3)).dtype == "int32"
    assert (np.ones(2) + numpy.float64(2)).dtype == "float32"


def test_none_equals_no_element():
    x = np.ones((2, 1))
    assert (x == None).tolist() == [[False], [False]]  # noqa: E711 - element by element
    assert (x != None).tolist() == [[True], [True]]  # noqa: E711
    for act in (lambda: x + None, lambda: x < None, lambda: x + "a", lambda: x == "a"):
        with pytest.raises(DTypeError):
            act()


@pytest.mark.parametrize(
    "name",
    ["acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_invert",
     "bitwise_left_shift", "bitwise_right_shift", "concat", "permute_dims", "pow"],
)  # fmt: skip
def test_names_of_the_array_standard_are_operations(name):
    assert isinstance(getattr(np, name), Operation)
