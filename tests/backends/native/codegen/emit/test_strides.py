"""What runs backwards through memory, or in small steps, is read in whole vectors."""

import numpy
import pytest

import heterosis
from heterosis import np
from heterosis.backends.native.codegen.emit.program import function_for_known_sizes
from heterosis.backends.native.codegen.target import AVX2, AVX512
from heterosis.backends.native.compile.whole import scheduled
from heterosis.capture import capture
from heterosis.ir.strided import Strided
from heterosis.ir.types import DTYPES, numpy_dtype

FRAME = 20  # elements around those of a view, which it must not touch


def copied(x, out):
    return np.copy(x[..., ::-1])


def added(x, out):
    return x[..., ::-1] + x


def summed(x, out):
    return (x[..., ::-1] * x).sum(-1)


def written(x, out):
    out[..., ::-1] = x
    return out


MEANING = {
    copied: lambda x: x[:, ::-1],
    added: lambda x: x[:, ::-1] + x,
    summed: lambda x: (x[:, ::-1] * x).astype("float64").sum(-1),
    written: lambda x: x[:, ::-1],
}


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("function", MEANING)
@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_and_what_is_left(dtype, function, hybrid):
    for extent in (1, 2, 7, 8, 15, 16, 17, 31, 33, 70):
        x = numpy.arange(3 * extent).reshape(3, extent) % 3
        x = x.astype(numpy_dtype(dtype))
        wide = (3, extent + 2 * FRAME)
        given, room = np.ones(wide, dtype), np.ones(wide, dtype)
        inside = numpy.s_[:, FRAME:-FRAME]
        given[inside] = x
        run = heterosis.hybridize(function) if hybrid else function
        found = run(given[inside], room[inside]).asnumpy()
        numpy.testing.assert_array_equal(found.astype("float64"), MEANING[function](x))
        numpy.testing.assert_array_equal(numpy.delete(room, range(FRAME, FRAME + extent), 1), 1)


@pytest.mark.parametrize("hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_between_which_others_stand(dtype, step, hybrid):
    views = [
        lambda x: x[..., 0],
        lambda x: x[..., step - 1],
        lambda x: x.transpose(2, 0, 1),
        lambda x: x[:, 1:, 0],
    ]
    for extent in (1, 2, 7, 8, 15, 16, 17, 33, 70):
        x = numpy.arange(3 * extent * step).reshape(3, extent, step) % 7 % 3
        x = x.astype(numpy_dtype(dtype))
        given = np.array(x)
        for view in views:
            copy = heterosis.hybridize(lambda x, view=view: np.copy(view(x))) if hybrid else view
            numpy.testing.assert_array_equal(np.copy(copy(given)).asnumpy(), view(x))
            total = view(given).astype("float64").sum().item()
            assert total == view(x).astype("float64").sum()


def third(x, out):
    return np.copy(x[..., ::3])


def channels_first(x, out):
    return np.copy(x.reshape(10, 7, 3).transpose(2, 0, 1))


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("function", [copied, added, written, third, channels_first])
def test_no_element_goes_by_itself(function, target):
    arrays = np.ones((3, 70), dtype="float32"), np.ones((3, 70), dtype="float32")
    program = capture(function, arrays, {}).program
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    text = function_for_known_sizes(scheduled(program, layouts)).emit(target)
    assert "gather" not in text and "scatter" not in text
