"""Operators of each element: functions, arithmetic, comparisons."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.operator import operator
from heterosis.ops.unsized import Unsized, settled
from heterosis.runtime.errors import ShapeError

_UNARY = {
    np: (
        "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos",
        "cosh", "degrees", "exp", "expm1", "fix", "floor", "log", "log10", "log1p", "log2",
        "negative", "ones_like", "radians", "reciprocal", "rint", "sign", "sin", "sinh", "sqrt",
        "square", "tan", "tanh", "trunc", "zeros_like",
    ),
    npx: ("erf", "erfinv", "gamma", "gammaln", "relu", "sigmoid"),
}  # fmt: skip

_BINARY = {
    "add": ("broadcast_add", "broadcast_plus", "add"),
    "subtract": ("broadcast_sub", "broadcast_minus", "subtract"),
    "multiply": ("broadcast_mul", "multiply"),
    "true_divide": ("broadcast_div", "divide"),
    "mod": ("broadcast_mod", "modulo"),
    "power": ("broadcast_power", "power", "pow"),
    "maximum": ("broadcast_maximum", "maximum"),
    "minimum": ("broadcast_minimum", "minimum"),
    "hypot": ("broadcast_hypot", "hypot"),
}

_COMPARISONS = {
    "equal": ("broadcast_equal", "equal"),
    "not_equal": ("broadcast_not_equal", "not_equal"),
    "greater": ("broadcast_greater", "greater"),
    "greater_equal": ("broadcast_greater_equal", "greater_equal"),
    "less": ("broadcast_lesser", "lesser"),
    "less_equal": ("broadcast_lesser_equal", "lesser_equal"),
    "logical_and": ("broadcast_logical_and", "logical_and"),
    "logical_or": ("broadcast_logical_or", "logical_or"),
    "logical_xor": ("broadcast_logical_xor", "logical_xor"),
}

_SAME_SHAPE = {
    "elemwise_add": "add", "elemwise_sub": "subtract", "elemwise_mul": "multiply",
    "elemwise_div": "true_divide",
}  # fmt: skip


def _unary(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data: run(data)


def _binary(run: Callable[..., Any]) -> Callable[..., Any]:
    return lambda lhs, rhs: run(lhs, rhs)


def _comparison(run: Callable[..., Any]) -> Callable[..., Any]:
    """0 and 1 in the element type of the operands."""

    def compare(lhs: Any, rhs: Any) -> Any:
        like = lhs if isinstance(lhs, np.ndarray) else rhs
        return run(lhs, rhs).astype(like.dtype)

    return compare


def _same_shape(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    def combine(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, Unsized) or isinstance(rhs, Unsized):
            lhs, rhs = settled(name, {"lhs": lhs, "rhs": rhs}).values()
        if lhs.shape != rhs.shape:
            raise ShapeError(
                f"{name}: shapes {lhs.shape} and {rhs.shape} differ; "
                f"broadcast_{name.removeprefix('elemwise_')} repeats operands."
            )
        return run(lhs, rhs)

    return combine


for _module, _names in _UNARY.items():
    for _name in _names:
        operator(_name)(_unary(getattr(_module, _name)))
for _name, _aliases in _BINARY.items():
    operator(*_aliases)(_binary(getattr(np, _name)))
for _name, _aliases in _COMPARISONS.items():
    operator(*_aliases)(_comparison(getattr(np, _name)))
for _name, _operation in _SAME_SHAPE.items():
    operator(_name)(_same_shape(_name, getattr(np, _operation)))


@operator()
def rsqrt(data: Any) -> Any:
    """`1 / sqrt(data)`."""
    return data.rsqrt()


@operator()
def rcbrt(data: Any) -> Any:
    """One over the cube root."""
    return data.rcbrt()


@operator()
def softsign(data: Any) -> Any:
    """`data / (1 + |data|)`."""
    return npx.activation(data, "softsign")


@operator()
def hard_sigmoid(data: Any, alpha: float = 0.2, beta: float = 0.5) -> Any:
    """The line `alpha * data + beta`, kept between 0 and 1."""
    return np.clip(data * alpha + beta, 0.0, 1.0)


@operator()
def smooth_l1(data: Any, scalar: float = 1.0) -> Any:
    """The absolute value, rounded off to a parabola near zero."""
    return npx.smooth_l1(data, scalar)


@operator()
def logical_not(data: Any) -> Any:
    """1 where an element is 0, else 0, in the element type of `data`."""
    return np.logical_not(data).astype(data.dtype)


@operator()
def round_(data: Any) -> Any:
    """The nearest whole number, halves away from zero."""
    return np.sign(data) * np.floor(np.abs(data) + 0.5)


@operator()
def clip(data: Any, a_min: float, a_max: float) -> Any:
    """The elements, kept between `a_min` and `a_max`."""
    return np.clip(data, a_min, a_max)


@operator()
def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` is not 0, else `y`; a one-dimensional condition chooses rows."""
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
    return np.where(condition != 0, x, y)


@operator("add_n", "ElementWiseSum")
def add_n(*args: Any) -> Any:
    """The sum of arrays of one shape."""
    return functools.reduce(_same_shape("elemwise_add", np.add), args)


@operator("Cast", "cast")
def cast(data: Any, dtype: Any) -> Any:
    """Elements converted to `dtype`."""
    return data.astype(dtype)


@operator("amp_cast")
def amp_cast(data: Any, dtype: Any) -> Any:
    """Elements converted to `dtype`."""
    return data.astype(dtype)


@operator("identity")
def identity(data: Any) -> Any:
    """A copy."""
    return np.copy(data)


@operator("BlockGrad", "stop_gradient")
def stop_gradient(data: Any) -> Any:
    """The same elements; no gradient flows through."""
    return data.detach()
