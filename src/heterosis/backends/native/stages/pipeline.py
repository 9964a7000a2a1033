"""The stages of this back end, in their order: steps from program to program for one processor, and
for parameters that seldom change. What is split last is clean."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.schedule import control  # noqa: F401 - the rows of choices and loops
from heterosis.backends.native.stages.loops import ahead_of_loops
from heterosis.backends.native.stages.prepack import packed
from heterosis.backends.native.stages.scale_folding import folded
from heterosis.ir.primitives.windows import CONVOLVE
from heterosis.ir.program import Program, Value
from heterosis.passes.pipeline import staged
from heterosis.passes.preparation import Split, split


class Run(Protocol):
    """What a stage does. It gives the program itself where there is nothing to do."""

    def __call__(self, program: Program, fixed: Collection[Value], machine: Machine) -> Program: ...


@dataclass(frozen=True)
class Stage:
    """A step from program to program that knows the processor, and which inputs are `fixed`:
    parameters that seldom change, so that work on them alone is done ahead."""

    name: str
    run: Run


def _channels_last(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    """What only convolutions need is loaded for them."""
    if not fixed or all(node.primitive is not CONVOLVE for node in program.nodes()):
        return program
    from heterosis.backends.native.stages.channels_last import channels_last

    return channels_last(program, fixed, machine)


def _loops(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    return ahead_of_loops(program, machine, for_processor)


STAGES = (
    # Before all others, which then see what loops have left to them.
    Stage("work ahead of loops", _loops),
    # Where products have their scales and shifts next to them, and no layout between.
    Stage("scales into weights", lambda program, fixed, machine: folded(program, fixed)),
    # Before packing, which takes filters as they stand then.
    Stage("channels last", _channels_last),
    # Last, since no rule knows anything of packed operands.
    Stage("packed operands", packed),
)


def for_processor(program: Program, fixed: Collection[Value], machine: Machine) -> Program:
    """`program` as it is scheduled, but for being split."""
    steps = [partial(stage.run, fixed=fixed, machine=machine) for stage in STAGES]
    return staged(program, steps)


def in_parts(program: Program, fixed: Collection[Value], machine: Machine) -> Split | Program:
    """`program` as it is scheduled: in two, where something is computed from `fixed` alone."""
    program = for_processor(program, fixed, machine)
    return (split(program, fixed) if fixed else None) or program
