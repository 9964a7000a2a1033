"""Rounding to integers, quotients and remainders as NumPy has them, and the parts of a float."""

from __future__ import annotations

from heterosis.backends.native.codegen.emit.builder import Value
from heterosis.backends.native.codegen.mathematics.compensated import residual
from heterosis.backends.native.codegen.mathematics.number import Number, where

INFINITY = float("inf")


def has_rounding(x: Number) -> bool:
    """Whether the processor rounds to integers in one instruction."""
    target = x.f.module.target
    if target is None or target.triple.startswith("aarch64"):
        return True
    return any(feature in target.features for feature in ("+sse4.1", "+avx"))


def nearest(x: Number) -> Number:
    """By hand: adding 2^mantissa leaves no bits for a fraction."""
    magnitude, whole = abs(x), 2.0**52 if x.double else 2.0**23
    rounded = ((magnitude + whole) - whole).with_sign_of(x)
    return where(magnitude < whole, rounded, x)


def rint(x: Number) -> Number:
    """The nearest integer; the even one of two."""
    return x.call("roundeven") if has_rounding(x) else nearest(x)


def floor(x: Number) -> Number:
    """The greatest integer not above x."""
    if has_rounding(x):
        return x.call("floor")
    near = nearest(x)
    return where(near > x, near - 1.0, near).with_sign_of(x)


def ceil(x: Number) -> Number:
    """The least integer not below x."""
    if has_rounding(x):
        return x.call("ceil")
    near = nearest(x)
    return where(near < x, near + 1.0, near).with_sign_of(x)


def trunc(x: Number) -> Number:
    """The integer part."""
    if has_rounding(x):
        return x.call("trunc")
    return floor(abs(x)).with_sign_of(x)


def fmod_step(x: Number, y: Number) -> Number:
    """x mod y for 0 <= x, 0 < y and a quotient that fits the precision with a bit to spare."""
    quotient = trunc(x / y)
    rest = residual(x, quotient, y)
    return where(rest < 0.0, rest + y, rest)  # the division may have rounded up


def fmod(x: Number, y: Number) -> Number:
    """The remainder of x / y rounded towards zero: exact, with the sign of x."""
    a, b = abs(x), abs(y)
    bits, span = (48, 2098) if x.double else (20, 277)
    valid = (a < INFINITY) & (b > 0.0)
    huge = valid & (a >= b * 2.0**bits)

    def reduced() -> list[Value]:
        """`a` brought below b * 2^bits, that many bits of the quotient a turn."""
        turns = -(-span // bits)
        with x.f.loop(0, turns, carried=[a.value]) as loop:
            left = x.made(x.f.emit(loop.index.type, f"sub i64 {turns}, {loop.index.text}"))
            rest = a.made(loop.carried[0])
            multiple = scaled_by(b, left * bits)
            fits = huge & (multiple <= rest)
            safe = where(fits, multiple, 1.0)
            step = fmod_step(where(fits, rest, 0.0), safe)
            loop.next = [where(fits, step, rest).value]
        return loop.results

    (bounded,) = x.f.if_else(huge.any().value, reduced, lambda: [a.value], rarely=True)
    rest = fmod_step(a.made(bounded), b)
    rest = where(b == INFINITY, a, rest)
    rest = where(valid, rest, float("nan")).with_sign_of(x)
    return where(x.unordered(y), x + y, rest)


def scaled_by(x: Number, exponent: Number) -> Number:
    """x * 2^exponent for one scalar 64-bit exponent from 0 to 3 * bias, perhaps infinite."""
    mantissa, bias = (52, 1023) if x.double else (23, 127)
    f, element = x.f, "double" if x.double else "float"
    remaining = exponent
    for _ in range(3):
        part = where(remaining < bias, remaining, bias)
        remaining = remaining - part
        field = (part + bias) << mantissa
        power = field.to(f"i{x.type.bits}", "trunc") if not x.double else field
        scalar = f.convert("bitcast", power.value, x.type.scalar.of(element))
        x = x * x.made(f.splat(scalar, x.type.lanes))
    return x


def divided(x: Number, y: Number) -> tuple[Number, Number]:
    """Quotient rounded down and remainder with the sign of y, as Python and NumPy have them."""
    rest = fmod(x, y)
    quotient = (x - rest) / y
    apart = (rest != 0.0) & (rest.is_negative() ^ y.is_negative())
    quotient = where(apart, quotient - 1.0, quotient)
    rest = where(apart, rest + y, rest)
    rest = where(rest == 0.0, (rest * 0.0).with_sign_of(y), rest)
    below = floor(quotient)
    below = where(quotient - below > 0.5, below + 1.0, below)
    below = where(quotient == 0.0, (quotient * 0.0).with_sign_of(x / y), below)
    return where(y == 0.0, x / y, below), rest


def mod(x: Number, y: Number) -> Number:
    """The remainder with the sign of y."""
    return divided(x, y)[1]


def floor_divide(x: Number, y: Number) -> Number:
    """The quotient rounded down."""
    return divided(x, y)[0]


def ldexp(x: Number, exponent: Number) -> Number:
    """x * 2^exponent, rounded once; the exponent an integer of the float's width."""
    mantissa, bias = (52, 1023) if x.double else (23, 127)
    least = 1 - bias
    # Far downwards in steps that leave a whole mantissa: whatever they round is lost anyway.
    down, up = least + mantissa + 1, bias
    for _ in range(2):
        below, above = exponent < least, exponent > bias
        x = where(below, x * 2.0**down, where(above, x * 2.0**up, x))
        exponent = exponent - where(below, down, where(above, exponent.constant(up), 0))
    exponent = where(exponent < least, least, where(exponent > bias, bias, exponent))
    return x * ((exponent + bias) << mantissa).as_float


def frexp(x: Number) -> tuple[Number, Number]:
    """x as m * 2^e with m from 1/2 up to 1: m, and e as an integer of the float's width."""
    mantissa, bias, lift = (52, 1023, 54) if x.double else (23, 127, 25)
    tiny = abs(x) < 2.0 ** (1 - bias)
    bits = where(tiny, x * 2.0**lift, x).bits
    field = (bits >> mantissa) & (2 * bias + 1)
    exponent = field - where(tiny, field.constant(bias - 1 + lift), bias - 1)
    keep = ~((2 * bias + 1) << mantissa)
    fraction = ((bits & keep) | ((bias - 1) << mantissa)).as_float
    ordinary = (x != 0.0) & (abs(x) < INFINITY)
    return where(ordinary, fraction, x), where(ordinary, exponent, 0)


def nextafter(x: Number, y: Number) -> Number:
    """The float after x on the way to y."""
    bits = x.bits
    away = (x < y) ^ x.is_negative()  # from zero
    step = where(away, bits + 1, bits - 1).as_float
    least = x.bits.constant(1).as_float.with_sign_of(y)
    step = where(x == 0.0, least, step)
    step = where(x == y, y, step)
    return where(x.unordered(y), x + y, step)


def spacing(x: Number) -> Number:
    """The distance from x to the next float away from zero, with the sign of x."""
    difference = (x.bits + 1).as_float - x
    difference = where(x == 0.0, abs(difference), difference)
    return where(abs(x) < INFINITY, difference, float("nan"))
