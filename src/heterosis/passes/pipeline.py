"""All passes that a captured program goes through before a back end takes it, in their order.

One operation needs none of them: eager programs are compiled as they are. Dead code takes no
pass, since a program's nodes are those that its outputs reach. Differentiation comes before all
of these: it looks at marks on nodes, which new nodes do not have.

`PASSES` clean a program up, for any back end, and so the programs that are attributes of nodes.
What a back end alone does to programs are its own stages; each that has changed something is
followed by a cleaning up of its own, because new nodes bring numbers to fold and repeat each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from weakref import WeakValueDictionary

from heterosis.ir.program import Program, checked, with_programs
from heterosis.passes.choices import selected
from heterosis.passes.common_subexpressions import shared
from heterosis.passes.fold import FOLD
from heterosis.passes.halves import widened
from heterosis.passes.rewrite import rewritten
from heterosis.passes.simplify import SIMPLIFY, in_own_memory
from heterosis.passes.thinned import thinned
from heterosis.passes.unneeded import pruned


@dataclass(frozen=True)
class Pass:
    """A step from program to program."""

    name: str
    run: Callable[[Program], Program]


PASSES = (
    # First, since the others would take a marked rounding for any other elementwise step.
    Pass("16-bit floats", widened),
    # Selections are elementwise steps, to which all that follows is open.
    Pass("choices of what is there", selected),
    # What is read in part is made in part, before what that adds is simplified.
    Pass("positions that are read", thinned),
    # Folding makes numbers that simplifying finds neutral, and simplifying brings numbers
    # together that can be folded: one table, applied until nothing fits.
    Pass("simplify and fold", lambda program: rewritten(program, SIMPLIFY + FOLD)),
    # After that, expressions that were written differently look the same.
    Pass("common sub-expressions", shared),
    # Last: what the others have made of a program no longer uses all that loops and choices give.
    Pass("unneeded results", pruned),
)


# By their identities, the programs that `optimized` gave. Of branches within branches, each one
# around them would have all that are inside gone through again.
_optimized: WeakValueDictionary[int, Program] = WeakValueDictionary()


def optimized(program: Program) -> Program:
    """`program`, computing the same with less."""
    if _optimized.get(id(program)) is program:
        return program
    found = _optimized_once(program)
    _optimized[id(found)] = found
    return found


def _optimized_once(program: Program) -> Program:
    found = with_programs(program, optimized)  # branches and bodies: the same for each
    for step in PASSES:
        found = checked(step.run(found))
    outputs = zip(program.outputs, found.outputs, strict=True)
    return checked(
        Program(found.inputs, tuple(in_own_memory(*pair) for pair in outputs), found.name)
    )


def staged(program: Program, stages: Iterable[Callable[[Program], Program]]) -> Program:
    """`program`, optimised, after the stages of a back end: it is clean between them, and then."""
    program = optimized(program)
    for stage in stages:
        found = checked(stage(program))
        program = program if found is program else optimized(found)
    return program
