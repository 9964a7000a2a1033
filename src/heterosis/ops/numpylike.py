"""Mathematics written once in NumPy's words: on program values a program, on arrays its reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.lib.mixins import NDArrayOperatorsMixin

from heterosis.ir.program import Value
from heterosis.ops.record import REGISTRY, as_value

_OURS = {"divide": "true_divide"}  # where NumPy's name is none of a record


class Term(NDArrayOperatorsMixin):
    """A program value that NumPy's functions and Python's operators work on."""

    def __init__(self, value: Value):
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **keywords: Any) -> Any:
        if method != "__call__" or keywords:
            return NotImplemented
        return _applied(ufunc.__name__, operands, {})

    def __array_function__(self, function: Any, types: Any, operands: Any, keywords: Any) -> Any:
        return _applied(function.__name__, operands, keywords)


def _applied(name: str, operands: Any, keywords: dict[str, Any]) -> Term:
    run = REGISTRY[_OURS.get(name, name)].operation
    return Term(run(*map(as_operand, operands), **keywords))


def as_operand(given: Any) -> Any:
    """The program value of a term or number; anything else is an attribute and stays."""
    if isinstance(given, Term):
        return given.value
    return as_value("", given) if isinstance(given, int | float) else given


def on_terms(function: Callable[..., Any], operands: list[Value | None]) -> tuple[Value, ...]:
    """The results of `function`, written for NumPy, on program values."""
    results = function(*(None if v is None else Term(v) for v in operands))
    return tuple(r.value for r in (results if isinstance(results, tuple) else (results,)))
