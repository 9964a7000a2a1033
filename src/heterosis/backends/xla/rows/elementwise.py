"""Arithmetic, comparisons, choices, bits and conversions, element by element.

XLA leaves integer division by zero, and shifts out of the type, to the machine: here they mean what
`ir.primitives` says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.tables import elements
from heterosis.ir.primitives import elementwise as e
from heterosis.ir.primitives.conversions import BY_WAY_OF, COPY, NEAREST, conversion
from heterosis.ir.types import DTYPES, is_half, is_integer, numpy_dtype

Function = Callable[..., Any]


def is_float(x: Any) -> bool:
    """Whether elements are floats, of 16 bits too."""
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _is_signed(x: Any) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.signedinteger))


def is_nan(x: Any) -> Any:
    """Whether elements are NaN, which no integer is."""
    return lax.ne(x, x)


def like(x: Any, number: float) -> Any:
    """`number` for every element of `x`, of its type."""
    return lax.full_like(x, number)


def unsigned(x: Any) -> Any:
    """The same bits as unsigned integers."""
    return lax.bitcast_convert_type(x, numpy.dtype(f"uint{8 * x.dtype.itemsize}"))


def _itself(x: Any) -> Any:
    return x


def _by_kind(floats: Function, integers: Function) -> Function:
    return lambda *xs: floats(*xs) if is_float(xs[0]) else integers(*xs)


# -- division -------------------------------------------------------------------------------------


def _safe_divisor(a: Any, b: Any) -> tuple[Any, Any]:
    """Whether `b` is zero; `b` with ones there, and at the one quotient that overflows."""
    zero = b == 0
    safe = lax.select(zero, like(b, 1), b)
    if _is_signed(b):
        overflows = (a == jnp.iinfo(a.dtype).min) & (b == -1)
        safe = lax.select(overflows, like(b, 1), safe)
    return zero, safe


def _divided(a: Any, b: Any) -> Any:
    zero, b = _safe_divisor(a, b)
    quotient, rest = lax.div(a, b), lax.rem(a, b)
    lower = (rest != 0) & ((rest < 0) != (b < 0))
    floored = lax.select(lower, quotient - like(a, 1), quotient)
    return lax.select(zero, like(a, 0), floored)


def _remainder(a: Any, b: Any) -> Any:
    zero, b = _safe_divisor(a, b)
    rest = lax.rem(a, b)
    moved = lax.select((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return lax.select(zero, like(a, 0), moved)


def _truncated_remainder(a: Any, b: Any) -> Any:
    zero, b = _safe_divisor(a, b)
    return lax.select(zero, like(a, 0), lax.rem(a, b))


def _float_remainder(a: Any, b: Any) -> Any:
    """As NumPy has it: zero with the sign of the divisor."""
    rest = lax.rem(a, b)
    moved = lax.select((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
    return lax.select(rest == 0, jnp.copysign(like(a, 0), b), moved)


def _float_divided(a: Any, b: Any) -> Any:
    """As NumPy has it: by way of the remainder, so that both agree."""
    quotient, rest = a / b, lax.rem(a, b)
    whole = (a - rest) / b
    whole = lax.select((rest != 0) & ((rest < 0) != (b < 0)), whole - 1, whole)
    floored = lax.floor(whole)
    floored = lax.select(whole - floored > 0.5, floored + 1, floored)
    floored = lax.select(whole == 0, jnp.copysign(like(a, 0), quotient), floored)
    return lax.select(b == 0, quotient, floored)


# -- powers, divisors -----------------------------------------------------------------------------


def _whole_power(a: Any, b: Any) -> Any:
    """By squaring, wrapping as multiplication does; 1 / a, rounded to zero, for exponents below
    zero."""
    result, base, exponent = like(a, 1), a, unsigned(b)
    for _ in range(8 * a.dtype.itemsize):
        odd = (exponent & 1) != 0
        result = lax.select(odd, result * base, result)
        base, exponent = base * base, exponent >> 1
    if not _is_signed(a):
        return result
    minus_one = lax.select((b & 1) != 0, like(a, -1), like(a, 1))
    inverse = lax.select(a == 1, like(a, 1), like(a, 0))
    inverse = lax.select(a == -1, minus_one, inverse)
    return lax.select(b < 0, inverse, result)


def _size(x: Any) -> Any:
    """The distance from zero as an unsigned number, which holds that of the lowest too."""
    return unsigned(lax.abs(x)) if _is_signed(x) else x


def _common_divisor(a: Any, b: Any) -> Any:
    """Euclid's algorithm."""

    def turn(pair: tuple[Any, Any]) -> tuple[Any, Any]:
        x, y = pair
        over = y == 0
        rest = lax.rem(x, lax.select(over, like(y, 1), y))
        return lax.select(over, x, y), lax.select(over, y, rest)

    found, _ = lax.while_loop(lambda pair: jnp.any(pair[1] != 0), turn, (_size(a), _size(b)))
    return lax.convert_element_type(found, a.dtype)


def _common_multiple(a: Any, b: Any) -> Any:
    divisor = unsigned(_common_divisor(a, b))
    share = lax.div(_size(a), lax.select(divisor == 0, like(divisor, 1), divisor))
    return lax.convert_element_type(share * _size(b), a.dtype)


# -- bits -----------------------------------------------------------------------------------------


def _inside(a: Any, b: Any) -> tuple[Any, Any]:
    """Whether distances stay in the type; `b` with zeros where they do not."""
    inside = unsigned(b) < 8 * a.dtype.itemsize
    return inside, lax.select(inside, b, like(b, 0))


def _left_shift(a: Any, b: Any) -> Any:
    inside, distance = _inside(a, b)
    return lax.select(inside, lax.shift_left(a, distance), like(a, 0))


def _right_shift(a: Any, b: Any) -> Any:
    inside, distance = _inside(a, b)
    if not _is_signed(a):
        return lax.select(inside, lax.shift_right_logical(a, distance), like(a, 0))
    signs = lax.shift_right_arithmetic(a, like(a, 8 * a.dtype.itemsize - 1))
    return lax.select(inside, lax.shift_right_arithmetic(a, distance), signs)


def _extreme(function: Function, of_truth: Function) -> Function:
    return lambda a, b: (of_truth if a.dtype == bool else function)(a, b)


# -- conversions ----------------------------------------------------------------------------------


def converted(x: Any, dtype: str) -> Any:
    """Elements of another type, as `ir.primitives.conversions` says."""
    if dtype == "bool":
        return x if x.dtype == bool else x != 0
    if is_float(x) and is_integer(dtype):
        return _float_to_integer(x, dtype)
    if is_half(dtype) and x.dtype.itemsize >= 4:
        x = _rounded_to_odd(x)
    return lax.convert_element_type(x, numpy_dtype(dtype))


def _float_to_integer(x: Any, dtype: str) -> Any:
    """By truncation; those out of range as the lowest. Narrow types take the last bits of int32."""
    x = lax.convert_element_type(x, numpy.dtype("float32")) if x.dtype.itemsize == 2 else x
    wide = jnp.iinfo(BY_WAY_OF.get(dtype, dtype))
    inside = (x >= float(wide.min)) & (x < -float(wide.min))
    whole = lax.convert_element_type(lax.select(inside, x, like(x, 0)), wide.dtype)
    whole = lax.select(inside, whole, like(whole, wide.min))
    found = lax.convert_element_type(whole, numpy_dtype(dtype))
    if dtype != "uint64":
        return found
    large = (x >= 2.0**63) & (x < 2.0**64)
    rest = lax.convert_element_type(lax.select(large, x - 2.0**63, like(x, 0)), found.dtype)
    return lax.select(large, rest | like(rest, 1 << 63), found)


def _rounded_to_odd(x: Any) -> Any:
    """float32 that rounds to 16 bits as `x` does: of two neighbours, the odd one."""
    if x.dtype == numpy.dtype("float32"):
        return x
    if not is_float(x):
        wide = numpy.dtype("int64" if _is_signed(x) else "uint64")
        x = _sticky(lax.convert_element_type(x, wide))
    single = lax.convert_element_type(x, numpy.dtype("float32"))
    back = lax.convert_element_type(single, x.dtype)
    bits = lax.bitcast_convert_type(single, numpy.dtype("int32"))
    farther = lax.convert_element_type(lax.abs(back) > lax.abs(x), numpy.dtype("int32"))
    odd = (bits - farther) | 1
    exact = (back == x) | is_nan(x)
    return lax.bitcast_convert_type(lax.select(exact, bits, odd), numpy.dtype("float32"))


def _sticky(x: Any) -> Any:
    """A float64 that rounds to far fewer bits as the integer does: where it is large, its last 12
    bits only tell whether they are all zero."""
    low = like(x, 0xFFF)
    rest = lax.convert_element_type((x & low) != 0, x.dtype)
    marked = (x & ~low) | (rest << 11)
    small = x < 2**40
    if _is_signed(x):
        small &= x > -(2**40)
    return lax.convert_element_type(lax.select(small, x, marked), numpy.dtype("float64"))


elements(
    {
        e.ADD: _extreme(lax.add, lax.bitwise_or),
        e.SUBTRACT: lax.sub,
        e.MULTIPLY: _extreme(lax.mul, lax.bitwise_and),
        e.FLOOR_DIVIDE: _by_kind(_float_divided, _divided),
        e.MOD: _by_kind(_float_remainder, _remainder),
        e.FMOD: _by_kind(lax.rem, _truncated_remainder),
        e.POWER: _by_kind(lax.pow, _whole_power),
        e.NEGATIVE: lax.neg,
        e.ABSOLUTE: lambda x: lax.abs(x) if is_float(x) or _is_signed(x) else x,
        e.SIGN: lax.sign,
        e.MAXIMUM: lax.max,
        e.MINIMUM: lax.min,
        e.EQUAL: lax.eq,
        e.NOT_EQUAL: lax.ne,
        e.LESS: lax.lt,
        e.LESS_EQUAL: lax.le,
        e.GREATER: lax.gt,
        e.GREATER_EQUAL: lax.ge,
        e.SELECT: lax.select,
        e.BITWISE_AND: lax.bitwise_and,
        e.BITWISE_OR: lax.bitwise_or,
        e.BITWISE_XOR: lax.bitwise_xor,
        e.INVERT: lax.bitwise_not,
        e.LEFT_SHIFT: _left_shift,
        e.RIGHT_SHIFT: _right_shift,
        e.GCD: _common_divisor,
        e.LCM: _common_multiple,
        COPY: _itself,
        NEAREST: _itself,
        **{conversion(dtype): partial(converted, dtype=dtype) for dtype in DTYPES},
    }
)
