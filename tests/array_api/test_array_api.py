"""The array API standard: its suite, and what that does not ask of the namespace."""

import os
import subprocess
import sys
import textwrap

import numpy
import pytest

import heterosis
from heterosis import array_api as xp
from heterosis import autograd, hybridize, np
from heterosis.ir.types import INTEGERS, is_signed
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from tests.array_api.suite import VARIABLE, files, folder, outcomes, run

# A process takes seconds to begin: a few of them have the suite's files, dealt out in turns.
_PROCESSES = 5


@pytest.mark.slow
@pytest.mark.skipif(not files(), reason=f"no suite in {folder()}; {VARIABLE} can name its folder")
@pytest.mark.parametrize("turn", range(_PROCESSES))
def test_the_suite_of_the_standard(turn, tmp_path):
    some = files()[turn::_PROCESSES]
    results = tmp_path / "results.json"
    status, text = run([f"array_api_tests/{name}.py" for name in some], 20, results)
    assert status == 0, text
    assert sorted(outcomes(results)) == [f"{name}.py" for name in some]


# -- element types --------------------------------------------------------------------------------

FRACTIONS = numpy.array([1.5, 2.5])
DEFAULTS = {
    "True": (True, "bool"),
    "1": (1, "int64"),
    "1.5": (1.5, "float32"),
    "[]": ([], "float32"),
    "numbers": ([[1, True], [2, 3]], "int64"),
    "numbers and floats": ([1, 2.5], "float32"),
    "NumPy's floats": (FRACTIONS, "float64"),
    "arrays": ([xp.asarray([1], dtype=xp.int8), xp.asarray([2], dtype=xp.int32)], "int32"),
}


@pytest.mark.parametrize("given, dtype", DEFAULTS.values(), ids=DEFAULTS)
def test_asarray_chooses_element_types(given, dtype):
    made = xp.asarray(given)
    assert made.dtype == dtype
    expected = [x.tolist() for x in given] if dtype == "int32" else numpy.asarray(given).tolist()
    assert made.tolist() == expected


@pytest.mark.parametrize(
    "arguments, dtype",
    [((3,), "int64"), ((1, 3), "int64"), ((3.0,), "float32"), ((0, 3, 0.5), "float32")],
)
def test_arange_of_integers_and_of_floats(arguments, dtype):
    assert xp.arange(*arguments).dtype == dtype
    assert xp.arange(*arguments).tolist() == numpy.arange(*arguments).tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_small_integers_are_summed_as_large_ones(name, dtype):
    x = xp.asarray([100, 100, 1], dtype=dtype)
    found = getattr(xp, name)(x)
    expected = {"sum": 201, "prod": 10000}.get(name, [100, 200, 201])
    assert found.dtype == ("int64" if is_signed(dtype) else "uint64")
    assert found.tolist() == (expected if name != "cumulative_prod" else [100, 10000, 10000])


RESULT_TYPES = [
    ((xp.int8, xp.int64), "int64"),
    ((xp.uint8, xp.int32, 1), "int32"),
    ((xp.uint8, xp.int8), "int16"),
    ((xp.uint32, xp.int16), "int64"),
    ((xp.uint16, xp.uint64), "uint64"),
    ((xp.float32, xp.float64), "float64"),
    ((xp.float16, xp.bfloat16), "float32"),
    ((xp.int32, 1.5), "float32"),
    ((xp.bfloat16, 1.5), "bfloat16"),
]


@pytest.mark.parametrize("given, dtype", RESULT_TYPES, ids=str)
def test_result_type(given, dtype):
    assert xp.result_type(*given) == dtype


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_limits_of_floats(dtype):
    limits = xp.finfo(xp.asarray(1.0, dtype=dtype))
    one = xp.asarray(1.0, dtype=dtype)
    assert limits.bits == 8 * one.itemsize
    assert limits.dtype == dtype
    assert (one + limits.eps > one).item()
    assert not (one + limits.eps / 4 > one).item()
    assert xp.isfinite(xp.asarray(limits.max, dtype=dtype)).item()
    assert limits.min == -limits.max
    assert xp.isdtype(limits.dtype, "real floating")


def test_what_there_is():
    info = xp.__array_namespace_info__()
    integral = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
    assert set(info.dtypes()) == {"bool", *integral, "float32", "float64"}
    assert set(info.dtypes(kind=("integral", "bool"))) == {"bool", *integral}
    assert info.dtypes(kind="complex floating") == {}
    x = xp.zeros((1,) * info.capabilities()["max dimensions"])
    assert x.size == 1
    with pytest.raises(ShapeError):
        xp.zeros((1,) * (x.ndim + 1))


# -- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, "2022.12", "2024.12"])
def test_arrays_name_their_namespace(version):
    assert np.ones(2).__array_namespace__(api_version=version) is heterosis.array_api


def test_members_of_arrays():
    x = np.arange(12).reshape(2, 2, 3)
    assert x.mT.tolist() == x.asnumpy().mT.tolist()
    assert x.device == heterosis.cpu()
    assert x.to_device(x.device) is x
    assert complex(np.array(2.5)) == 2.5
    assert np.array(2.5).__complex__() == 2.5


@pytest.mark.parametrize("name", ["argsort", "sort"])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("axis", [0, -1])
def test_order_keeps_equal_elements_in_place(name, descending, axis):
    values = numpy.random.default_rng(3).integers(0, 4, (9, 7)).astype("int32")
    key = -values if descending else values
    places = numpy.argsort(key, axis, kind="stable")
    expected = places if name == "argsort" else numpy.take_along_axis(values, places, axis)
    found = getattr(xp, name)(xp.asarray(values), axis=axis, descending=descending)
    numpy.testing.assert_array_equal(found.asnumpy(), expected)


@pytest.mark.parametrize("copy", [None, True, False])
def test_reshape_copies_as_told(copy):
    x = xp.arange(6)
    y = xp.reshape(x, (2, 3), copy=copy)
    y[0, 0] = 7
    assert x[0].item() == (0 if copy else 7)


def test_asarray_takes_memory_over():
    x, outside = xp.arange(3), numpy.arange(3.0)
    assert xp.asarray(x, copy=False) is x
    shared = xp.asarray(outside, copy=False)
    outside[0] = 5
    assert shared[0].item() == 5
    assert not np.may_share_memory(xp.asarray(x, copy=True), x)


@pytest.mark.parametrize("k", [2**63, -(2**70), 1, -1])
def test_diagonals_outside_of_everything(k):
    near = max(-3, min(k, 3))
    assert xp.eye(2, k=k).tolist() == numpy.eye(2, k=near).tolist()
    for name in ("tril", "triu"):
        x = xp.ones((2, 3))
        expected = getattr(numpy, name)(numpy.ones((2, 3)), near)
        assert getattr(xp, name)(x, k=k).tolist() == expected.tolist()


def test_norms_and_ranks_of_several_matrices():
    values = numpy.random.default_rng(1).random((2, 3, 4))
    x = xp.asarray(values)
    for axis in (None, 1, (0, 2), (2, 0)):
        for keepdims in (False, True):
            found = xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=3)
            expected = numpy.linalg.vector_norm(values, axis=axis, keepdims=keepdims, ord=3)
            assert found.shape == expected.shape
            numpy.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12)
    limits = xp.asarray([0.9, 0.001], dtype=xp.float64)
    expected = numpy.linalg.matrix_rank(values, rtol=numpy.array([0.9, 0.001]))
    assert xp.linalg.matrix_rank(x, rtol=limits).tolist() == expected.tolist()


# -- programs and gradients -----------------------------------------------------------------------

PROGRAMS = {
    "statistics": lambda x: xp.var(x, axis=0, correction=1.5) + xp.cumulative_sum(x[:, 0])[-1],
    "order": lambda x: xp.sort(x, axis=-1, descending=True) * xp.asarray([1.0, 2.0, 3.0]),
    "shapes": lambda x: xp.concat([xp.permute_dims(x, (1, 0)), xp.roll(x.mT, 1)], axis=1),
    "products": lambda x: xp.vecdot(x, xp.flip(x, axis=0)) + xp.linalg.matrix_norm(x),
    "initial": lambda x: xp.cumulative_prod(x, axis=1, include_initial=True),
    "unstacked": lambda x: xp.stack([xp.exp(row) for row in xp.unstack(x)], axis=1),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_are_captured_and_differentiated(program):
    values = numpy.random.default_rng(2).random((4, 3)).astype("float32") + 0.5

    def loss(x):
        return xp.sum(program(x) ** 2)

    found = []
    for function in (loss, hybridize(loss)):
        x = np.array(values)
        x.attach_grad()
        with autograd.record():
            y = function(x)
        y.backward()
        found.append((y.item(), x.grad.asnumpy()))
    numpy.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    numpy.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-4, atol=1e-5)
    step = numpy.zeros_like(values)
    step[1, 2] = 1e-2
    difference = (loss(np.array(values + step)) - loss(np.array(values - step))).item() / 2e-2
    numpy.testing.assert_allclose(found[0][1][1, 2], difference, rtol=2e-2, atol=1e-2)


SCIPY = """
    import numpy, scipy.cluster.vq, scipy.integrate, scipy.special, scipy.stats
    from heterosis import array_api as xp
    values = numpy.random.default_rng(1).random((20, 3))
    x = xp.asarray(values)
    for function in (
        scipy.stats.zscore,
        scipy.stats.kurtosis,
        scipy.stats.gmean,
        lambda x: scipy.stats.ttest_1samp(x, 0.5).pvalue,
        lambda x: scipy.special.logsumexp(x, axis=0),
        scipy.cluster.vq.whiten,
        scipy.integrate.trapezoid,
    ):
        found, expected = function(x), function(values)
        assert type(found) is type(x), type(found)
        numpy.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-10)
    print("done")
"""


@pytest.mark.lengthy
def test_scipy_computes_with_arrays():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-c", textwrap.dedent(SCIPY)]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert found.stdout == "done\n", found.stderr


# -- faults ---------------------------------------------------------------------------------------

FAULTS = {
    "complex numbers": (lambda: xp.asarray(1j), DTypeError, "complex128 numbers"),
    "large integers": (lambda: xp.asarray(2**63), DTypeError, "integers that int64 holds"),
    "ragged": (lambda: xp.asarray([[1], [1, 2]]), ShapeError, "unequal length"),
    "a list as it is": (lambda: xp.asarray([1], copy=False), ArgumentError, "without a copy"),
    "another type as it is": (
        lambda: xp.asarray(xp.ones(2), dtype=xp.int8, copy=False),
        ArgumentError,
        "float32 become int8",
    ),
    "a reshape that copies": (
        lambda: xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False),
        ArgumentError,
        "only in a copy",
    ),
    "two kinds": (lambda: xp.result_type(xp.int32, xp.float32), DTypeError, "different kinds"),
    "numbers alone": (lambda: xp.result_type(1, 2.0), ArgumentError, "among the numbers"),
    "no kind": (lambda: xp.isdtype(xp.int32, "whole"), ArgumentError, "'whole' is no kind"),
    "finfo of integers": (lambda: xp.finfo(xp.int32), DTypeError, "no type of floats"),
    "iinfo of floats": (lambda: xp.iinfo(xp.float32), DTypeError, "no type of integers"),
    "no axis": (lambda: xp.cumulative_sum(xp.ones((2, 2))), ArgumentError, "along which axis"),
    "no matrix": (lambda: xp.matrix_transpose(xp.ones(2)), ShapeError, "expected matrices"),
    "no matrix either": (lambda: xp.ones(2).mT, ShapeError, "expected matrices"),
    "a later standard": (
        lambda: xp.ones(1).__array_namespace__(api_version="2035.12"),
        ArgumentError,
        "'2035.12'",
    ),
    "another device": (
        lambda: xp.ones(1, device=heterosis.gpu(9)),
        UnsupportedError,
        "num_gpus",
    ),
    "a stream": (
        lambda: xp.ones(1).to_device(heterosis.cpu(), stream=1),
        UnsupportedError,
        "no streams",
    ),
}


@pytest.mark.parametrize("call, error, message", FAULTS.values(), ids=FAULTS)
def test_what_cannot_be(call, error, message):
    with pytest.raises(error, match=message):
        call()
