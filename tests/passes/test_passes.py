"""Printed programs before and after the passes, and that results stay what they were."""

import math
from textwrap import dedent

import numpy
import pytest

import heterosis
from heterosis import np, npx
from heterosis.ir import checking, views
from heterosis.ir.program import ASSEMBLE, INPUT, Program, apply, constant, extent
from heterosis.ir.types import TensorType
from heterosis.ops import REGISTRY
from heterosis.ops.rules import cast
from heterosis.passes import pipeline
from heterosis.passes.common_subexpressions import shared
from heterosis.passes.fold import FOLD
from heterosis.passes.pipeline import optimized
from heterosis.passes.rewrite import rewritten
from heterosis.passes.simplify import SIMPLIFY

NAMES = ("add", "subtract", "multiply", "true_divide", "power", "exp", "copy", "less")
f = {name: REGISTRY[name].operation for name in NAMES}


def array(*shape, dtype="float32"):
    return apply(INPUT, (), TensorType(shape, dtype))


def simplified(inputs, *outputs):
    return str(rewritten(Program(tuple(inputs), outputs, "f"), SIMPLIFY))


def golden(text):
    return dedent(text).strip()


# -- simplify: (a program of x, what its one line becomes) ----------------------------------------


def over(below, value, starts, steps):
    """What stands there once `value` has been written over `below`."""
    places = (((0,) * below.ndim, (1,) * below.ndim), (starts, steps))
    return apply(ASSEMBLE, (below, value), below.type, places=places, filled=False)


x, wide, cube = array(3, 4), array(3, 4, dtype="float64"), array(3, 1, 4)
byte, whole = array(3, 4, dtype="int8"), array(3, 4, dtype="int32")
number = apply(INPUT, (), TensorType((), "float32"))

VIEWS = [
    (x, views.reshape(views.reshape(x, (12,)), (3, 4)), "%0"),
    (x, views.reshape(views.reshape(x, (12,)), (2, 6)), "reshape(%0)"),
    (x, views.transpose(views.transpose(x, (1, 0)), (1, 0)), "%0"),
    (cube, views.transpose(cube, (1, 0, 2)), "reshape(%0)"),
    (
        cube,
        views.transpose(views.transpose(cube, (2, 1, 0)), (1, 0, 2)),
        "transpose(%0, axes=(1, 2, 0))",
    ),
    (x, views.broadcast(views.broadcast(x, (2, 3, 4)), (5, 2, 3, 4)), "broadcast(%0)"),
    (x, views.slice_(x, (0, 0), (1, 1), (3, 4)), "%0"),
    (x, views.slice_(x, (2, 3), (-1, -1), (3, 4)), "slice(%0, starts=(2, 3), steps=(-1, -1))"),
    (
        x,
        views.slice_(views.slice_(x, (2, 0), (-1, 2), (3, 2)), (1, 1), (1, 1), (2, 1)),
        "slice(%0, starts=(1, 2), steps=(-1, 2))",
    ),
    (
        number,
        views.transpose(views.reshape(views.broadcast(number, (4,)), (2, 2)), (1, 0)),
        "broadcast(%0)",
    ),
    (number, views.reshape(number, (1, 1)), "broadcast(%0)"),
    (x, over(f["exp"](x), x, (0, 0), (1, 1)), "%0"),
    (x, over(x, f["exp"](x), (0, 0), (1, 1)), "exp(%0)"),
    (
        x,
        over(x, x, (1, 0), (-1, 1)),
        "assemble(%0, %0, places=(((0, 0), (1, 1)), ((1, 0), (-1, 1))), filled=False)",
    ),
    (x, over(x, x, (2, 0), (-1, 1)), "slice(%0, starts=(2, 0), steps=(-1, 1))"),
]  # fmt: skip
CASTS = [
    (x, cast(cast(x, "float64"), "float32"), "%0"),
    (wide, cast(cast(wide, "float32"), "float64"), "to_float64(to_float32(%0))"),
    (byte, cast(cast(byte, "int32"), "float32"), "to_float32(%0)"),
    (whole, cast(cast(whole, "float32"), "float64"), "to_float64(to_float32(%0))"),
    (x, cast(cast(x, "int32"), "float32"), "to_float32(to_int32(%0))"),
    (x, f["exp"](f["copy"](f["exp"](x))), "exp(exp(%0))"),
    (x, f["copy"](x), "copy(%0)"),
]
NEUTRAL = [
    (x, f["multiply"](x, 1), "%0"),
    (x, f["multiply"](1.0, x), "%0"),
    (x, f["true_divide"](x, 1), "%0"),
    (x, f["power"](x, 1), "%0"),
    (x, f["add"](x, -0.0), "%0"),
    (x, f["add"](x, 0.0), "add(%0, broadcast(to_float32(weak float64(0.0))))"),  # -0.0 becomes 0.0
    (x, f["subtract"](x, 0), "%0"),
    (x, f["subtract"](x, -0.0), "subtract(%0, broadcast(to_float32(weak float64(-0.0))))"),
    (whole, f["add"](0, whole), "%0"),
    (whole, f["true_divide"](whole, 1), "to_float32(%0)"),
]


def _nested(program):
    """The program's one result as an expression."""
    lines = str(program).splitlines()
    names = {}
    for line in lines[1:-1]:
        name, expression = line.strip().split(": ", 1)[0], line.split(" = ", 1)[1]
        for known in sorted(names, key=len, reverse=True):
            expression = expression.replace(known, names[known])
        names[name] = expression
    result = lines[-1].removeprefix("  return ")
    return names.get(result, result)


@pytest.mark.parametrize("given, value, expected", VIEWS + CASTS + NEUTRAL)
def test_simplified(given, value, expected):
    rules = SIMPLIFY + tuple(
        rule for rule in FOLD if expected == "%0" or "to_float32(%0)" in expected
    )
    assert _nested(rewritten(Program((given,), (value,)), rules)) == expected


def int_(value):
    return constant(value, "int64", weak=True)


# -- fold ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, expected",
    [
        (f["add"](f["add"](int_(1), int_(2)), f["add"](int_(3), int_(4))), "int64(10)"),
        (f["multiply"](constant(0.1, "float32"), constant(3, "float32")), "0.30000001192092896"),
        (f["true_divide"](constant(1, "float32"), constant(0, "float32")), "inf"),
        (f["add"](constant(2**31 - 1, "int32"), constant(1, "int32")), "int32(-2147483648)"),
        (f["less"](constant(1, "int32"), constant(2, "int32")), "True"),
        (cast(constant(math.nan, "float32"), "int32"), "int32(-2147483648)"),
        (cast(constant(1e-9, "float64"), "float16"), "float16(0.0)"),
        (f["exp"](constant(1.0, "float32")), "exp(1.0)"),  # the code's own digits
        (
            f["true_divide"](constant(2.0, "float32"), extent(4)),
            "true_divide(2.0, to_float32(extent(4)))",
        ),
    ],
)  # fmt: skip
def test_folded(value, expected):
    assert _nested(rewritten(Program((), (value,)), FOLD)) == expected


def test_arithmetic_on_repeated_numbers_is_done_once():
    ones = views.broadcast(constant(1.0, "float32"), (2, 3))
    value = f["exp"](views.transpose(f["add"](ones, ones), (1, 0)))
    expected = golden("""
        f():
          %0: float32[] = exp(2.0)
          %1: float32[3, 2] = broadcast(%0)
          return %1
    """)
    assert str(optimized(Program((), (value,), "f"))) == expected


# -- common sub-expressions -----------------------------------------------------------------------


def test_equal_expressions_are_one():
    a, b = array(4), array(4)
    value = f["multiply"](f["exp"](f["add"](a, b)), f["exp"](f["add"](a, b)))
    expected = golden("""
        f(%0: float32[4], %1: float32[4]):
          %2: float32[4] = add(%0, %1)
          %3: float32[4] = exp(%2)
          %4: float32[4] = multiply(%3, %3)
          return %4
    """)
    assert str(shared(Program((a, b), (value,), "f"))) == expected


@pytest.mark.parametrize("one, other", [(0.0, -0.0), (1, True), (1, 1.0)])
def test_numbers_that_compare_equal_stay_apart(one, other):
    values = tuple(constant(n, "float32") for n in (one, other))
    before = Program((), values)
    assert shared(before).outputs == values


def test_inputs_stay_apart():
    a, b = array(4), array(4)
    assert shared(Program((a, b), (a, b))).outputs == (a, b)


# -- all passes -----------------------------------------------------------------------------------


def test_a_program_through_all_passes():
    a = array(3, 4)
    scaled = f["multiply"](f["multiply"](a, f["add"](int_(1), 1)), f["true_divide"](int_(2), 2))
    again = f["multiply"](cast(cast(a, "float64"), "float32"), 2)
    expected = golden("""
        f(%0: float32[3, 4]):
          %1: float32[3, 4] = broadcast(2.0)
          %2: float32[3, 4] = multiply(%0, %1)
          %3: float32[3, 4] = add(%2, %2)
          return %3
    """)
    assert str(optimized(Program((a,), (f["add"](scaled, again),), "f"))) == expected


def _chosen(x, depth):
    if depth == 0:
        return x * 2
    return npx.cond(x.sum() > depth, lambda: _chosen(x + 1, depth - 1), lambda: x - 1)


def test_time_grows_with_the_depth_of_branches_and_not_with_its_square(monkeypatch):
    counts = {}

    def count(module, name):
        run = getattr(module, name)

        def counted(program):
            counts[name] += 1
            return run(program)

        monkeypatch.setattr(module, name, counted)

    count(pipeline, "_optimized_once")
    count(checking, "check")
    found = []
    for depth in (4, 8):
        counts |= {"_optimized_once": 0, "check": 0}
        run = heterosis.hybridize(lambda x, depth=depth: _chosen(x, depth))
        assert run(np.zeros(3)).tolist() == [-1, -1, -1]
        found.append(dict(counts))
    assert all(deep <= 2.5 * found[0][name] for name, deep in found[1].items()), found


def test_results_do_not_come_to_share_memory_with_arguments():
    @heterosis.hybridize
    def same(a):
        return a * 1, a.reshape(-1), (a + a) * 1

    a = np.ones((2, 2))
    product, view, _ = same(a)
    product[:] = 5
    assert (a.asnumpy() == 1).all()
    view[:] = 7
    assert (a.asnumpy() == 7).all()


def test_passes_keep_special_numbers():
    @heterosis.hybridize
    def through(a):
        return (a * 1.0 + 0.0 - 0.0) / 1, (a + -0.0) ** 1, a + 0.0

    values = numpy.array([0.0, -0.0, math.nan, math.inf, -math.inf, 1e-45], "float32")
    with numpy.errstate(all="ignore"):
        expected = (values + numpy.float32(0), values, values + numpy.float32(0))
    for found, wanted in zip(through(np.array(values)), expected, strict=True):
        numpy.testing.assert_array_equal(found.asnumpy(), wanted)
        numpy.testing.assert_array_equal(
            numpy.signbit(found.asnumpy()[:2]), numpy.signbit(wanted[:2])
        )
