"""Derivatives of arithmetic, comparisons and choices."""

from __future__ import annotations

from heterosis.autograd.rules.table import elementwise_adjoints, piecewise_constant
from heterosis.ir.primitives import elementwise as primitives
from heterosis.ir.program import Value
from heterosis.ir.types import is_float
from heterosis.ops.math.elementwise import (
    equal,
    floor_divide,
    greater_equal,
    less_equal,
    logical_and,
    logical_or,
    multiply,
    negative,
    not_equal,
    power,
    select,
    sign,
    subtract,
    true_divide,
)
from heterosis.ops.math.real import log
from heterosis.ops.rules import weak


def _power(g: Value, y: Value, a: Value, b: Value) -> tuple[Value, Value]:
    zero = equal(a, weak(0))
    # Every base to the power of 0 is 1: its slope is 0, and not 0 times infinity.
    base = select(equal(b, weak(0)), weak(1), a)
    slope = multiply(b, power(base, subtract(b, weak(1))))
    # Zero to any positive power is zero, and has no logarithm.
    level = logical_and(zero, greater_equal(b, weak(0)))
    growth = multiply(y, log(select(level, weak(1), a)))
    return multiply(g, slope), multiply(g, growth)


def _to_chosen(g: Value, first: Value) -> tuple[Value, Value]:
    """A cotangent to the first operand where `first` is true, else to the second."""
    return select(first, g, weak(0)), select(first, weak(0), g)


def _to_extreme(g: Value, first: Value, a: Value) -> tuple[Value, Value]:
    """A cotangent to the operand that is the result; where `a` is NaN, that is `a`."""
    if is_float(a.dtype):
        first = logical_or(first, not_equal(a, a))
    return _to_chosen(g, first)


elementwise_adjoints(
    {
        primitives.ADD: lambda g, y, a, b: (g, g),
        primitives.SUBTRACT: lambda g, y, a, b: (g, negative(g)),
        primitives.MULTIPLY: lambda g, y, a, b: (multiply(g, b), multiply(g, a)),
        primitives.MOD: lambda g, y, a, b: (g, negative(multiply(g, floor_divide(a, b)))),
        primitives.FMOD: lambda g, y, a, b: (
            g,
            negative(multiply(g, true_divide(subtract(a, y), b))),
        ),
        primitives.POWER: _power,
        primitives.NEGATIVE: lambda g, y, x: negative(g),
        primitives.ABSOLUTE: lambda g, y, x: multiply(g, sign(x)),
        primitives.MAXIMUM: lambda g, y, a, b: _to_extreme(g, greater_equal(a, b), a),
        primitives.MINIMUM: lambda g, y, a, b: _to_extreme(g, less_equal(a, b), a),
        primitives.SELECT: lambda g, y, condition, a, b: (None, *_to_chosen(g, condition)),
    }
)

piecewise_constant(primitives.FLOOR_DIVIDE, primitives.SIGN)

# No gradient flows to what truth values were found from.
piecewise_constant(
    primitives.EQUAL,
    primitives.NOT_EQUAL,
    primitives.LESS,
    primitives.LESS_EQUAL,
    primitives.GREATER,
    primitives.GREATER_EQUAL,
)
