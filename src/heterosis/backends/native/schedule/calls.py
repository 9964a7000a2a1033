"""Kernels that are no loop nests, and the elementwise work that they do before they store."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.epilogue import Epilogue
from heterosis.backends.native.codegen.kernel import KernelCode, OpaqueCall, Place
from heterosis.backends.native.codegen.tables import KernelLowering, kernel
from heterosis.backends.native.loops.inlining import EpilogueSteps, NeedsCopy
from heterosis.backends.native.schedule.epilogues import FINISHED, Attached, attached, candidates
from heterosis.ir.primitives.families import Elementwise, Opaque, View
from heterosis.ir.program import CONSTANT, EXTENT, Node, Value
from heterosis.ir.strided import Strided

if TYPE_CHECKING:
    from heterosis.backends.native.schedule.schedule import Scheduler

# Strides of a last axis whose elements are loaded by whole vectors; also those of no axis.
_NEAR = ((), (0,), (1,), (2,))


def call(scheduler: Scheduler, node: Node, rooms: dict[Value, Place]) -> None:
    """Append the call of `node`'s kernel; its results go to `rooms`, or where they find room."""
    lowering = _lowering(node)
    inputs = tuple(_operand(scheduler, lowering, node, i) for i in range(len(node.inputs)))
    alone = lowering.alone and lowering.alone(node, inputs, scheduler.machine)
    finish = None if alone else _finish(scheduler, node)
    for output in (finish.result,) if finish else node.outputs:
        room = rooms.get(output) or scheduler.placement.get(output)
        if room is None or not writes_to(node, room.strided):
            room = scheduler.temporary(output.type)
        scheduler.places[output] = room
    if finish:
        code, outputs = _finishing(scheduler, node, inputs, finish)
        inputs += finish.inputs
    else:
        outputs = tuple(scheduler.places[output] for output in node.outputs)
        none = (Epilogue(),) if lowering.finishes else ()
        code = lowering.kernel(node, inputs, outputs, scheduler.machine, *none)
    scratch = scheduler.scratch(code.scratch_bytes) if code.scratch_bytes else None
    epilogue = finish.code if finish else None
    scheduler.result.kernels.append(OpaqueCall(code, inputs, outputs, scratch, node, epilogue))
    for output, room in rooms.items():
        scheduler.write(output, room)


def _operand(scheduler: Scheduler, lowering: KernelLowering, node: Node, position: int) -> Place:
    """Where the kernel of `node` reads an operand."""
    value = node.inputs[position]
    if lowering.gapless:
        return scheduler.gapless(value)
    place = scheduler.whole(value)
    if place.strided.shape[-1:] == (1,) or place.strided.strides[-1:] in _NEAR:
        return place
    by_rows = lowering.by_rows(node) if lowering.by_rows else ()
    return scheduler.gapless(value) if position in by_rows else place


def _lowering(node: Node) -> KernelLowering:
    assert isinstance(node.primitive, Opaque), f"{node.primitive} has no kernel of its own"
    return kernel(node.primitive)


def writes_to(node: Node, room: Strided) -> bool:
    """Whether `node`'s kernel can write its result, or what becomes of that, right there."""
    if room.is_contiguous:
        return True
    lowering = _lowering(node)
    if not (lowering.spaced and lowering.finishes):
        return False
    found = room.reshape(node.types[0].shape)  # it has one result
    _, *matrix = lowering.finishes(node.types[0])
    if found is not None and found.shape[-2:] != tuple(matrix):  # else axes before are batches,
        found = found.reshape(lowering.finishes(node.types[0]))  # and may lie anywhere
    return found is not None and found.strides[-1] == 1


def _finishing(
    scheduler: Scheduler, node: Node, inputs: tuple[Place, ...], finish: Attached
) -> tuple[KernelCode, tuple[Place, ...]]:
    """The kernel with its epilogue, and its result as it sees it."""
    room = scheduler.places[finish.result]
    strided = room.strided.reshape(node.types[0].shape)
    assert strided is not None, f"{node.primitive} cannot write to {room.strided}"
    outputs = (Place(room.buffer, room.dtype, strided),)
    code = _lowering(node).kernel(node, inputs, outputs, scheduler.machine, finish.code)
    return replace(code, numbers=code.numbers + finish.numbers), outputs


def _finish(scheduler: Scheduler, node: Node) -> Attached | None:
    """What can be done behind `node` before its result is stored."""
    finishes = _lowering(node).finishes
    if finishes is None:
        return None
    (source,) = node.outputs
    shape = finishes(source.type)
    place = Place(FINISHED, source.dtype, Strided.contiguous(source.shape))
    for result, between in candidates(source, scheduler.uses, lambda v: _is_ready(scheduler, v)):
        scheduler.places[source] = place
        steps = EpilogueSteps(scheduler, result.size)
        try:
            steps.inline(result, (("reshape", (shape,)),))
            found = attached(result, steps.steps, shape)
        except NeedsCopy:
            found = None
        finally:
            del scheduler.places[source]
        if found:
            scheduler.inside |= between
            return found
    return None


def _is_ready(scheduler: Scheduler, value: Value) -> bool:
    """Whether a value is made of what has been computed, by elementwise work and views."""
    stack, seen = [value], set[Value]()
    while stack:
        one = stack.pop()
        if one in scheduler.places or one in scheduler.numbers or one in seen:
            continue
        seen.add(one)
        known = one.node.primitive in (CONSTANT, EXTENT)
        if not known and not isinstance(one.node.primitive, Elementwise | View):
            return False
        stack.extend(one.node.inputs)
    return True
