"""A proof that kernels compute what their program says: a run on what elements are, not on numbers.

Every element stands for the expression that computes it, as a number (`terms`). `values` tells what
the elements of the program's values are; `memory` what stands at every address. The kernels of the
finished schedule run on that memory in their order, `nests` step by step. So each result must end
up where it belongs, made of what it should be made of: whatever a kernel reads that was not written
yet, has been overwritten, or stands elsewhere makes it something else. Besides, what runs at the
same time must be apart, kernels stay inside of their buffers, and inputs stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy

from heterosis.backends.native.codegen.kernel import Schedule
from heterosis.backends.native.codegen.nest import Buffer
from heterosis.backends.native.schedule.proof import kernels, terms, values
from heterosis.backends.native.schedule.proof.memory import Memory, Region
from heterosis.backends.native.schedule.proof.terms import Terms
from heterosis.ir.program import NUMBER, Program, Value
from heterosis.ir.strided import Strided
from heterosis.ir.types import ITEMSIZE
from heterosis.runtime.errors import ScheduleError

# Elements in values and in the steps of nests: beyond, the proof would take seconds.
MOST = 1 << 22


def prove(
    program: Program,
    layouts: Sequence[Strided],
    outputs: Sequence[Strided | None],
    schedule: Schedule,
    *,
    updated: Mapping[int, int] = MappingProxyType({}),
) -> bool:
    """Raise ScheduleError unless `schedule` computes `program`; False if that is too much work.
    The `updated` results stand where arrays do that are given, of these numbers."""
    if values.cost(program) + sum(map(kernels.cost, schedule.kernels)) > MOST:
        return False
    with numpy.errstate(over="ignore"):
        _Proof(program, layouts, outputs, schedule, updated).run()
    return True


class _Proof:
    """The memory of one call, and what has to stand there in the end."""

    def __init__(
        self,
        program: Program,
        layouts: Sequence[Strided],
        outputs: Sequence[Strided | None],
        schedule: Schedule,
        updated: Mapping[int, int],
    ):
        self.program, self.schedule = program, schedule
        given = zip(program.inputs, layouts, strict=True)
        self.inputs = [pair for pair in given if pair[0].node.primitive is not NUMBER]
        self.updated = updated
        self.rooms = self._rooms(outputs)
        standing = [(value, i, strided) for i, (value, strided) in enumerate(self.inputs)]
        standing += [room for room in self.rooms if room[1] >= len(self.inputs)]
        reaches = {buffer: _reach(strided, value.dtype) for value, buffer, strided in standing}
        self.memory = Memory(schedule, reaches, kernels.unit(program, schedule))

    def _rooms(self, outputs: Sequence[Strided | None]) -> list[tuple[Value, int, Strided]]:
        """Every result, the number of the buffer in which it will stand, and where there."""
        found: list[tuple[Value, int, Strided]] = []
        made = len(self.inputs)
        for i, (value, layout) in enumerate(zip(self.program.outputs, outputs, strict=True)):
            if i in self.schedule.views:
                found.append((value, *self.schedule.views[i]))
                continue
            if i in self.updated:
                array = self.updated[i]
                found.append((value, array, self.inputs[array][1]))
            else:
                found.append((value, made, layout or Strided.contiguous(value.shape)))
            made += 1
        return found

    # -- running ------------------------------------------------------------------------------

    def run(self) -> None:
        regions = {
            value: self.memory.region(Buffer("call", i), value.dtype, strided)
            for i, (value, strided) in enumerate(self.inputs)
        }
        for region in regions.values():
            self.memory.fill(region)
        found = {value: self.memory.read(region).copy() for value, region in regions.items()}
        numbers = [v for v in self.program.inputs if v.node.primitive is NUMBER]
        found.update({v: terms.argument(i, v.dtype) for i, v in enumerate(numbers)})
        expected = values.Values(self.program, found)
        self._run_kernels(expected)
        for value, buffer, strided in self.rooms:
            region = self.memory.region(Buffer("call", buffer), value.dtype, strided)
            self._compare(f"result {value.type}", expected[value], region)
        for i, (value, region) in enumerate(regions.items()):
            if i not in self.updated.values():
                self._compare(f"input {i}", found[value], region)

    def _run_kernels(self, expected: values.Values) -> None:
        for at, lengths in self.schedule.steps():
            chains = []
            for length in lengths:
                self.memory.reads, self.memory.writes = [], []
                for kernel in self.schedule.kernels[at : at + length]:
                    kernels.run(kernel, self.memory, expected)
                chains.append((self.memory.reads, self.memory.writes))
                at += length
            if len(chains) > 1:
                self._check_that_chains_are_apart(chains)

    def _check_that_chains_are_apart(
        self, chains: Sequence[tuple[list[Region], list[Region]]]
    ) -> None:
        for i, (_, writes) in enumerate(chains):
            for j, (reads, others) in enumerate(chains):
                if i != j:
                    self.memory.check_apart(writes, reads + others, "run side by side")

    def _compare(self, what: str, expected: Terms, region: Region) -> None:
        wrong = self.memory.read(region) != expected
        if wrong.any():
            raise ScheduleError(
                f"{what} of {self.program.name} is not what it should be in {int(wrong.sum())} of "
                f"{wrong.size} elements, the first at {tuple(map(int, numpy.argwhere(wrong)[0]))}. "
                f"{_described(self.program, self.schedule)}"
            )


def _reach(strided: Strided, dtype: str) -> tuple[int, int]:
    """The bytes that elements take, counted from the beginning of their buffer."""
    if 0 in strided.shape:
        return 0, 0
    reach = [(n - 1) * s for n, s in zip(strided.shape, strided.strides, strict=True)]
    low = strided.offset + sum(min(0, r) for r in reach)
    high = strided.offset + sum(max(0, r) for r in reach) + 1
    return min(low, 0) * ITEMSIZE[dtype], high * ITEMSIZE[dtype]


def _described(program: Program, schedule: Schedule) -> str:
    kernels_ = "\n".join(f"  {i}: {kernel}" for i, kernel in enumerate(schedule.kernels))
    return f"The program:\n{program}\nThe kernels:\n{kernels_}\nTemporaries: {schedule.starts}"
