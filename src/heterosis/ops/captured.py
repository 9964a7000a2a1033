"""The way of captured programs: optimised as a whole, then planned and compiled as one function.

As in `ops.eager`, what plans and compiles is imported by the first call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis.ir.program import Program
from heterosis.ir.strided import Strided
from heterosis.ops.eager import check_room, core_plan, machine


def compile_program(program: Program, layouts: Sequence[Strided]) -> Any:
    """How to run `program` on inputs that lie as `layouts` say: a plan for the core.

    Results that only rearrange an input are views of it.
    """
    from heterosis.codegen.function import function_for_any_size
    from heterosis.passes.pipeline import optimized
    from heterosis.passes.schedule import schedule

    program = optimized(program)
    planned = schedule(program, layouts, [None] * len(program.outputs), machine(), views=True)
    check_room(program, planned)
    return core_plan(program, planned, function_for_any_size(planned))
