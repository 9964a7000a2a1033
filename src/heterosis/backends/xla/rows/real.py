"""Functions of real numbers, element by element. None sees elements of 16 bits but `spacing`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy
from jax import lax

from heterosis.backends.xla.rows.elementwise import is_float, is_nan, like, unsigned
from heterosis.backends.xla.tables import elements
from heterosis.ir.primitives import real as r

Function = Callable[..., Any]

_SINGLE, _DOUBLE = numpy.dtype("float32"), numpy.dtype("float64")


def _in_double(function: Function) -> Function:
    """`function`, whose float32 results are those of float64, rounded: XLA's formulas lose digits
    there."""

    def row(x: Any) -> Any:
        return lax.convert_element_type(function(lax.convert_element_type(x, _DOUBLE)), x.dtype)

    return row


def _rounding(function: Function) -> Function:
    return lambda x: function(x) if is_float(x) else x


def _rint(x: Any) -> Any:
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _hypot(a: Any, b: Any) -> Any:
    infinite = jnp.isinf(a) | jnp.isinf(b)
    return lax.select(infinite, like(a, numpy.inf), jnp.hypot(a, b))


# Of Lanczos' series for 7: what `lax.lgamma` takes as well, whose digits an exponential would lose.
_LANCZOS = (
    676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
)  # fmt: skip


def _gamma(x: Any) -> Any:
    """By Lanczos' series, below 1/2 by reflection; NaN at the poles below zero."""
    reflected = x < 0.5
    size = lax.min(lax.select(reflected, -x, x - 1), like(x, 180))  # which is infinite already
    total = like(x, 0.99999999999980993)
    for i, factor in enumerate(_LANCZOS):
        total += factor / (size + (i + 1))
    t = size + 7.5
    half = lax.pow(t, (size + 0.5) / 2)  # the whole power would overflow before the result does
    found = half * lax.exp(-t) * half * (total * math.sqrt(2 * math.pi))
    part = x - _rint(x)
    even = lax.rem(_rint(x), like(x, 2)) == 0
    sine = lax.sin(math.pi * part) * lax.select(even, like(x, 1), like(x, -1))
    found = lax.select(reflected, math.pi / (sine * found), found)
    pole = (x < 0) & (x == lax.floor(x))
    found = lax.select(pole, like(x, numpy.nan), found)
    return lax.select(x == 0, jnp.copysign(like(x, numpy.inf), x), found)


# -- parts of a float -----------------------------------------------------------------------------


def _fraction(x: Any) -> Any:
    rest = lax.select(jnp.isinf(x), like(x, 0), x - jnp.trunc(x))
    return jnp.copysign(rest, x)


def _exponent(x: Any) -> Any:
    found = lax.convert_element_type(jnp.frexp(x)[1], numpy.dtype("int32"))
    return lax.select(lax.is_finite(x), found, like(found, 0))


def _scaled(x: Any, exponent: Any) -> Any:
    """`x * 2**exponent`; in float64, which holds the product, where that is rounded to float32."""
    exponent = lax.clamp(like(exponent, -4096), exponent, like(exponent, 4096))
    exponent = lax.convert_element_type(exponent, numpy.dtype("int32"))
    if x.dtype == _DOUBLE:
        return jnp.ldexp(x, exponent)
    return _in_double(lambda wide: jnp.ldexp(wide, exponent))(x)


# The number of bits behind the point, and the type of all bits.
_FORMATS = {"float16": (10, "int16"), "bfloat16": (7, "int16"), "float32": (23, "int32"),
            "float64": (52, "int64")}  # fmt: skip


def _spacing(x: Any) -> Any:
    """Made of bits: a machine may take the least numbers for zeros."""
    mantissa, whole = _FORMATS[x.dtype.name]
    bits = lax.bitcast_convert_type(x, numpy.dtype(whole))
    top = jnp.iinfo(whole).min
    exponent = (bits & ~top) >> mantissa
    normal = lax.max(exponent - mantissa, like(bits, 0)) << mantissa
    places = lax.clamp(like(bits, 0), exponent - 1, like(bits, mantissa - 1))
    least = lax.shift_left(like(bits, 1), places)
    size = lax.select(exponent > mantissa, normal, least)
    found = lax.bitcast_convert_type(size | (bits & top), x.dtype)
    if x.dtype.itemsize > 2:  # there is none behind the largest
        largest = lax.abs(x) == like(x, jnp.finfo(x.dtype).max)
        found = lax.select(largest, jnp.copysign(like(x, numpy.inf), x), found)
    return lax.select(lax.is_finite(x), found, like(x, numpy.nan))


elements(
    {
        r.TRUE_DIVIDE: lax.div,
        r.RECIPROCAL: lambda x: lax.div(like(x, 1), x),
        r.EXP: lax.exp,
        r.EXP2: lax.exp2,
        r.EXPM1: lax.expm1,
        r.LOG: lax.log,
        r.LOG2: _in_double(jnp.log2),
        r.LOG10: _in_double(jnp.log10),
        r.LOG1P: lax.log1p,
        r.SQRT: lax.sqrt,
        r.RSQRT: lambda x: lax.div(like(x, 1), lax.sqrt(x)),
        r.CBRT: lax.cbrt,
        r.HYPOT: _hypot,
        r.SIN: lax.sin,
        r.COS: lax.cos,
        r.TAN: lax.tan,
        r.ARCSIN: lax.asin,
        r.ARCCOS: lax.acos,
        r.ARCTAN: lax.atan,
        r.ARCTAN2: lax.atan2,
        r.SINH: lax.sinh,
        r.COSH: lax.cosh,
        r.TANH: lax.tanh,
        r.ARCSINH: lax.asinh,
        r.ARCCOSH: lax.acosh,
        r.ARCTANH: lax.atanh,
        r.ERF: lax.erf,
        r.ERFINV: lax.erf_inv,
        r.GAMMA: _in_double(_gamma),
        r.GAMMALN: _in_double(lax.lgamma),
        r.SIGMOID: lax.logistic,
        r.FLOOR: _rounding(lax.floor),
        r.CEIL: _rounding(lax.ceil),
        r.TRUNC: _rounding(jnp.trunc),
        r.RINT: _rounding(_rint),
        r.ISNAN: is_nan,
        r.ISINF: jnp.isinf,
        r.ISFINITE: lax.is_finite,
        r.SIGNBIT: lambda x: unsigned(x) >> (8 * x.dtype.itemsize - 1) != 0,
        r.COPYSIGN: jnp.copysign,
        r.SPACING: _spacing,
        r.FRACTION: _fraction,
        r.MANTISSA: lambda x: jnp.frexp(x)[0],
        r.EXPONENT: _exponent,
        r.LDEXP: _scaled,
    }
)
