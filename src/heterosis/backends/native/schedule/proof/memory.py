"""Memory that holds terms: what stands at every address while a schedule runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy

from heterosis.backends.native.codegen.kernel import Schedule
from heterosis.backends.native.codegen.nest import Buffer, known
from heterosis.backends.native.schedule.proof import terms
from heterosis.backends.native.schedule.proof.terms import Terms, shown
from heterosis.ir.strided import Strided
from heterosis.ir.types import ITEMSIZE
from heterosis.runtime.errors import ScheduleError

Array = numpy.ndarray[Any, Any]

_PRIVATE = "private"


class Region(NamedTuple):
    """Elements in a piece of memory, counted in its units: the last axis goes over those of one
    element."""

    memory: str
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_private(self) -> bool:
        """Whether it belongs to a kernel that was made of several."""
        return self.memory.startswith(_PRIVATE)

    @property
    def span(self) -> tuple[int, int]:
        """The first unit, and the one behind the last."""
        reach = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.start + sum(min(0, r) for r in reach)
        return low, self.start + sum(max(0, r) for r in reach) + 1


class Memory:
    """The buffers of a call, of which `reaches` says from which byte to which they may be used, and
    the workspace. `unit` is the size of the smallest element, in bytes.

    What no kernel has written is different at every address.
    """

    def __init__(self, schedule: Schedule, reaches: Mapping[int, tuple[int, int]], unit: int):
        self.schedule, self.reaches, self.unit = schedule, reaches, unit
        self.reads: list[Region] = []
        self.writes: list[Region] = []
        self._pieces: dict[str, Terms] = {}

    # -- where --------------------------------------------------------------------------------

    def region(self, buffer: Buffer, dtype: str, strided: Strided) -> Region:
        """Where elements stand, which must be inside of their buffer."""
        memory, start, low, high = self._bounds(buffer)
        many = ITEMSIZE[dtype] // self.unit
        shape, strides = (*strided.shape, many), (*(s * many for s in strided.strides), 1)
        found = Region(memory, start + strided.offset * many, shape, strides)
        if 0 not in shape:
            first, end = found.span
            if first < low or (high is not None and end > high):
                raise ScheduleError(
                    f"elements {strided} of {dtype} reach out of {buffer}: its units {low} to "
                    f"{high}, and they need {first} to {end}."
                )
            self._make(memory, end)
        return found

    def scratch(self, buffer: Buffer, nbytes: int) -> Region:
        """Bytes that a kernel uses for itself."""
        memory, start, _, _ = self._bounds(buffer)
        self._make(memory, start + nbytes // self.unit)
        return Region(memory, start, (nbytes // self.unit,), (1,))

    def _bounds(self, buffer: Buffer) -> tuple[str, int, int, int | None]:
        """The piece of memory, where in it the buffer begins, and the units that it may use."""
        index = known(buffer.index)
        if buffer.kind == "call":
            low, high = self.reaches[index]
            return f"call {index}", -low // self.unit, 0, (high - low) // self.unit
        size = self.schedule.temporaries[index]
        if not size:
            return f"{_PRIVATE} {index}", 0, 0, None
        start = self.schedule.starts[index] // self.unit
        return "workspace", start, start, start + size // self.unit

    def is_private(self, buffer: Buffer) -> bool:
        """Whether it belongs to a kernel that was made of several."""
        return buffer.kind != "call" and not self.schedule.temporaries[known(buffer.index)]

    def may_share(self, a: Buffer, b: Buffer) -> bool:
        """Whether two buffers may stand in the same memory."""
        return a == b or a.kind == b.kind == "temporary"

    def _make(self, memory: str, end: int) -> None:
        have = self._pieces.get(memory)
        if have is None or have.size < end:
            more = terms.numbered(f"nothing in {memory}", end)
            if have is not None:
                more[: have.size] = have
            self._pieces[memory] = more

    # -- what ---------------------------------------------------------------------------------

    def read(self, region: Region) -> Terms:
        """The elements that stand there; something else where one was overwritten in part."""
        self.reads.append(region)
        units = self._units(region)
        found = units[..., 0]
        if region.shape[-1] > 1:
            broken = (units != _spread(found, region)).any(-1)
            found = numpy.where(broken, terms.combined(terms.term("broken"), found), found)
        return found

    def write(self, region: Region, elements: Terms) -> None:
        self.writes.append(region)
        units = self._units(region)
        wanted = _spread(numpy.broadcast_to(elements, region.shape[:-1]), region)
        units[...] = wanted
        if (units != wanted).any():
            raise ScheduleError(f"a kernel writes different values to one place of {region}.")

    def fill(self, region: Region) -> None:
        """Let whole elements stand there, a different one at every address."""
        units = self._units(region)
        units[...] = _spread(units[..., 0].copy(), region)

    def spoil(self, region: Region) -> None:
        """Leave nothing there that could be of use."""
        self.writes.append(region)
        units = self._units(region)
        units[...] = terms.combined(terms.term("scratch"), units)

    def _units(self, region: Region) -> Array:
        if 0 in region.shape:
            return numpy.zeros(region.shape, "uint64")
        return shown(self._pieces[region.memory], *region[1:])

    # -- what meets what ------------------------------------------------------------------------

    def meet(self, a: Region, b: Region) -> bool:
        """Whether two regions have something in common."""
        if not _may_meet(a, b):
            return False
        return bool(shown(self.marked(a, numpy.bool_(True)), *b[1:]).any())

    def check_apart(self, writes: Iterable[Region], others: Iterable[Region], why: str) -> None:
        for a, b in itertools.product(writes, others):
            if self.meet(a, b):
                raise ScheduleError(f"{a} is written and {b}, which meets it: both {why}.")

    def marked(self, region: Region, marks: Any) -> Array:
        """Memory of zeros, but for `marks` in the region."""
        made = numpy.zeros(self._pieces[region.memory].size, numpy.asarray(marks).dtype)
        shown(made, *region[1:])[...] = marks
        return made


def _may_meet(a: Region, b: Region) -> bool:
    if a.memory != b.memory or 0 in a.shape or 0 in b.shape:
        return False
    (first, end), (other, other_end) = a.span, b.span
    return first < other_end and other < end


def _spread(elements: Terms, region: Region) -> Terms:
    """What the units of elements hold: all something else."""
    return elements[..., None] + numpy.arange(region.shape[-1], dtype="uint64")
