"""Branches of a program that do not need each other run side by side, each on a thread of its own.

A kernel that is shared between threads ends with a meeting of all, and its parts never take quite
the same time. Where branches are about equally long, it is cheaper to meet once, where they join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from heterosis.backends.native.codegen.emit.function import SHARE_NANOSECONDS, nest_nanoseconds
from heterosis.backends.native.codegen.kernel import Kernel, OpaqueCall, Schedule
from heterosis.backends.native.codegen.nest import Buffer, Load, Nest, Operand, known
from heterosis.ir.table_sizes import roughly
from heterosis.ir.types import ITEMSIZE

# What sharing a kernel costs: each meeting of the threads, and how unevenly its parts end.
_MEETING = 4_000.0
_UNEVEN = 0.03
# Only what saves so much of the time is worth having more in memory at once.
_WORTH = 0.9
# So many kernels behind the first that could run are looked at.
_AHEAD = 64

Chain: TypeAlias = list[int]  # kernels by their positions, in order


def run_branches_side_by_side(schedule: Schedule, workers: int) -> None:
    """Order the kernels of `schedule` so, where that is quicker with so many threads."""
    if workers > 1 and len(schedule.kernels) > 2:
        _Order(schedule, workers).find()


class _Order:
    """The kernels in the order in which they will run."""

    def __init__(self, schedule: Schedule, workers: int):
        self.schedule, self.workers = schedule, workers
        self.kernels = tuple(schedule.kernels)
        self.before = _dependencies(self.kernels)
        self.costs: list[float] = [roughly(_nanoseconds(kernel)) for kernel in self.kernels]
        self.left = list(range(len(self.kernels)))
        self.done: set[int] = set()

    def find(self) -> None:
        self.schedule.kernels.clear()
        while self.left:
            chains = self._worth_it(self._chains())
            if chains:
                self.schedule.branches[len(self.done)] = tuple(map(len, chains))
            for position in [p for chain in chains for p in chain] or self.left[:1]:
                self.left.remove(position)
                self.done.add(position)
                self.schedule.kernels.append(self.kernels[position])

    def _chains(self) -> list[Chain]:
        """Kernels that could run now, each with what needs it and nothing else that is left."""
        chains: list[Chain] = []
        chain_of: dict[int, Chain] = {}
        for position in self.left[:_AHEAD]:
            needs = self.before[position] - self.done
            if not needs:
                chains.append([])
            of_needs = [chain_of.get(n) for n in needs] or chains[-1:]
            chain = of_needs[0]
            if chain is not None and all(other is chain for other in of_needs):
                chain_of[position] = chain
                chain.append(position)
        return [chain for chain in chains if not any(map(self._may_fail, chain))]

    def _may_fail(self, position: int) -> bool:
        kernel = self.kernels[position]
        return isinstance(kernel, OpaqueCall) and bool(kernel.code.failures)

    def _worth_it(self, chains: list[Chain]) -> list[Chain]:
        """Those to run side by side, the longest first; the longest of all may run by itself."""
        if len(chains) < 2:
            return []
        chains = sorted(chains, key=self._alone, reverse=True)
        best, saved = [], 0.0
        for first in range(min(2, len(chains))):
            some = chains[first:]
            shared = sum(self._shared(position) for chain in some for position in chain)
            apart = self._apart(some)
            if len(some) > 1 and apart < _WORTH * shared and shared - apart > saved:
                best, saved = some, shared - apart
        return best

    def _alone(self, chain: Chain) -> float:
        return sum(self.costs[position] for position in chain)

    def _apart(self, chains: list[Chain]) -> float:
        """How long the chains take if every thread takes the next one."""
        ends = [_MEETING] * self.workers
        for chain in chains:
            ends[ends.index(min(ends))] += self._alone(chain)
        return max(ends)

    def _shared(self, position: int) -> float:
        kernel, cost = self.kernels[position], self.costs[position]
        if cost <= SHARE_NANOSECONDS:
            return cost
        meetings = kernel.code.meetings if isinstance(kernel, OpaqueCall) else 1
        return meetings * _MEETING + cost * (1 / self.workers + _UNEVEN)


def _nanoseconds(kernel: Kernel) -> float:
    return kernel.code.nanoseconds if isinstance(kernel, OpaqueCall) else nest_nanoseconds(kernel)


# -- what must come before what -------------------------------------------------------------------


@dataclass(frozen=True)
class _Touch:
    """Bytes that a kernel reads or writes."""

    buffer: Buffer
    writes: bool
    first: float
    last: float

    def meets(self, other: _Touch) -> bool:
        """Whether the order of the two matters."""
        overlap = self.first <= other.last and other.first <= self.last
        return overlap and (self.writes or other.writes)


def _dependencies(kernels: Sequence[Kernel]) -> list[set[int]]:
    """For each kernel, the earlier ones that it must follow."""
    reads: dict[Buffer, list[tuple[int, _Touch]]] = {}
    writes: dict[Buffer, list[tuple[int, _Touch]]] = {}
    found: list[set[int]] = []
    for position, kernel in enumerate(kernels):
        needs: set[int] = set()
        touches = _touches(kernel)
        for touch in touches:
            earlier = writes.get(touch.buffer, [])
            if touch.writes:  # many kernels may read a buffer: these need not look at each other
                earlier = earlier + reads.get(touch.buffer, [])
            needs |= {at for at, other in earlier if touch.meets(other)}
        for touch in touches:
            alike = writes if touch.writes else reads
            alike.setdefault(touch.buffer, []).append((position, touch))
        found.append(needs)
    return found


def _touches(kernel: Kernel) -> list[_Touch]:
    if isinstance(kernel, OpaqueCall):
        touches = [_all_of(place.buffer, writes=False) for place in kernel.inputs]
        if kernel.scratch:
            touches.append(_all_of(kernel.scratch, writes=True))
        for place in kernel.outputs:
            strides = zip(place.strided.shape, place.strided.strides, strict=True)
            touches.append(_span(place.buffer, place.dtype, place.strided.offset, [*strides]))
        return touches
    touches = [_all_of(s.operand.buffer, writes=False) for s in kernel.steps if isinstance(s, Load)]
    for store in kernel.stores:
        at = store.operand
        touches.append(_all_of(at.buffer, writes=True) if store.indices else _stored(kernel, at))
    return touches


def _all_of(buffer: Buffer, *, writes: bool) -> _Touch:
    return _Touch(buffer, writes, 0.0, float("inf"))


def _stored(nest: Nest, operand: Operand) -> _Touch:
    pairs = zip(map(known, nest.kept + nest.reduced), map(known, operand.strides), strict=True)
    return _span(operand.buffer, operand.dtype, known(operand.offset), [*pairs])


def _span(buffer: Buffer, dtype: str, offset: int, axes: list[tuple[int, int]]) -> _Touch:
    """The bytes that are written, and those between them."""
    reach = [(count - 1) * stride for count, stride in axes]
    low, high = (offset + sum(f(0, r) for r in reach) for f in (min, max))
    size = ITEMSIZE[dtype]
    return _Touch(buffer, True, low * size, (high + 1) * size - 1)
