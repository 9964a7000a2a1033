"""gamma, gammaln and digamma in plain double arithmetic: to the precision of floats, and more.

As `gamma_double`: Stirling's formula, a product of shifts, reflection. The polynomials are
reweighted least-squares fits in 200-bit arithmetic; `2^-n` is the error they leave.
"""

from __future__ import annotations

from heterosis.backends.native.codegen.mathematics.exponential import exp
from heterosis.backends.native.codegen.mathematics.gamma_double import (
    HALF_LOG_TWO_PI,
    INFINITY,
    NEAR_ONE,
    NEAR_TWO,
    PI,
    ROOT_TWO_PI,
    SHIFT,
    nearest_even_integer,
    reflected,
)
from heterosis.backends.native.codegen.mathematics.logarithm import log
from heterosis.backends.native.codegen.mathematics.number import (
    Number,
    at_most,
    fma,
    polynomial,
    where,
)
from heterosis.backends.native.codegen.mathematics.rounding import rint

# As STIRLING and GAMMA_FACTOR, with fewer terms: 2^-41.3 and 2^-44.8.
STIRLING = (
    0.08333333333297328, -0.0027777770344003024, 0.0007934104954114907, -0.0005701967100243306,
)  # fmt: skip
GAMMA_FACTOR = (
    0.08333333334945468, 0.003472219686394764, -0.0026811941559104656, -0.00023268936183682304,
    0.0008236134582303334, -0.00017241988466682384,
)  # fmt: skip
# sin(pi r) / r in powers of r^2, |r| <= 1/2: 2^-52.3.
SINE_OF_TURN = (
    3.1415926535897927, -5.167712780049734, 2.550164039858976, -0.5992645287606253,
    0.08214587811075352, -0.0073703603166990084, 0.0004659756243365806, -2.1120847174802763e-05,
)  # fmt: skip
# y^2 * (log(y) - 1 / (2 y) - digamma(y)) in powers of 1 / y^2, y >= 8: 2^-58.9.
DIGAMMA = (
    0.08333333333332583, -0.008333333323897688, 0.003968250005831082, -0.004165897848980259,
    0.007499526641716028, -0.017270590526560752,
)  # fmt: skip


def sine_of_turn(x: Number) -> Number:
    """sin(pi * x), exactly zero at integers, NaN at infinities."""
    from_even = x - nearest_even_integer(x)
    magnitude = abs(from_even)
    r = where(magnitude > 0.5, 1.0 - magnitude, magnitude).with_sign_of(from_even)
    return r * polynomial(r * r, SINE_OF_TURN)


def shifted_up(x: Number) -> tuple[Number, Number, Number]:
    """y = x + n from 8 up, the product of x ... x + n - 1 and its slope; x is above -1."""
    y, product, slope = x, x.constant(1.0), x.constant(0.0)
    for _ in range(9):
        low = y < SHIFT
        slope = where(low, fma(slope, y, product), slope)
        product = where(low, product * y, product)
        y = where(low, y + 1.0, y)
    return y, product, slope


def gamma_single(x: Number) -> Number:
    """gamma for doubles, to more bits than a float has and within its range."""
    left, positive = reflected(x)
    y, product, _ = shifted_up(at_most(positive, 60.0))
    inverse = 1.0 / y
    exponent = fma(y - 0.5, log(y), -y)
    factor = fma(inverse * polynomial(inverse, GAMMA_FACTOR), ROOT_TWO_PI[0], ROOT_TWO_PI[0])
    sine = sine_of_turn(positive)
    above = where(left, product * -PI[0], factor)
    below = where(left, positive * sine * factor, product)
    result = exp(where(left, -exponent, exponent)) * (above / below)
    undefined = (left & (sine == 0.0)) | (x == -INFINITY)
    return where(undefined, float("nan"), result)


def gammaln_single(x: Number) -> Number:
    """log |gamma(x)| for doubles, to more bits than a float has and within its range."""
    left, positive = reflected(x)
    y, product, _ = shifted_up(positive)
    inverse = 1.0 / y
    series = inverse * polynomial(inverse * inverse, STIRLING)
    total = fma(y - 0.5, log(y), -y) + (series + HALF_LOG_TWO_PI[0])
    sine = sine_of_turn(positive)
    argument = where(left, product * PI[0] / (positive * sine), product)
    result = total - log(abs(argument))
    result = where(left, -result, result)
    for centre, near in ((1.0, NEAR_ONE), (2.0, NEAR_TWO)):
        t = x - centre
        result = where(abs(t) <= 0.0625, t * polynomial(t, near) + 0.0, result)
    endless = (left & (sine == 0.0)) | (abs(x) == INFINITY)
    return where(endless, INFINITY, result)


def digamma_double(x: Number) -> Number:
    """The slope of gammaln: of Stirling's formula, less that of the shifts' logarithm."""
    left, positive = reflected(x)
    y, product, slope = shifted_up(positive)
    inverse = 1.0 / y
    square = inverse * inverse
    series = fma(square, polynomial(square, DIGAMMA), inverse * 0.5)
    result = log(y) - (series + slope / product)
    # digamma(-a) = digamma(a) + 1 / a + pi / tan(pi a), the tangent from the nearest integer.
    turn = positive - rint(positive)
    sine = sine_of_turn(turn)
    ratio = PI[0] * sine_of_turn(0.5 - abs(turn)) / sine
    result = where(left, result + (1.0 / positive + ratio), result)
    undefined = (left & (sine == 0.0)) | (x == -INFINITY)
    result = where(undefined, float("nan"), result)
    return where(x == INFINITY, INFINITY, result)
