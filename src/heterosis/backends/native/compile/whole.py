"""The way of captured programs: optimised as a whole, then planned and compiled as one function.

What came of a program is kept on disk beside its machine code, so that a later process neither
plans nor compiles it again. What plans and compiles is imported on first need.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from heterosis import _core
from heterosis.backends.native.codegen.kernel import Machine, Schedule
from heterosis.backends.native.compile import stored
from heterosis.backends.native.compile.plans import (
    PlanFacts,
    Taken,
    check_room,
    machine,
    machine_code,
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
    written: Mapping[int, int] = MappingProxyType({}),
) -> Schedule:
    """The kernels that run `program`, which is optimised, on inputs that lie as `layouts` say, on
    this machine or another one. Without `views`, all results have memory of their own; those
    that are `written` to inputs after the run, by the positions of these, may stand there."""
    from heterosis.backends.native.schedule.materialize import kept_values
    from heterosis.backends.native.schedule.schedule import schedule

    results = [None] * len(program.outputs)
    kept = kept_values(program)
    return schedule(
        program, layouts, results, on or machine(),
        views=views, kept=kept, side_by_side=True, written=written,
    )  # fmt: skip


def compile_program(
    program: Program,
    layouts: Sequence[Strided],
    parameters: Collection[int] = (),
    written: Mapping[int, int] = MappingProxyType({}),
) -> _core.Plan:
    """How to run `program`: a plan for the core. Results that only rearrange an input are views
    of it.

    With `parameters`, inputs at these positions seldom change, and no gradients will be asked for:
    what depends on these alone is computed ahead, and anew when one has changed. The `written`
    results are written to inputs after every run, and are known by the positions of these: the plan
    says which may stand there from the beginning.
    """
    key = stored.key(program, layouts, parameters, machine(), written)
    plans, taken = stored.read(key) or _compiled(key, program, layouts, parameters, written)
    if len(plans) == 1:
        return plans[0]
    rest, preparation = plans
    return _core.with_preparation(rest, preparation, *taken)


def _compiled(
    key: bytes | None,
    program: Program,
    layouts: Sequence[Strided],
    parameters: Collection[int],
    written: Mapping[int, int],
) -> tuple[list[_core.Plan], Taken]:
    functions, taken = _functions(program, layouts, parameters, written)
    plans = [facts.plan(machine_code(code)) for facts, code in functions]
    stored.write(key, functions, taken)
    return plans, taken


def _functions(
    program: Program,
    layouts: Sequence[Strided],
    parameters: Collection[int],
    written: Mapping[int, int],
) -> tuple[list[tuple[PlanFacts, ProgramCode]], Taken]:
    """The functions of what `parts` gives."""
    programs, taken = parts(program, layouts, parameters, written)
    return [*map(_function, programs)], taken


class Part(NamedTuple):
    """What is run, or computed ahead of it: inputs lie as `layouts` say, and `written` results are
    written to some of them after a run."""

    program: Program
    layouts: Sequence[Strided]
    written: Mapping[int, int] = MappingProxyType({})

    def scheduled(self) -> Schedule:
        """The kernels that run it."""
        return scheduled(self.program, self.layouts, written=self.written)


def parts(
    program: Program,
    layouts: Sequence[Strided],
    parameters: Collection[int],
    written: Mapping[int, int],
) -> tuple[list[Part], Taken]:
    """What each call runs; if something is computed ahead of it, also what does so, and which
    arrays they take."""
    from heterosis.backends.native.stages.pipeline import in_parts
    from heterosis.passes.preparation import Split

    found = in_parts(program, [program.inputs[i] for i in parameters], machine())
    if not isinstance(found, Split):
        return [Part(found, layouts, written)], Taken([], [])
    own = [layouts[i] for i in found.own]
    further = [Strided.contiguous(value.shape) for value in found.prepared]
    left = {found.own.index(i): result for i, result in written.items() if i in found.own}
    taken = Taken(*(_among_arrays(program, some) for some in (found.fixed, found.own)))
    rest = Part(found.rest, (*own, *further), left)
    return [rest, Part(found.preparation, layouts)], taken


def _among_arrays(program: Program, inputs: Collection[int]) -> list[int]:
    """What number those of the `inputs`, given by their positions, have that are arrays, among
    these."""
    arrays = [i for i, value in enumerate(program.inputs) if value.node.primitive is INPUT]
    return [number for number, i in enumerate(arrays) if i in inputs]


def _function(part: Part) -> tuple[PlanFacts, ProgramCode]:
    from heterosis.backends.native.codegen.emit.program import function_for_known_sizes

    planned = part.scheduled()
    code = function_for_known_sizes(planned)
    facts = plan_facts(part.program, planned, code)
    check_room(facts)
    return facts, code
