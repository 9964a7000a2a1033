"""A kernel that takes over the one before it, whose result nothing else needs."""

from __future__ import annotations

from collections import Counter

from heterosis.backends.native.codegen.kernel import Kernel, OpaqueCall, Schedule
from heterosis.backends.native.codegen.nest import known
from heterosis.backends.native.schedule.arena import uses


def chain(schedule: Schedule) -> None:
    """Join neighbours of which the second asks for the first (`KernelCode.behind`)."""
    users = uses(schedule.kernels)
    kernels: list[Kernel] = []
    for kernel in schedule.kernels:
        before = kernels[-1] if kernels else None
        joined = _joined(before, kernel, users)
        if isinstance(before, OpaqueCall) and joined:
            _make_room(schedule, before, joined)
            kernels.pop()
        kernels.append(joined or kernel)
    schedule.kernels[:] = kernels


def _joined(first: Kernel | None, second: Kernel, users: Counter[int]) -> OpaqueCall | None:
    """Both kernels as one, which has no memory for what was between them."""
    if not (isinstance(first, OpaqueCall) and isinstance(second, OpaqueCall)):
        return None
    if second.code.chained is None or len(first.outputs) != 1 or first.scratch:
        return None
    (result,), (seen, *others) = first.outputs, second.inputs
    alone = result.buffer.kind == "temporary" and users[known(result.buffer.index)] == 2
    same = seen.buffer == result.buffer and seen.strided.offset == result.strided.offset
    if not (alone and same and seen.strided.is_contiguous and result.strided.is_contiguous):
        return None
    if any(place.buffer == result.buffer for place in (*others, *second.outputs)):
        return None
    code = second.code.chained(second.code, first.code)
    inputs = (*first.inputs, *others)
    if code is None:
        return None
    return OpaqueCall(code, inputs, second.outputs, second.scratch, made_of=(first, second))


def _make_room(schedule: Schedule, first: OpaqueCall, joined: OpaqueCall) -> None:
    (result,) = first.outputs
    schedule.temporaries[known(result.buffer.index)] = 0
    if joined.scratch:
        schedule.temporaries[known(joined.scratch.index)] = joined.code.scratch_bytes
