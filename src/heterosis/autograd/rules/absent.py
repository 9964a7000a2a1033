"""The primitives that have no rule, and why. A gradient that would have to pass one is refused."""

from __future__ import annotations

from dataclasses import dataclass

from heterosis.ir.primitives import (
    control,
    elementwise,
    factorizations,
    leaves,
    random_bits,
    random_loops,
    recurrent,
    reductions,
    shuffling,
    sort_keys,
    sorting,
)
from heterosis.ir.primitives.families import Primitive


@dataclass(frozen=True)
class Absence:
    """Why there is no rule; `word` says it in the table of primitives."""

    word: str
    reason: str


NO_OPERANDS = Absence("-", "it has no operands that could receive anything")
NO_FLOATS = Absence("-", "its operands are no floats, which alone receive gradients")
BY_RECORD = Absence("by record", "the records of operations that use it say what their gradient is")
BY_REJECTION = Absence("none", "how a variate found by rejection follows its shape is not known")
COMPLEX = Absence("none", "eigenvectors of general matrices are complex in general")
SECOND = Absence("none", "it is part of a derivative of recurrent layers, which have no second one")
TURNS = Absence(
    "none",
    "it goes back through a loop without bound, which has no second derivative; a loop with "
    "max_iterations has",
)

_PRIMITIVES: dict[Absence, tuple[Primitive, ...]] = {
    NO_OPERANDS: (leaves.INPUT, leaves.NUMBER, leaves.CONSTANT, leaves.EXTENT, leaves.IOTA),
    # Bits may also be those of integers that hold what a gradient should reach: not constant.
    NO_FLOATS: (
        elementwise.BITWISE_AND,
        elementwise.BITWISE_OR,
        elementwise.BITWISE_XOR,
        elementwise.INVERT,
        elementwise.LEFT_SHIFT,
        elementwise.RIGHT_SHIFT,
        elementwise.GCD,
        elementwise.LCM,
        reductions.ALL,
        reductions.ANY,
        shuffling.SHUFFLED_PLACES,
        random_bits.RANDOM_BLOCK,
        random_bits.RANDOM_BELOW,
        random_bits.UNIT_FLOAT16,
        random_bits.UNIT_BFLOAT16,
        random_bits.UNIT_FLOAT32,
        random_bits.UNIT_FLOAT64,
        random_bits.OPEN_UNIT_FLOAT32,
        random_bits.OPEN_UNIT_FLOAT64,
        random_bits.NORMAL_FLOAT32,
        random_bits.NORMAL_FLOAT64,
    ),
    BY_RECORD: (
        # Elements are sorted as integers: gradients go from place to place instead.
        sort_keys.SORT_KEY_FLOAT32,
        sort_keys.SORT_KEY_FLOAT64,
        sort_keys.FROM_SORT_KEY_FLOAT32,
        sort_keys.FROM_SORT_KEY_FLOAT64,
        sorting.SORT,
        # Numbers of events, whose derivative is zero.
        random_loops.POISSON,
        random_loops.BINOMIAL,
        # There are formulas for whole matrices.
        factorizations.CHOLESKY,
        factorizations.LU,
        factorizations.INVERSE,
        factorizations.SOLVE,
        factorizations.SYMMETRIC_L,
        factorizations.SYMMETRIC_U,
        factorizations.SYMMETRIC_VALUES_L,
        factorizations.SYMMETRIC_VALUES_U,
        factorizations.SINGULAR,
        factorizations.SINGULAR_FULL,
        factorizations.SINGULAR_VALUES,
        factorizations.ORTHOGONAL,
        factorizations.REFLECTORS,
    ),
    BY_REJECTION: (random_loops.LOG_GAMMA_VARIATE,),
    COMPLEX: (factorizations.GENERAL, factorizations.GENERAL_VALUES),
    SECOND: tuple(recurrent.BACK.values()),
    TURNS: (control.WHILE_LOOP_BACK,),
}

ABSENT: dict[Primitive, Absence] = {
    primitive: absence for absence, group in _PRIMITIVES.items() for primitive in group
}
