"""Random numbers as a function of a counter and a key: bits, and numbers made from them.

Counters and keys are 64-bit integers. The counter's lower 40 bits are an element's place; those
above number the blocks that one element takes. Nothing depends on the order of evaluation, so
numbers are the same for every width of vectors, every number of threads and every fusion.
"""

from __future__ import annotations

import math

from heterosis.backends.native.codegen.mathematics.logarithm import log_by_series
from heterosis.backends.native.codegen.mathematics.number import Number, at_most, fma, where
from heterosis.backends.native.codegen.mathematics.trigonometric import sine_and_cosine
from heterosis.ir.primitives.random_bits import PLACE_BITS

_LOW = 0xFFFFFFFF
_MULTIPLIER, _WEYL = 0xD256D193, 0x9E3779B9  # Philox 2x32
_ROUNDS = 10


def block(counter: Number, key: Number) -> Number:
    """64 random bits: Philox 2x32-10 (Salmon et al., 2011), its halves in one integer.

    The key's upper half is added to the counter's: calls whose keys agree in the lower half only
    still read different parts of one stream.
    """
    left = counter & _LOW
    right = (counter ^ key) >> 32
    round_key = key & _LOW
    for _ in range(_ROUNDS):
        product = left * _MULTIPLIER
        left, right = (product >> 32) ^ round_key ^ right, product & _LOW
        round_key = (round_key + _WEYL) & _LOW
    return (left << 32) | right


def numbered(counter: Number, number: int) -> Number:
    """The counter of an element's block `number`."""
    return counter + (number << PLACE_BITS)


def unit(bits: Number, precision: int, element: str) -> Number:
    """Multiples of 2^-precision from 0 on, below 1."""
    whole = bits >> (64 - precision)
    if element == "float":  # by way of 32 bits, which all processors convert in vectors
        return whole.to("i32", "trunc").to("float", "sitofp") * 2.0**-precision
    return whole.to("double", "uitofp") * 2.0**-precision


def open_unit(bits: Number, element: str) -> Number:
    """Between 0 and 1, both excluded: their logarithms are finite and not zero."""
    if element == "float":
        whole = (bits >> 33).to("i32", "trunc").to("float", "sitofp")
        return at_most(fma(whole, 2.0**-31, 2.0**-32), 1 - 2.0**-24)
    ones = ((bits >> 12) | 0x3FF0000000000000).as_float - 1.0
    return ones + 2.0**-53


def normal(radius_bits: Number, angle_bits: Number, element: str) -> Number:
    """The normal distribution of mean 0 and deviation 1, after Box and Muller.

    In single precision the two may be the same: the radius takes the upper 31 bits, the angle
    the lower 26.
    """
    radius = (log_by_series(open_unit(radius_bits, element)) * -2.0).sqrt()
    return radius * _sine_of_turn(angle_bits, element)


def _sine_of_turn(bits: Number, element: str) -> Number:
    """The sine of a random angle: two bits choose the quadrant, the rest an angle around zero."""
    if element == "float":
        low = bits.to("i32", "trunc")
        fraction = (low & 0xFFFFFF).to("float", "sitofp") * 2.0**-24
        quadrant = low >> 24
        width = 32
    else:
        fraction = ((bits >> 12) | 0x3FF0000000000000).as_float - 1.0
        quadrant, width = bits, 64
    angle = (fraction - 0.5) * (math.pi / 2)
    sine, cosine = (a + b for a, b in sine_and_cosine(angle, angle.constant(0.0)))
    chosen = where((quadrant & 1) != 0, cosine, sine)
    return chosen.flip_sign((quadrant << (width - 2)) & (1 << (width - 1)))


def high_product(a: Number, b: Number) -> Number:
    """The upper 64 bits of the product of two unsigned numbers."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> 32, b & _LOW, b >> 32
    middle = a_high * b_low + (a_low * b_low >> 32)
    other = a_low * b_high + (middle & _LOW)
    return a_high * b_high + (middle >> 32) + (other >> 32)


def below(bits: Number, bound: Number) -> Number:
    """A whole number from 0 on, below `bound`, by a multiplication; 0 where `bound` is 0.

    Of 2^64 equally likely values each result gets as many as every other, or one less.
    """
    return high_product(bits, bound)
