"""What programs compute with NumPy, against NumPy written out and against compiled programs."""

import ml_dtypes
import numpy
import pytest

from heterosis import np, npx
from heterosis.capture import capture, hybridize
from heterosis.capture.captured import Argument
from heterosis.ir import Program, check, evaluate, parse
from heterosis.ir.primitives.elementwise import ADD
from heterosis.ir.program import INPUT, SCATTER, apply
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import (
    ArgumentError,
    DTypeError,
    IndexingError,
    ProgramError,
    ShapeError,
    UnsupportedError,
)  # fmt: skip
from tests.ir.made_up import made_up


def values(*shape, dtype="float32"):
    return (numpy.arange(numpy.prod(shape, dtype=int)) - 3).reshape(shape).astype(dtype)


def run(head, line, *arrays, result="%r"):
    program = parse(f"f({head}):\n  {line}\n  return {result}")
    check(program)
    (found,) = evaluate(program, arrays)
    assert found.shape == program.outputs[0].shape
    return found


X = "%0: float32[2, 3]"
x = values(2, 3)
VIEWS = {
    "reshape": ("%r: float32[3, 2, 1] = reshape(%0)", x.reshape(3, 2, 1)),
    "broadcast": ("%r: float32[4, 2, 3] = broadcast(%0)", numpy.broadcast_to(x, (4, 2, 3))),
    "transpose": ("%r: float32[3, 2] = transpose(%0, axes=(1, 0))", x.T),
    "slice": ("%r: float32[2, 2] = slice(%0, starts=(1, 2), steps=(-1, -2))", x[::-1, ::-2]),
    "slice, twice": (
        "%r: float32[3, 1] = slice(%0, starts=(1, 1), steps=(0, 1))",
        x[[1, 1, 1], 1:2],
    ),
    "slice, empty": ("%r: float32[0, 2] = slice(%0, starts=(9, 9), steps=(1, 1))", x[:0, :2]),
    "diagonal": ("%r: float32[2] = diagonal(%0, axes=(0, 1), start=(0, 1))", x.diagonal(1)),
    "diagonal, turned": (
        "%r: float32[1] = diagonal(%0, axes=(1, 0), start=(0, 1))",
        x.T.diagonal(1),
    ),
    "windows": (
        "%r: float32[2, 2, 2] = windows(%0, kernel=(2,), steps=(1,))",
        numpy.lib.stride_tricks.sliding_window_view(x, 2, -1),
    ),
    "windows, apart": (
        "%r: float32[1, 2, 2, 2] = windows(%0, kernel=(2, 2), steps=(2, 1))",
        numpy.lib.stride_tricks.sliding_window_view(x, (2, 2))[::2],
    ),
    "windows, none": (
        "%r: float32[2, 0, 4] = windows(%0, kernel=(4,), steps=(1,))", numpy.zeros((2, 0, 4)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("line, expected", VIEWS.values(), ids=VIEWS)
def test_views(line, expected):
    found = run(X, line, x)
    numpy.testing.assert_array_equal(found, expected)
    assert found.dtype == "float32"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "bfloat16", "float64"])
def test_views_keep_elements(dtype):
    given = values(2, 3, dtype=dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
    found = run(f"%0: {dtype}[2, 3]", f"%r: {dtype}[3, 2] = transpose(%0, axes=(1, 0))", given)
    assert found.dtype == given.dtype
    assert found.tobytes() == given.T.tobytes()


def test_leaves():
    program = parse(
        "f(%0: number int64[]):\n  return %0, 2.5, int8(-1), True, extent(9), float16(0.1)"
    )
    found = evaluate(program, [numpy.int64(4)])
    assert [a.dtype for a in found] == ["int64", "float32", "int8", "bool", "int64", "float16"]
    assert [a.item() for a in found[:-1]] == [4, 2.5, -1, True, 9]
    assert found[-1] == numpy.float16(0.1)
    numpy.testing.assert_array_equal(run("", "%r: int64[2, 3] = iota()"), [[0, 1, 2], [3, 4, 5]])


ROWS = numpy.array([[2, 0], [1, 1]])


def test_gather():
    table = values(3, 4)
    found = run(
        "%0: float32[3, 4], %1: int64[2, 2]", "%r: float32[2, 2, 4] = gather(%0, %1)", table, ROWS
    )
    numpy.testing.assert_array_equal(found, table[ROWS])
    both = run(
        "%0: float32[3, 4], %1: int64[2, 2]", "%r: float32[2, 2] = gather(%0, %1, %1)", table, ROWS
    )
    numpy.testing.assert_array_equal(both, table[ROWS, ROWS])


@pytest.mark.parametrize("place", [-1, 3])
def test_places_outside_are_refused(place):
    for line in (
        "%r: float32[1, 4] = gather(%0, %1)",
        "%r: float32[3, 4] = scatter(%0, %1, %2, combine=None)",
    ):
        with pytest.raises(IndexingError, match="outside of the 3 along axis 0"):
            run(
                "%0: float32[3, 4], %1: int64[1], %2: float32[1, 4]",
                line, values(3, 4), numpy.array([place]), values(1, 4),
            )  # fmt: skip


def scattered(base, places, rows, combine):
    given = (base, *places, rows)
    inputs = tuple(apply(INPUT, (), TensorType(a.shape, a.dtype.name)) for a in given)
    found = apply(SCATTER, inputs, inputs[0].type, combine=combine)
    program = Program(inputs, (found,))
    check(program)
    return evaluate(program, given)[0]


def test_scatter_writes_in_order():
    places, rows = numpy.array([1, 0, 1, 1]), values(4, 2)
    found = scattered(values(3, 2), [places], rows, None)
    numpy.testing.assert_array_equal(found, [rows[1], rows[3], values(3, 2)[2]])


def test_scatter_combines_in_order():
    rng = numpy.random.default_rng(0)
    places = [rng.integers(0, 3, (4, 5)), rng.integers(0, 2, (4, 5))]
    base, rows = rng.normal(size=(3, 2, 6)), rng.normal(size=(4, 5, 6))
    expected = base.copy()
    for i in numpy.ndindex(4, 5):
        expected[places[0][i], places[1][i]] += rows[i]
    found = scattered(base, places, rows, ADD)
    numpy.testing.assert_array_equal(found, expected)


def test_scatter_of_empty_rows():
    found = scattered(values(3, 0, 2), [numpy.array([1])], values(1, 0, 2), None)
    assert found.shape == (3, 0, 2)


def test_scatter_of_nothing():
    base = values(3, 2)
    found = scattered(base, [numpy.zeros(0, "int64")], values(0, 2), ADD)
    numpy.testing.assert_array_equal(found, base)


def test_scatter_converts():
    found = scattered(values(3), [numpy.array([1])], numpy.array([1 / 3]), None)
    numpy.testing.assert_array_equal(found, numpy.array([-3, 1 / 3, -1], "float32"))


def test_assemble():
    places = (((0, 1), (2, 1)), ((0, 3), (1, -1)))
    line = f"%r: float32[3, 5] = assemble(7.0, %0, %1, places={places}, filled=True)"
    found = run("%0: float32[2, 3], %1: float32[1, 2]", line, x, values(1, 2))
    expected = numpy.full((3, 5), 7, "float32")
    expected[::2, 1:4] = x
    expected[:1, 3:1:-1] = values(1, 2)
    numpy.testing.assert_array_equal(found, expected)


def test_sizes_are_those_of_the_arrays():
    program = parse("""
    f(%0: float32[n, m], %1: int64[2*n + 1]):
      %2: float32[2*n + 1, m] = gather(%0, %1)
      %3: float32[2*m, n] = reshape(7.0)
      %4: float32[n, m] = slice(%2, starts=(<n>, 0), steps=(1, 1))
      return %2, %4, extent(<m//2>)""")
    check(program)
    found = evaluate(program, [x, numpy.array([1, 0, 1, 1, 0])])
    numpy.testing.assert_array_equal(found[0], x[[1, 0, 1, 1, 0]])
    numpy.testing.assert_array_equal(found[1], x[[1, 1]])
    assert found[2] == 1
    with pytest.raises(ShapeError, match=r"input 1 of shape \(4,\); expected \(5,\)"):
        evaluate(program, [x, numpy.zeros(4, "int64")])


def test_sizes_follow_from_what_is_made_of_them():
    program = parse("f(%0: bool[2*n + 1, n + m]):\n  return extent(<n>), extent(<m>)")
    assert evaluate(program, [numpy.zeros((7, 5), bool)]) == (3, 2)
    with pytest.raises(ProgramError, match="do not tell"):
        evaluate(program, [numpy.zeros((6, 5), bool)])
    with pytest.raises(ProgramError, match="the size n: the shapes of the inputs do not tell"):
        evaluate(parse("f():\n  %0: int64[n] = iota()\n  return %0"), [])


def test_sizes_that_do_not_fit_are_refused():
    program = parse(
        "f(%0: float32[n]):\n  %1: float32[2] = slice(%0, starts=(3,), steps=(1,))\n  return %1"
    )
    check(program)
    assert evaluate(program, [values(5)])[0].tolist() == [0, 1]
    with pytest.raises(ProgramError, match="elements 3 to 4 of an extent of 4"):
        evaluate(program, [values(4)])


def test_what_does_not_fit_is_refused():
    program = parse(f"f({X}):\n  return %0")
    with pytest.raises(ArgumentError, match="2 arrays; expected 1"):
        evaluate(program, [x, x])
    with pytest.raises(ShapeError, match=r"input 0 of shape \(3, 2\)"):
        evaluate(program, [x.T])
    with pytest.raises(DTypeError, match="input 0 of float64; expected float32"):
        evaluate(program, [x.astype("float64")])
    given = apply(INPUT, (), TensorType((), "bool"))
    with pytest.raises(UnsupportedError, match="mine has no meaning"):
        evaluate(Program((given,), (apply(made_up("mine"), (given,), given.type),)), [True])


HALVES = """
f(%0: float16[3]):
  %1: float16[] = sum(%0, axes=(0,))
  %2: float16[] = multiply(%1, float16(0.001))
  %3: float16[] = nearest(%2)
  %4: float16[] = nearest(%1)
  %5: float16[] = multiply(%4, float16(0.001))
  %6: float16[1] = reshape(%1)
  %7: float16[2] = gather(%6, %8)
  return %3, %5, %1, %7"""


def test_elements_of_16_bits_are_rounded_once():
    """Beyond 65504, there are no numbers of float16; float32 has them."""
    text = HALVES.replace("[3]):", "[3], %8: int64[2]):")
    program = parse(text)
    check(program)
    given = numpy.full(3, 60000, "float16"), numpy.zeros(2, "int64")
    product, rounded, total, gathered = evaluate(program, given)
    assert product == numpy.float16(3 * float(given[0][0]) * numpy.float32(0.001))
    assert rounded == total == numpy.inf
    assert gathered.tolist() == [numpy.inf] * 2
    assert {a.dtype.name for a in (product, rounded, total, gathered)} == {"float16"}


def test_conversions_to_16_bits_round():
    program = parse("""
    f(%0: float32[1]):
      %1: bfloat16[1] = to_bfloat16(%0)
      %2: float32[1] = to_float32(%1)
      return %2""")
    check(program)
    assert evaluate(program, [numpy.array([1.001], "float32")])[0] == 1.0


CAPTURED = {
    "elementwise": lambda a, b: np.where(a > 0, np.exp(a) / 3, np.abs(b) ** 0.5),
    "numbers": lambda a, b: (a * 2 + 1).astype("int32") // 3,
    "statistics": lambda a, b: (a.mean(axis=0), b.std(), np.cumsum(a, axis=1), a.argmax(axis=1)),
    "softmax": lambda a, b: npx.softmax(a) + npx.log_softmax(b, axis=0),
    "products": lambda a, b: np.dot(a, b.T) + np.einsum("ij,kj->ki", a, b),
    "convolution": lambda a, b: npx.convolution(
        a.reshape(1, 1, 6, 6), b[:2].reshape(3, 1, 2, 2), kernel=(2, 2), num_filter=3, no_bias=True
    ),
    "pooling": lambda a, b: npx.pooling(a.reshape(1, 1, 6, 6), kernel=(3, 2), stride=(2, 2)),
    "indexing": lambda a, b: (a[np.array([3, 0, 3])], np.concatenate([a, b], axis=1)[1::2, ::-1]),
    "sorting": lambda a, b: (np.sort(a, axis=0), np.argsort(b), npx.topk(a, k=2)),
    "normalization": lambda a, b: npx.layer_norm(a, b[0], b[1]),
    "linear algebra": lambda a, b: np.linalg.inv(np.dot(a, a.T) / 6 + 3 * np.eye(6)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("function", CAPTURED.values(), ids=CAPTURED)
def test_captured_programs_compute_what_they_compute_compiled(function, dtype):
    if dtype == "float16" and function is CAPTURED["linear algebra"]:
        dtype = "float32"  # the operation takes no others
    rng = numpy.random.default_rng(3)
    given = [np.array(rng.normal(size=(6, 6)), dtype=dtype) for _ in range(2)]
    captured = capture(function, tuple(given), {})
    sources = [given[s.position] if isinstance(s, Argument) else s.array for s in captured.sources]
    found = evaluate(captured.program, [array.asnumpy() for array in sources])
    results = hybridize(function)(*given)
    results = results if isinstance(results, tuple) else (results,)
    tolerance = {"float16": 2e-3, "float32": 2e-5, "float64": 1e-11}[dtype]
    for array, expected in zip(found, results, strict=True):
        assert array.dtype == expected.asnumpy().dtype
        numpy.testing.assert_allclose(array, expected.asnumpy(), tolerance, tolerance)
