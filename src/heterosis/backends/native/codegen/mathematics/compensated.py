"""Sums, products and quotients that keep what rounding would lose.

A pair (high, low) stands for their unrounded sum. All of it is right with fused multiply-add
and, by splitting factors into halves, without.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.number import Number, fma, where

Pair = tuple[Number, Number]


def has_fma(x: Number) -> bool:
    """Whether the processor multiplies and adds with one rounding."""
    target = x.f.module.target
    return target is None or "+fma" in target.features or target.triple.startswith("aarch64")


def exact_fma(a: Number, b: Number | float, c: Number | float) -> Number:
    """`a * b + c` rounded once; only where `has_fma`."""
    return a.call("fma", b, c)


def quick_sum(a: Number, b: Number) -> Pair:
    """a + b, exactly, where |a| >= |b| or a is zero."""
    total = a + b
    return total, b - (total - a)


def exact_sum(a: Number, b: Number) -> Pair:
    """a + b, exactly."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def halves(a: Number) -> Pair:
    """`a` split so that products of halves are exact."""
    high = (a.bits & (-(1 << 27) if a.double else -(1 << 12))).as_float
    return high, a - high


def exact_product(a: Number, b: Number) -> Pair:
    """a * b, exactly, barring overflow and underflow."""
    product = a * b
    if has_fma(a):
        return product, exact_fma(a, b, -product)
    (ah, al), (bh, bl) = halves(a), halves(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def residual(a: Number, b: Number, c: Number) -> Number:
    """a - b * c, where b * c is so near to `a` that the difference is a float."""
    if has_fma(a):
        return exact_fma(-b, c, a)
    product, error = exact_product(b, c)
    return (a - product) - error


def pair_product(a: Pair, b: Pair) -> Pair:
    """a * b, not normalised: the second part may exceed half a unit of the first a little."""
    product, lost = exact_product(a[0], b[0])
    return product, fma(a[0], b[1], fma(a[1], b[0], lost))


def pair_quotient(a: Pair, b: Pair, inverse: Number | None = None) -> Pair:
    """a / b with one division, or with none, if the `inverse` of b is known to some units."""
    inverse = 1.0 / b[0] if inverse is None else inverse
    first = a[0] * inverse
    rest = residual(a[0], first, b[0]) + (a[1] - first * b[1])
    return first, rest * inverse


def quotient(a: Pair, b: Pair) -> Number:
    """a / b, rounded nearly once, with one division."""
    first, rest = pair_quotient(a, b)
    return first + rest


def choose(condition: Number, a: Pair, b: Pair) -> Pair:
    """`a` where the condition holds, else `b`."""
    return where(condition, a[0], b[0]), where(condition, a[1], b[1])


def reciprocal(a: Pair) -> Number:
    """1 / a, rounded nearly once."""
    inverse = 1.0 / a[0]
    rest = fma(-inverse, a[1], residual(a[0].constant(1.0), inverse, a[0]))
    return fma(rest, inverse, inverse)
