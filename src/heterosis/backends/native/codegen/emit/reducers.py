"""How a reduction starts, takes one more element, joins two partial results, and ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heterosis.backends.native.codegen.emit.builder import (
    Function,
    Type,
    Value,
    constant,
    is_literal,
)
from heterosis.ir.types import UNSIGNED, highest, lowest

State = list[Value]


@dataclass(frozen=True, eq=False)
class Reducer:
    """A reduction over elements, or over tuples of them: a state has one value an operand.

    `compensated` sums carry the rounding error of every addition between blocks, so the error
    of a sum does not grow with its length beyond one block.
    """

    name: str
    identity: Callable[[str, Sequence[Type]], State]
    merge: Callable[[Function, str, State, State], State]
    compensated: bool = False

    def __repr__(self) -> str:
        return self.name


def add_compensated(f: Function, total: Value, lost: Value, x: Value) -> tuple[Value, Value]:
    """`total + x` and what all additions so far have rounded away (Knuth's two-sum)."""
    new = f.add(total, x)
    back = f.sub(new, total)
    error = f.add(f.sub(total, f.sub(new, back)), f.sub(x, back))
    # An infinite sum makes the error term NaN; the sum itself is then already right.
    finite = f.compare("oeq", error, error)
    return new, f.add(lost, f.select(finite, error, constant(error.type, 0.0)))


def _plain(
    name: str,
    start: Callable[[str], float | int],
    merge: Callable[[Function, str, Value, Value], Value],
    **options: bool,
) -> Reducer:
    return Reducer(
        name,
        lambda dtype, types: [constant(types[0], start(dtype))],
        lambda f, dtype, a, b: [merge(f, dtype, a[0], b[0])],
        **options,
    )


def above(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """Elementwise `a > b`, false where either is NaN."""
    if a.type.is_float:
        return f.compare("ogt", a, b)
    return f.compare("ugt" if dtype in ("bool", *UNSIGNED) else "sgt", a, b)


def maximum(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """The larger, the second of two zeros; NaN if either is. Written so that it becomes one max,
    and one blend unless `b` is known."""
    if _is_sure(b):
        return f.select(above(f, dtype, b, a), b, a)
    larger = f.select(above(f, dtype, a, b), a, b)
    return f.select(f.compare("uno", a, a), a, larger) if a.type.is_float else larger


def minimum(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """The smaller, the second of two zeros; NaN if either is."""
    if _is_sure(b):
        return f.select(above(f, dtype, a, b), b, a)
    smaller = f.select(above(f, dtype, b, a), a, b)
    return f.select(f.compare("uno", a, a), a, smaller) if a.type.is_float else smaller


def _is_sure(b: Value) -> bool:
    """Whether `b` is a float known to be neither NaN nor a zero, which may have the other sign."""
    return (
        b.type.is_float
        and is_literal(b)
        and b not in (constant(b.type, 0.0), constant(b.type, -0.0))
    )


SUM = _plain("sum", lambda dtype: 0, lambda f, dtype, a, b: f.add(a, b), compensated=True)
PROD = _plain("prod", lambda dtype: 1, lambda f, dtype, a, b: f.mul(a, b))
MAX = _plain("max", lowest, maximum)
MIN = _plain("min", highest, minimum)
ANY = _plain("any", lambda dtype: 0, lambda f, dtype, a, b: f.binary("or", a, b))
ALL = _plain("all", lambda dtype: 1, lambda f, dtype, a, b: f.binary("and", a, b))
