"""Kernels, run on terms."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy

from heterosis.backends.native.codegen import tables
from heterosis.backends.native.codegen.epilogue import Beside, Finished
from heterosis.backends.native.codegen.kernel import Kernel, OpaqueCall, Place, Schedule
from heterosis.backends.native.codegen.nest import (
    Apply,
    Argument,
    Extent,
    Literal,
    Load,
    Nest,
    Slot,
)
from heterosis.backends.native.schedule.proof import nests, terms
from heterosis.backends.native.schedule.proof.memory import Memory, Region
from heterosis.backends.native.schedule.proof.nests import NestRun
from heterosis.backends.native.schedule.proof.terms import Terms
from heterosis.backends.native.schedule.proof.values import Values
from heterosis.ir.primitives.families import Opaque
from heterosis.ir.program import Program
from heterosis.ir.types import ITEMSIZE
from heterosis.runtime.errors import ScheduleError


def run(kernel: Kernel, memory: Memory, values: Values) -> None:
    """Do to `memory` what the kernel does."""
    if isinstance(kernel, Nest):
        NestRun(kernel, memory).run()
    elif kernel.made_of:
        _run_parts(kernel, memory, values)
    else:
        _call(kernel, memory, values)


def _run_parts(call: OpaqueCall, memory: Memory, values: Values) -> None:
    """One kernel in place of several: all that these read must outlast what it writes."""
    outer = memory.reads, memory.writes
    memory.reads, memory.writes = [], []
    for part in call.made_of:
        run(part, memory, values)
    reads, writes = memory.reads, memory.writes
    memory.reads, memory.writes = outer
    _finish(call, memory, [r for r in reads if not r.is_private])
    memory.reads += reads
    memory.writes += writes


def _call(call: OpaqueCall, memory: Memory, values: Values) -> None:
    regions = [_region(memory, place) for place in call.inputs]
    operands = [memory.read(region) for region in regions]
    assert call.node is not None, f"nothing is known of {call.code.key}"
    count = len(call.node.inputs)
    results = values.opaque(call.node, operands[:count])
    if call.epilogue:
        (source,) = results
        results = [_ended(call, source, operands[count:])]
    _finish(call, memory, regions)
    for place, result in zip(call.outputs, results, strict=True):
        memory.write(_region(memory, place), result.reshape(place.strided.shape))


def _finish(call: OpaqueCall, memory: Memory, reads: list[Region]) -> None:
    """What a kernel writes is apart from what it reads, and from what it uses besides."""
    writes = [_region(memory, place) for place in call.outputs]
    if call.scratch and not memory.is_private(call.scratch):
        writes.append(memory.scratch(call.scratch, call.code.scratch_bytes))
        memory.spoil(writes[-1])
    for i, region in enumerate(writes):
        memory.check_apart([region], reads + writes[:i], f"are used by {call}")


def _region(memory: Memory, place: Place) -> Region:
    return memory.region(place.buffer, place.dtype, place.strided)


def _ended(call: OpaqueCall, source: Terms, beside: list[Terms]) -> Terms:
    """The result behind the epilogue."""
    assert call.node is not None and call.epilogue is not None
    assert isinstance(call.node.primitive, Opaque)
    finishes = tables.kernel(call.node.primitive).finishes
    assert finishes is not None, f"{call.node.primitive} does no work on its result"
    epilogue, numbers = call.epilogue, call.code.numbers
    shape = finishes(call.node.types[0])
    further = numbers[len(numbers) - epilogue.further :]
    made: list[Terms] = []
    for step in epilogue.steps:
        match step:
            case Finished():
                made.append(source.reshape(shape))
            case Beside(number):
                made.append(beside[number])
            case Literal(value, dtype):
                made.append(terms.literal(value, dtype))
            case Argument(Slot(index), dtype):
                made.append(terms.argument(further[index], dtype))
            case Extent(Slot(index)):
                made.append(terms.extent(further[index]))
            case Apply(primitive, arguments, operand_dtype, dtype):
                operands = [made[a] for a in arguments]
                made.append(terms.applied(primitive, operand_dtype, dtype, operands))
            case _:
                raise ScheduleError(f"nothing is known of {step}.")
    return numpy.broadcast_to(made[-1], shape)


# -- how much, and of which size -------------------------------------------------------------------


def cost(kernel: Kernel) -> int:
    """About how many elements it computes."""
    if isinstance(kernel, Nest):
        return nests.cost(kernel)
    operands = sum(prod(place.strided.shape) for place in kernel.inputs + kernel.outputs)
    return operands + sum(map(cost, kernel.made_of))


def unit(program: Program, schedule: Schedule) -> int:
    """The bytes of the smallest element."""
    used = [v.dtype for v in (*program.inputs, *program.outputs)]
    used += [dtype for kernel in schedule.kernels for dtype in _dtypes(kernel)]
    return min((ITEMSIZE[dtype] for dtype in used), default=1)


def _dtypes(kernel: Kernel) -> Iterator[str]:
    if isinstance(kernel, Nest):
        yield from (step.dtype for step in kernel.steps if isinstance(step, Load))
        yield from (store.operand.dtype for store in kernel.stores)
    else:
        yield from (place.dtype for place in kernel.inputs + kernel.outputs)
        for part in kernel.made_of:
            yield from _dtypes(part)
