"""Operators of each element: functions, choices, conversions."""

from __future__ import annotations

from typing import Any

from heterosis import np, npx
from heterosis.mxnet.operators.arithmetic import WITH_NUMBER, number_attributes
from heterosis.mxnet.operators.table import Run, operator, stored
from heterosis.mxnet.operators.writing import Arguments, Made, Writer, writes

# Functions that are methods of symbols, too, and others.
_METHODS = {
    np: (
        "abs", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil", "cos",
        "cosh", "degrees", "exp", "expm1", "fix", "floor", "log", "log10", "log1p", "log2",
        "ones_like", "radians", "reciprocal", "rint", "sign", "sin", "sinh", "sqrt", "square",
        "tan", "tanh", "trunc", "zeros_like",
    ),
    npx: ("relu", "sigmoid"),
}  # fmt: skip
_OTHERS = {np: ("negative",), npx: ("erf", "erfinv", "gamma", "gammaln")}


def _unary(run: Run) -> Run:
    return lambda data: run(data)


for _functions, _is_method in ((_METHODS, True), (_OTHERS, False)):
    for _module, _names in _functions.items():
        for _name in _names:
            operator(_name, method=_is_method)(_unary(getattr(_module, _name)))


@operator(method=True)
def rsqrt(data: Any) -> Any:
    """`1 / sqrt(data)`."""
    return data.rsqrt()


@operator(method=True)
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
    return npx.hard_sigmoid(data, alpha, beta)


@operator()
def smooth_l1(data: Any, scalar: float = 1.0) -> Any:
    """The absolute value, rounded off to a parabola near zero."""
    return npx.smooth_l1(data, scalar)


@operator()
def logical_not(data: Any) -> Any:
    """1 where an element is 0, else 0, in the element type of `data`."""
    return np.logical_not(data).astype(data.dtype)


@operator(method=True)
def round_(data: Any) -> Any:
    """The nearest whole number, halves away from zero."""
    return np.sign(data) * np.floor(np.abs(data) + 0.5)


# -- choosing -------------------------------------------------------------------------------------


@operator(method=True)
def clip(data: Any, a_min: float, a_max: float) -> Any:
    """The elements, kept between `a_min` and `a_max`."""
    return np.clip(data, a_min, a_max)


@writes("clip")
def _write_clip(writer: Writer, a: Arguments) -> Made:
    bounds = []
    for name, short, none in (("a_min", "min", -float("inf")), ("a_max", "max", float("inf"))):
        given = short if a[name] is None else name
        bounds.append(none if a[given] is None else a.number(given))
    if None in bounds:
        return _between(writer, a)
    return writer.single("_npi_clip", a, a["a"], a_min=bounds[0], a_max=bounds[1])


def _between(writer: Writer, a: Arguments) -> Made:
    """Bounds that are arrays."""
    entry = [writer.entry(a["a"])]
    for name, short, better in (("a_min", "min", "maximum"), ("a_max", "max", "minimum")):
        bound, number = a[name], a.number(name)
        bound, number = (a[short], a.number(short)) if bound is None else (bound, number)
        if number is not None:
            on_right, _ = WITH_NUMBER[better]
            entry = writer.node(on_right, f"{a.name}_{better}", entry, number_attributes(number))
        elif bound is not None:
            both = [*entry, writer.entry(bound)]
            entry = writer.node(f"_npi_{better}", f"{a.name}_{better}", both, {})
    return entry


@operator()
def where(condition: Any, x: Any, y: Any) -> Any:
    """`x` where `condition` is not 0, else `y`; a one-dimensional condition chooses rows."""
    if condition.ndim == 1 and x.ndim > 1:
        condition = condition.reshape((-1,) + (1,) * (x.ndim - 1))
    return np.where(condition != 0, x, y)


@stored("_npi_where_lscalar")
def _where_left(condition: Any, x: Any, scalar: float) -> Any:
    return np.where(condition, scalar, x)


@stored("_npi_where_rscalar")
def _where_right(condition: Any, y: Any, scalar: float) -> Any:
    return np.where(condition, y, scalar)


@stored("_npi_where_scalar2")
def _where_numbers(condition: Any, x: float, y: float) -> Any:
    return np.where(condition, x, y)


@writes("where")
def _write_where(writer: Writer, a: Arguments) -> Made:
    x, y = a.number("x"), a.number("y")
    if a.number("condition") is not None:
        return None
    if x is None and y is None:
        return writer.single("_npi_where", a, a["condition"], a["x"], a["y"])
    if x is not None and y is not None:
        return writer.single("_npi_where_scalar2", a, a["condition"], x=float(x), y=float(y))
    if x is not None:
        return writer.single("_npi_where_lscalar", a, a["condition"], a["y"], scalar=float(x))
    return writer.single("_npi_where_rscalar", a, a["condition"], a["x"], scalar=float(y))
