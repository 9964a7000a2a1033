"""Lowerings of arithmetic on one vector, where the element type decides how."""

from __future__ import annotations

from heterosis.codegen.builder import Function, Value, constant
from heterosis.codegen.reducers import above, maximum, minimum

__all__ = ["above", "maximum", "minimum"]


def _is_unsigned(dtype: str) -> bool:
    return dtype in ("uint8", "bool")


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
        size = f.select(f.compare("one", a, zero), one, a)  # zero and NaN stay what they are
        return f.select(f.compare("olt", a, zero), f.neg(one), size)
    size = f.select(f.compare("sgt", a, zero), one, zero)
    return f.select(f.compare("slt", a, zero), constant(a.type, -1), size)


def compare(predicate: str):
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


def floor_divide_integer(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """Rounded down; 0 where the divisor is 0."""
    is_zero, safe = _safe_divisor(f, dtype, a, b)
    zero = constant(a.type, 0)
    if _is_unsigned(dtype):
        return f.select(is_zero, zero, f.binary("udiv", a, safe))
    quotient = f.binary("sdiv", a, safe)
    rest = f.sub(a, f.mul(quotient, safe))
    apart = f.compare("slt", f.binary("xor", rest, safe), zero)
    lower = f.binary("and", f.compare("ne", rest, zero), apart)
    floored = f.select(lower, f.sub(quotient, constant(a.type, 1)), quotient)
    return f.select(is_zero, zero, floored)


def mod_integer(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """With the sign of the divisor; 0 where the divisor is 0."""
    is_zero, safe = _safe_divisor(f, dtype, a, b)
    zero = constant(a.type, 0)
    if _is_unsigned(dtype):
        return f.select(is_zero, zero, f.binary("urem", a, safe))
    rest = f.binary("srem", a, safe)
    apart = f.compare("slt", f.binary("xor", rest, safe), zero)
    moved = f.binary("and", f.compare("ne", rest, zero), apart)
    return f.select(is_zero, zero, f.select(moved, f.add(rest, safe), rest))


def power_integer(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """By squaring, wrapping as multiplication does. Negative exponents: 1 / a, rounded to zero."""
    one, zero = constant(a.type, 1), constant(a.type, 0)
    result, base, exponent = one, a, b
    for _ in range(min(a.type.bits, 64) - 1 if a.type.bits > 8 else 8):
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


def bitwise(instruction: str):
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
