"""gamma and gammaln in double precision, carrying pairs.

Stirling's formula from 8 up, a product of shifts below, reflection left of 0. The polynomials are
reweighted least-squares fits in 200-bit arithmetic; `2^-n` is the error they leave.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.compensated import (
    Pair,
    choose,
    exact_product,
    exact_sum,
    pair_product,
    pair_quotient,
    quick_sum,
)
from heterosis.backends.native.codegen.mathematics.exponential import exp_of_pair, scaled
from heterosis.backends.native.codegen.mathematics.logarithm import log_pair
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_most,
    fma,
    polynomial,
    split_polynomial,
    where,
)

INFINITY = float("inf")
PI = (3.141592653589793, 1.2246467991473532e-16)
ROOT_TWO_PI = (2.5066282746310007, -1.8328579980459167e-16)
HALF_LOG_TWO_PI = (0.9189385332046728, -3.8782941580672414e-17)

# y * (lgamma(y) - (y - 1/2) log(y) + y - log(2 pi) / 2) in powers of 1 / y^2, y >= 8: 2^-57.6.
STIRLING = (
    0.08333333333333333, -0.002777777777756053, 0.0007936507764845155, -0.0005952329601784394,
    0.0008410211368033207, -0.0018647265331970786, 0.004516009905921211,
)  # fmt: skip
# y * (exp of the above / y - 1) in powers of 1 / y: 2^-64.6.
GAMMA_FACTOR = (
    0.08333333333333337, 0.0034722222222060657, -0.0026813271581318356, -0.00022947226290100014,
    0.0007840461899658612, 6.954964315422376e-05, -0.0005892063914591854,
    -8.384726402699081e-05, 0.001063594937814411, -0.0008675584532855494,
)  # fmt: skip
# (sin(pi r) / r - pi) / r^2 in powers of r^2, |r| <= 1/2: 2^-60.6.
SINE_OF_TURN = (
    -5.167712780049969, 2.550164039877271, -0.5992645293178669, 0.082145886554892,
    -0.00737043034251161, 0.0004662990129696506, -2.1901454901565695e-05, 7.67682876943176e-07,
)  # fmt: skip
# lgamma(1 + t) / t and lgamma(2 + t) / t, |t| <= 1/16: 2^-56.5 and 2^-55.8.
NEAR_ONE = (
    -0.5772156649015329, 0.8224670334241135, -0.40068563438651383, 0.2705808084248031,
    -0.20738555104716294, 0.16955718209973986, -0.14404989039947239, 0.12550642079481944,
    -0.11133389704002722, 0.10097177089297187, -0.09152687468416117,
)  # fmt: skip
NEAR_TWO = (
    0.42278433509846713, 0.32246703342411276, -0.06735230105318464, 0.020580808430037335,
    -0.007385551041009455, 0.002890507992254829, -0.0011927490789975354,
    0.0005105154578074699, -0.00022396490746661734,
)  # fmt: skip
SHIFT = 8.0


def sine_of_turn(x: Number) -> Pair:
    """sin(pi * x), exactly zero at integers, NaN at infinities."""
    from_even = x - nearest_even_integer(x)
    magnitude = abs(from_even)
    r = where(magnitude > 0.5, 1.0 - magnitude, magnitude).with_sign_of(from_even)
    z = r * r
    product, lost = exact_product(r, r.constant(PI[0]))
    tail = z * r * split_polynomial(z, z * z, SINE_OF_TURN)
    return quick_sum(product, fma(r, PI[1], lost) + tail)


def nearest_even_integer(x: Number) -> Number:
    """The nearest multiple of two."""
    magnitude = abs(x)
    even = ((magnitude + 2.0**53) - 2.0**53).with_sign_of(x)  # floats are even from there on
    return where(magnitude < 2.0**53, even, x)


def shifted_up(x: Number) -> tuple[Pair, Pair]:
    """y = x + n from 8 up, and the product of x, x + 1, ... x + n - 1; x is above -1."""
    one, zero = x.constant(1.0), x.constant(0.0)
    steps, product, lost, factor, factor_lost = zero, one, zero, x, zero
    for _ in range(9):
        low = factor < SHIFT
        next_product = pair_product((product, lost), (factor, factor_lost))
        product = where(low, next_product[0], product)
        lost = where(low, next_product[1], lost)
        steps = where(low, steps + 1.0, steps)
        factor, factor_lost = exact_sum(steps, x)
    return (factor, factor_lost), (product, lost)


def stirling_exponent(y: Pair) -> tuple[Pair, Number]:
    """(y - 1/2) * log(y) - y as a pair, and 1 / y."""
    high, low = log_pair(y[0])
    less_one, less_lost = exact_sum(high, high.constant(-1.0))
    total, lost = pair_product((y[0], y[1]), (less_one, less_lost + low))
    total, more = quick_sum(total, high * -0.5)
    inverse = 1.0 / y[0]
    # The logarithm was that of y[0] alone; y[1] * (log(y) - 1) of the slope is in the product.
    slope = fma(inverse, -0.5, 1.0)
    return (total, (lost + more) + fma(low, -0.5, y[1] * slope)), inverse


def reflected(x: Number) -> tuple[Number, Number]:
    """Whether x goes by reflection, and the argument that is used in its place."""
    left = x < -0.5
    return left, where(left, -x, x)


def gamma_double(x: Number) -> Number:
    """gamma with one exponential, inverted where x is reflected."""
    left, positive = reflected(x)
    y, product = shifted_up(at_most(positive, 200.0))
    exponent, inverse = stirling_exponent(y)
    exponent = where(left, -exponent[0], exponent[0]), where(left, -exponent[1], exponent[1])
    shifted, power = exp_of_pair(*exponent)
    near_one = quick_sum(x.constant(1.0), inverse * polynomial(inverse, GAMMA_FACTOR))
    root = x.constant(ROOT_TWO_PI[0]), x.constant(ROOT_TWO_PI[1])
    factor = pair_product(root, near_one)
    # Right: power * factor / product. Left: power * -pi * product / (|x| * sin(pi |x|) * factor).
    sine = pair_product(sine_of_turn(positive), (-positive, x.constant(0.0)))
    pi = x.constant(PI[0]), x.constant(PI[1])
    above = choose(left, pair_product(pi, product), factor)
    below = choose(left, pair_product(sine, factor), product)
    ratio = pair_quotient(pair_product(power, above), below)
    result = scaled(ratio[0] + ratio[1], shifted)
    pole = left & (sine[0] == 0.0)
    result = where(pole | (x == -INFINITY), float("nan"), result)
    return where(abs(x) < 1e-30, 1.0 / x, result)


def gammaln_double(x: Number) -> Number:
    """log |gamma(x)|."""
    left, positive = reflected(x)
    y, product = shifted_up(positive)
    (total, lost), inverse = stirling_exponent(y)
    total, more = quick_sum(total, x.constant(HALF_LOG_TWO_PI[0]))
    square = inverse * inverse
    series = fma(inverse, polynomial(square, STIRLING), HALF_LOG_TWO_PI[1])
    lost = (lost + more) + series
    # Right: minus log(product). Left: minus log(pi * product / (|x| * sin(pi |x|))), negated.
    sine = pair_product(sine_of_turn(positive), (positive, x.constant(0.0)))
    pi = x.constant(PI[0]), x.constant(PI[1])
    ratio = pair_quotient(pair_product(pi, product), sine)
    argument, argument_rest = choose(left, ratio, product)
    high, low = log_pair(abs(argument))
    low = low + argument_rest / argument
    total, more = exact_sum(total, -high)
    result = total + (lost + more - low)
    result = where(left, -result, result)
    for centre, near in ((1.0, NEAR_ONE), (2.0, NEAR_TWO)):
        t = x - centre
        result = where(abs(t) <= 0.0625, t * polynomial(t, near) + 0.0, result)
    endless = (x == 0.0) | (left & (sine[0] == 0.0)) | (abs(x) > 2.5563481638716906e305)
    return where(x.is_nan(), x, where(endless, INFINITY, result))
