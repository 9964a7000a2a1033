"""The way of captured programs: optimised as a whole, then planned and compiled as one function.

As in `ops.eager`, what plans and compiles is imported by the first call.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from heterosis import _core
from heterosis.codegen.kernel import Schedule
from heterosis.ir.program import INPUT, Program
from heterosis.ir.strided import Strided
from heterosis.ops.eager import check_room, core_plan, machine


def scheduled(program: Program, layouts: Sequence[Strided]) -> tuple[Program, Schedule]:
    """`program`, optimised, and the kernels that run it on inputs that lie as `layouts` say."""
    from heterosis.passes.materialize import kept_values
    from heterosis.passes.pipeline import optimized
    from heterosis.passes.schedule import schedule

    program = optimized(program)
    results = [None] * len(program.outputs)
    kept = kept_values(program)
    return program, schedule(program, layouts, results, machine(), views=True, kept=kept)


def compile_program(program: Program, layouts: Sequence[Strided]) -> Any:
    """How to run `program`: a plan for the core. Results that only rearrange an input are views
    of it."""
    from heterosis.codegen.program import function_for_known_sizes

    program, planned = scheduled(program, layouts)
    check_room(program, planned)
    return core_plan(program, planned, function_for_known_sizes(planned))


def compile_inference(
    program: Program, layouts: Sequence[Strided], parameters: Collection[int]
) -> Any:
    """The same for a program whose inputs at the positions `parameters` seldom change, and no
    gradients of which will be asked for: what depends on these alone is computed ahead, and anew
    when one has changed."""
    from heterosis.ops.folding import folded
    from heterosis.passes.pipeline import optimized
    from heterosis.passes.preparation import prepared

    fixed = [program.inputs[i] for i in parameters]
    found = prepared(optimized(folded(optimized(program), fixed)), fixed, machine())
    if found is None:
        return compile_program(program, layouts)
    preparation = compile_program(found.preparation, layouts)
    further = [Strided.contiguous(value.shape) for value in found.preparation.outputs]
    rest = compile_program(found.rest, (*layouts, *further))
    arrays = [i for i, v in enumerate(program.inputs) if v.node.primitive is INPUT]
    return _core.with_preparation(rest, preparation, [arrays.index(i) for i in found.fixed])
