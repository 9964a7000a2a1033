"""Functions of real numbers, element by element. None sees elements of 16 bits."""

from __future__ import annotations

import math

from heterosis.ir.primitives import real as r
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.types import is_float
from heterosis.models.onnx.writing.rows.elementwise import Elements, Formula, computed, plain


def _expm1(on: Elements, x: str) -> str:
    """Near zero by the hyperbolic tangent of the half, which loses no digits there."""
    tangent = on("Tanh", on("Mul", x, 0.5))
    near = on("Div", on("Mul", tangent, 2.0), on("Sub", 1.0, tangent))
    return on("Where", on("Less", on("Abs", x), 0.5), near, on("Sub", on("Exp", x), 1.0))


def _log1p(on: Elements, x: str) -> str:
    """What 1 + x has lost is made good by the ratio."""
    sum_ = on("Add", x, 1.0)
    lost = on("Sub", sum_, 1.0)
    exact = on("Equal", lost, x)
    safe = on("Where", on("Equal", lost, 0.0), 1.0, lost)
    log = on("Log", sum_)
    found = on("Where", exact, log, on("Mul", log, on("Div", x, safe)))
    return on("Where", on("Equal", lost, 0.0), x, found)


def _log_to(base: float) -> Formula:
    return lambda on, x: on("Mul", on("Log", x), 1 / math.log(base))


def _cbrt(on: Elements, x: str) -> str:
    size = on("Pow", on("Abs", x), 1 / 3)
    found = on("Where", on("Less", x, 0.0), on("Neg", size), size)
    return on("Where", on("Equal", x, 0.0), x, found)


def _hypot(on: Elements, a: str, b: str) -> str:
    a, b = on("Abs", a), on("Abs", b)
    large, small = on("Max", a, b), on("Min", a, b)
    safe = on("Where", on("Or", on("Equal", large, 0.0), on("IsInf", large)), 1.0, large)
    ratio = on("Div", small, safe)
    found = on("Mul", large, on("Sqrt", on("Add", on("Mul", ratio, ratio), 1.0)))
    infinite = on("Or", on("IsInf", a), on("IsInf", b))
    return on("Where", infinite, math.inf, found)


def _signbit(on: Elements, x: str) -> str:
    """Of zeros, the sign of the reciprocal."""
    return on("Or", on("Less", x, 0.0), on("Less", on("Reciprocal", x), 0.0))


def _copysign(on: Elements, a: str, b: str) -> str:
    size = on("Abs", a)
    return on("Where", _signbit(on, b), on("Neg", size), size)


def _arctan2(on: Elements, a: str, b: str) -> str:
    """The angle of (|b|, |a|), which is moved to where the point lies."""
    down, left = _signbit(on, a), _signbit(on, b)
    high, wide = on("Abs", a), on("Abs", b)
    both = on("And", on("IsInf", high), on("IsInf", wide))
    nothing = on("And", on("Equal", high, 0.0), on("Equal", wide, 0.0))
    ratio = on("Div", high, on("Where", nothing, 1.0, wide))
    found = on("Atan", on("Where", both, 1.0, ratio))
    found = on("Where", left, on("Sub", math.pi, found), found)
    return on("Where", down, on("Neg", found), found)


def _trunc(on: Elements, x: str) -> str:
    return on("Where", on("Less", x, 0.0), on("Ceil", x), on("Floor", x))


def _fraction(on: Elements, x: str) -> str:
    infinite = on("IsInf", x)
    finite = on("Where", infinite, 0.0, x)
    return _copysign(on, on("Sub", finite, _trunc(on, finite)), x)


def _rounding(formula: Formula) -> Formula:
    return lambda on, x: formula(on, x) if is_float(on.dtype) else x


_FORMULAS: dict[Primitive, Formula] = {
    r.TRUE_DIVIDE: plain("Div"),
    r.RECIPROCAL: plain("Reciprocal"),
    r.EXP: plain("Exp"),
    r.EXP2: lambda on, x: on("Pow", 2.0, x),
    r.EXPM1: _expm1,
    r.LOG: plain("Log"),
    r.LOG2: _log_to(2),
    r.LOG10: _log_to(10),
    r.LOG1P: _log1p,
    r.SQRT: plain("Sqrt"),
    r.RSQRT: lambda on, x: on("Reciprocal", on("Sqrt", x)),
    r.CBRT: _cbrt,
    r.HYPOT: _hypot,
    r.SIN: plain("Sin"),
    r.COS: plain("Cos"),
    r.TAN: plain("Tan"),
    r.ARCSIN: plain("Asin"),
    r.ARCCOS: plain("Acos"),
    r.ARCTAN: plain("Atan"),
    r.ARCTAN2: _arctan2,
    r.SINH: plain("Sinh"),
    r.COSH: plain("Cosh"),
    r.TANH: plain("Tanh"),
    r.ARCSINH: plain("Asinh"),
    r.ARCCOSH: plain("Acosh"),
    r.ARCTANH: plain("Atanh"),
    r.ERF: plain("Erf"),
    r.SIGMOID: plain("Sigmoid"),
    r.FLOOR: _rounding(plain("Floor")),
    r.CEIL: _rounding(plain("Ceil")),
    r.TRUNC: _rounding(_trunc),
    r.RINT: _rounding(plain("Round")),
    r.ISNAN: plain("IsNaN"),
    r.ISINF: plain("IsInf"),
    r.ISFINITE: lambda on, x: on("Not", on("Or", on("IsNaN", x), on("IsInf", x))),
    r.SIGNBIT: _signbit,
    r.COPYSIGN: _copysign,
    r.FRACTION: _fraction,
}
for _primitive, _formula in _FORMULAS.items():
    computed(_primitive, _formula)
