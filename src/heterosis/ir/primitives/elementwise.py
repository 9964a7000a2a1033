"""Arithmetic, comparisons, choices and bits, element by element."""

from __future__ import annotations

from typing import Any

import numpy

from heterosis.ir.primitives.element_types import (
    NUMBERS,
    TRUTH,
    WHOLE,
    ElementTypes,
    alike,
    truth,
)
from heterosis.ir.primitives.families import Elementwise
from heterosis.ir.types import DTYPES, INTEGERS

# -- arithmetic -----------------------------------------------------------------------------------


def _power(a: Any, b: Any) -> Any:
    """Negative exponents of integers: `1 / a`, rounded to zero."""
    if a.dtype.kind in "fu":
        return numpy.power(a, b)
    below = b < 0
    minus_one = numpy.where(b & 1, -1, 1)
    inverse = numpy.where(a == 1, 1, numpy.where(a == -1, minus_one, 0))
    return numpy.where(below, inverse, numpy.power(a, numpy.where(below, 0, b).astype(b.dtype)))


ADD = Elementwise(
    "add",
    types=alike(2),
    meaning=numpy.add,
    exact=True,
    neutral=(-0.0, -0.0),
    about="The sum; of truth values, whether one is true.",
)
SUBTRACT = Elementwise(
    "subtract",
    types=alike(2, NUMBERS),
    meaning=numpy.subtract,
    exact=True,
    neutral=(None, 0.0),
    about="The difference.",
)
MULTIPLY = Elementwise(
    "multiply",
    types=alike(2),
    meaning=numpy.multiply,
    exact=True,
    neutral=(1.0, 1.0),
    about="The product; of truth values, whether both are true.",
)
FLOOR_DIVIDE = Elementwise(
    "floor_divide",
    types=alike(2, NUMBERS),
    meaning=numpy.floor_divide,
    about="The quotient rounded down; 0 for integers divided by 0.",
)
MOD = Elementwise(
    "mod",
    types=alike(2, NUMBERS),
    meaning=numpy.mod,
    about="The remainder with the sign of the divisor; 0 for integers modulo 0.",
)
FMOD = Elementwise(
    "fmod",
    types=alike(2, NUMBERS),
    meaning=numpy.fmod,
    about="The remainder with the sign of the dividend; 0 for integers modulo 0.",
)
POWER = Elementwise(
    "power",
    types=alike(2, NUMBERS),
    meaning=_power,
    neutral=(None, 1.0),
    about="The first operand to the power of the second.",
)
NEGATIVE = Elementwise(
    "negative",
    types=alike(1, NUMBERS),
    meaning=numpy.negative,
    exact=True,
    keeps=True,
    about="The number with the other sign.",
)
ABSOLUTE = Elementwise(
    "absolute",
    types=alike(1),
    meaning=numpy.absolute,
    exact=True,
    keeps=True,
    about="The distance from zero.",
)
SIGN = Elementwise(
    "sign", types=alike(1, NUMBERS), meaning=numpy.sign, keeps=True, about="-1, 0 or 1; NaN of NaN."
)
MAXIMUM = Elementwise(
    "maximum",
    types=alike(2),
    meaning=numpy.maximum,
    keeps=True,
    about="The larger operand; NaN if either is.",
)
MINIMUM = Elementwise(
    "minimum",
    types=alike(2),
    meaning=numpy.minimum,
    keeps=True,
    about="The smaller operand; NaN if either is.",
)

# -- comparisons and choices ----------------------------------------------------------------------

EQUAL = Elementwise("equal", types=truth(2), meaning=numpy.equal, about="Whether a = b.")
NOT_EQUAL = Elementwise(
    "not_equal", types=truth(2), meaning=numpy.not_equal, about="Whether not a = b: true for NaN."
)
LESS = Elementwise("less", types=truth(2), meaning=numpy.less, exact=True, about="Whether a < b.")
LESS_EQUAL = Elementwise(
    "less_equal", types=truth(2), meaning=numpy.less_equal, exact=True, about="Whether a <= b."
)
GREATER = Elementwise(
    "greater", types=truth(2), meaning=numpy.greater, exact=True, about="Whether a > b."
)
GREATER_EQUAL = Elementwise(
    "greater_equal",
    types=truth(2),
    meaning=numpy.greater_equal,
    exact=True,
    about="Whether a >= b.",
)
SELECT = Elementwise(
    "select",
    types=ElementTypes((TRUTH, DTYPES, 1), 1),
    meaning=numpy.where,
    exact=True,
    keeps=True,
    about="The second operand where the first is true, else the third.",
)

# -- bits and integers ----------------------------------------------------------------------------

BITWISE_AND = Elementwise(
    "bitwise_and", types=alike(2, WHOLE), meaning=numpy.bitwise_and, about="Bits set in both."
)
BITWISE_OR = Elementwise(
    "bitwise_or", types=alike(2, WHOLE), meaning=numpy.bitwise_or, about="Bits set in either."
)
BITWISE_XOR = Elementwise(
    "bitwise_xor", types=alike(2, WHOLE), meaning=numpy.bitwise_xor, about="Bits set in just one."
)
INVERT = Elementwise(
    "invert",
    types=alike(1, WHOLE),
    meaning=numpy.invert,
    about="Every bit turned over; of truth values, the other one.",
)
LEFT_SHIFT = Elementwise(
    "left_shift",
    types=alike(2, INTEGERS),
    meaning=numpy.left_shift,
    about="Bits moved up; 0 where the distance leaves the type.",
)
RIGHT_SHIFT = Elementwise(
    "right_shift",
    types=alike(2, INTEGERS),
    meaning=numpy.right_shift,
    about="Bits moved down, with copies of the sign; only those where the distance leaves it.",
)
GCD = Elementwise(
    "gcd", types=alike(2, INTEGERS), meaning=numpy.gcd, about="The greatest common divisor."
)
LCM = Elementwise(
    "lcm", types=alike(2, INTEGERS), meaning=numpy.lcm, about="The least common multiple."
)
