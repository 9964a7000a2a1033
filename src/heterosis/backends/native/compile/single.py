"""One operation as kernels of its own: code for any size, which all shapes of a kind share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from heterosis import _core
from heterosis.backends.native.codegen.emit.function import FunctionCode, function_for_any_size
from heterosis.backends.native.codegen.kernel import Machine, Schedule
from heterosis.backends.native.codegen.nest import Buffer, Load, Nest, Operand
from heterosis.backends.native.compile.plans import check_room, machine, machine_code, plan_facts
from heterosis.backends.native.schedule.materialize import kept_in_one_operation
from heterosis.backends.native.schedule.schedule import schedule
from heterosis.ir.primitives.windows import CONVOLVE
from heterosis.ir.program import NUMBER, Program
from heterosis.ir.strided import Strided
from heterosis.passes.halves import widened


def compile_single(
    program: Program,
    layouts: Sequence[Strided],
    targets: Sequence[Strided] | None,
    *,
    views: bool,
    in_place: bool = False,
) -> _core.Plan:
    """How to run `program` on operands that lie as `layouts` say: a plan for the core.

    With `targets`, arrays that lie so are written instead of new ones. With `in_place`, the one of
    them is the first operand, and keeps what the program leaves as it is.
    """
    into = _rooms(program, targets)
    program = prepared(program, machine())
    planned = _scheduled(program, layouts, into, machine(), views=views, in_place=in_place)
    elementwise = _is_elementwise(planned, program, layouts, into)
    code = function_for_any_size(planned)
    facts = plan_facts(program, planned, code, in_place=in_place, elementwise=elementwise)
    if targets is None:
        check_room(facts)
    return facts.plan(machine_code(code))


def code_for(
    program: Program,
    layouts: Sequence[Strided],
    targets: Sequence[Strided] | None,
    on: Machine,
    *,
    views: bool,
    in_place: bool = False,
) -> FunctionCode:
    """The code that `compile_single` would compile on another machine."""
    into, program = _rooms(program, targets), prepared(program, on)
    planned = _scheduled(program, layouts, into, on, views=views, in_place=in_place)
    return function_for_any_size(planned)


def prepared(program: Program, on: Machine) -> Program:
    """`program` with filters that are transformed at every call: the stage that one operation may
    need."""
    program = widened(program)
    if all(node.primitive is not CONVOLVE for node in program.nodes()):
        return program
    from heterosis.backends.native.stages.prepack import packed

    return packed(program, (), on)


def _rooms(program: Program, targets: Sequence[Strided] | None) -> list[Strided | None]:
    return [None] * len(program.outputs) if targets is None else list(targets)


def _scheduled(
    program: Program,
    layouts: Sequence[Strided],
    into: Sequence[Strided | None],
    on: Machine,
    *,
    views: bool,
    in_place: bool,
) -> Schedule:
    return schedule(
        program, layouts, into, on,
        views=views, in_place=in_place, kept=kept_in_one_operation(program),
    )  # fmt: skip


def _is_elementwise(
    planned: Schedule,
    program: Program,
    layouts: Sequence[Strided],
    targets: Sequence[Strided | None],
) -> bool:
    """Whether each element is written after it has been read and nothing else reads it, where a
    result is written over an input that lies as it does."""
    if len(planned.kernels) != 1 or not isinstance(planned.kernels[0], Nest):
        return False
    nest = planned.kernels[0]
    loads = [step for step in nest.steps if isinstance(step, Load)]
    if nest.reduced or nest.scatters or any(load.indices for load in loads):
        return False
    pairs = zip(program.inputs, layouts, strict=True)
    inputs = [layout for value, layout in pairs if value.node.primitive is not NUMBER]
    rooms = zip(program.outputs, targets, strict=True)
    lying = [room or Strided.contiguous(value.shape) for value, room in rooms]
    alike = {i for i, layout in enumerate(inputs) if layout in lying}
    read = {_spot(load.operand) for load in loads if load.operand.buffer in _calls(alike)}
    return not read or read == {_spot(store.operand) for store in nest.stores}


def _calls(indices: Iterable[int]) -> set[Buffer]:
    return {Buffer("call", i) for i in indices}


def _spot(operand: Operand) -> tuple[Any, Any]:
    """Where in a buffer an operand's elements are."""
    return operand.offset, operand.strides
