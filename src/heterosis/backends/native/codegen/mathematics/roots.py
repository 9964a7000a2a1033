"""sqrt and its inverse, cbrt, hypot."""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.compensated import (
    exact_product,
    quick_sum,
    residual,
)
from heterosis.backends.native.codegen.mathematics.exponential import magic, power_of_two
from heterosis.backends.native.codegen.mathematics.logarithm import split
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_least,
    fma,
    polynomial,
    where,
)

# m^(-1/3) for m between 2^(-3/2) and 2^(3/2), to 2^-7.1; a reweighted least-squares fit.
INVERSE_CUBE_ROOT = (1.8914284, -1.7619473, 1.225842, -0.4147283, 0.052837778)


def sqrt(x: Number) -> Number:
    """Square root, rounded once."""
    return x.sqrt()


def rsqrt(x: Number) -> Number:
    """1 / sqrt(x)."""
    return 1.0 / x.sqrt()


def cbrt(x: Number) -> Number:
    """Cube root."""
    e, f = split(abs(x))
    shift = magic(x, 1023 if x.double else 127)
    shifted = fma(e, 1.0 / 3.0, shift)
    third = shifted - shift
    rest = fma(third, -3.0, e)  # -1, 0 or 1
    m = (f + 1.0) * where(rest < 0.0, x.constant(0.5), where(rest > 0.0, x.constant(2.0), 1.0))
    y = polynomial(m, INVERSE_CUBE_ROOT)
    # h = 1 - m * y^3 is small: y * (1 - h)^(-1/3) by its series, twice for double precision.
    series = (1.0 / 3.0, 2.0 / 9.0, 14.0 / 81.0)
    for terms in (series, series[:2]) if x.double else (series,):
        h = fma(y * y, -(m * y), 1.0)
        y = fma(y, h * polynomial(h, terms), y)
    square = y * y
    c = m * square
    # One step of Newton's on c^3 = m, its residual exact, 1 / (3 c^2) = y^2 / 3.
    p, p_lost = exact_product(c, c)
    q, q_lost = exact_product(p, c)
    wrong = (q - m) + fma(p_lost, c, q_lost)
    root = fma(wrong, square * (-1.0 / 3.0), c) * power_of_two(shifted)
    ordinary = (x != 0.0) & (abs(x) < float("inf"))
    return where(ordinary, root.with_sign_of(x), x)


def hypot(x: Number, y: Number) -> Number:
    """sqrt(x^2 + y^2) without overflow on the way."""
    a, b = abs(x), abs(y)
    swap = b > a
    a, b = where(swap, b, a), where(swap, a, b)
    large, small, scale = (2.0**500, 2.0**-400, 2.0**600) if x.double else (
        2.0**60, 2.0**-40, 2.0**80
    )  # fmt: skip
    down, up = a > large, a < small
    factor = where(down, a.constant(1.0 / scale), where(up, a.constant(scale), 1.0))
    back = where(down, a.constant(scale), where(up, a.constant(1.0 / scale), 1.0))
    first, first_lost = exact_product(a * factor, a * factor)
    second, second_lost = exact_product(b * factor, b * factor)
    total, lost = quick_sum(first, second)
    root = total.sqrt()
    wrong = residual(total, root, root) + (lost + (first_lost + second_lost))
    result = (root + wrong / at_least(root + root, 1e-200 if x.double else 1e-30)) * back
    result = where(x.unordered(y), x + y, result)
    infinite = (a == float("inf")) | (b == float("inf"))
    return where(infinite, float("inf"), result)
