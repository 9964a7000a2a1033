"""Operations on elements: arithmetic, comparisons, logic, functions of real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from heterosis.codegen import elementwise as lower
from heterosis.codegen import mathematics
from heterosis.codegen.builder import Function, constant
from heterosis.codegen.builder import Value as Emitted
from heterosis.ir.program import Elementwise, Value, apply
from heterosis.ir.types import DTYPES, TensorType, is_float
from heterosis.ops.record import operation
from heterosis.ops.rules import broadcast_all, cast, elementwise, floating, lowered, result_type
from heterosis.ops.samples import NUMBERS, WHOLE, Samples, elementwise_cases
from heterosis.runtime.errors import DTypeError

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


def integral(name: str, dtype: str) -> tuple[str, str]:
    """Bits of integers, or truth values."""
    if is_float(dtype):
        raise DTypeError(f"{name}: needs integers or bools, and got {dtype}; convert with .astype.")
    return dtype, dtype


_DTYPES = {no_bool: NUMBERS, integral: WHOLE}
_DTYPES |= dict.fromkeys((same, real, truth, logical, real_to_truth), DTYPES)


def _register(
    name: str,
    function: Callable[..., Any],
    samples: Samples,
    reference: Callable[..., Any] | None,
    facts: dict[str, Any],
) -> Any:
    reference = reference or getattr(numpy, name)
    facts = {"public": ("np", "ndarray"), "names": {"mxnet": f"_npi_{name}"}} | facts
    return operation(name=name, numpy=reference, samples=samples, **facts)(function)


def unary(
    name: str,
    lowering: Callable[..., Any],
    rule: Rule,
    documentation: str,
    *,
    cost: float = 1.0,
    domain: Sequence[Any] = (-4, 4),
    dtypes: tuple[str, ...] | None = None,
    reference: Callable[..., Any] | None = None,
    **facts: Any,
) -> Any:
    """Register an operation on one array."""
    primitive = Elementwise(name, lowering, cost)

    def function(x):
        return elementwise(primitive, (x,), *rule(name, result_type(x)))

    function.__doc__ = documentation
    samples = Samples(elementwise_cases(1), domain, dtypes or _DTYPES[rule])
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
    reference: Callable[..., Any] | None = None,
    **facts: Any,
) -> Any:
    """Register an operation on two arrays, or an array and a number."""
    primitive = Elementwise(name, lowering, cost)

    def function(x1, x2):
        return elementwise(primitive, (x1, x2), *rule(name, result_type(x1, x2)))

    function.__doc__ = documentation
    samples = Samples(elementwise_cases(2), domain, dtypes or _DTYPES[rule])
    return _register(name, function, samples, reference, facts)


def _by_kind(for_floats: Callable[..., Any], for_integers: Callable[..., Any]):
    """A lowering that goes one way for floats and another for integers."""
    return lambda f, dtype, *values: (
        for_floats(f, *values) if is_float(dtype) else for_integers(f, dtype, *values)
    )


# -- arithmetic -----------------------------------------------------------------------------------

add = binary("add", lower.add, same, "`x1 + x2`.")
subtract = binary(
    "subtract", lambda f, dtype, a, b: f.sub(a, b), no_bool, "`x1 - x2`."
)
multiply = binary("multiply", lower.multiply, same, "`x1 * x2`.")
true_divide = binary(
    "true_divide", lambda f, dtype, a, b: f.div(a, b), real, "`x1 / x2`, always a float.", cost=4.0,
    domain=((-4, 4), (0.5, 4)), aliases=("divide",),
)
negative = unary("negative", lower.negative, no_bool, "`-x`.")
absolute = unary("absolute", lower.absolute, same, "The distance from zero.", aliases=("abs",))
sign = unary("sign", lower.sign, no_bool, "-1, 0 or 1.", cost=3.0)
maximum = binary("maximum", lower.maximum, same, "The larger element; NaN if either is.", cost=2.0)
minimum = binary("minimum", lower.minimum, same, "The smaller element; NaN if either is.", cost=2.0)

# -- comparison and logic -------------------------------------------------------------------------

equal = binary("equal", lower.compare("eq"), truth, "`x1 == x2`.")
not_equal = binary("not_equal", lower.compare("ne"), truth, "`x1 != x2`.")
less = binary("less", lower.compare("lt"), truth, "`x1 < x2`.")
less_equal = binary("less_equal", lower.compare("le"), truth, "`x1 <= x2`.")
greater = binary("greater", lower.compare("gt"), truth, "`x1 > x2`.")
greater_equal = binary("greater_equal", lower.compare("ge"), truth, "`x1 >= x2`.")
logical_and = binary("logical_and", lower.bitwise("and"), logical, "True where both are.")
logical_or = binary("logical_or", lower.bitwise("or"), logical, "True where one is.")
logical_xor = binary("logical_xor", lower.bitwise("xor"), logical, "True where just one is.")
logical_not = unary("logical_not", lower.invert, logical, "True where `x` is zero or false.")

_SELECT = Elementwise("select", lower.select)


@operation(numpy=numpy.where, names={"mxnet": "_npi_where"}, samples=Samples(elementwise_cases(3)))
def where(condition, x, y):
    """Elements of `x` where `condition` is true, else of `y`."""
    return select(condition, x, y)


def select(condition: Value, x: Value, y: Value) -> Value:
    """The program of `where`."""
    dtype = result_type(x, y)
    operands = (cast(condition, "bool"), cast(x, dtype), cast(y, dtype))
    ready = broadcast_all("where", operands)
    return apply(_SELECT, ready, TensorType(ready[0].shape, dtype))


# -- bits -----------------------------------------------------------------------------------------

bitwise_and = binary("bitwise_and", lower.bitwise("and"), integral, "Bits set in both.")
bitwise_or = binary("bitwise_or", lower.bitwise("or"), integral, "Bits set in either.")
bitwise_xor = binary("bitwise_xor", lower.bitwise("xor"), integral, "Bits set in just one.")
invert = unary("invert", lower.invert, integral, "Every bit turned over; `not` for bools.")

# -- functions of real numbers --------------------------------------------------------------------

exp = unary("exp", lowered(mathematics.exp), real, "e to the power `x`.", cost=14.0)
log = unary("log", lowered(mathematics.log), real, "The natural logarithm.", cost=18.0, domain=(0.01, 50))
tanh = unary("tanh", lowered(mathematics.tanh), real, "The hyperbolic tangent.", cost=20.0)
sqrt = unary("sqrt", lowered(mathematics.sqrt), real, "The square root.", cost=6.0, domain=(0, 50))


def _square(f: Function, dtype: str, x: Emitted) -> Emitted:
    return lower.multiply(f, dtype, x, x)


square = unary("square", _square, same, "`x * x`.")


def _reciprocal(f: Function, dtype: str, x: Emitted) -> Emitted:
    return f.div(constant(x.type, 1.0), x)


reciprocal = unary("reciprocal", _reciprocal, real, "`1 / x`.", cost=4.0, domain=(0.5, 4))
