"""The passes that a captured program goes through before it is scheduled, in their order.

One operation needs none of them: eager programs are scheduled as they are. Dead code takes no
pass, since a program's nodes are those that its outputs reach. Differentiation comes before all
of these: it looks at marks on nodes, which new nodes do not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heterosis.ir.program import Program
from heterosis.passes.common import shared
from heterosis.passes.fold import FOLD
from heterosis.passes.halves import widened
from heterosis.passes.rewrite import rewritten
from heterosis.passes.simplify import SIMPLIFY, own
from heterosis.runtime.settings import settings


@dataclass(frozen=True)
class Pass:
    """A step from program to program."""

    name: str
    run: Callable[[Program], Program]


PASSES = (
    # First, since the others would take a marked rounding for any other elementwise step.
    Pass("16-bit floats", widened),
    # Folding makes numbers that simplifying finds neutral, and simplifying brings numbers
    # together that can be folded: one table, applied until nothing fits.
    Pass("simplify and fold", lambda program: rewritten(program, SIMPLIFY + FOLD)),
    # After that, expressions that were written differently look the same.
    Pass("common sub-expressions", shared),
)


def optimized(program: Program) -> Program:
    """`program`, computing the same with less."""
    found = program
    for step in PASSES:
        found = _checked(step.run(found))
    outputs = zip(program.outputs, found.outputs, strict=True)
    return _checked(Program(found.inputs, tuple(own(*pair) for pair in outputs), found.name))


def _checked(program: Program) -> Program:
    """`program`, which is well formed; looked at where settings ask for it."""
    if settings.check:
        from heterosis.ir import check

        check(program)
    return program
