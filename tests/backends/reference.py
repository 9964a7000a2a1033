"""A back end that computes with NumPy what programs mean, primitive by primitive.

It knows nothing of the native one: whatever runs on it needs no more of a back end than the
interface says. `hybridize(backend="reference")` finds it once this module is imported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy

from heterosis import backends, np
from heterosis.backends import Backend, Executable
from heterosis.ir import check, evaluate
from heterosis.ir.primitives.families import Elementwise, Primitive
from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.ir.types import numpy_dtype

NAME = "reference"


class Reference(Backend):
    """Evaluates programs anew in every run. `compiled` counts them."""

    def __init__(self) -> None:
        self.compiled = 0

    def compile(
        self, program: Program, layouts: Sequence[Strided], fixed: Collection[int] = ()
    ) -> Executable:
        check(program)
        self.compiled += 1
        return Executable(lambda operands: _run(program, operands))

    def has(self, primitive: Primitive) -> bool:
        return primitive.meaning is not None

    def is_dear(self, primitive: Elementwise) -> bool:
        return False


def _run(program: Program, operands: Sequence[Any]) -> tuple[Any, ...]:
    pairs = zip(operands, program.inputs, strict=True)
    given = [_elements(operand, numpy_dtype(value.dtype)) for operand, value in pairs]
    return tuple(map(np.array, evaluate(program, given)))


def _elements(operand: Any, dtype: numpy.dtype) -> numpy.ndarray:
    """What an array holds, or a number as the program takes it."""
    return operand.asnumpy() if isinstance(operand, np.ndarray) else numpy.asarray(operand, dtype)


backends.register(NAME, Reference)
