"""Functions of single elements: the operations of `np` that conform, and what differs from them."""

from __future__ import annotations

from typing import Any

from heterosis import np
from heterosis.runtime.errors import DTypeError

ndarray = np.ndarray

_AS_IN_NP = (
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "reciprocal",
    "remainder",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
)
globals().update({name: getattr(np, name) for name in _AS_IN_NP})


def clip(x: ndarray, /, min: Any = None, max: Any = None) -> ndarray:
    """The elements, kept between `min` and `max`; None is no bound."""
    return np.clip(x, min, max)


def conj(x: ndarray, /) -> ndarray:
    """The complex conjugates: of real numbers, which is all there are, themselves."""
    return np.positive(x)


def imag(x: ndarray, /) -> ndarray:
    """The imaginary parts of complex numbers, of which there are none."""
    raise _no_complex("imag", x)


def real(x: ndarray, /) -> ndarray:
    """The real parts of complex numbers, of which there are none."""
    raise _no_complex("real", x)


def _no_complex(name: str, x: ndarray) -> DTypeError:
    return DTypeError(
        f"{name}: an array of {x.dtype}; expected complex numbers, for which there is no element "
        "type here. Keep both parts in arrays of their own."
    )


def round(x: ndarray, /) -> ndarray:
    """The nearest integers, of two equally near the even one."""
    return np.round(x)


__all__ = [*_AS_IN_NP, "clip", "conj", "imag", "real", "round"]
