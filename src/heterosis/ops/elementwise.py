"""Operations on elements: arithmetic, comparisons, logic, bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from heterosis.codegen import elementwise as lower
from heterosis.codegen import mathematics
from heterosis.codegen.conversion import COPY
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.program import Value, apply, constant
from heterosis.ir.types import DTYPES, FLOATS, INTEGERS, TensorType, is_float
from heterosis.ops.adjoint import elementwise_adjoint, piecewise_constant
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_all, cast, elementwise, floating, result_type
from heterosis.ops.samples import NUMBERS, WHOLE, Case, Samples, elementwise_cases
from heterosis.runtime.errors import DTypeError

# What each operand receives, from what the result receives, the result, and the operands.
Gradient = Callable[..., Any]

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


_DTYPES = {no_bool: NUMBERS, integral: WHOLE, whole: WHOLE, real: ("int32", *FLOATS)}
_DTYPES |= dict.fromkeys((same, counting), DTYPES)
_TRUTHS = (truth, logical, real_to_truth)
_DTYPES |= dict.fromkeys(_TRUTHS, DTYPES)

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
    **dict.fromkeys(("floor_divide", "fmod", "positive", "fabs", "fmax", "fmin", "exp2")),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "signbit", "gcd", "spacing")),
    **dict.fromkeys(("left_shift", "right_shift", "heaviside")),
}


def _register(
    name: str,
    function: Callable[..., Any],
    samples: Samples,
    reference: Callable[..., Any] | None,
    facts: dict[str, Any],
) -> Any:
    reference = reference or getattr(numpy, name)
    operator = _MXNET_NAMES.get(name, f"_npi_{name}")
    facts = {"names": {"mxnet": operator} if operator else {}} | facts
    return operation(name=name, numpy=reference, samples=samples, **facts)(function)


def _exact(
    exact: bool, name: str, reference: Callable[..., Any] | None
) -> Callable[..., Any] | None:
    return (reference or getattr(numpy, name)) if exact else None


def _differentiated(
    primitive: Elementwise, rule: Rule, pull: Gradient | None, facts: dict[str, Any]
) -> None:
    """Give a primitive its rule. No gradient flows to what truth values were found from."""
    if pull is not None:
        elementwise_adjoint(primitive, pull)
    elif rule in _TRUTHS or facts.get("piecewise_constant"):
        piecewise_constant(primitive)


def unary(
    name: str,
    lowering: Callable[..., Any],
    rule: Rule,
    documentation: str,
    *,
    cost: float = 1.0,
    domain: Sequence[Any] = (-4, 4),
    dtypes: tuple[str, ...] | None = None,
    cases: Sequence[Case] = BRIEF[1],
    reference: Callable[..., Any] | None = None,
    pull: Gradient | None = None,
    exact: bool = False,
    keeps: bool = False,
    by_type: bool = False,
    **facts: Any,
) -> Any:
    """Register an operation on one array. `exact`: its bits are those of the NumPy reference. See
    `Elementwise` for `keeps` and `by_type`."""
    exact_ = _exact(exact, name, reference)
    primitive = Elementwise(name, lowering, cost, exact_, keeps=keeps, by_type=by_type)
    _differentiated(primitive, rule, pull, facts)

    def function(x):
        return elementwise(primitive, (x,), *rule(name, result_type(x)))

    function.__doc__ = documentation
    samples = Samples(cases, domain, dtypes or _DTYPES[rule])
    return _register(name, function, samples, reference, facts)


def binary(
    name: str,
    lowering: Callable[..., Any],
    rule: Rule,
    documentation: str,
    *,
    cost: float = 1.0,
    domain: Sequence[Any] = (-4, 4),
    dtypes: tuple[str, ...] | None = None,
    cases: Sequence[Case] = BRIEF[2],
    reference: Callable[..., Any] | None = None,
    pull: Gradient | None = None,
    exact: bool = False,
    neutral: tuple[float | None, ...] = (),
    keeps: bool = False,
    **facts: Any,
) -> Any:
    """Register an operation on two arrays, or an array and a number. See `Elementwise` for `exact`,
    `neutral` and `keeps`."""
    exact_ = _exact(exact, name, reference)
    primitive = Elementwise(name, lowering, cost, exact_, neutral, keeps)
    _differentiated(primitive, rule, pull, facts)

    def function(x1, x2):
        return elementwise(primitive, (x1, x2), *rule(name, result_type(x1, x2)))

    function.__doc__ = documentation
    samples = Samples(cases, domain, dtypes or _DTYPES[rule])
    return _register(name, function, samples, reference, facts)


def _by_kind(for_floats: Callable[..., Any], for_integers: Callable[..., Any]):
    """A lowering that goes one way for floats and another for integers."""
    return lambda f, dtype, *values: (
        for_floats(f, *values) if is_float(dtype) else for_integers(f, dtype, *values)
    )


METHOD = ("np", "ndarray")  # where users find what is a function and a method
_DIVISION = {"cost": 24.0, "domain": ((-9, 9), (0.5, 4))}

# -- arithmetic -----------------------------------------------------------------------------------


def _pull_power(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    from heterosis.ops.real import log

    zero = equal(a, _number(0))
    # `0 ** 0` is 1 for all bases near: its slope is 0, and not 0 times infinity.
    base = select(logical_and(zero, equal(b, _number(0))), _number(1), a)
    slope = multiply(b, power(base, subtract(b, _number(1))))
    # Zero to any positive power is zero, and has no logarithm.
    growth = multiply(y, log(select(zero, _number(1), a)))
    return multiply(g, slope), multiply(g, growth)


def _to_chosen(g: Value, first: Value) -> tuple[Value, Value]:
    """A cotangent to the first operand where `first` is true, else to the second."""
    return select(first, g, _number(0)), select(first, _number(0), g)


def _number(value: float) -> Value:
    return constant(value, "float64", weak=True)


# The samples of every shape class: all others share its loops.
add = binary(
    "add",
    lower.add,
    same,
    "`x1 + x2`.",
    cases=elementwise_cases(2),
    pull=lambda g, y, a, b: (g, g),
    exact=True,
    neutral=(-0.0, -0.0),
)
subtract = binary(
    "subtract",
    lambda f, dtype, a, b: f.sub(a, b),
    no_bool,
    "`x1 - x2`.",
    pull=lambda g, y, a, b: (g, negative(g)),
    exact=True,
    neutral=(None, 0.0),
)
multiply = binary(
    "multiply",
    lower.multiply,
    same,
    "`x1 * x2`.",
    pull=lambda g, y, a, b: (multiply(g, b), multiply(g, a)),
    exact=True,
    neutral=(1.0, 1.0),
)
true_divide = binary(
    "true_divide",
    lambda f, dtype, a, b: f.div(a, b),
    real,
    "`x1 / x2`, always a float.",
    cost=4.0,
    domain=((-4, 4), (0.5, 4)),
    aliases=("divide",),
    pull=lambda g, y, a, b: (
        true_divide(g, b),
        negative(true_divide(multiply(g, y), b)),
    ),
    exact=True,
    neutral=(None, 1.0),
)
floor_divide = binary(
    "floor_divide",
    _by_kind(mathematics.floor_divide, lower.floor_divide_integer),
    counting,
    "`x1 // x2`, rounded down. Integers divided by zero give 0.",
    piecewise_constant="a whole number, with steps between",
    **_DIVISION,
)
mod = binary(
    "mod",
    _by_kind(mathematics.mod, lower.mod_integer),
    counting,
    "`x1 % x2`, with the sign of `x2`. Integers modulo zero give 0.",
    aliases=("remainder",),
    pull=lambda g, y, a, b: (g, negative(multiply(g, floor_divide(a, b)))),
    **_DIVISION,
)
fmod = binary(
    "fmod",
    _by_kind(mathematics.fmod, lower.fmod_integer),
    counting,
    "The remainder of `x1 / x2` with the sign of `x1`.",
    pull=lambda g, y, a, b: (g, negative(multiply(g, true_divide(subtract(a, y), b)))),
    **_DIVISION,
)
power = binary(
    "power",
    lower.power,
    counting,
    "`x1 ** x2`. Integers stay integers: negative exponents give `1 / x1`, rounded to zero.",
    cost=60.0,
    domain=((0.5, 4), (0, 3)),
    pull=_pull_power,
    neutral=(None, 1.0),
)
negative = unary(
    "negative",
    lower.negative,
    no_bool,
    "`-x`.",
    pull=lambda g, y, x: negative(g),
    exact=True,
    keeps=True,
)
positive = unary(
    "positive", lambda f, dtype, x: x, no_bool, "`+x`: a copy.", pull=lambda g, y, x: g, keeps=True
)
absolute = unary(
    "absolute",
    lower.absolute,
    same,
    "The distance from zero.",
    aliases=("abs",),
    public=METHOD,
    pull=lambda g, y, x: multiply(g, sign(x)),
    exact=True,
    keeps=True,
)
fabs = unary(
    "fabs",
    lower.absolute,
    real,
    "The distance from zero, a float.",
    pull=lambda g, y, x: multiply(g, sign(x)),
    keeps=True,
)
sign = unary(
    "sign",
    lower.sign,
    no_bool,
    "-1, 0 or 1.",
    cost=3.0,
    public=METHOD,
    piecewise_constant="one of three numbers",
    keeps=True,
)
maximum = binary(
    "maximum",
    lower.maximum,
    same,
    "The larger element; NaN if either is.",
    cost=2.0,
    pull=lambda g, y, a, b: _to_chosen(g, greater_equal(a, b)),
    keeps=True,
)
minimum = binary(
    "minimum",
    lower.minimum,
    same,
    "The smaller element; NaN if either is.",
    cost=2.0,
    pull=lambda g, y, a, b: _to_chosen(g, less_equal(a, b)),
    keeps=True,
)
fmax = binary(
    "fmax",
    lower.first_unless_nan(lower.maximum),
    same,
    "The larger element; NaN only if both are.",
    pull=lambda g, y, a, b: _to_chosen(g, logical_or(greater_equal(a, b), isnan(b))),
    cost=4.0,
    dtypes=("int32", "float32"),
    keeps=True,
)
fmin = binary(
    "fmin",
    lower.first_unless_nan(lower.minimum),
    same,
    "The smaller element; NaN only if both are.",
    pull=lambda g, y, a, b: _to_chosen(g, logical_or(less_equal(a, b), isnan(b))),
    cost=4.0,
    dtypes=("int32", "float32"),
    keeps=True,
)
square = unary(
    "square",
    lambda f, dtype, x: lower.multiply(f, dtype, x, x),
    same,
    "`x * x`.",
    public=METHOD,
    pull=lambda g, y, x: multiply(g, add(x, x)),
    exact=True,
)


@operation(
    numpy=numpy.divmod,
    samples=Samples(BRIEF[2], ((-9, 9), (0.5, 4)), dtypes=("int32", "float32", "float64")),
)
def divmod(x1, x2):
    """`(x1 // x2, x1 % x2)`."""
    return floor_divide(x1, x2), mod(x1, x2)


def _clip_reference(a, a_min, a_max):
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
def clip(a, a_min=None, a_max=None, min=None, max=None):
    """Elements of `a` no lower than `a_min` and no higher than `a_max`; None is no bound."""
    low = min if a_min is None else a_min
    high = max if a_max is None else a_max
    if low is None and high is None:
        return positive(a)
    a = a if low is None else maximum(a, low)
    return a if high is None else minimum(a, high)


# -- comparison and logic -------------------------------------------------------------------------

equal = binary("equal", lower.compare("eq"), truth, "`x1 == x2`.", with_none=False)
not_equal = binary("not_equal", lower.compare("ne"), truth, "`x1 != x2`.", with_none=True)
less = binary("less", lower.compare("lt"), truth, "`x1 < x2`.", exact=True)
less_equal = binary("less_equal", lower.compare("le"), truth, "`x1 <= x2`.", exact=True)
greater = binary("greater", lower.compare("gt"), truth, "`x1 > x2`.", exact=True)
greater_equal = binary("greater_equal", lower.compare("ge"), truth, "`x1 >= x2`.", exact=True)
logical_and = binary("logical_and", lower.bitwise("and"), logical, "True where both are.")
logical_or = binary("logical_or", lower.bitwise("or"), logical, "True where one is.")
logical_xor = binary("logical_xor", lower.bitwise("xor"), logical, "True where just one is.")
logical_not = unary("logical_not", lower.invert, logical, "True where `x` is zero or false.")

_SELECT = Elementwise("select", lower.select, exact=numpy.where, keeps=True)
elementwise_adjoint(_SELECT, lambda g, y, condition, a, b: (None, *_to_chosen(g, condition)))


@operation(
    numpy=numpy.where,
    public=(),
    names={"mxnet": "_npi_where"},
    samples=Samples(elementwise_cases(3)),
)
def where(condition, x, y):
    """Elements of `x` where `condition` is true, else of `y`."""
    return select(condition, x, y)


def select(condition: Value, x: Value, y: Value) -> Value:
    """The program of `where`."""
    dtype = result_type(x, y)
    operands = (cast(condition, "bool"), cast(x, dtype), cast(y, dtype))
    ready = broadcast_all("where", operands)
    return apply(_SELECT, ready, TensorType(ready[0].shape, dtype))


def _classifier(name: str, documentation: str) -> Any:
    return unary(
        name, lower.classify(name), real_to_truth, documentation, dtypes=("int32", *FLOATS)
    )


isnan = _classifier("isnan", "True for NaN.")
isinf = _classifier("isinf", "True for infinities.")
isfinite = _classifier("isfinite", "True for all but NaN and infinities.")
isposinf = _classifier("isposinf", "True for positive infinity.")
isneginf = _classifier("isneginf", "True for negative infinity.")
signbit = _classifier("signbit", "True for negative numbers, -0.0 among them.")

_LARGEST = {"float16": 65504.0, "bfloat16": (2.0 - 2.0**-7) * 2.0**127}
_LARGEST |= {d: float(numpy.finfo(d).max) for d in ("float32", "float64")}


@operation(
    numpy=numpy.nan_to_num,
    names={"mxnet": "_npi_nan_to_num"},
    samples=Samples(BRIEF[1], dtypes=("bool", "int32", *FLOATS)),
)
def nan_to_num(
    x,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
):
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

bitwise_and = binary("bitwise_and", lower.bitwise("and"), integral, "Bits set in both.")
bitwise_or = binary("bitwise_or", lower.bitwise("or"), integral, "Bits set in either.")
bitwise_xor = binary("bitwise_xor", lower.bitwise("xor"), integral, "Bits set in just one.")
invert = unary(
    "invert",
    lower.invert,
    integral,
    "Every bit turned over; `not` for bools.",
    aliases=("bitwise_not",),
)
left_shift = binary(
    "left_shift", lower.left_shift, whole, "`x1 << x2`.", domain=((0, 4), (0, 9)), cost=3.0
)
right_shift = binary(
    "right_shift", lower.right_shift, whole, "`x1 >> x2`.", domain=((-99, 99), (0, 9)), cost=3.0
)
gcd = binary(
    "gcd",
    lower.greatest_common_divisor,
    whole,
    "The greatest common divisor.",
    domain=(-60, 60),
    dtypes=INTEGERS,
    cost=900.0,
)
lcm = binary(
    "lcm",
    lower.least_common_multiple,
    whole,
    "The least common multiple.",
    domain=(-11, 11),
    dtypes=INTEGERS,
    cost=900.0,
)
