"""Operations on elements: arithmetic, comparisons, logic, bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy

from heterosis import _core
from heterosis.ir.primitives import elementwise as primitives
from heterosis.ir.primitives import real as real_primitives
from heterosis.ir.primitives.conversions import COPY
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import Value, apply, constant
from heterosis.ir.types import DTYPES, FLOATS, INTEGERS, TensorType, is_float, is_signed
from heterosis.ops.record import operation
from heterosis.ops.rules import (
    broadcast_all,
    cast,
    comparable,
    elementwise,
    floating,
    result_type,
    side,
)
from heterosis.ops.samples import NUMBERS, WHOLE, Case, Samples, elementwise_cases
from heterosis.runtime.errors import DTypeError

# Operations on one array, and on two, or an array and a number.
Unary: TypeAlias = "_core.Operation[[Value], Value]"
Binary: TypeAlias = "_core.Operation[[Value | float, Value | float], Value]"

# What a rule makes of the operands: (type they are converted to, type of the result).
Rule = Callable[[str, str], tuple[str, str]]


def same(name: str, dtype: str) -> tuple[str, str]:
    """Any type to itself."""
    return dtype, dtype


def real(name: str, dtype: str) -> tuple[str, str]:
    """Functions of real numbers: integers become floats."""
    return floating(dtype), floating(dtype)


def truth(name: str, dtype: str) -> tuple[str, str]:
    """Comparisons: any type to bool."""
    return dtype, "bool"


def logical(name: str, dtype: str) -> tuple[str, str]:
    """Everything counts as true or false."""
    return "bool", "bool"


def real_to_truth(name: str, dtype: str) -> tuple[str, str]:
    """Questions about real numbers."""
    return floating(dtype), "bool"


def no_bool(name: str, dtype: str) -> tuple[str, str]:
    """Arithmetic that has no meaning for truth values."""
    if dtype == "bool":
        raise DTypeError(
            f"{name}: not defined for bool; use np.logical_not or np.logical_xor, "
            "or convert with .astype('int32')."
        )
    return dtype, dtype


def counting(name: str, dtype: str) -> tuple[str, str]:
    """Arithmetic that counts truth values as the numbers 0 and 1."""
    dtype = "int8" if dtype == "bool" else dtype
    return dtype, dtype


def integral(name: str, dtype: str) -> tuple[str, str]:
    """Bits of integers, or truth values."""
    if is_float(dtype):
        raise DTypeError(f"{name}: needs integers or bools, and got {dtype}; convert with .astype.")
    return dtype, dtype


def whole(name: str, dtype: str) -> tuple[str, str]:
    """Arithmetic of integers; truth values count as numbers."""
    return counting(name, integral(name, dtype)[0])


_DTYPES: dict[Rule, tuple[str, ...]] = {
    no_bool: NUMBERS,
    integral: WHOLE,
    whole: WHOLE,
    real: ("int32", *FLOATS),
}
_DTYPES |= dict.fromkeys((same, counting), DTYPES)
_DTYPES |= dict.fromkeys((truth, logical, real_to_truth), DTYPES)

# For the many operations that share their loops with others: a scalar, vectors and their rests.
BRIEF = {
    1: tuple(Case((shape,)) for shape in ((), (0,), (37,), (3, 70))),
    2: tuple(
        Case(pair) for pair in (((), ()), ((3, 70), (3, 70)), ((2, 1, 3), (5, 1)), ((37,), None))
    ),
}


# MXNet's operators whose names are not `_npi_<name>`; None where it has none.
_MXNET_NAMES = {
    **{name: name for name in ("rsqrt", "rcbrt", "erf", "erfinv", "gamma", "gammaln")},
    "invert": "_npi_bitwise_not",
    **dict.fromkeys(("floor_divide", "fmod", "positive", "fabs", "exp2", "signbit", "spacing")),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "gcd")),
    **dict.fromkeys(("left_shift", "right_shift")),
}


def _register(
    name: str,
    function: Callable[..., Any],
    samples: Samples,
    reference: Callable[..., Any] | None,
    facts: dict[str, Any],
) -> Any:
    operator = _MXNET_NAMES.get(name, f"_npi_{name}")
    facts = {"names": {"mxnet": operator} if operator else {}} | facts
    return operation(name=name, numpy=reference, samples=samples, **facts)(function)


def unary(
    primitive: Elementwise,
    rule: Rule,
    documentation: str,
    *,
    name: str | None = None,
    domain: Sequence[Any] = (-4, 4),
    dtypes: tuple[str, ...] | None = None,
    cases: Sequence[Case] = BRIEF[1],
    reference: Callable[..., Any] | None = None,
    **facts: Any,
) -> Unary:
    """Register the operation on one array that is `primitive`, whose meaning is its reference if
    there is no other."""
    name = name or primitive.name

    def function(x: Value) -> Value:
        return elementwise(primitive, (x,), *rule(name, result_type(x)))

    function.__doc__ = documentation
    samples = Samples(cases, domain, dtypes or _DTYPES[rule])
    made: Unary = _register(name, function, samples, reference or primitive.meaning, facts)
    return made


def binary(
    primitive: Elementwise,
    rule: Rule,
    documentation: str,
    *,
    name: str | None = None,
    domain: Sequence[Any] = (-4, 4),
    dtypes: tuple[str, ...] | None = None,
    cases: Sequence[Case] = BRIEF[2],
    reference: Callable[..., Any] | None = None,
    **facts: Any,
) -> Binary:
    """Register the operation on two arrays, or an array and a number, that is `primitive`."""
    name = name or primitive.name

    def function(x1: Value, x2: Value) -> Value:
        if rule is truth:
            return _compared(primitive, *comparable(x1, x2))
        return elementwise(primitive, (x1, x2), *rule(name, result_type(x1, x2)))

    function.__doc__ = documentation
    samples = Samples(cases, domain, dtypes or _DTYPES[rule])
    facts["compares"] = rule is truth
    made: Binary = _register(name, function, samples, reference or primitive.meaning, facts)
    return made


def _compared(primitive: Elementwise, x1: Value, x2: Value) -> Value:
    """A comparison. No type holds all integers of uint64 and of a signed type, so these are
    compared as unsigned ones, but for those below zero."""
    dtype = result_type(x1, x2)
    if not is_float(dtype) or any(is_float(x.dtype) for x in (x1, x2)):
        return elementwise(primitive, (x1, x2), dtype, "bool")
    signed, lower_first = (x1, (-1, 0)) if is_signed(x1.dtype) else (x2, (0, -1))
    below = elementwise(primitives.LESS, (signed, constant(0, signed.dtype)), signed.dtype, "bool")
    found = elementwise(primitive, (x1, x2), "uint64", "bool")
    return select(below, constant(bool(primitive.meaning(*lower_first)), "bool"), found)


METHOD = ("np", "ndarray")  # where users find what is a function and a method
_DIVISION = ((-9, 9), (0.5, 4))

# -- arithmetic -----------------------------------------------------------------------------------

# The samples of every shape class: all others share its loops.
add = binary(primitives.ADD, same, "`x1 + x2`.", cases=elementwise_cases(2))
subtract = binary(primitives.SUBTRACT, no_bool, "`x1 - x2`.")
multiply = binary(primitives.MULTIPLY, same, "`x1 * x2`.")
true_divide = binary(
    real_primitives.TRUE_DIVIDE,
    real,
    "`x1 / x2`, always a float.",
    domain=((-4, 4), (0.5, 4)),
    aliases=("divide",),
)
floor_divide = binary(
    primitives.FLOOR_DIVIDE,
    counting,
    "`x1 // x2`, rounded down. Integers divided by zero give 0.",
    piecewise_constant="a whole number, with steps between",
    domain=_DIVISION,
)
mod = binary(
    primitives.MOD,
    counting,
    "`x1 % x2`, with the sign of `x2`. Integers modulo zero give 0.",
    aliases=("remainder",),
    domain=_DIVISION,
)
fmod = binary(
    primitives.FMOD,
    counting,
    "The remainder of `x1 / x2` with the sign of `x1`.",
    domain=_DIVISION,
)
power = binary(
    primitives.POWER,
    counting,
    "`x1 ** x2`. Integers stay integers: negative exponents give `1 / x1`, rounded to zero.",
    domain=((0.5, 4), (0, 3)),
    reference=numpy.power,
    aliases=("pow",),
)
negative = unary(primitives.NEGATIVE, no_bool, "`-x`.")
positive = unary(COPY, no_bool, "`+x`: a copy.", name="positive", reference=numpy.positive)
absolute = unary(
    primitives.ABSOLUTE,
    same,
    "The distance from zero.",
    aliases=("abs",),
    public=METHOD,
)
fabs = unary(
    primitives.ABSOLUTE, real, "The distance from zero, a float.", name="fabs", reference=numpy.fabs
)
sign = unary(
    primitives.SIGN,
    no_bool,
    "-1, 0 or 1.",
    public=METHOD,
    piecewise_constant="one of three numbers",
)
maximum = binary(primitives.MAXIMUM, same, "The larger element; NaN if either is.")
minimum = binary(primitives.MINIMUM, same, "The smaller element; NaN if either is.")


def _unless_nan(choose: Callable[[Value, Value], Value], x1: Value, x2: Value) -> Value:
    """`choose` of two elements, or the other one where one is NaN."""
    chosen = choose(x1, x2)
    if not is_float(chosen.dtype):
        return chosen
    x1, x2 = cast(x1, chosen.dtype), cast(x2, chosen.dtype)
    return select(isnan(x2), x1, select(isnan(x1), x2, chosen))


@operation(numpy=numpy.fmax, samples=Samples(BRIEF[2], dtypes=("int32", "float32")))
def fmax(x1: Value, x2: Value) -> Value:
    """The larger element; NaN only if both are."""
    return _unless_nan(maximum, x1, x2)


@operation(numpy=numpy.fmin, samples=Samples(BRIEF[2], dtypes=("int32", "float32")))
def fmin(x1: Value, x2: Value) -> Value:
    """The smaller element; NaN only if both are."""
    return _unless_nan(minimum, x1, x2)


@operation(
    numpy=numpy.square,
    public=METHOD,
    names={"mxnet": "_npi_square"},
    samples=Samples(BRIEF[1]),
    gradient=lambda g, y, x: multiply(g, add(x, x)),
)
def square(x: Value) -> Value:
    """`x * x`."""
    return multiply(x, x)


@operation(
    numpy=numpy.divmod,
    samples=Samples(BRIEF[2], ((-9, 9), (0.5, 4)), dtypes=("int32", "float32", "float64")),
)
def divmod(x1: Value, x2: Value) -> tuple[Value, Value]:
    """`(x1 // x2, x1 % x2)`."""
    return floor_divide(x1, x2), mod(x1, x2)


def _clip_reference(a: Any, a_min: Any, a_max: Any) -> Any:
    return numpy.clip(a, a_min, a_max)


@operation(
    numpy=_clip_reference,
    public=METHOD,
    names={"mxnet": "_npi_clip"},
    samples=Samples(
        (Case(((3, 70), None, None)), Case(((2, 3), (3,), (2, 1))), Case(((37,), (37,), None))),
        ((-4, 4), (-2, 0), (0, 2)),
        dtypes=NUMBERS,
    ),
)
def clip(
    a: Value,
    a_min: Value | None = None,
    a_max: Value | None = None,
    min: Value | None = None,
    max: Value | None = None,
) -> Value:
    """Elements of `a` no lower than `a_min` and no higher than `a_max`; None is no bound."""
    low = min if a_min is None else a_min
    high = max if a_max is None else a_max
    # A number that no element is beyond bounds nothing.
    low = None if low is not None and side(low, a.dtype) < 0 else low
    high = None if high is not None and side(high, a.dtype) > 0 else high
    if low is None and high is None:
        return positive(a)
    a = a if low is None else maximum(a, low)
    return a if high is None else minimum(a, high)


# -- comparison and logic -------------------------------------------------------------------------

equal = binary(primitives.EQUAL, truth, "`x1 == x2`.", with_none=False)
not_equal = binary(primitives.NOT_EQUAL, truth, "`x1 != x2`.", with_none=True)
less = binary(primitives.LESS, truth, "`x1 < x2`.")
less_equal = binary(primitives.LESS_EQUAL, truth, "`x1 <= x2`.")
greater = binary(primitives.GREATER, truth, "`x1 > x2`.")
greater_equal = binary(primitives.GREATER_EQUAL, truth, "`x1 >= x2`.")


def _logical(name: str, primitive: Elementwise, documentation: str) -> Binary:
    """The operation on two truth values that is one on bits."""
    reference = getattr(numpy, name)
    return binary(primitive, logical, documentation, name=name, reference=reference)


logical_and = _logical("logical_and", primitives.BITWISE_AND, "True where both are.")
logical_or = _logical("logical_or", primitives.BITWISE_OR, "True where one is.")
logical_xor = _logical("logical_xor", primitives.BITWISE_XOR, "True where just one is.")
logical_not = unary(
    primitives.INVERT,
    logical,
    "True where `x` is zero or false.",
    name="logical_not",
    reference=numpy.logical_not,
)


@operation(
    numpy=numpy.where,
    public=(),
    names={"mxnet": "_npi_where"},
    samples=Samples(elementwise_cases(3)),
)
def where(condition: Value, x: Value, y: Value) -> Value:
    """Elements of `x` where `condition` is true, else of `y`."""
    return select(condition, x, y)


def select(condition: Value, x: Value, y: Value) -> Value:
    """The program of `where`."""
    dtype = result_type(x, y)
    operands = (cast(condition, "bool"), cast(x, dtype), cast(y, dtype))
    ready = broadcast_all("where", operands)
    return apply(primitives.SELECT, ready, TensorType(ready[0].shape, dtype))


def _classifier(primitive: Elementwise, documentation: str) -> Unary:
    return unary(primitive, real_to_truth, documentation, dtypes=("int32", *FLOATS))


isnan = _classifier(real_primitives.ISNAN, "True for NaN.")
isinf = _classifier(real_primitives.ISINF, "True for infinities.")
isfinite = _classifier(real_primitives.ISFINITE, "True for all but NaN and infinities.")
signbit = _classifier(real_primitives.SIGNBIT, "True for negative numbers, -0.0 among them.")


@operation(
    numpy=numpy.isposinf,
    names={"mxnet": "_npi_isposinf"},
    samples=Samples(BRIEF[1], dtypes=("int32", *FLOATS)),
)
def isposinf(x: Value) -> Value:
    """True for positive infinity."""
    x = cast(x, floating(result_type(x)))
    return equal(x, constant(math.inf, x.dtype))


@operation(
    numpy=numpy.isneginf,
    names={"mxnet": "_npi_isneginf"},
    samples=Samples(BRIEF[1], dtypes=("int32", *FLOATS)),
)
def isneginf(x: Value) -> Value:
    """True for negative infinity."""
    x = cast(x, floating(result_type(x)))
    return equal(x, constant(-math.inf, x.dtype))


_LARGEST = {"float16": 65504.0, "bfloat16": (2.0 - 2.0**-7) * 2.0**127}
_LARGEST |= {d: float(numpy.finfo(d).max) for d in ("float32", "float64")}


@operation(
    numpy=numpy.nan_to_num,
    names={"mxnet": "_npi_nan_to_num"},
    samples=Samples(BRIEF[1], dtypes=("bool", "int32", *FLOATS)),
)
def nan_to_num(
    x: Value,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    """A copy with numbers in place of NaN and infinities: the largest ones, if none are given."""
    if not is_float(x.dtype):
        return apply(COPY, (x,), TensorType(x.shape, x.dtype))

    def number(given: float) -> Value:
        return constant(float(given), "float64", weak=True)

    largest = _LARGEST[x.dtype]
    result = select(isnan(x), number(nan), x)
    result = select(isposinf(x), number(largest if posinf is None else posinf), result)
    return select(isneginf(x), number(-largest if neginf is None else neginf), result)


# -- bits and integers ----------------------------------------------------------------------------

bitwise_and = binary(primitives.BITWISE_AND, integral, "Bits set in both.")
bitwise_or = binary(primitives.BITWISE_OR, integral, "Bits set in either.")
bitwise_xor = binary(primitives.BITWISE_XOR, integral, "Bits set in just one.")
invert = unary(
    primitives.INVERT,
    integral,
    "Every bit turned over; `not` for bools.",
    aliases=("bitwise_not", "bitwise_invert"),
)
left_shift = binary(
    primitives.LEFT_SHIFT,
    whole,
    "`x1 << x2`.",
    domain=((0, 4), (0, 9)),
    aliases=("bitwise_left_shift",),
)
right_shift = binary(
    primitives.RIGHT_SHIFT,
    whole,
    "`x1 >> x2`.",
    domain=((-99, 99), (0, 9)),
    aliases=("bitwise_right_shift",),
)
gcd = binary(
    primitives.GCD,
    whole,
    "The greatest common divisor.",
    domain=(-60, 60),
    dtypes=INTEGERS,
)
lcm = binary(primitives.LCM, whole, "The least common multiple.", domain=(-11, 11), dtypes=INTEGERS)
