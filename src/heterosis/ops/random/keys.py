"""Random keys that a program draws by itself, as the core does: see `core/random_state.h`.

A state says where drawing stands: the seed and how many keys have been drawn, in one integer.
"""

from __future__ import annotations

from heterosis import _core
from heterosis.ir.program import Value, constant
from heterosis.ops.math.elementwise import add, bitwise_and, bitwise_xor, multiply, right_shift

_ALL = 2**64
_STEP = 0x9E3779B97F4A7C15  # splitmix64
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31


def drawn(state: Value) -> tuple[Value, Value]:
    """The state behind one more key, and that key."""
    after = add(state, _number(_STEP))
    key = after
    for shift, factor in _ROUNDS:
        key = multiply(_mixed(key, shift), _number(factor))
    return after, _mixed(key, _LAST_SHIFT)


def _mixed(x: Value, shift: int) -> Value:
    """`x ^ x >> shift`, zeros coming in from above."""
    low = _number(2 ** (64 - shift) - 1)
    return bitwise_xor(x, bitwise_and(right_shift(x, _number(shift)), low))


def _number(bits: int) -> Value:
    return constant(_signed(bits), "int64")


def _signed(bits: int) -> int:
    return (bits + _ALL // 2) % _ALL - _ALL // 2


def current_state() -> int:
    """The state that the core is in."""
    seed, count = _core.random_state()
    return _signed((seed + count * _STEP) % _ALL)


def advance(count: int) -> None:
    """Let the core have drawn so many keys more."""
    seed, before = _core.random_state()
    _core.restore_random_state(seed, (before + count) % _ALL)


def count_between(before: int, after: int) -> int:
    """How many keys are drawn from one state to another."""
    return (after - before) * pow(_STEP, -1, _ALL) % _ALL
