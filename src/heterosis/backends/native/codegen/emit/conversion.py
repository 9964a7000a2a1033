"""Between element types."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.access import COMPUTED, nearest
from heterosis.backends.native.codegen.emit.builder import Function, Type, Value, constant
from heterosis.ir.primitives.conversions import BY_WAY_OF
from heterosis.ir.types import UNSIGNED, is_float, is_half


def convert(f: Function, have: str, want: str, x: Value) -> Value:
    """The computed value `x` of element type `have` as one of type `want`."""
    to = x.type.of(COMPUTED[want].element)
    if want == "bool":
        return _truth(f, x)
    if is_float(want):
        return _to_float(f, have, want, x, to)
    if is_float(have):
        return _float_to_integer(f, want, x, to)
    if have == "bool":
        return f.convert("zext", x, to)
    if x.type.bits >= to.bits:
        return x if x.type == to else f.convert("trunc", x, to)
    return f.convert("zext" if have in UNSIGNED else "sext", x, to)


def _truth(f: Function, x: Value) -> Value:
    if x.type.element == "i1":
        return x
    return f.compare("une" if x.type.is_float else "ne", x, constant(x.type, 0))


def _to_float(f: Function, have: str, want: str, x: Value, to: Type) -> Value:
    if is_half(want):
        return nearest(f, want, _as_single(f, have, want, x, to))
    if not is_float(have):
        unsigned = have in ("bool", *UNSIGNED)
        x = f.convert("uitofp" if unsigned else "sitofp", x, to)
    elif x.type.bits != to.bits:
        x = f.convert("fpext" if x.type.bits < to.bits else "fptrunc", x, to)
    return x


def _as_single(f: Function, have: str, want: str, x: Value, to: Type) -> Value:
    """float32 that rounds to 16 bits as `x` does: integers up to float16's largest it holds."""
    if want == "bfloat16" and not is_float(have) and x.type.bits >= 32:
        signed = have not in UNSIGNED
        x = _sticky(f, x, signed) if x.type.bits == 64 else x
        x = f.convert("sitofp" if signed else "uitofp", x, x.type.of("double"))
    return (
        _rounded_to_odd(f, x, to) if x.type.element == "double" else convert(f, have, "float32", x)
    )


def _sticky(f: Function, x: Value, signed: bool) -> Value:
    """An integer that float64 holds, and that rounds to far fewer bits as `x` does: where it is
    large, its last 12 bits only tell whether they are all zero."""
    low = constant(x.type, 0xFFF)
    rest = f.compare("ne", f.binary("and", x, low), constant(x.type, 0))
    high = f.binary("and", x, constant(x.type, ~0xFFF))
    marked = f.select(rest, f.binary("or", high, constant(x.type, 0x800)), high)
    from_lowest = f.add(x, constant(x.type, 1 << 40)) if signed else x
    is_small = f.compare("ult", from_lowest, constant(x.type, 1 << 41))
    return f.select(is_small, x, marked)


def _rounded_to_odd(f: Function, x: Value, to: Type) -> Value:
    """float64 as float32, of two neighbours the one with an odd last bit: rounding it further, to
    fewer bits, gives what rounding `x` once does."""
    single = f.convert("fptrunc", x, to)
    back = f.convert("fpext", single, x.type)
    bits = f.bits(single)
    beyond = f.compare("ogt", f.intrinsic("fabs", back), f.intrinsic("fabs", x))
    toward_zero = f.sub(bits, f.convert("zext", beyond, bits.type))
    odd = f.binary("or", toward_zero, constant(bits.type, 1))
    inexact = f.compare("one", back, x)
    return f.convert("bitcast", f.select(inexact, odd, bits), to)


def _float_to_integer(f: Function, want: str, x: Value, to: Type) -> Value:
    """Truncation; by way of a wider type for some, so that values wrap as in NumPy.

    NaN and values out of range become the most negative number, as x86 does.
    """
    if want in BY_WAY_OF:
        way = BY_WAY_OF[want]
        wide = _float_to_integer(f, way, x, x.type.of(COMPUTED[way].element))
        if want == "uint64":
            return _with_large(f, x, wide)
        return f.convert("trunc", wide, to)
    low = constant(x.type, -(2.0 ** (to.bits - 1)))
    inside = f.binary(
        "and", f.compare("oge", x, low), f.compare("olt", x, constant(x.type, 2.0 ** (to.bits - 1)))
    )
    safe = f.select(inside, x, constant(x.type, 0))
    return f.select(inside, f.convert("fptosi", safe, to), constant(to, -(1 << (to.bits - 1))))


def _with_large(f: Function, x: Value, signed: Value) -> Value:
    """The bits of `signed`, and of uint64 where `x` is one that int64 does not hold."""
    half = constant(x.type, 2.0**63)
    inside = f.binary(
        "and", f.compare("oge", x, half), f.compare("olt", x, constant(x.type, 2.0**64))
    )
    rest = f.convert("fptosi", f.select(inside, f.sub(x, half), constant(x.type, 0)), signed.type)
    return f.select(inside, f.binary("xor", rest, constant(rest.type, -(1 << 63))), signed)
