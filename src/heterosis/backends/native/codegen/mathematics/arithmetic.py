"""Arithmetic on one vector, where the element type decides how."""

from __future__ import annotations

import math
from collections.abc import Callable

from heterosis.backends.native.codegen import mathematics
from heterosis.backends.native.codegen.emit.builder import (
    I1,
    Function,
    Value,
    constant,
    is_literal,
)
from heterosis.backends.native.codegen.emit.reducers import above, maximum, minimum
from heterosis.backends.native.codegen.mathematics.number import Number
from heterosis.backends.native.codegen.mathematics.rounding import frexp, has_rounding
from heterosis.ir.types import UNSIGNED

__all__ = ["above", "maximum", "minimum"]


def _is_unsigned(dtype: str) -> bool:
    return dtype in ("bool", *UNSIGNED)


def add(f: Function, dtype: str, a: Value, b: Value) -> Value:
    return f.binary("or", a, b) if dtype == "bool" else f.add(a, b)


def multiply(f: Function, dtype: str, a: Value, b: Value) -> Value:
    return f.binary("and", a, b) if dtype == "bool" else f.mul(a, b)


def negative(f: Function, dtype: str, a: Value) -> Value:
    return f.neg(a)


def absolute(f: Function, dtype: str, a: Value) -> Value:
    if a.type.is_float:
        return f.intrinsic("fabs", a)
    if _is_unsigned(dtype):
        return a
    return f.select(f.compare("slt", a, constant(a.type, 0)), f.neg(a), a)


def sign(f: Function, dtype: str, a: Value) -> Value:
    zero, one = constant(a.type, 0), constant(a.type, 1)
    if _is_unsigned(dtype):
        return f.select(f.compare("ne", a, zero), one, zero)
    if a.type.is_float:
        size = f.select(f.compare("ogt", a, zero), one, zero)
        size = f.select(f.compare("olt", a, zero), f.neg(one), size)
        return f.select(f.compare("uno", a, a), a, size)
    size = f.select(f.compare("sgt", a, zero), one, zero)
    return f.select(f.compare("slt", a, zero), constant(a.type, -1), size)


def compare(predicate: str) -> Callable[[Function, str, Value, Value], Value]:
    """A lowering for one of `eq ne lt le gt ge`, false (but for `ne`) where an operand is NaN."""

    def lower(f: Function, dtype: str, a: Value, b: Value) -> Value:
        if a.type.is_float:
            return f.compare("une" if predicate == "ne" else f"o{predicate}", a, b)
        if predicate in ("eq", "ne"):
            return f.compare(predicate, a, b)
        return f.compare(("u" if _is_unsigned(dtype) else "s") + predicate, a, b)

    return lower


def select(f: Function, dtype: str, condition: Value, a: Value, b: Value) -> Value:
    return f.select(condition, a, b)


def _nonzero(f: Function, b: Value) -> tuple[Value, Value]:
    """Whether `b` is zero, and `b` with ones in place of zeros: integer division traps on them."""
    is_zero = f.compare("eq", b, constant(b.type, 0))
    return is_zero, f.select(is_zero, constant(b.type, 1), b)


def _safe_divisor(f: Function, dtype: str, a: Value, b: Value) -> tuple[Value, Value]:
    """As `_nonzero`, and also away from the one quotient that overflows: lowest / -1."""
    is_zero, safe = _nonzero(f, b)
    if _is_unsigned(dtype):
        return is_zero, safe
    lowest = constant(a.type, -(1 << (a.type.bits - 1)))
    minus_one = f.compare("eq", safe, constant(b.type, -1))
    overflow = f.binary("and", f.compare("eq", a, lowest), minus_one)
    return is_zero, f.select(overflow, constant(b.type, 1), safe)


def quotient(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """`a / b` rounded towards zero, where neither a zero nor the overflow stands in the way.

    Processors divide integers one at a time, vectors of floats at once. A literal divisor is left
    to LLVM, which multiplies instead.
    """
    unsigned = _is_unsigned(dtype)
    instruction = "udiv" if unsigned else "sdiv"
    if not a.type.lanes or is_literal(b):
        return f.binary(instruction, a, b)
    if a.type.bits <= 32:
        return _quotient_of_floats(f, a, b, unsigned=unsigned)
    fits = _all_fit(f, [a, b], unsigned)

    def narrow() -> list[Value]:
        parts = [f.convert("trunc", x, x.type.of("i32")) for x in (a, b)]
        return [f.convert("sext", _quotient_of_floats(f, *parts, unsigned=False), a.type)]

    (result,) = f.if_else(fits, narrow, lambda: [f.binary(instruction, a, b)])
    return result


def _quotient_of_floats(f: Function, a: Value, b: Value, *, unsigned: bool) -> Value:
    """Of floats with more than twice the bits: what `a / b` lacks to the next integer is 1 / b or
    more, and rounding adds less, so that the float truncates to the same integer."""
    wide = a.type.of("double" if a.type.bits == 32 else "float")
    to, back = ("uitofp", "fptoui") if unsigned else ("sitofp", "fptosi")
    return f.convert(back, f.div(f.convert(to, a, wide), f.convert(to, b, wide)), a.type)


def _all_fit(f: Function, operands: list[Value], unsigned: bool) -> Value:
    """Whether every lane of these vectors of 64-bit integers lies above -2^31 and below 2^31, as
    indices do: the lowest 32-bit number is left out, whose quotient by -1 is too large."""
    kind, bound = operands[0].type, 1 << 31
    if not unsigned:  # counted from the least, for one comparison
        operands = [f.add(x, constant(kind, bound - 1)) for x in operands]
        bound = 2 * bound - 1
    inside = [f.compare("ult", x, constant(kind, bound)) for x in operands]
    return f.intrinsic("vector.reduce.and", f.binary("and", *inside), returns=I1)


def _floored(f: Function, dtype: str, a: Value, b: Value) -> Value | None:
    """`a / b` rounded down, 0 where the divisor is 0, by way of floats; None where other ways are
    not slower: vectors of one divisor are multiplied by 1 / b, which is computed once.

    To `a / b` half of |1 / b| is added: that is as far as all multiples are then from an integer,
    and much more than rounding adds, as floats have more than twice the bits.
    """
    unsigned = _is_unsigned(dtype)
    if not a.type.lanes or not has_rounding(Number(f, a)):
        return None
    if a.type.bits < 64 and not f.is_uniform(b):
        return None
    if a.type.bits == 64:
        fits = _all_fit(f, [a, b], unsigned)
        narrow = [f.convert("trunc", x, x.type.of("i32")) for x in (a, b)]

        def short() -> list[Value]:
            return [f.convert("sext", _floored_by_floats(f, *narrow, unsigned=False), a.type)]

        (result,) = f.if_else(fits, short, lambda: [_floored_slowly(f, dtype, a, b)])
        return result
    return _floored_by_floats(f, a, b, unsigned=unsigned)


def _floored_by_floats(f: Function, a: Value, b: Value, *, unsigned: bool) -> Value:
    wide = a.type.of("double" if a.type.bits == 32 else "float")
    to, back = ("uitofp", "fptoui") if unsigned else ("sitofp", "fptosi")
    # Less the lowest number is beyond the greatest, and wraps around as an integer.
    minus_one = f.compare("eq", b, constant(b.type, -1))
    divisor = b if unsigned else f.select(minus_one, constant(b.type, 1), b)
    inverse = f.div(constant(wide, 1.0), f.convert(to, divisor, wide))
    inverse = f.select(f.compare("eq", b, constant(b.type, 0)), constant(wide, 0.0), inverse)
    half = f.mul(f.intrinsic("fabs", inverse), constant(wide, 0.5))
    quotient = f.fma(f.convert(to, a, wide), inverse, half)
    floored = f.convert(back, f.intrinsic("floor", quotient), a.type)
    return floored if unsigned else f.select(minus_one, f.neg(a), floored)


def remainder(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """What `quotient` leaves of `a`, with the sign of `a`."""
    return f.sub(a, f.mul(quotient(f, dtype, a, b), b))


def floor_divide_integer(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """Rounded down; 0 where the divisor is 0."""
    floored = _floored(f, dtype, a, b)
    return _floored_slowly(f, dtype, a, b) if floored is None else floored


def _floored_slowly(f: Function, dtype: str, a: Value, b: Value) -> Value:
    is_zero, safe = _safe_divisor(f, dtype, a, b)
    zero = constant(a.type, 0)
    if _is_unsigned(dtype):
        return f.select(is_zero, zero, quotient(f, dtype, a, safe))
    toward_zero = quotient(f, dtype, a, safe)
    rest = f.sub(a, f.mul(toward_zero, safe))
    apart = f.compare("slt", f.binary("xor", rest, safe), zero)
    lower = f.binary("and", f.compare("ne", rest, zero), apart)
    floored = f.select(lower, f.sub(toward_zero, constant(a.type, 1)), toward_zero)
    return f.select(is_zero, zero, floored)


def mod_integer(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """With the sign of the divisor; 0 where the divisor is 0."""
    zero = constant(a.type, 0)
    floored = _floored(f, dtype, a, b)
    if floored is not None:
        rest = f.sub(a, f.mul(floored, b))
        return f.select(f.compare("eq", b, zero), zero, rest)
    is_zero, safe = _safe_divisor(f, dtype, a, b)
    if _is_unsigned(dtype):
        return f.select(is_zero, zero, remainder(f, dtype, a, safe))
    rest = remainder(f, dtype, a, safe)
    apart = f.compare("slt", f.binary("xor", rest, safe), zero)
    moved = f.binary("and", f.compare("ne", rest, zero), apart)
    return f.select(is_zero, zero, f.select(moved, f.add(rest, safe), rest))


def fmod_integer(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """With the sign of the dividend; 0 where the divisor is 0."""
    is_zero, safe = _safe_divisor(f, dtype, a, b)
    return f.select(is_zero, constant(a.type, 0), remainder(f, dtype, a, safe))


def power_integer(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """By squaring, wrapping as multiplication does. Negative exponents: 1 / a, rounded to zero."""
    one, zero = constant(a.type, 1), constant(a.type, 0)
    result, base, exponent = one, a, b
    for _ in range(a.type.bits if _is_unsigned(dtype) else a.type.bits - 1):
        odd = f.compare("ne", f.binary("and", exponent, one), zero)
        result = f.select(odd, f.mul(result, base), result)
        base = f.mul(base, base)
        exponent = f.binary("lshr", exponent, one)
    if _is_unsigned(dtype):
        return result
    odd = f.compare("ne", f.binary("and", b, one), zero)
    minus_one = constant(a.type, -1)
    inverse = f.select(f.compare("eq", a, one), one, zero)
    inverse = f.select(f.compare("eq", a, minus_one), f.select(odd, minus_one, one), inverse)
    return f.select(f.compare("slt", b, zero), inverse, result)


def bitwise(instruction: str) -> Callable[[Function, str, Value, Value], Value]:
    return lambda f, dtype, a, b: f.binary(instruction, a, b)


def invert(f: Function, dtype: str, a: Value) -> Value:
    return f.binary("xor", a, constant(a.type, 1 if dtype == "bool" else -1))


def left_shift(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """Zero where the distance leaves the type."""
    return _shift(f, a, b, "shl", constant(a.type, 0))


def right_shift(f: Function, dtype: str, a: Value, b: Value) -> Value:
    if _is_unsigned(dtype):
        return _shift(f, a, b, "lshr", constant(a.type, 0))
    sign_bits = f.binary("ashr", a, constant(a.type, a.type.bits - 1))
    return _shift(f, a, b, "ashr", sign_bits)


def _shift(f: Function, a: Value, b: Value, instruction: str, beyond: Value) -> Value:
    inside = f.compare("ult", b, constant(b.type, b.type.bits))
    safe = f.select(inside, b, constant(b.type, 0))
    return f.select(inside, f.binary(instruction, a, safe), beyond)


def greatest_common_divisor(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """Euclid's algorithm, for as long as any lane has something left."""
    zero, one, magnitude = constant(a.type, 0), constant(a.type, 1), f"uint{a.type.bits}"
    with f.repeat(carried=[absolute(f, dtype, a), absolute(f, dtype, b)]) as loop:
        x, y = loop.carried
        over = f.compare("eq", y, zero)
        rest = remainder(f, magnitude, x, f.select(over, one, y))
        loop.next = [f.select(over, x, y), f.select(over, zero, rest)]
        loop.more = Number(f, f.compare("ne", loop.next[1], zero)).any().value
    return loop.results[0]


def least_common_multiple(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """0 where an operand is 0."""
    divisor = greatest_common_divisor(f, dtype, a, b)
    is_zero, safe = _nonzero(f, divisor)
    share = quotient(f, f"uint{a.type.bits}", absolute(f, dtype, a), safe)
    product = f.mul(share, absolute(f, dtype, b))
    return f.select(is_zero, constant(a.type, 0), product)


# -- floats ---------------------------------------------------------------------------------------


def power(f: Function, dtype: str, a: Value, b: Value) -> Value:
    if not a.type.is_float:
        return power_integer(f, dtype, a, b)
    return mathematics.power(f, a, b)


def classify(test: str) -> Callable[[Function, str, Value], Value]:
    """A lowering for one of `isnan isinf isfinite signbit`."""

    def lower(f: Function, dtype: str, a: Value) -> Value:
        infinity = constant(a.type, math.inf)
        if test == "isnan":
            return f.compare("uno", a, a)
        if test == "signbit":
            return f.compare("slt", f.bits(a), constant(a.type.as_integer, 0))
        return f.compare("oeq" if test == "isinf" else "olt", f.intrinsic("fabs", a), infinity)

    return lower


def fraction(f: Function, dtype: str, a: Value) -> Value:
    """What truncation drops, with the sign of `a`; zero for infinities."""
    infinite = f.compare("oeq", f.intrinsic("fabs", a), constant(a.type, math.inf))
    rest = f.sub(a, mathematics.trunc(f, a))
    return f.intrinsic("copysign", f.select(infinite, constant(a.type, 0.0), rest), a)


def mantissa(f: Function, dtype: str, a: Value) -> Value:
    """The first part of `frexp`."""
    return frexp(Number(f, a))[0].value


def exponent(f: Function, dtype: str, a: Value) -> Value:
    """The second part of `frexp`, as 32 bits."""
    return f.convert("trunc", frexp(Number(f, a))[1].value, a.type.of("i32"))


def ldexp(f: Function, dtype: str, a: Value, exponent: Value) -> Value:
    """`a * 2 ** exponent` for 64-bit exponents."""
    bound = constant(exponent.type, 4096)  # more than any float's range; fits any integer type
    low = f.intrinsic("smax", exponent, f.neg(bound))
    narrow = f.convert("trunc", f.intrinsic("smin", low, bound), a.type.as_integer)
    return mathematics.ldexp(f, a, narrow)


# Bits of the mantissa and the least normal number of the types that are computed as float32.
_NARROW = {"float16": (10, 2.0**-14), "bfloat16": (7, 2.0**-126)}


def spacing(f: Function, dtype: str, a: Value) -> Value:
    """The distance to the next number of `dtype` away from zero, with the sign of `a`."""
    if dtype not in _NARROW:
        return mathematics.spacing(f, a)
    mantissa, least = _NARROW[dtype]
    exponent = f.binary("and", f.bits(a), constant(a.type.as_integer, 0xFF << 23))
    scale = maximum(f, dtype, f.convert("bitcast", exponent, a.type), constant(a.type, least))
    unit = f.intrinsic("copysign", f.mul(scale, constant(a.type, 2.0**-mantissa)), a)
    finite = f.compare("olt", f.intrinsic("fabs", a), constant(a.type, math.inf))
    return f.select(finite, unit, constant(a.type, math.nan))
