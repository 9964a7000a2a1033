"""Mathematics once, in NumPy's words: on program values a program, on arrays its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin

from heterosis.ir import views
from heterosis.ir.program import Value, extent
from heterosis.ops.record import REGISTRY, as_value
from heterosis.ops.rules import iota

_OURS = {"divide": "true_divide"}  # where NumPy's name is none of a record


# An array as mathematics in NumPy's words has it: a `Term`, or one of NumPy's in the reference.
Array: TypeAlias = Any


class Term(NDArrayOperatorsMixin):
    """A program value that NumPy's functions and Python's operators work on."""

    def __init__(self, value: Value):
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    def reshape(self, shape: tuple[int, ...]) -> Term:
        """The same elements in the same order; the caller has checked that the sizes agree."""
        return Term(views.reshape(self.value, tuple(shape)))

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **keywords: Any) -> Any:
        if method != "__call__" or keywords:
            return NotImplemented
        return _applied(ufunc.__name__, operands, {})

    def __array_function__(self, function: Any, types: Any, operands: Any, keywords: Any) -> Any:
        return _applied(function.__name__, operands, keywords)


def _applied(name: str, operands: Any, keywords: dict[str, Any]) -> Term:
    name = _OURS.get(name, name)
    return Term(REGISTRY[name].operation(*(_operand(name, o) for o in operands), **keywords))


def _operand(name: str, given: Any) -> Any:
    """The program value of a term or a number; anything else is an attribute and stays."""
    if isinstance(given, Term):
        return given.value
    return as_value(name, given) if isinstance(given, int | float) else given


def on_terms(function: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Value, ...]:
    """The results of `function`, written for NumPy, on program values and attributes."""
    results = function(*(Term(a) if isinstance(a, Value) else a for a in arguments))
    return tuple(r.value for r in (results if isinstance(results, tuple) else (results,)))


def number_for(x: Any, number: int) -> Any:
    """A number that follows from a shape, for arithmetic with `x`."""
    return Term(extent(number)) if isinstance(x, Term) else number


def places_along(x: Any, axis: int) -> Any:
    """0, 1, ... along `axis`, to be repeated along the other axes of `x`."""
    count = x.shape[axis]
    shape = tuple(count if a == axis % x.ndim else 1 for a in range(x.ndim))
    line = Term(iota(count)) if isinstance(x, Term) else numpy.arange(count)
    return line.reshape(shape)


def as_indices(x: Any) -> Any:
    """`x` as integers, towards zero."""
    if isinstance(x, Term):
        return Term(REGISTRY["astype"].operation(x.value, "int64"))
    return numpy.asarray(x).astype("int64")
