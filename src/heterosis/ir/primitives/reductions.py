"""Reductions, which combine the elements along axes, and scans, which keep every step of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.element_types import NUMBERS
from heterosis.ir.primitives.families import Reduction, Scan
from heterosis.ir.primitives.numbers import precise
from heterosis.ir.types import DTYPES, TensorType, highest, lowest

if TYPE_CHECKING:
    from heterosis.ir.program import Node

_AXES = {"axes": tuple}


def _reduced(*dtypes: str) -> Callable[[Node], tuple[TensorType, ...]]:
    """The rule for elements of these types: the axes are gone."""

    def types(node: Node) -> tuple[TensorType, ...]:
        (x,) = expected.operands(node, 1)
        dtype = expected.element_type(node, 0, dtypes)
        axes = expected.axes(node, x.ndim)
        return (TensorType(tuple(n for a, n in enumerate(x.shape) if a not in axes), dtype),)

    return types


def _scanned(node: Node) -> tuple[TensorType, ...]:
    (x,) = expected.operands(node, 1)
    dtype = expected.element_type(node, 0, NUMBERS)
    axes = expected.axes(node, x.ndim)
    expected.holds(node, len(axes) == 1, "one axis")
    return (TensorType(x.shape, dtype),)


def _added(function: Callable[..., Any]) -> Callable[..., Any]:
    """The meaning of `numpy.sum` and the like: integers wrap, floats are rounded at the end."""

    def meaning(node: Node, x: Any) -> Any:
        wide, axes = precise(x), node.attributes["axes"]
        axis = axes[0] if isinstance(node.primitive, Scan) else axes
        return function(wide, axis=axis, dtype=wide.dtype)

    return meaning


def _extreme(
    function: Callable[..., Any], of_nothing: Callable[[str], float | int]
) -> Callable[..., Any]:
    def meaning(node: Node, x: Any) -> Any:
        wide = precise(x)
        start = numpy.asarray(of_nothing(node.types[0].dtype)).astype(wide.dtype)
        return function(wide, axis=node.attributes["axes"], initial=start)

    return meaning


def _any(node: Node, x: Any) -> Any:
    return numpy.any(x, axis=node.attributes["axes"])


def _all(node: Node, x: Any) -> Any:
    return numpy.all(x, axis=node.attributes["axes"])


SUM = Reduction(
    "sum",
    types=_reduced(*NUMBERS),
    meaning=_added(numpy.sum),
    attributes=_AXES,
    about="The sum of elements; 0 of none. Integers wrap.",
)
PROD = Reduction(
    "prod",
    types=_reduced(*NUMBERS),
    meaning=_added(numpy.prod),
    attributes=_AXES,
    about="The product of elements; 1 of none. Integers wrap.",
)
MAX = Reduction(
    "max",
    types=_reduced(*DTYPES),
    meaning=_extreme(numpy.max, lowest),
    attributes=_AXES,
    about="The largest element, NaN if any is; of none, the lowest value of the type.",
)
MIN = Reduction(
    "min",
    types=_reduced(*DTYPES),
    meaning=_extreme(numpy.min, highest),
    attributes=_AXES,
    about="The smallest element, NaN if any is; of none, the highest value of the type.",
)
ANY = Reduction(
    "any",
    types=_reduced("bool"),
    meaning=_any,
    attributes=_AXES,
    about="Whether an element is true.",
)
ALL = Reduction(
    "all",
    types=_reduced("bool"),
    meaning=_all,
    attributes=_AXES,
    about="Whether every element is true.",
)
CUMSUM = Scan(
    "cumsum",
    types=_scanned,
    meaning=_added(numpy.cumsum),
    attributes=_AXES,
    about="For each element, the sum of itself and all before it along the one axis.",
)
CUMPROD = Scan(
    "cumprod",
    types=_scanned,
    meaning=_added(numpy.cumprod),
    attributes=_AXES,
    about="For each element, the product of itself and all before it along the one axis.",
)
