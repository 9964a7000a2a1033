"""How elements are computed, and what that costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heterosis.backends.native.codegen import mathematics
from heterosis.backends.native.codegen.emit.access import nearest
from heterosis.backends.native.codegen.emit.builder import Function, Value, constant
from heterosis.backends.native.codegen.emit.conversion import convert
from heterosis.backends.native.codegen.kernels import random_bits, random_loops, sorting
from heterosis.backends.native.codegen.mathematics import arithmetic as lower
from heterosis.backends.native.codegen.mathematics.number import Number, emitted
from heterosis.backends.native.codegen.tables import ELEMENTS, ElementLowering
from heterosis.ir.primitives import conversions, sort_keys
from heterosis.ir.primitives import elementwise as e
from heterosis.ir.primitives import random_bits as bits
from heterosis.ir.primitives import random_loops as loops
from heterosis.ir.primitives import real as r
from heterosis.ir.primitives.conversions import conversion
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.types import DTYPES, is_float

Emit = Callable[..., Any]

_CONVERSION_COSTS = dict.fromkeys(DTYPES, 2.0) | {"float32": 0.0}


def _any_type(function: Emit) -> Emit:
    """Code that does not depend on the element type: `function(f, *values)`."""
    return lambda f, dtype, *values: function(f, *values)


def _by_kind(for_floats: Emit, for_integers: Emit) -> Emit:
    """Code of one kind for floats and another for integers."""
    return lambda f, dtype, *values: (
        for_floats(f, *values) if is_float(dtype) else for_integers(f, dtype, *values)
    )


def _rounding(rounded: Emit) -> Emit:
    """Code that leaves integers as they are."""
    return _by_kind(rounded, _itself)


def _itself(f: Function, dtype: str, x: Value) -> Value:
    return x


def _inverse(f: Function, x: Value) -> Value:
    return f.div(constant(x.type, 1.0), x)


def _converted(dtype: str) -> Emit:
    return lambda f, have, x: convert(f, have, dtype, x)


def _formula(formula: Callable[..., Number]) -> Emit:
    return _any_type(emitted(formula))


def _called(formula: Callable[..., Number]) -> Emit:
    """Code of its own, which its uses call: there is much of it."""
    return _any_type(random_loops.outlined(formula))


def _unit(precision: int, element: str) -> Emit:
    return _formula(lambda bits: random_bits.unit(bits, precision, element))


def _open_unit(element: str) -> Emit:
    return _formula(lambda bits: random_bits.open_unit(bits, element))


def _rows(*rows: tuple[Elementwise, Emit] | tuple[Elementwise, Emit, float]) -> None:
    """Put rows of a primitive, its code and, if that is not 1, its cost into the table."""
    ELEMENTS.update((primitive, ElementLowering(*how)) for primitive, *how in rows)


_rows(
    (e.ADD, lower.add),
    (e.SUBTRACT, _any_type(Function.sub)),
    (e.MULTIPLY, lower.multiply),
    (e.FLOOR_DIVIDE, _by_kind(mathematics.floor_divide, lower.floor_divide_integer), 24.0),
    (e.MOD, _by_kind(mathematics.mod, lower.mod_integer), 24.0),
    (e.FMOD, _by_kind(mathematics.fmod, lower.fmod_integer), 24.0),
    (e.POWER, lower.power, 60.0),
    (e.NEGATIVE, lower.negative),
    (e.ABSOLUTE, lower.absolute),
    (e.SIGN, lower.sign, 3.0),
    (e.MAXIMUM, lower.maximum, 2.0),
    (e.MINIMUM, lower.minimum, 2.0),
    (e.EQUAL, lower.compare("eq")),
    (e.NOT_EQUAL, lower.compare("ne")),
    (e.LESS, lower.compare("lt")),
    (e.LESS_EQUAL, lower.compare("le")),
    (e.GREATER, lower.compare("gt")),
    (e.GREATER_EQUAL, lower.compare("ge")),
    (e.SELECT, lower.select),
    (e.BITWISE_AND, lower.bitwise("and")),
    (e.BITWISE_OR, lower.bitwise("or")),
    (e.BITWISE_XOR, lower.bitwise("xor")),
    (e.INVERT, lower.invert),
    (e.LEFT_SHIFT, lower.left_shift, 3.0),
    (e.RIGHT_SHIFT, lower.right_shift, 3.0),
    (e.GCD, lower.greatest_common_divisor, 900.0),
    (e.LCM, lower.least_common_multiple, 900.0),
)
_rows(
    (r.TRUE_DIVIDE, _any_type(Function.div), 4.0),
    (r.RECIPROCAL, _any_type(_inverse), 4.0),
    (r.EXP, _any_type(mathematics.exp), 14.0),
    (r.EXP2, _any_type(mathematics.exp2), 14.0),
    (r.EXPM1, _any_type(mathematics.expm1), 24.0),
    (r.LOG, _any_type(mathematics.log), 18.0),
    (r.LOG2, _any_type(mathematics.log2), 18.0),
    (r.LOG10, _any_type(mathematics.log10), 18.0),
    (r.LOG1P, _any_type(mathematics.log1p), 22.0),
    (r.SQRT, _any_type(mathematics.sqrt), 6.0),
    (r.RSQRT, _any_type(mathematics.rsqrt), 8.0),
    (r.CBRT, _any_type(mathematics.cbrt), 20.0),
    (r.HYPOT, _any_type(mathematics.hypot), 12.0),
    (r.SIN, _any_type(mathematics.sin), 40.0),
    (r.COS, _any_type(mathematics.cos), 40.0),
    (r.TAN, _any_type(mathematics.tan), 50.0),
    (r.ARCSIN, _any_type(mathematics.arcsin), 30.0),
    (r.ARCCOS, _any_type(mathematics.arccos), 30.0),
    (r.ARCTAN, _any_type(mathematics.arctan), 30.0),
    (r.ARCTAN2, _any_type(mathematics.arctan2), 40.0),
    (r.SINH, _any_type(mathematics.sinh), 30.0),
    (r.COSH, _any_type(mathematics.cosh), 30.0),
    (r.TANH, _any_type(mathematics.tanh), 20.0),
    (r.ARCSINH, _any_type(mathematics.arcsinh), 40.0),
    (r.ARCCOSH, _any_type(mathematics.arccosh), 40.0),
    (r.ARCTANH, _any_type(mathematics.arctanh), 40.0),
    (r.ERF, _any_type(mathematics.erf), 30.0),
    (r.ERFINV, _any_type(mathematics.erfinv), 60.0),
    (r.GAMMA, _any_type(mathematics.gamma), 80.0),
    (r.GAMMALN, _any_type(mathematics.gammaln), 80.0),
    (r.SIGMOID, _any_type(mathematics.sigmoid), 20.0),
    (r.FLOOR, _rounding(mathematics.floor)),
    (r.CEIL, _rounding(mathematics.ceil)),
    (r.TRUNC, _rounding(mathematics.trunc)),
    (r.RINT, _rounding(mathematics.rint)),
    (r.ISNAN, lower.classify("isnan")),
    (r.ISINF, lower.classify("isinf")),
    (r.ISFINITE, lower.classify("isfinite")),
    (r.SIGNBIT, lower.classify("signbit")),
    (r.COPYSIGN, _any_type(lambda f, a, b: f.intrinsic("copysign", a, b))),
    (r.SPACING, lower.spacing),
    (r.FRACTION, lower.fraction, 3.0),
    (r.MANTISSA, lower.mantissa, 8.0),
    (r.EXPONENT, lower.exponent, 8.0),
    (r.LDEXP, lower.ldexp, 8.0),
)
_rows(
    (conversions.COPY, _itself, 0.0),
    (conversions.NEAREST, nearest),
    *((conversion(dtype), _converted(dtype), _CONVERSION_COSTS[dtype]) for dtype in DTYPES),
)
_rows(
    (bits.RANDOM_BLOCK, _formula(random_bits.block), 30.0),
    (bits.RANDOM_BELOW, _formula(random_bits.below), 12.0),
    (bits.UNIT_FLOAT16, _unit(11, "float"), 3.0),
    (bits.UNIT_BFLOAT16, _unit(8, "float"), 3.0),
    (bits.UNIT_FLOAT32, _unit(24, "float"), 3.0),
    (bits.UNIT_FLOAT64, _unit(53, "double"), 3.0),
    (bits.OPEN_UNIT_FLOAT32, _open_unit("float"), 4.0),
    (bits.OPEN_UNIT_FLOAT64, _open_unit("double"), 4.0),
    (bits.NORMAL_FLOAT32, _formula(lambda bits: random_bits.normal(bits, bits, "float")), 45.0),
    (bits.NORMAL_FLOAT64, _formula(lambda a, b: random_bits.normal(a, b, "double")), 60.0),
    (loops.LOG_GAMMA_VARIATE, _called(random_loops.log_gamma_variate), 400.0),
    (loops.POISSON, _called(random_loops.poisson), 300.0),
    (loops.BINOMIAL, _called(random_loops.binomial), 300.0),
)
_rows(
    (sort_keys.SORT_KEY_FLOAT32, _any_type(sorting.encode), 6.0),
    (sort_keys.SORT_KEY_FLOAT64, _any_type(sorting.encode), 6.0),
    (sort_keys.FROM_SORT_KEY_FLOAT32, _any_type(sorting.decode), 6.0),
    (sort_keys.FROM_SORT_KEY_FLOAT64, _any_type(sorting.decode), 6.0),
)
