"""Angles reduced to a quadrant and a remainder, exactly enough for every finite argument.

Moderate angles: x - n * pi/2 with pi/2 in parts (Cody and Waite). Huge ones: the fraction of
x * 2/pi in 192-bit integers (Payne and Hanek), lane by lane, behind a branch.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

from heterosis.backends.native.codegen.emit.builder import (
    DOUBLE,
    I64,
    Function,
    Module,
    Type,
    Value,
)
from heterosis.backends.native.codegen.mathematics.compensated import (
    exact_fma,
    exact_product,
    exact_sum,
    has_fma,
    quick_sum,
)
from heterosis.backends.native.codegen.mathematics.exponential import magic
from heterosis.backends.native.codegen.mathematics.number import Number, fma, where

TWO_OVER_PI = 0.6366197723675814
# pi/2 in parts of full precision, for fused products.
PARTS = {
    False: (1.5707964, -4.371139e-08, -1.7151245e-15),
    True: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
}
# pi/2 in parts of 33 bits and a rest: products with n below 2^20 are exact without fusing.
SHORT_PARTS = (
    1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32,
)  # fmt: skip
# Beyond these the parts run out of bits.
LIMITS = {False: 2.0**16, True: 2.0**20}

Reduced = tuple[Number, Number, Number]


def reduce_angle(x: Number) -> Reduced:
    """x as n * pi/2 + (r + rest): gives n, an integer right modulo 4, then r and the rest."""
    n, r, rest = _moderate(x)
    huge = abs(x) > LIMITS[x.double]

    def exact() -> list[Value]:
        return [part.value for part in _huge_lanes(x, huge, (n, r, rest))]

    moderate = [n.value, r.value, rest.value]
    merged = x.f.if_else(huge.any().value, exact, lambda: moderate, rarely=True)
    n, r, rest = (x.made(value) for value in merged)
    return n, r, rest


def _moderate(x: Number) -> Reduced:
    if not x.double and not has_fma(x):
        n, r, rest = _moderate_short(x.to_double())
        single = (r + rest).to_single()
        return n.to("i32", "trunc"), single, ((r - single.to_double()) + rest).to_single()
    if not has_fma(x):
        return _moderate_short(x)
    shifted = fma(x, TWO_OVER_PI, magic(x))
    n = shifted - magic(x)
    first, second, third = PARTS[x.double]
    whole = exact_fma(n, -first, x)  # exact: it has fewer bits than x and n * first share
    product, product_lost = exact_product(n, n.constant(-second))
    # Exact where `whole` is the smaller, too: its last bit is above the last one of the sum.
    r, lost = quick_sum(whole, product)
    return shifted.bits, r, exact_fma(n, -third, lost + product_lost)


def _moderate_short(x: Number) -> Reduced:
    shifted = x * TWO_OVER_PI + magic(x)
    n = shifted - magic(x)
    first, second, third, fourth = SHORT_PARTS
    r, lost = exact_sum(x - n * first, n * -second)
    r, more = exact_sum(r, n * -third)
    return shifted.bits, r, (lost + more) - n * fourth


def _huge_lanes(x: Number, huge: Number, moderate: Reduced) -> Reduced:
    """The reduction again for the lanes where `huge`; NaN for infinities."""
    f, lanes = x.f, x.type.lanes
    _define_exact_reduction(f.module)
    wide = x if x.double else x.to_double()
    wide = where(huge, wide, 2.0**30)
    n, r = wide.bits, wide
    if not lanes:
        n, r, rest = _exact_reduction(wide)
    else:
        with f.loop(0, lanes, carried=[n.value, r.value, r.value]) as loop:
            lane = loop.index
            item = f.emit(DOUBLE, f"extractelement {wide.value}, {lane}")
            results = _exact_reduction(x.made(item))
            loop.next = [
                f.emit(into.type, f"insertelement {into}, {result.value}, {lane}")
                for into, result in zip(loop.carried, results, strict=True)
            ]
        n, r, rest = (x.made(value) for value in loop.results)
    undefined = x - x  # zero, or NaN where x is infinite
    if not x.double:
        single = r.to_single()
        n, r, rest = n.to("i32", "trunc"), single, (r - single.to_double() + rest).to_single()
    old_n, old_r, old_rest = moderate
    return where(huge, n, old_n), where(huge, r + undefined, old_r), where(huge, rest, old_rest)


_EXACT, _TRIPLE = "exact_angle_reduction", Type("{ i64, double, double }")


def _exact_reduction(x: Number) -> Reduced:
    triple = x.f.call(_EXACT, [x.value], _TRIPLE)
    parts = (f"extractvalue {triple}, {i}" for i in range(3))
    n, r, rest = (
        x.made(x.f.emit(t, text)) for t, text in zip((I64, DOUBLE, DOUBLE), parts, strict=True)
    )
    return n, r, rest


@cache
def two_over_pi_words() -> tuple[int, ...]:
    """64 zero bits, then the first 1344 bits of 2 / pi, as signed 64-bit words."""
    bits = 1344 + 64
    one = 1 << bits

    def arctan_inverse(k: int) -> int:
        total = term = one // k
        for divisor in range(3, bits, 2):
            term //= -k * k
            total += term // divisor
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))  # Machin's formula
    digits = (2 << 2 * bits) // pi >> (bits - 1344)
    words = [digits >> shift & 0xFFFFFFFFFFFFFFFF for shift in range(1344, -1, -64)]
    return tuple(word - (word >> 63 << 64) for word in words)


def _define_exact_reduction(module: Module) -> None:
    """A function of one double from 2^16 up: its quadrant, remainder and rest."""
    if module.defines(_EXACT):
        return
    f = module.function(
        _EXACT,
        [("x", DOUBLE)],
        _TRIPLE,
        attributes="noinline cold",  # called once in an age
    )
    x = Number(f, f.parameters[0])
    bits = x.bits
    exponent = (bits >> 52) & 0x7FF
    mantissa = (bits & 0xFFFFFFFFFFFFF) | (1 << 52)
    # x = mantissa * 2^(exponent - 1075). Bits of 2/pi that give multiples of 4 are skipped.
    n, fraction = _fraction(f, mantissa, exponent - (1075 - 62))
    n, r, rest = _radians(n, fraction)
    sign = bits & (-1 << 63)
    n = where(bits < 0, n.constant(0) - n, n)
    triple = f.emit(_TRIPLE, f"insertvalue {_TRIPLE} poison, {n.value}, 0")
    for place, part in ((1, r), (2, rest)):
        signed = part.flip_sign(sign).value
        triple = f.emit(_TRIPLE, f"insertvalue {triple}, {signed}, {place}")
    f.ret(triple)


def _fraction(f: Function, mantissa: Number, start: Number) -> tuple[Number, Number]:
    """mantissa times the bits of 2/pi from `start` on, modulo 4: nearest integer and the rest.

    The rest is a signed 128-bit integer in units of 2^-126.
    """
    table = f.module.table("two_over_pi", I64, two_over_pi_words())
    word = start >> 6
    words = [
        mantissa.made(f.load(I64, f.offset(I64, table, (word + i).value), align=8))
        for i in range(4)
    ]
    shift = start & 63

    def wide(a: Number) -> Number:
        return a.to("i128", "zext")

    window = [
        mantissa.made(f.intrinsic("fshl", a.value, b.value, shift.value))
        for a, b in pairwise(words)
    ]
    low = _shift_wide(wide(mantissa) * wide(window[2]), "lshr", 64)
    middle = wide(mantissa) * wide(window[1]) + low
    total = middle + _shift_wide(wide(mantissa * window[0]), "shl", 64)
    half = _wide_constant(total, 1 << 125)
    n = _shift_wide(total + half, "lshr", 126)
    return n.to("i64", "trunc"), total - _shift_wide(n, "shl", 126)


def _wide_constant(like: Number, number: int) -> Number:
    return like.made(Value(like.type, str(number)))


def _shift_wide(a: Number, instruction: str, count: int) -> Number:
    return a.made(a.f.binary(instruction, a.value, _wide_constant(a, count).value))


def _radians(n: Number, fraction: Number) -> Reduced:
    """The signed fraction of a quadrant in units of 2^-126, as a pair of doubles times pi/2."""
    negative = _shift_wide(fraction, "ashr", 127)  # all ones or zero
    magnitude = (fraction ^ negative) - negative
    high = _shift_wide(magnitude, "lshr", 64).to("i64", "trunc")
    low = magnitude.to("i64", "trunc").to("double", "uitofp") * 2.0**-126
    top = high.to("double", "uitofp")
    bottom = (high - top.to("i64", "fptoui")).to("double", "sitofp") * 2.0**-62
    turn, turn_rest = quick_sum(top * 2.0**-62, bottom + low)
    first, second, _ = PARTS[True]
    product, lost = exact_product(turn, turn.constant(first))
    r, rest = quick_sum(product, lost + (turn * second + turn_rest * first))
    sign = negative.to("i64", "trunc") << 63
    return n, r.flip_sign(sign), rest.flip_sign(sign)
