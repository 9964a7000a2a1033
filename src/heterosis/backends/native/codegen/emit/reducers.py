"""How a reduction starts, takes one more element, joins two partial results, and ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

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
    of a sum does not grow with its length beyond one block. `settled` tells whether what some lanes
    have is the result, whatever comes.
    """

    name: str
    identity: Callable[[str, Sequence[Type]], State]
    merge: Callable[[Function, str, State, State], State]
    compensated: bool = False
    settled: Callable[[Function, State], Value] | None = None

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
    **options: Any,
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
    """The larger, the second of two zeros; NaN if either is."""
    return _either(f, a, b, lambda x, y: above(f, dtype, x, y))


def minimum(f: Function, dtype: str, a: Value, b: Value) -> Value:
    """The smaller, the second of two zeros; NaN if either is."""
    return _either(f, a, b, lambda x, y: above(f, dtype, y, x))


def _either(f: Function, a: Value, b: Value, better: Callable[[Value, Value], Value]) -> Value:
    """The better of two; of equal ones `b`, and NaN if either is.

    A choice of `x` if it is better than `y`, else `y`, is one instruction of x86, max or min. One
    more takes care of NaN where `a` may be it, or of zeros: -0.0 + 0.0 is 0.0.
    """
    if not a.type.is_float:
        return f.select(better(a, b), a, b)
    if not is_literal(b) or b == constant(b.type, -0.0):
        return f.select(f.compare("uno", a, a), a, f.select(better(a, b), a, b))
    chosen = f.select(better(b, a), b, a)
    return f.add(chosen, b) if b == constant(b.type, 0.0) else chosen


def _differs(f: Function, state: State, bits: int) -> Value:
    """Whether the truth values in all lanes are not these."""
    (truths,) = state
    together = f.convert("bitcast", truths, Type(f"i{max(truths.type.lanes, 1)}"))
    return f.compare("ne", together, constant(together.type, bits))


SUM = _plain("sum", lambda dtype: 0, lambda f, dtype, a, b: f.add(a, b), compensated=True)
PROD = _plain("prod", lambda dtype: 1, lambda f, dtype, a, b: f.mul(a, b))
MAX = _plain("max", lowest, maximum)
MIN = _plain("min", highest, minimum)
ANY = _plain(
    "any",
    lambda dtype: 0,
    lambda f, dtype, a, b: f.binary("or", a, b),
    settled=lambda f, state: _differs(f, state, 0),
)
ALL = _plain(
    "all",
    lambda dtype: 1,
    lambda f, dtype, a, b: f.binary("and", a, b),
    settled=lambda f, state: _differs(f, state, -1),
)
