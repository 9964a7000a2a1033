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
from heterosis.backends.native.codegen.mathematics.registers import (
    entry,
    exponent,
    nearest_step,
    normalises,
    on_vectors,
    scaled_by,
)

# m^(-1/3) for m between 2^(-3/2) and 2^(3/2), to 2^-7.1; a reweighted least-squares fit.
INVERSE_CUBE_ROOT = (1.8914284, -1.7619473, 1.225842, -0.4147283, 0.052837778)


# By the last two bits of an exponent and the first three of a fraction, for m from 1/2 up to 4: an
# inverse c of m, so that h = c * m - 1 is at most 1/17, and the cube root of 1 / c in two parts.
INVERSES = (
    0.47058824, 0.42105263, 0.3809524, 0.3478261, 0.32, 0.2962963, 0.27586207, 0.2580645,
    *(0.0,) * 8,
    1.882353, 1.6842105, 1.5238096, 1.3913044, 1.28, 1.1851852, 1.1034483, 1.032258,
    0.9411765, 0.84210527, 0.7619048, 0.6956522, 0.64, 0.5925926, 0.55172414, 0.516129,
)  # fmt: skip
ROOTS = (
    1.2856408, 1.3342009, 1.3794621, 1.4219335, 1.4620088, 1.5, 1.5361584, 1.5706904,
    *(0.0,) * 8,
    0.80990297, 0.84049386, 0.86900663, 0.89576197, 0.9210079, 0.9449408, 0.96771914, 0.9894729,
    1.0204138, 1.0589559, 1.0948797, 1.1285894, 1.1603972, 1.1905508, 1.2192497, 1.2466577,
)  # fmt: skip
ROOTS_REST = (
    -4.2029367e-08, -3.8022375e-08, -4.3291443e-08, -5.066391e-08, 4.6114057e-08, -3.7252903e-09,
    -2.7746784e-08, -5.1648772e-08,
    *(0.0,) * 8,
    -1.6708828e-08, -8.248214e-09, 2.2067564e-08, -4.512958e-09, 9.8943325e-09, -2.0360812e-08,
    2.3690017e-08, -1.3413363e-08, 1.784168e-08, -1.4387878e-08, 3.173699e-08, -3.984708e-08,
    4.5074646e-08, -1.8118799e-08, 1.6440552e-08, 2.1295229e-08,
)  # fmt: skip
# ((1 + h)^(1/3) - 1) / h: 2^-29.4 of the root, a reweighted least-squares fit.
SERIES = (0.33333322, -0.11111093, 0.06185786, -0.041287355)


def sqrt(x: Number) -> Number:
    """Square root, rounded once."""
    return x.sqrt()


def rsqrt(x: Number) -> Number:
    """1 / sqrt(x)."""
    return 1.0 / x.sqrt()


def cbrt(x: Number) -> Number:
    """Cube root."""
    return on_vectors(_tabulated_cbrt)(x) if normalises(x) else _cbrt_by_series(x)


def _tabulated_cbrt(x: Number) -> Number:
    """`x` is m * 8^n, and the cube root of m that of 1 / c times that of 1 + h."""
    magnitude = abs(x)
    n = nearest_step(exponent(magnitude) * (1.0 / 3.0), 0)
    m = scaled_by(magnitude, n * -3.0)
    index = m.bits >> 20
    h = fma(m, entry("cbrt.inverse", INVERSES, index), -1.0)
    root = entry("cbrt.root", ROOTS, index)
    rest = fma(root * h, polynomial(h, SERIES), entry("cbrt.rest", ROOTS_REST, index))
    ordinary = (x != 0.0) & (magnitude < float("inf"))
    return where(ordinary, scaled_by(root + rest, n).with_sign_of(x), x)


def _cbrt_by_series(x: Number) -> Number:
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
