"""Which results may be written where the input stands that they take the place of after the run.

A step of training gives new parameters, a network that generates text new caches: nobody reads the
old ones then. Where every kernel has read them before the new ones are written, both need one piece
of memory. Whoever runs the program chooses: the kernels are right for results with their own, too.
Where only parts are written, the first of them copies all the rest: onto itself, nothing is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from heterosis.backends.native.codegen.kernel import Kernel, OpaqueCall, Place, Schedule
from heterosis.backends.native.codegen.nest import Buffer, Load, Nest, Operand, Step, fits_over
from heterosis.backends.native.schedule.arena import read_by, written_by
from heterosis.ir.program import NUMBER, Program
from heterosis.ir.strided import Strided

Moved = TypeVar("Moved", Operand, Place)


def overwriting(
    program: Program,
    layouts: Sequence[Strided],
    schedule: Schedule,
    written: Mapping[int, int],
) -> dict[int, int]:
    """The results that may stand where arrays do, and which of the arrays. `written` has the
    results that are written to inputs after the run, by the positions of these."""
    given = (i for i, value in enumerate(program.inputs) if value.node.primitive is not NUMBER)
    arrays = {position: array for array, position in enumerate(given)}
    rooms, order = _rooms(program, schedule, len(arrays)), _Order(schedule)
    shown = {array for array, _ in schedule.views.values()}  # by results, as it was before
    found: dict[int, int] = {}
    for position, result in written.items():
        value, new, array = program.outputs[result], rooms.get(result), arrays[position]
        fits = program.inputs[position].type == value.type
        gapless = layouts[position] == Strided.contiguous(value.shape)
        if new is None or array in shown or not (fits and gapless):
            continue
        if order.allows(Buffer("call", array), new):
            found[result] = array
    return found


def in_place(program: Program, schedule: Schedule) -> Schedule:
    """`schedule` where every result stands over an array that may."""
    count = sum(value.node.primitive is not NUMBER for value in program.inputs)
    rooms = _rooms(program, schedule, count)
    moved = {rooms[result]: Buffer("call", array) for result, array in schedule.over.items()}
    return replace(schedule, kernels=[_moved(kernel, moved) for kernel in schedule.kernels])


def _rooms(program: Program, schedule: Schedule, arrays: int) -> dict[int, Buffer]:
    """Where the results stand that are no views: behind the arrays that are given."""
    written = [i for i in range(len(program.outputs)) if i not in schedule.views]
    return {result: Buffer("call", arrays + at) for at, result in enumerate(written)}


class _Order:
    """When buffers are read last and written first: as numbers of steps, each of which may be
    kernels side by side."""

    def __init__(self, schedule: Schedule):
        self.read: dict[Buffer, int] = {}
        self.written: dict[Buffer, int] = {}
        self.failing = -1  # the last step that may fail
        self.steps = [schedule.kernels[at : at + sum(n)] for at, n in schedule.steps()]
        for step, kernels in enumerate(self.steps):
            for kernel in kernels:
                self.read.update(dict.fromkeys(read_by(kernel), step))
                for buffer in written_by(kernel):
                    self.written.setdefault(buffer, step)
                if isinstance(kernel, OpaqueCall) and kernel.code.failures:
                    self.failing = step

    def allows(self, old: Buffer, new: Buffer) -> bool:
        """Whether wherever `new` is written, all has been read of `old` that will be, and nothing
        can fail any more: a run that does leaves arrays as they were."""
        begin, end = self.written.get(new), self.read.get(old, -1)
        if begin is None or self.failing >= begin:
            return False
        if end != begin:
            return end < begin
        nest, *others = self.steps[begin]
        return isinstance(nest, Nest) and not others and fits_over(nest, old, new)


def _moved(kernel: Kernel, buffers: Mapping[Buffer, Buffer]) -> Kernel:
    """A kernel with other buffers in place of some."""

    def moved(one: Moved) -> Moved:
        return replace(one, buffer=buffers.get(one.buffer, one.buffer))

    def with_moved(step: Step) -> Step:
        return replace(step, operand=moved(step.operand)) if isinstance(step, Load) else step

    if isinstance(kernel, Nest):
        steps = tuple(map(with_moved, kernel.steps))
        stores = tuple(replace(store, operand=moved(store.operand)) for store in kernel.stores)
        return replace(kernel, steps=steps, stores=stores)
    return replace(
        kernel,
        inputs=tuple(map(moved, kernel.inputs)),
        outputs=tuple(map(moved, kernel.outputs)),
        made_of=tuple(_moved(part, buffers) for part in kernel.made_of),
    )
