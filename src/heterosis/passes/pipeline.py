"""All passes that a captured program goes through before it is scheduled, in their order.

One operation needs none of them: eager programs are scheduled as they are. Dead code takes no
pass, since a program's nodes are those that its outputs reach. Differentiation comes before all
of these: it looks at marks on nodes, which new nodes do not have.

`PASSES` clean a program up, for any back end. `STAGES` are for one processor, and for parameters
that seldom change; a stage that has changed something is followed by a cleaning up of its own,
because new nodes bring numbers to fold and repeat each other. What is split last is clean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from heterosis.codegen.kernel import Machine
from heterosis.ir.primitives.windows import CONVOLVE
from heterosis.ir.program import Program, Value, checked
from heterosis.passes.common import shared
from heterosis.passes.fold import FOLD
from heterosis.passes.folding import folded
from heterosis.passes.halves import widened
from heterosis.passes.preparation import Split, packed, split
from heterosis.passes.rewrite import rewritten
from heterosis.passes.simplify import SIMPLIFY, own


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


@dataclass(frozen=True)
class Stage:
    """A step from program to program that knows the processor, and which inputs are `fixed`:
    parameters that seldom change, so that work on them alone is done ahead. It gives the program
    itself where there is nothing to do."""

    name: str
    run: Callable[[Program, Collection[Value], Machine], Program]


def _channels_last(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    """What only convolutions need is loaded for them."""
    if not fixed or all(node.primitive is not CONVOLVE for node in program.nodes()):
        return program
    from heterosis.passes.channels_last import channels_last

    return channels_last(program, fixed, machine)


STAGES = (
    # First, where products have their scales and shifts next to them, and no layout between.
    Stage("scales into weights", lambda program, fixed, machine: folded(program, fixed)),
    # Before packing, which takes filters as they stand then.
    Stage("channels last", _channels_last),
    # Last, since no rule knows anything of packed operands.
    Stage("packed operands", packed),
)


def for_processor(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    """`program` as it is scheduled, but for being split."""
    program = optimized(program)
    for stage in STAGES:
        found = checked(stage.run(program, fixed, machine))
        program = program if found is program else optimized(found)
    return program


def in_parts(program: Program, fixed: Collection[Value], machine: Machine) -> Split | Program:
    """`program` as it is scheduled: in two, where something is computed from `fixed` alone."""
    program = for_processor(program, fixed, machine)
    return (split(program, fixed) if fixed else None) or program


def optimized(program: Program) -> Program:
    """`program`, computing the same with less."""
    found = program
    for step in PASSES:
        found = checked(step.run(found))
    outputs = zip(program.outputs, found.outputs, strict=True)
    return checked(Program(found.inputs, tuple(own(*pair) for pair in outputs), found.name))
