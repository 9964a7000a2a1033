"""Rows of keys in order, and places in rows that are in order.

Keys are the bits of unsigned integers; `sort_keys` makes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy

from heterosis.ir.primitives import expected
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.primitives.numbers import precise
from heterosis.ir.sizes import Size
from heterosis.ir.types import TensorType
from heterosis.runtime.errors import ShapeError

if TYPE_CHECKING:
    from heterosis.ir.program import Node

_KEYS = ("int32", "int64")
_SEARCHED = ("int32", "int64", "float32", "float64")


def _rows(node: Node) -> TensorType:
    (keys,) = expected.operands(node, 1)
    expected.ranks(node, 2)
    return TensorType(keys.shape, expected.element_type(node, 0, _KEYS))


def _sorted_types(node: Node) -> tuple[TensorType, ...]:
    return (_rows(node),)


def _placed_types(node: Node) -> tuple[TensorType, ...]:
    keys = _rows(node)
    return keys, TensorType(keys.shape, "int64")


def _first_types(node: Node) -> tuple[TensorType, ...]:
    keys, count = _rows(node), node.attributes["count"]
    length = keys.shape[1]
    fits = isinstance(length, Size) or count <= length
    expected.holds(node, count >= 1 and fits, f"from 1 to {length} places")
    return (TensorType((keys.shape[0], count), "int64"),)


def _search_types(node: Node) -> tuple[TensorType, ...]:
    row, numbers = expected.operands(node, 2)
    expected.common_element_type(node, _SEARCHED)
    if row.ndim != 1 or row.shape[0] == 0:
        raise ShapeError(f"search: in a shape of {row.shape}; expected a row that is not empty.")
    return (TensorType(numbers.shape, "int64"),)


def _unsigned(keys: Any) -> Any:
    return numpy.ascontiguousarray(keys).view(f"u{keys.dtype.name}")


def _sorted(node: Node, keys: Any) -> Any:
    return numpy.sort(_unsigned(keys), axis=1).view(keys.dtype)


def _placed(node: Node, keys: Any) -> Any:
    places = numpy.argsort(_unsigned(keys), axis=1, kind="stable")
    return numpy.take_along_axis(keys, places, axis=1), places.astype("int64")


def _first(node: Node, keys: Any) -> Any:
    _, places = _placed(node, keys)
    return places[:, : node.attributes["count"]]


def _searched(node: Node, row: Any, numbers: Any) -> Any:
    right = node.attributes["right"]
    return numpy.searchsorted(row, numbers, "right" if right else "left").astype("int64")


def _extreme_types(node: Node) -> tuple[TensorType, ...]:
    (rows,) = expected.operands(node, 1)
    expected.ranks(node, 2)
    if rows.shape[1] == 0:
        raise ShapeError(f"extreme_places: rows of shape {rows.shape}; expected some elements.")
    return (TensorType(rows.shape[:1], "int64"),)


def _extreme(node: Node, rows: Any) -> Any:
    place = numpy.argmin if node.attributes["smallest"] else numpy.argmax
    return place(precise(rows), axis=1).astype("int64")


SORT = Opaque(
    "sort",
    types=_sorted_types,
    meaning=_sorted,
    about="Every row of keys in ascending order, as unsigned numbers.",
)
SORT_PLACES = Opaque(
    "sort_places",
    types=_placed_types,
    meaning=_placed,
    about="Every row of keys in ascending order, as unsigned numbers, and the places where they "
    "stood; equal ones keep their order.",
)
FIRST_PLACES = Opaque(
    "first_places",
    types=_first_types,
    meaning=_first,
    attributes={"count": int},
    about="The first `count` of the places that `sort_places` gives, of rows with as many keys.",
)
SEARCH = Opaque(
    "search",
    types=_search_types,
    meaning=_searched,
    attributes={"right": bool},
    about="For each number of the second operand, how many elements at the front of the first one, "
    "a row in ascending order, are less than it; or no more, where `right`. NaN is the largest.",
)
EXTREME_PLACES = Opaque(
    "extreme_places",
    types=_extreme_types,
    meaning=_extreme,
    attributes={"smallest": bool},
    about="Where the largest element of each row, or the smallest, is first met; NaN is either.",
)
