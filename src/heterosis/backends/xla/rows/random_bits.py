"""Random numbers from a counter and a key: the same bits as on every back end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.rows.elementwise import unsigned
from heterosis.backends.xla.tables import elements
from heterosis.ir.primitives import random_bits as r

_LOW = numpy.uint64(0xFFFFFFFF)
_HALF = numpy.uint64(32)
_MULTIPLIER, _WEYL = numpy.uint64(0xD256D193), numpy.uint64(0x9E3779B9)  # Philox 2x32
_ROUNDS = 10
_ONE = numpy.uint64(0x3FF0000000000000)  # the bits of 1.0

_SINGLE, _DOUBLE, _WHOLE = numpy.dtype("float32"), numpy.dtype("float64"), numpy.dtype("int64")


def block(counter: Any, key: Any) -> Any:
    """64 random bits: Philox 2x32-10, its halves in one integer."""
    counter, key = unsigned(counter), unsigned(key)
    left, right, round_key = counter & _LOW, (counter ^ key) >> _HALF, key & _LOW
    for _ in range(_ROUNDS):
        product = left * _MULTIPLIER
        left, right = (product >> _HALF) ^ round_key ^ right, product & _LOW
        round_key = (round_key + _WEYL) & _LOW
    return lax.bitcast_convert_type((left << _HALF) | right, _WHOLE)


def below(bits: Any, bound: Any) -> Any:
    """The upper 64 bits of the product."""
    a, b = unsigned(bits), unsigned(bound)
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    other = a_low * b_high + (middle & _LOW)
    found = a_high * b_high + (middle >> _HALF) + (other >> _HALF)
    return lax.bitcast_convert_type(found, _WHOLE)


def _top(bits: Any, count: int) -> Any:
    return unsigned(bits) >> numpy.uint64(64 - count)


def _unit(precision: int, dtype: numpy.dtype) -> Callable[[Any], Any]:
    def row(bits: Any) -> Any:
        return _as(dtype, _top(bits, precision)) * dtype.type(2.0**-precision)

    return row


def _as(dtype: numpy.dtype, whole: Any) -> Any:
    """Unsigned numbers that the float type holds, by way of signed ones, which machines have."""
    return lax.convert_element_type(lax.bitcast_convert_type(whole, _WHOLE), dtype)


def _open_unit_single(bits: Any) -> Any:
    whole = _as(_SINGLE, _top(bits, 31)) * numpy.float32(2.0**-31)
    return jnp.minimum(whole + numpy.float32(2.0**-32), numpy.float32(1 - 2.0**-24))


def _filled(bits: Any) -> Any:
    """From 0 on, below 1, in steps of 2^-52."""
    return lax.bitcast_convert_type(_top(bits, 52) | _ONE, _DOUBLE) - 1.0


def open_unit(bits: Any) -> Any:
    """Between 0 and 1, both excluded, as float64."""
    return _filled(bits) + 2.0**-53


def _sine_of_turn(fraction: Any, quadrant: Any) -> Any:
    """The sine of an angle in one of four quadrants, by that of an angle around zero."""
    number = fraction.dtype.type
    angle = (fraction - number(0.5)) * number(math.pi / 2)
    found = lax.select(quadrant & 1 != 0, lax.cos(angle), lax.sin(angle))
    return lax.select(quadrant & 2 != 0, -found, found)


def _normal_single(bits: Any) -> Any:
    radius = lax.sqrt(lax.log(_open_unit_single(bits)) * numpy.float32(-2.0))
    low = unsigned(bits) & _LOW
    fraction = _as(_SINGLE, low & numpy.uint64(0xFFFFFF)) * numpy.float32(2.0**-24)
    return radius * _sine_of_turn(fraction, low >> numpy.uint64(24))


def normal(radius_bits: Any, angle_bits: Any) -> Any:
    """The normal distribution of mean 0 and deviation 1, after Box and Muller, as float64."""
    radius = lax.sqrt(lax.log(open_unit(radius_bits)) * -2.0)
    return radius * _sine_of_turn(_filled(angle_bits), angle_bits)


elements(
    {
        r.RANDOM_BLOCK: block,
        r.RANDOM_BELOW: below,
        r.UNIT_FLOAT16: _unit(11, _SINGLE),
        r.UNIT_BFLOAT16: _unit(8, _SINGLE),
        r.UNIT_FLOAT32: _unit(24, _SINGLE),
        r.UNIT_FLOAT64: _unit(53, _DOUBLE),
        r.OPEN_UNIT_FLOAT32: _open_unit_single,
        r.OPEN_UNIT_FLOAT64: open_unit,
        r.NORMAL_FLOAT32: _normal_single,
        r.NORMAL_FLOAT64: normal,
    }
)
