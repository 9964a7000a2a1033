"""The way of captured programs: optimised as a whole, then planned and compiled as one function.

What came of a program is kept on disk beside its machine code, so that a later process neither
plans nor compiles it again. What plans and compiles is imported on first need.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from heterosis import _core
from heterosis.backends.native.codegen.kernel import Machine, Schedule
from heterosis.backends.native.compile import stored
from heterosis.backends.native.compile.plans import (
    PlanFacts,
    Taken,
    address,
    check_room,
    machine,
    plan_facts,
)
from heterosis.ir.program import INPUT, Program
from heterosis.ir.strided import Strided

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.program import ProgramCode


def scheduled(
    program: Program,
    layouts: Sequence[Strided],
    on: Machine | None = None,
    *,
    views: bool = True,
) -> Schedule:
    """The kernels that run `program`, which is optimised, on inputs that lie as `layouts` say, on
    this machine or another one. Without `views`, all results have memory of their own."""
    from heterosis.backends.native.schedule.materialize import kept_values
    from heterosis.backends.native.schedule.schedule import schedule

    results = [None] * len(program.outputs)
    kept = kept_values(program)
    return schedule(
        program, layouts, results, on or machine(), views=views, kept=kept, side_by_side=True
    )


def compile_program(
    program: Program, layouts: Sequence[Strided], parameters: Collection[int] = ()
) -> _core.Plan:
    """How to run `program`: a plan for the core. Results that only rearrange an input are views
    of it.

    With `parameters`, inputs at these positions seldom change, and no gradients will be asked for:
    what depends on these alone is computed ahead, and anew when one has changed.
    """
    key = stored.key(program, layouts, parameters, machine())
    plans, taken = stored.read(key) or _compiled(key, program, layouts, parameters)
    if len(plans) == 1:
        return plans[0]
    rest, preparation = plans
    return _core.with_preparation(rest, preparation, *taken)


def _compiled(
    key: bytes | None, program: Program, layouts: Sequence[Strided], parameters: Collection[int]
) -> tuple[list[_core.Plan], Taken]:
    functions, taken = _functions(program, layouts, parameters)
    plans = [facts.plan(address(code)) for facts, code in functions]
    stored.write(key, functions, taken)
    return plans, taken


def _functions(
    program: Program, layouts: Sequence[Strided], parameters: Collection[int]
) -> tuple[list[tuple[PlanFacts, ProgramCode]], Taken]:
    """The functions of what `parts` gives."""
    programs, taken = parts(program, layouts, parameters)
    return [_function(*part) for part in programs], taken


def parts(
    program: Program, layouts: Sequence[Strided], parameters: Collection[int]
) -> tuple[list[tuple[Program, Sequence[Strided]]], Taken]:
    """What each call runs, with the layouts of its inputs; if something is computed ahead of it,
    also what does so, and which arrays they take."""
    from heterosis.backends.native.stages.pipeline import in_parts
    from heterosis.passes.preparation import Split

    found = in_parts(program, [program.inputs[i] for i in parameters], machine())
    if not isinstance(found, Split):
        return [(found, layouts)], Taken([], [])
    own = [layouts[i] for i in found.own]
    further = [Strided.contiguous(value.shape) for value in found.prepared]
    taken = Taken(*(_among_arrays(program, some) for some in (found.fixed, found.own)))
    return [(found.rest, (*own, *further)), (found.preparation, layouts)], taken


def _among_arrays(program: Program, inputs: Collection[int]) -> list[int]:
    """What number those of the `inputs`, given by their positions, have that are arrays, among
    these."""
    arrays = [i for i, value in enumerate(program.inputs) if value.node.primitive is INPUT]
    return [number for number, i in enumerate(arrays) if i in inputs]


def _function(program: Program, layouts: Sequence[Strided]) -> tuple[PlanFacts, ProgramCode]:
    from heterosis.backends.native.codegen.emit.program import function_for_known_sizes

    planned = scheduled(program, layouts)
    code = function_for_known_sizes(planned)
    facts = plan_facts(program, planned, code)
    check_room(facts)
    return facts, code
