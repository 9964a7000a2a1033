"""Python values as JSON has them, exactly: what JSON has no word for is an object with one key."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from heterosis.ir.traced_sizes import is_traced, written


def encoded(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """`value` for JSON; `leaf` encodes what is no plain value, or raises. A number that follows
    from sizes is written as their expression.

    Named tuples become tuples, and all mappings dictionaries.
    """

    def each(items: Any) -> list[Any]:
        return [encoded(item, leaf) for item in items]

    if is_traced(value):
        return {"size": written(value)}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple):
        return each(value)
    if isinstance(value, list):
        return {"list": each(value)}
    if isinstance(value, dict):
        return {"dict": [each(pair) for pair in value.items()]}
    if isinstance(value, numpy.generic):
        return encoded(value.item(), leaf)
    if isinstance(value, slice):
        return {"slice": each((value.start, value.stop, value.step))}
    return leaf(value)


def decoded(data: Any, array: Callable[[Any], Any], size: Callable[[Any], Any]) -> Any:
    """What was encoded; `array` makes leaves, and `size` numbers of expressions. Raises ValueError
    for what is no such thing."""
    if data is None or isinstance(data, bool | int | float | str):
        return data
    if isinstance(data, list):
        return tuple(decoded(item, array, size) for item in data)
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError(f"an object with one key was expected, and not {str(data)[:60]}")
    ((kind, given),) = data.items()
    if kind == "array":
        return array(given)
    if kind == "size":
        return size(given)
    if kind == "float" and isinstance(given, str):
        return float(given)
    items = decoded(given, array, size)
    if kind == "slice" and len(items) == 3:
        return slice(*items)
    if kind in ("list", "dict"):
        return list(items) if kind == "list" else dict(items)
    raise ValueError(f"the unknown kind of value {kind!r}")


def is_plain(value: Any) -> bool:
    """Whether JSON can say what `value` is."""
    try:
        encoded(value, refuse)
    except TypeError:
        return False
    return True


def refuse(value: Any) -> Any:
    """For a value without leaves."""
    raise TypeError(value)
