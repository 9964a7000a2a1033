"""Expressions of sizes that files hold: read by their grammar, and never run as Python's."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from heterosis.runtime.errors import ProgramError

_LONGEST = 10_000  # characters
_LARGEST_POWER = 8  # of whole numbers: others would take for ever

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {"floor": math.floor, "max": max, "min": min}


def evaluated(text: Any, values: Mapping[str, Any]) -> Any:
    """The number, or the truth of the condition, that `text` is where names have these values."""
    if type(text) is not str or len(text) > _LONGEST:
        raise ProgramError(f"{str(text)[:60]!r} is no expression of sizes")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, values)
    except (SyntaxError, ValueError, TypeError, ArithmeticError, KeyError) as error:
        raise ProgramError(f"{text[:60]!r} is no expression of {', '.join(values)}") from error
    except (RecursionError, MemoryError) as error:
        raise ProgramError(f"{text[:60]!r}... is nested too deeply") from error


def _value(tree: ast.expr, values: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, values)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _power(_value(left, values), _value(right, values))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
            return _COMPARISONS[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(one, values) for one in given))
    raise ValueError(ast.dump(tree)[:80])


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and abs(exponent) > _LARGEST_POWER:
        raise ValueError(f"a power of {exponent}")
    return base**exponent
