"""The memory plan: temporaries of a schedule take the place of those that are needed no longer.

A temporary lives from the first kernel that touches it to the last one. Where a nest reads one
for the last time and writes another at the same positions, the two stand in the same place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from heterosis.backends.native.codegen.kernel import Kernel, OpaqueCall, Schedule
from heterosis.backends.native.codegen.nest import Buffer, Load, Nest, fits_over, known
from heterosis.ir.table_sizes import covering, covers, largest
from heterosis.ir.traced_sizes import is_traced, value_of

ALIGNMENT = 64
_WASTE = 1.25  # times the room that could be: what places without a decision may take


@dataclass
class Block:
    """Memory that is in use from kernel `first` to kernel `last`, both included."""

    size: int
    first: int
    last: int

    def meets(self, other: Block) -> bool:
        """Whether both are in use at one time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Memory:
    """Bytes of workspace as planned, beside what no sharing would take, and the least possible:
    what is alive at once, in this order of kernels."""

    planned: int
    intermediates: int
    least: int


def plan_memory(schedule: Schedule) -> None:
    """Give every temporary of `schedule` its place in the workspace."""
    if len(schedule.temporaries) < 2:  # the usual eager operation
        schedule.starts = [0] * len(schedule.temporaries)
        schedule.workspace = sum(map(rounded, schedule.temporaries))
        return
    blocks = _blocks(schedule)
    distinct = list({id(block): block for block in blocks}.values())
    starts = dict(zip(map(id, distinct), placed(distinct), strict=True))
    schedule.starts = [starts[id(block)] for block in blocks]
    schedule.workspace = _workspace([starts[id(block)] for block in distinct], distinct)


def memory(schedule: Schedule) -> Memory:
    """What `plan_memory` has reached."""
    distinct = list({id(block): block for block in _blocks(schedule)}.values())
    alive = (
        sum(rounded(block.size) for block in distinct if block.first <= at <= block.last)
        for at, _ in schedule.steps()
    )
    separate = sum(map(rounded, schedule.temporaries))
    return Memory(schedule.workspace, separate, max(alive, default=0))


def rounded(size: int) -> int:
    """Bytes that a temporary of `size` takes, so that the next one is aligned."""
    return -(-size // ALIGNMENT) * ALIGNMENT


# -- places ---------------------------------------------------------------------------------------


def placed(blocks: Sequence[Block]) -> list[int]:
    """A start for each block. Where they have sizes of open extents, they lie above each other in
    the order that is best for the extents at hand."""
    seen = [replace(block, size=value_of(block.size)) for block in blocks]
    starts = _placed(seen)
    if not any(is_traced(block.size) for block in blocks):
        return starts
    found = _stacked(blocks, starts, covering)
    room = value_of(_workspace(found, blocks))
    if room <= _WASTE * _workspace(starts, seen):
        return found
    return _stacked(blocks, starts, largest)  # which may decide, and part the sizes


def _workspace(starts: Iterable[int], blocks: Iterable[Block]) -> int:
    ends = (start + rounded(block.size) for start, block in zip(starts, blocks, strict=True))
    return _highest(ends, covering)


def _stacked(
    blocks: Sequence[Block], starts: Sequence[int], higher: Callable[[int, int], int]
) -> list[int]:
    """Starts for all sizes: each block begins where the highest below it ends that it meets."""
    found: dict[int, int] = {}  # those above stand last
    for i in sorted(range(len(blocks)), key=lambda i: starts[i]):
        below = [j for j in found if blocks[i].meets(blocks[j])]
        # What meets a block above it ends below that, whatever the sizes: it need not be asked.
        tops = [
            j for at, j in enumerate(below)
            if not any(blocks[j].meets(blocks[k]) for k in below[at + 1 :])
        ]  # fmt: skip
        found[i] = _highest((found[j] + rounded(blocks[j].size) for j in tops), higher)
    return [found[i] for i in range(len(blocks))]


def _highest(ends: Iterable[int], higher: Callable[[int, int], int]) -> int:
    tops: list[int] = []  # those of which none is known to cover another
    for end in sorted((0, *ends), key=value_of, reverse=True):  # the first covers most of the rest
        if not any(covers(top, end) for top in tops):
            tops = [top for top in tops if not covers(end, top)] + [end]
    highest, *others = tops
    for end in others:
        highest = higher(highest, end)
    return highest


def _placed(blocks: Sequence[Block]) -> list[int]:
    """The largest first, each into the tightest gap that it fits."""
    starts: dict[int, int] = {}
    for i in sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first)):
        met = (j for j in starts if blocks[i].meets(blocks[j]))
        taken = sorted((starts[j], starts[j] + rounded(blocks[j].size)) for j in met)
        starts[i] = _tightest_gap(taken, rounded(blocks[i].size))
    return [starts[i] for i in range(len(blocks))]


def _tightest_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """Where `size` bytes fit between sorted ranges; behind them all if nowhere else."""
    best, least, end = None, None, 0
    for start, stop in taken:
        gap = start - end
        if gap >= size and (least is None or gap < least):
            best, least = end, gap
        end = max(end, stop)
    return end if best is None else best


# -- lifetimes ------------------------------------------------------------------------------------


def _blocks(schedule: Schedule) -> list[Block]:
    """One for each temporary; those that share a place share the block."""
    blocks = [Block(size, len(schedule.kernels), -1) for size in schedule.temporaries]
    for at, lengths in schedule.steps():  # what runs side by side needs its memory all the time
        for kernel in schedule.kernels[at : at + sum(lengths)]:
            for i in touched(kernel):
                blocks[i].first, blocks[i].last = min(blocks[i].first, at), at
    for at, lengths in schedule.steps():
        kernel = schedule.kernels[at]
        if isinstance(kernel, Nest) and len(lengths) == 1:
            _share(blocks, at, kernel)
    return blocks


def uses(kernels: Iterable[Kernel]) -> Counter[int]:
    """How many kernels touch each temporary."""
    return Counter(i for kernel in kernels for i in set(touched(kernel)))


def touched(kernel: Kernel) -> Iterator[int]:
    """The temporaries that a kernel reads or writes."""
    return (known(b.index) for b in _buffers(kernel) if b.kind == "temporary")


def read_by(kernel: Kernel) -> list[Buffer]:
    """The buffers that a kernel reads."""
    if isinstance(kernel, OpaqueCall):
        return [place.buffer for place in kernel.inputs]
    return [step.operand.buffer for step in kernel.steps if isinstance(step, Load)]


def written_by(kernel: Kernel) -> list[Buffer]:
    """The buffers that a kernel writes results to."""
    if isinstance(kernel, OpaqueCall):
        return [place.buffer for place in kernel.outputs]
    return [store.operand.buffer for store in kernel.stores]


def _buffers(kernel: Kernel) -> list[Buffer]:
    scratch = kernel.scratch if isinstance(kernel, OpaqueCall) else None
    return read_by(kernel) + written_by(kernel) + ([scratch] if scratch else [])


def _share(blocks: list[Block], at: int, nest: Nest) -> None:
    """Let what the nest writes first stand where something stands that it is the last to read."""
    if nest.scatters or any(store.running for store in nest.stores):
        return
    for store in nest.stores:
        new = store.operand.buffer
        if new.kind != "temporary" or blocks[known(new.index)].first != at:
            continue
        for old in dict.fromkeys(read_by(nest)):
            if old.kind == "temporary" and _fits_in_place(blocks, at, nest, old, new):
                _join(blocks, blocks[known(old.index)], blocks[known(new.index)])
                break


def _fits_in_place(blocks: list[Block], at: int, nest: Nest, old: Buffer, new: Buffer) -> bool:
    before, after = blocks[known(old.index)], blocks[known(new.index)]
    if before is after or before.last != at or before.size < after.size:
        return False
    return fits_over(nest, old, new)


def _join(blocks: list[Block], before: Block, after: Block) -> None:
    before.last = after.last
    for i, block in enumerate(blocks):
        if block is after:
            blocks[i] = before
