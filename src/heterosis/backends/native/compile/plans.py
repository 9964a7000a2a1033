"""Plans: what the core is told of compiled kernels, and where their machine code is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from heterosis import _core
from heterosis.backends.native.codegen.kernel import Machine, Schedule
from heterosis.backends.native.codegen.target import Target
from heterosis.backends.native.compile.compiler import host_target
from heterosis.backends.native.compile.kept import KeptObjects
from heterosis.backends.room import check_room_for
from heterosis.ir.program import Program, Value
from heterosis.ir.strided import row_major
from heterosis.ir.types import TensorType

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.function import FunctionCode
    from heterosis.backends.native.codegen.emit.program import ProgramCode

_loaded = KeptObjects[tuple[Any, ...]]()


class PlanFacts(NamedTuple):
    """What the core is told of a plan, but where its code is."""

    name: str
    integers: Sequence[int]
    workspace: int
    nanoseconds: float
    elementwise: bool
    # (element type, shape, the input it is a view of or -1, strides, offset)
    results: Sequence[Any]
    failures: Sequence[Any]  # (error class, message)
    in_place: bool
    over: Sequence[int]  # which array may become each result where that stands, or -1

    def plan(self, function: _core.Function | None) -> _core.Plan:
        """The plan that calls `function`; None if there is nothing to run."""
        return _core.make_plan(
            self.name,
            function,
            self.integers,
            self.workspace,
            self.nanoseconds,
            self.elementwise,
            [tuple(fields) for fields in self.results],
            [tuple(fields) for fields in self.failures],
            self.in_place,
            list(self.over),
        )


class Taken(NamedTuple):
    """The numbers of the arrays that are taken, of a call's: by what is computed ahead of a plan,
    and by the plan itself, whose last operands are what that gives."""

    ahead: Sequence[int]
    own: Sequence[int]


def plan_facts(
    program: Program,
    planned: Schedule,
    code: FunctionCode | ProgramCode,
    *,
    in_place: bool = False,
    elementwise: bool = False,
) -> PlanFacts:
    """The facts of the plan for `program` that `code` was made for."""
    return PlanFacts(
        program.name,
        list(code.integers),
        planned.workspace,
        code.nanoseconds,
        elementwise,
        [_result(i, value, planned) for i, value in enumerate(program.outputs)],
        list(code.failures),
        in_place,
        [planned.over.get(i, -1) for i in range(len(program.outputs))] if planned.over else [],
    )


def check_room(facts: PlanFacts) -> None:
    """Refuse at the call what no waiting will make room for."""
    new = (TensorType(tuple(shape), dtype) for dtype, shape, base, *_ in facts.results if base < 0)
    check_room_for(facts.name, new)


def machine_code(code: FunctionCode | ProgramCode) -> _core.Function | None:
    """The machine code of `code`, compiled or loaded if this is its first use; None if there is
    nothing to run."""
    from heterosis.backends.native.codegen.emit.abi import ENTRY
    from heterosis.backends.native.compile import object_cache

    if not code.parts:
        return None
    target = machine().target
    key = (code.parts, target)
    found = _loaded.get(key)
    if found is None:
        found = object_cache.load(code.key, lambda: code.emit(target), target)
        _loaded.add(key, found)
    return found.function(ENTRY)


@cache
def _machine(target: Target, threads: int) -> Machine:
    try:
        near = os.sysconf("SC_LEVEL2_CACHE_SIZE")
    except (OSError, ValueError):  # not every C library knows it, nor every system
        near = 0
    return Machine(target, threads, near) if near > 0 else Machine(target, threads)


def machine() -> Machine:
    """What eager kernels are planned for; the core asks anew when the number of threads changes."""
    return _machine(host_target(), _core.intra_op_threads())


def _result(i: int, value: Value, planned: Schedule) -> tuple[Any, ...]:
    if i in planned.views:
        base, strided = planned.views[i]
        return (value.dtype, strided.shape, base, strided.strides, strided.offset)
    return (value.dtype, value.shape, -1, row_major(value.shape), 0)
