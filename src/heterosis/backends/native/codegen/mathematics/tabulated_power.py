"""Powers of single precision from tables that the processor looks up in registers.

x^y = 2^t, t = y * log2(x): a logarithm of two floats, most of whose bits are in sums and products
that are exact or keep what rounding takes; then t as k / 32 + g, 2^(k / 32) from a table of two
floats and 2^g - 1, which is small.
"""

from __future__ import annotations

from collections.abc import Callable

from heterosis.backends.native.codegen.emit.builder import Value
from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    exact_fma,
    exact_product,
    quick_sum,
)
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    fma,
    polynomial,
    split_polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.registers import (
    entry,
    exponent,
    fraction,
    nearest_step,
    scaled_by,
)
from heterosis.backends.native.codegen.mathematics.tabulated_logarithm import (
    INVERSES,
    LOG2,
    SLOPES,
)

# What logarithms of base 2 are beyond LOG2.
LOG2_REST = (
    0.0, -9.441905e-11, 4.2235437e-10, -7.673842e-11, 3.821137e-10, -4.0168038e-10, 6.4362854e-10,
    1.2272522e-10, -1.4484063e-11, -6.233641e-10, -1.2500216e-10, -1.5681513e-10, -7.67268e-10,
    2.0341494e-10, -1.2741189e-11, 1.6558284e-9, 1.04365015e-11, 1.0522639e-10, -3.785916e-11,
    -1.4117774e-9, 6.380524e-10, -1.0540315e-10, 3.4966832e-10, 1.3860495e-10, 5.9091043e-10,
    9.0510884e-11, -9.760067e-10, -1.6038056e-9, 3.3184197e-10, -3.1926906e-10, -8.200185e-11, 0.0,
)  # fmt: skip
# 2^(n/32), in two parts.
EXP2 = (
    1.0, 1.0218972, 1.0442737, 1.0671405, 1.0905077, 1.1143868, 1.1387886, 1.1637249, 1.1892071,
    1.2152474, 1.2418578, 1.269051, 1.2968396, 1.3252367, 1.3542556, 1.38391, 1.4142135, 1.4451808,
    1.4768262, 1.5091645, 1.5422108, 1.5759809, 1.6104903, 1.6457555, 1.6817929, 1.7186193,
    1.7562522, 1.7947091, 1.8340081, 1.8741677, 1.9152066, 1.9571441,
)  # fmt: skip
EXP2_REST = (
    0.0, -4.81156e-8, 4.83347e-8, -5.933752e-8, -1.307754e-8, -5.43554e-8, 5.3862223e-8,
    -4.0514415e-8, 3.7976353e-8, -3.267395e-8, 4.496838e-8, 1.4193333e-9, -4.0189995e-8,
    -3.4963733e-8, -1.0123349e-8, -5.8755774e-8, 2.4203235e-8, 3.3242e-8, -4.500899e-8,
    -2.4959373e-8, 8.070905e-9, -5.6610254e-8, 9.836217e-9, -5.124972e-8, -2.4755327e-8,
    -4.8496176e-8, -9.23577e-9, -1.1415045e-8, -1.1239278e-8, -4.6630056e-8, 9.845328e-9,
    -1.7021804e-8,
)  # fmt: skip
# (log2(1 + r) - SLOPES[2] * (r - r^2 / 2)) / r in powers of r: 2^-39.8, relative.
SERIES = (1.9259176e-08, -9.38067e-09, 0.48089835, -0.36067677, 0.28855988, -0.23218185)
# (2^g - 1) / g for |g| <= 0.06: 2^-32.5, relative to 2^g. So far g goes below LIMIT.
EXP2_SERIES = (0.6931472, 0.2402265, 0.055507615, 0.009618556)
MAGIC = 1.5 * 2.0**18  # added to a multiple of 1/32, it leaves those multiples in the low bits
LIMIT = 160.0  # of |t|, where powers are 0 or infinite
INFINITY = float("inf")


def log2_pair(x: Number) -> Pair:
    """log2 |x| to about 38 bits; the second part is below 2^-11 times the first."""
    m, e = fraction(x, of_magnitude=True), exponent(x)
    index = m.bits >> 18
    c = entry("log.inverse", INVERSES, index)
    product = m * c
    product_lost = exact_fma(m, c, -product)
    r = product - 1.0  # exact
    slope = SLOPES[2]
    # The first two terms, slope * r * (1 - r / 2), keep what is lost; the others are small.
    factor = fma(r, -slope / 2, slope)
    factor_lost = exact_fma(r, r.constant(-slope / 2), slope - factor)
    first, lost = exact_product(r, factor)
    total, total_lost = quick_sum(e + entry("log2.first", LOG2, index), first)
    # product_lost / (1 + r), as far as it matters
    more = fma(-r, fma(-r, product_lost, product_lost), product_lost)
    lost = fma(r, factor_lost, lost + total_lost)
    lost = fma(more, slope, lost + entry("log2.rest", LOG2_REST, index))
    return total, fma(r, split_polynomial(r, r * r, SERIES), lost)


def power(x: Number, y: Number, at_edges: Callable[[Number], Number]) -> Number:
    """|x|^y. Only where some x is not positive or some result beyond the range of floats, which is
    rare, `at_edges` is to make of the results what they should be."""
    log, log_lost = log2_pair(x)
    t = y * log
    k = nearest_step(t, 5)
    g = fma(y, log_lost, (t - k) + exact_fma(y, log, -t))
    index = (k + MAGIC).bits
    high, low = entry("exp2", EXP2, index), entry("exp2.rest", EXP2_REST, index)
    more = fma(high * g, polynomial(g, EXP2_SERIES), low)
    result = scaled_by(high + more, k)  # by the whole number below k

    def edges() -> list[Value]:
        one = t.constant(1.0)  # to an infinite power
        beyond = where(t > 0.0, INFINITY, where(t < 0.0, 0.0, one))
        return [at_edges(where(abs(t) < LIMIT, result, beyond)).value]

    # Where x is zero, or anything infinite or NaN, t is beyond the limit.
    rare = t.with_sign_of(x).bits.unsigned_at_least(t.constant(LIMIT).bits)
    (value,) = x.f.if_else(rare.any().value, edges, lambda: [result.value], rarely=True)
    return x.made(value)
