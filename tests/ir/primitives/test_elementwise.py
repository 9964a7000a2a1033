"""What elementwise primitives mean, and which types they take: against the code for them."""

import itertools
import zlib

import ml_dtypes
import numpy
import pytest
import scipy.special

from heterosis import _core, np
from heterosis.backends.native.codegen.tables import ELEMENTS, element
from heterosis.ir.primitives import elementwise as e
from heterosis.ir.primitives import random_bits, random_loops, real
from heterosis.ir.primitives.conversions import TO_BFLOAT16, TO_FLOAT16, TO_INT8, TO_INT32
from heterosis.ir.program import INPUT, Node, Program, apply
from heterosis.ir.strided import Strided
from heterosis.ir.types import TensorType, is_float, numpy_dtype
from heterosis.ops import eager
from heterosis.runtime.errors import ArgumentError, DTypeError, ShapeError
from tests.capture.special_values import special

element(e.ADD)  # the table is filled when something is looked up
PRIMITIVES = {primitive.name: primitive for primitive in ELEMENTS}
SHAPES = ((), (0,), (37,), (3, 70))

# What operands are taken from, where the usual numbers would leave the domain.
DOMAINS = {
    real.ARCSIN: [(-1, 1)],
    real.ARCCOS: [(-1, 1)],
    real.ARCCOSH: [(1, 9)],
    real.ARCTANH: [(-1, 1)],
    real.ERFINV: [(-1, 1)],
    real.LDEXP: [(-4, 4), (-300, 300)],
    e.LEFT_SHIFT: [(-99, 99), (-3, 70)],
    e.RIGHT_SHIFT: [(-99, 99), (-3, 70)],
    random_bits.RANDOM_BELOW: [(-(2**63), 2**63 - 1), (0, 1000)],
    random_loops.LOG_GAMMA_VARIATE: [(0, 999), (-(2**63), 2**63 - 1), (0, 3)],
    random_loops.POISSON: [(0, 999), (-(2**63), 2**63 - 1), (0, 40)],
    random_loops.BINOMIAL: [(0, 999), (-(2**63), 2**63 - 1), (0, 90), (0, 1)],
}
ANY_BITS = {
    primitive
    for name, primitive in PRIMITIVES.items()
    if name.startswith(("random_block", "unit", "open_unit", "normal", "from_sort_key"))
}
# Near zeros, where terms cancel, less is exact than the last places.
ABSOLUTE = dict.fromkeys(
    (
        real.GAMMALN,
        random_bits.NORMAL_FLOAT32,
        random_bits.NORMAL_FLOAT64,
        random_loops.LOG_GAMMA_VARIATE,
    ),
    8.0,
)
ULPS = {real.GAMMA: 16.0, real.GAMMALN: 16.0, real.ERFINV: 8.0}


def combinations(primitive):
    """The element types that operands may have together."""
    sets = primitive.types.operands
    choices = [allowed for allowed in sets if isinstance(allowed, tuple)]
    for chosen in itertools.product(*choices):
        given = []
        left = iter(chosen)
        for allowed in sets:
            given.append(given[allowed] if isinstance(allowed, int) else next(left))
        yield tuple(given)


def node_of(primitive, dtypes, shape):
    inputs = tuple(apply(INPUT, (), TensorType(shape, dtype)) for dtype in dtypes)
    untyped = Node(primitive, inputs, {}, ())
    return Node(primitive, inputs, {}, primitive.types(untyped))


def compiled(node, arrays):
    """The result of the machine code."""
    program = Program(node.inputs, node.outputs)
    layouts = [Strided.contiguous(a.shape) for a in arrays]
    plan = eager.plan(program, layouts, None, views=False, freely=False)
    (result,) = _core.run_plan(plan, [np.array(a, dtype=a.dtype) for a in arrays])
    return result.asnumpy()


def ordinary(primitive, dtypes, shape):
    """Numbers in the primitive's domain."""
    rng = numpy.random.default_rng(zlib.crc32(repr((primitive.name, dtypes, shape)).encode()))
    everything = [(-(2**63), 2**63 - 1)] * len(dtypes) if primitive in ANY_BITS else None
    bounds = everything or DOMAINS.get(primitive, [(-9, 9)] * len(dtypes))
    return [numbers(rng, dtype, shape, *b) for dtype, b in zip(dtypes, bounds, strict=True)]


def numbers(rng, dtype, shape, low, high):
    if dtype == "bool":
        return numpy.asarray(rng.random(shape) < 0.5)
    if is_float(dtype):
        return numpy.asarray(rng.uniform(low, high, shape)).astype(numpy_dtype(dtype))
    ends = numpy.iinfo(dtype)
    low, high = max(low, ends.min), min(high, ends.max)
    return numpy.asarray(rng.integers(low, high, shape, "int64", endpoint=True)).astype(dtype)


def extreme(dtypes):
    """All special values with each other; the fourth operand goes with the first."""
    lists = [special(dtype) for dtype in dtypes[:3]]
    grids = [grid.reshape(-1) for grid in numpy.meshgrid(*lists, indexing="ij")]
    return grids + [special(d)[numpy.arange(grids[0].size) % 5] for d in dtypes[3:]]


def assert_equal(primitive, got, wanted):
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if not is_float(got.dtype.name):
        numpy.testing.assert_array_equal(got, wanted)
        return
    unit = float(ml_dtypes.finfo(got.dtype).eps)
    tiny = float(ml_dtypes.finfo(got.dtype).smallest_subnormal)
    a, b = got.astype("float64"), wanted.astype("float64")
    if primitive.exact:
        numpy.testing.assert_array_equal(a, b)
        numpy.testing.assert_array_equal(*(numpy.signbit(x[~numpy.isnan(x)]) for x in (a, b)))
        return
    bound = 1.0 if got.dtype.itemsize == 2 else ULPS.get(primitive, 4.0)
    least = max(tiny * bound, unit * ABSOLUTE.get(primitive, 0.0))
    numpy.testing.assert_allclose(a, b, rtol=unit * bound, atol=least)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_code_does_what_is_meant(name):
    primitive = PRIMITIVES[name]
    for dtypes, shape in itertools.product(combinations(primitive), SHAPES):
        node, arrays = node_of(primitive, dtypes, shape), ordinary(primitive, dtypes, shape)
        (wanted,) = primitive.evaluate(node, *arrays)
        assert_equal(primitive, compiled(node, arrays), wanted)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_special_values(name):
    primitive = PRIMITIVES[name]
    for dtypes in combinations(primitive):
        arrays = extreme(dtypes)
        node = node_of(primitive, dtypes, arrays[0].shape)
        (wanted,) = primitive.evaluate(node, *arrays)
        assert_equal(primitive, compiled(node, arrays), wanted)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_primitive_says_what_it_is(name):
    primitive = PRIMITIVES[name]
    assert primitive.about.endswith(".") and primitive.meaning and primitive.types
    assert len(ELEMENTS) == len(PRIMITIVES), "two primitives share a name"


# -- types ----------------------------------------------------------------------------------------


def types(primitive, *operands):
    """The result's type for operands of these (element type, shape)."""
    inputs = tuple(apply(INPUT, (), TensorType(shape, dtype)) for dtype, shape in operands)
    (found,) = primitive.types(Node(primitive, inputs, {}, ()))
    return found


def test_types_of_results():
    here = (2, 3)
    assert types(e.ADD, ("bool", here), ("bool", here)) == TensorType(here, "bool")
    assert types(e.LESS, ("int8", here), ("int8", here)) == TensorType(here, "bool")
    operands = ("bool", here), ("float16", here), ("float16", here)
    assert types(e.SELECT, *operands) == TensorType(here, "float16")
    assert types(real.LDEXP, ("float64", ()), ("int64", ())) == TensorType((), "float64")
    assert types(real.EXPONENT, ("bfloat16", (0,))) == TensorType((0,), "int32")
    assert types(TO_INT8, ("float64", here)) == TensorType(here, "int8")


REFUSED = [
    (e.SUBTRACT, [("bool", ()), ("bool", ())], DTypeError, "operand 0 is of bool; expected int8"),
    (e.ADD, [("int8", ()), ("int32", ())], DTypeError, "operand 1 is of int32; expected int8"),
    (e.SELECT, [("int8", ())] + [("int8", ())] * 2, DTypeError, "operand 0 is of int8"),
    (real.EXP, [("int32", ())], DTypeError, "expected float16 or bfloat16 or float32 or float64"),
    (e.BITWISE_OR, [("float32", ())] * 2, DTypeError, "bitwise_or: operand 0 is of float32"),
    (real.LDEXP, [("float32", ()), ("int32", ())], DTypeError, "expected int64"),
    (e.ADD, [("int8", (2,)), ("int8", (1,))], ShapeError, r"shapes \(2,\) and \(1,\)"),
    (e.ADD, [("int8", ())], ArgumentError, "1 operands; expected 2"),
]


@pytest.mark.parametrize("primitive, operands, error, message", REFUSED)
def test_types_that_do_not_go_together(primitive, operands, error, message):
    with pytest.raises(error, match=message):
        types(primitive, *operands)


# -- meanings -------------------------------------------------------------------------------------


def meant(primitive, *arrays):
    arrays = [numpy.asarray(array) for array in arrays]
    dtypes = [array.dtype.name for array in arrays]
    return primitive.evaluate(node_of(primitive, dtypes, arrays[0].shape), *arrays)[0]


def test_elements_of_16_bits_are_rounded_once():
    # By way of float32, this would round to the even neighbour, 0.
    just_above_half = 2.0**-25 * (1 + 2.0**-30)
    assert meant(TO_FLOAT16, just_above_half) == 2.0**-24
    assert meant(TO_BFLOAT16, numpy.int64(2**40 + 2**32 + 1)) == 2.0**40 + 2.0**33
    # Of the product's digits, none is lost before the only rounding.
    a = numpy.float16(1 + 2.0**-10)
    assert meant(e.MULTIPLY, a, a) == numpy.float16(float(a) * float(a))
    assert meant(real.EXP, numpy.float16(9.5)) == numpy.float16(numpy.exp(9.5))


def test_integers_wrap():
    lowest = numpy.int8(-128)
    assert meant(e.NEGATIVE, lowest) == meant(e.ABSOLUTE, lowest) == -128
    assert meant(e.FLOOR_DIVIDE, lowest, numpy.int8(-1)) == -128
    assert meant(e.POWER, numpy.int8(3), numpy.int8(5)) == 243 - 256
    assert [meant(e.POWER, numpy.int8(b), numpy.int8(-3)) for b in (-2, -1, 0, 1, 2)] == [
        0, -1, 0, 1, 0,
    ]  # fmt: skip
    assert [meant(e.MOD, numpy.int32(x), numpy.int32(0)) for x in (-1, 0, 5)] == [0, 0, 0]


def test_floats_out_of_range_become_the_lowest_integer():
    for number in (numpy.nan, numpy.inf, -numpy.inf, 1e300, 2.0**31):
        assert meant(TO_INT32, numpy.float64(number)) == -(2**31)
        assert meant(TO_INT8, numpy.float64(number)) == 0
    assert meant(TO_INT8, numpy.float32(300.9)) == 300 - 256


def test_known_bits():
    """Philox 2x32-10: counter 0 and key 0 give the published words."""
    word = int(meant(random_bits.RANDOM_BLOCK, numpy.int64(0), numpy.int64(0))) & (1 << 64) - 1
    assert (word >> 32, word & 0xFFFFFFFF) == (0xFF1DAE59, 0x6CD10DF2)


def test_special_functions():
    x = numpy.concatenate([numpy.linspace(-6, 6, 97), [1e-9, 1e-300, 30.5, 171.0, -20.3, 1e10]])
    for primitive, name in ((real.ERF, "erf"), (real.GAMMA, "gamma"), (real.GAMMALN, "gammaln")):
        wanted = getattr(scipy.special, name)(x)
        numpy.testing.assert_allclose(meant(primitive, x), wanted, rtol=1e-13, atol=1e-14)
    y = numpy.concatenate([numpy.linspace(-1, 1, 97), 1 - 2.0 ** -numpy.arange(2, 53), [1e-300]])
    wanted = scipy.special.erfinv(y)
    numpy.testing.assert_allclose(meant(real.ERFINV, y), wanted, rtol=1e-13)
