"""Random numbers as a function of a counter and a key: bits, and numbers made from them.

Counters and keys are 64-bit integers. The counter's lower 40 bits are an element's place; those
above number the blocks that one element takes. Integers are read as unsigned ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from heterosis.ir.primitives.element_types import fixed
from heterosis.ir.primitives.families import Elementwise

PLACE_BITS = 40

_LOW = numpy.uint64(0xFFFFFFFF)
_HALF = numpy.uint64(32)
_MULTIPLIER, _WEYL = numpy.uint64(0xD256D193), numpy.uint64(0x9E3779B9)  # Philox 2x32
_ROUNDS = 10


def _unsigned(x: Any) -> Any:
    return numpy.asarray(x).view("uint64")


def block(counter: Any, key: Any) -> Any:
    """64 random bits: Philox 2x32-10 (Salmon et al., 2011), its halves in one integer."""
    counter, key = _unsigned(counter), _unsigned(key)
    left, right, round_key = counter & _LOW, (counter ^ key) >> _HALF, key & _LOW
    for _ in range(_ROUNDS):
        product = left * _MULTIPLIER
        left, right = (product >> _HALF) ^ round_key ^ right, product & _LOW
        round_key = (round_key + _WEYL) & _LOW
    return ((left << _HALF) | right).view("int64")


def below(bits: Any, bound: Any) -> Any:
    """The upper 64 bits of the product."""
    a, b = _unsigned(bits), _unsigned(bound)
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    other = a_low * b_high + (middle & _LOW)
    return (a_high * b_high + (middle >> _HALF) + (other >> _HALF)).view("int64")


def _top(bits: Any, count: int) -> Any:
    return _unsigned(bits) >> numpy.uint64(64 - count)


def _filled(bits: Any) -> Any:
    """From 0 on, below 1, in steps of 2^-52."""
    return (_top(bits, 52) | numpy.uint64(0x3FF0000000000000)).view("float64") - 1.0


def open_unit_single(bits: Any) -> Any:
    """Between 0 and 1, both excluded, as float32."""
    whole = _top(bits, 31).astype("float32") * numpy.float32(2.0**-31)
    return numpy.minimum(whole + numpy.float32(2.0**-32), numpy.float32(1 - 2.0**-24))


def open_unit(bits: Any) -> Any:
    """Between 0 and 1, both excluded, as float64."""
    return _filled(bits) + 2.0**-53


def _sine_of_turn(fraction: Any, quadrant: Any) -> Any:
    """The sine of an angle in one of four quadrants, by that of an angle around zero."""
    angle = (fraction - fraction.dtype.type(0.5)) * fraction.dtype.type(math.pi / 2)
    found = numpy.where(quadrant & 1, numpy.cos(angle), numpy.sin(angle))
    return numpy.where(quadrant & 2, -found, found)


def _normal_single(bits: Any) -> Any:
    radius = numpy.sqrt(numpy.log(open_unit_single(bits)) * numpy.float32(-2.0))
    low = _unsigned(bits) & _LOW
    fraction = (low & numpy.uint64(0xFFFFFF)).astype("float32") * numpy.float32(2.0**-24)
    return radius * _sine_of_turn(fraction, (low >> numpy.uint64(24)).astype("int64"))


def normal(radius_bits: Any, angle_bits: Any) -> Any:
    """The normal distribution of mean 0 and deviation 1, after Box and Muller, as float64."""
    radius = numpy.sqrt(numpy.log(open_unit(radius_bits)) * -2.0)
    return radius * _sine_of_turn(_filled(angle_bits), angle_bits)


RANDOM_BLOCK = Elementwise(
    "random_block",
    types=fixed("int64", "int64", result="int64"),
    meaning=block,
    about="64 random bits from a counter and a key: Philox 2x32-10.",
)
RANDOM_BELOW = Elementwise(
    "random_below",
    types=fixed("int64", "int64", result="int64"),
    meaning=below,
    about="A whole number from 0 on, below b, from random bits a; 0 where b is 0.",
)


def _unit(name: str, precision: int, dtype: str) -> Elementwise:
    def meaning(bits: Any) -> Any:
        return (_top(bits, precision).astype(dtype) * 2.0**-precision).astype(dtype)

    about = f"A multiple of 2^-{precision} from 0 on, below 1, from random bits."
    types = fixed("int64", result=dtype)
    return Elementwise(f"unit_{name}", types=types, meaning=meaning, about=about)


UNIT_FLOAT16 = _unit("float16", 11, "float32")
UNIT_BFLOAT16 = _unit("bfloat16", 8, "float32")
UNIT_FLOAT32 = _unit("float32", 24, "float32")
UNIT_FLOAT64 = _unit("float64", 53, "float64")
OPEN_UNIT_FLOAT32 = Elementwise(
    "open_unit_float32",
    types=fixed("int64", result="float32"),
    meaning=open_unit_single,
    about="A number between 0 and 1, both excluded, from random bits.",
)
OPEN_UNIT_FLOAT64 = Elementwise(
    "open_unit_float64",
    types=fixed("int64", result="float64"),
    meaning=open_unit,
    about="A number between 0 and 1, both excluded, from random bits.",
)
NORMAL_FLOAT32 = Elementwise(
    "normal_float32",
    types=fixed("int64", result="float32"),
    meaning=_normal_single,
    about="A normal number of mean 0 and deviation 1 from random bits.",
)
NORMAL_FLOAT64 = Elementwise(
    "normal_float64",
    types=fixed("int64", "int64", result="float64"),
    meaning=normal,
    about="A normal number of mean 0 and deviation 1 from two blocks of random bits.",
)
