"""Arithmetic, comparisons, logic and functions of each element."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.models.onnx.operators.table import operator
from heterosis.models.onnx.values import by_numpy, converted, is_host, kind, module, place
from heterosis.runtime.errors import ArgumentError, ShapeError


def _both(name: str, function: Callable[..., Any], since: int = 1) -> None:
    """An operator that is the same function of our arrays and of NumPy's."""
    operator(name, since=since, on_host=by_numpy(function))(function)


def _from_modules(function: str, inputs: int) -> Callable[..., Any]:
    """What NumPy and we have under one name and meaning."""
    if inputs == 1:
        return lambda x: getattr(module(x), function)(x)
    return lambda a, b: getattr(module(a), function)(a, b)


def _of_two(name: str, function: Callable[..., Any], since: int = 7) -> None:
    """An operator on two arrays; up to version 6, its attributes say whether they are broadcast."""

    def aligned(a: Any, b: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
        if not broadcast and tuple(a.shape) != tuple(b.shape):
            raise ShapeError(
                f"{name} of shapes {tuple(a.shape)} and {tuple(b.shape)}: without its attribute "
                "`broadcast` they must be equal up to version 6."
            )
        if broadcast and axis is not None:  # the second array begins at this axis of the first
            behind = len(a.shape) - place(axis, len(a.shape)) - len(b.shape)
            b = module(b).reshape(b, (*b.shape, *[1] * behind))
        return function(a, b)

    _both(name, aligned)
    _both(name, function, since)


for _name, _function in (
    ("Add", "add"), ("Sub", "subtract"), ("Mul", "multiply"),
    ("Equal", "equal"), ("Greater", "greater"), ("Less", "less"),
    ("And", "logical_and"), ("Or", "logical_or"), ("Xor", "logical_xor"),
):  # fmt: skip
    _of_two(_name, _from_modules(_function, inputs=2))

for _name, _function, _since in (
    ("GreaterOrEqual", "greater_equal", 12), ("LessOrEqual", "less_equal", 12),
    ("BitwiseAnd", "bitwise_and", 18), ("BitwiseOr", "bitwise_or", 18),
    ("BitwiseXor", "bitwise_xor", 18),
):  # fmt: skip
    _both(_name, _from_modules(_function, inputs=2), _since)

for _name, _function in (
    ("Not", "logical_not"), ("BitwiseNot", "invert"), ("Neg", "negative"), ("Abs", "abs"),
    ("Sign", "sign"), ("Floor", "floor"), ("Ceil", "ceil"), ("Round", "rint"), ("Sqrt", "sqrt"),
    ("Exp", "exp"), ("Log", "log"), ("IsNaN", "isnan"),
):  # fmt: skip
    _both(_name, _from_modules(_function, inputs=1))

for _name, _ours in (
    ("Sin", np.sin), ("Cos", np.cos), ("Tan", np.tan),
    ("Asin", np.arcsin), ("Acos", np.arccos), ("Atan", np.arctan),
    ("Sinh", np.sinh), ("Cosh", np.cosh), ("Tanh", np.tanh),
    ("Asinh", np.arcsinh), ("Acosh", np.arccosh), ("Atanh", np.arctanh),
    ("Reciprocal", np.reciprocal), ("Erf", npx.erf), ("Sigmoid", npx.sigmoid), ("Relu", npx.relu),
):  # fmt: skip
    operator(_name)(lambda x, _function=_ours: _function(x))


def divided(a: Any, b: Any) -> Any:
    """Quotients; those of integers are rounded towards zero."""
    of = module(a)
    if kind(a) == "f":
        return of.divide(a, b)
    if kind(a) == "u":
        return a // b
    if is_host(a) and object in (a.dtype, b.dtype):  # sizes, which fmod does not take
        quotient = abs(a) // abs(b)
        return numpy.where((a < 0) != (b < 0), -quotient, quotient)
    return (a - of.fmod(a, b)) // b


_of_two("Div", divided)


def _mod(a: Any, b: Any, *, fmod: int = 0) -> Any:
    of = module(a)
    if not fmod:
        return a % b
    if is_host(a) and object in (a.dtype, b.dtype):
        return a - divided(a, b) * b
    return of.fmod(a, b)


_both("Mod", _mod, since=10)


def _pow(x: Any, y: Any) -> Any:
    of = module(x)
    if is_host(x) and object in (x.dtype, y.dtype):
        return x**y
    if x.dtype == y.dtype and kind(x) == "f":
        return of.power(x, y)
    if kind(x) != "f" and kind(y) != "f":
        return _whole_power(x, y)
    # Wide enough for both, as NumPy has it; the result has the type of the base.
    return of.power(x.astype("float64"), y.astype("float64")).astype(str(x.dtype))


def _whole_power(x: Any, y: Any) -> Any:
    """Powers of integers; with an exponent below 0, rounded towards zero."""
    dtype = str(x.dtype)
    x, y = x.astype("int64"), y.astype("int64")
    if not is_host(x):
        return np.power(x, y).astype(dtype)
    power = numpy.power(x, abs(y))
    return numpy.where((y < 0) & (abs(x) != 1), 0, power).astype(dtype)


_of_two("Pow", _pow)


def _shifted(x: Any, y: Any, *, direction: str) -> Any:
    of = module(x)
    if direction not in ("LEFT", "RIGHT"):
        raise ArgumentError(f"BitShift to {direction!r}; there are LEFT and RIGHT.")
    return of.left_shift(x, y) if direction == "LEFT" else of.right_shift(x, y)


_both("BitShift", _shifted, since=11)


def _is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    of = module(x)
    if detect_negative and detect_positive:
        return of.isinf(x)
    if detect_negative:
        return of.isneginf(x)
    return of.isposinf(x) if detect_positive else of.zeros(x.shape, dtype="bool")


_both("IsInf", _is_inf, since=10)


def _where(condition: Any, x: Any, y: Any) -> Any:
    return module(condition).where(condition, x, y)


_both("Where", _where, since=9)


# -- any number of inputs --------------------------------------------------------------------------


def _of_all(name: str, function: str) -> None:
    def compute(*inputs: Any) -> Any:
        return functools.reduce(getattr(module(inputs[0]), function), inputs)

    _both(name, compute)


for _name, _function in (("Max", "maximum"), ("Min", "minimum"), ("Sum", "add")):
    _of_all(_name, _function)


def _mean(*inputs: Any) -> Any:
    total = functools.reduce(module(inputs[0]).add, inputs)
    return converted(total / len(inputs), str(inputs[0].dtype))


_both("Mean", _mean)


# -- limits ----------------------------------------------------------------------------------------


def clipped(x: Any, low: Any = None, high: Any = None) -> Any:
    """Elements between limits; where these are the wrong way round, the upper one."""
    of = module(x)
    if low is not None:
        x = of.maximum(x, low)
    return x if high is None else of.minimum(x, high)


@operator("Clip")
def _clip_by_attributes(x: Any, *, min: float | None = None, max: float | None = None) -> Any:
    return clipped(x, min, max)


_GREATEST = 3.4028234663852886e38  # of float32: the default, which infinities are beyond


@operator("Clip", since=6)
def _clip_with_defaults(x: Any, *, min: float = -_GREATEST, max: float = _GREATEST) -> Any:
    return clipped(x, min, max)


@operator("Clip", since=11, on_host=by_numpy(clipped))
def _clip(x: Any, min: Any = None, max: Any = None) -> Any:
    return clipped(x, min, max)
