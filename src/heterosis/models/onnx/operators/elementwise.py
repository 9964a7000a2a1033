"""Arithmetic, comparisons, logic and functions of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.models.onnx.operators.table import operator


def _both(name: str, ours: Callable[..., Any], host: Callable[..., Any], since: int = 1) -> None:
    """An operator that NumPy has under the same meaning."""
    # The table reads from the signature how many inputs there are.
    if getattr(host, "nin", 1) == 2:
        operator(name, since=since, on_host=host)(lambda a, b: ours(a, b))
    else:
        operator(name, since=since, on_host=host)(lambda x: ours(x))


def divided(a: Any, b: Any) -> Any:
    """Quotients; those of integers are rounded towards zero."""
    if isinstance(a, numpy.ndarray):
        if a.dtype.kind not in "iuO":
            return numpy.divide(a, b)
        quotient = abs(a) // abs(b)
        return numpy.where((a < 0) != (b < 0), -quotient, quotient).astype(a.dtype)
    if str(a.dtype).startswith(("int", "uint")):
        rest = np.fmod(a, b)
        return (a - rest) // b
    return np.divide(a, b)


for _name, _ours, _host in (
    ("Add", np.add, numpy.add),
    ("Sub", np.subtract, numpy.subtract),
    ("Mul", np.multiply, numpy.multiply),
    ("Equal", np.equal, numpy.equal),
    ("Greater", np.greater, numpy.greater),
    ("Less", np.less, numpy.less),
    ("And", np.logical_and, numpy.logical_and),
    ("Or", np.logical_or, numpy.logical_or),
    ("Not", np.logical_not, numpy.logical_not),
    ("Neg", np.negative, numpy.negative),
    ("Abs", np.abs, numpy.abs),
):
    _both(_name, _ours, _host)


@operator("Div", on_host=divided)
def _div(a: Any, b: Any) -> Any:
    return divided(a, b)


@operator("Relu")
def _relu(x: Any) -> Any:
    return npx.relu(x)


for _name, _function in (
    ("Exp", np.exp), ("Log", np.log), ("Sqrt", np.sqrt), ("Tanh", np.tanh),
    ("Sigmoid", npx.sigmoid), ("Erf", npx.erf),
):  # fmt: skip
    operator(_name)(lambda x, _function=_function: _function(x))
