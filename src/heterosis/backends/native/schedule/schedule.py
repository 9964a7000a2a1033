"""From a program to the kernels that run it, in order.

Elementwise work and views are inlined into the loop nests that use them; reductions over the same
points join one nest (softmax is one); what other kernels need whole gets a buffer.

The parts, in the order in which they work: `placement` tells where results and what they are
assembled of will stand; `places` finds what stands in memory through views; `horizontal_fusion`
says which values share a nest; `loops.kinds` makes nests, `loops.inlining` the steps inside them,
with the reductions that `loops.reduction_fusion` lets in; `calls` adds the kernels that are no
nests, `bands` and `chains` join some of those, `branches` puts others side by side, `arena` places
the temporaries, and `overwriting` tells which results may stand where an input does. `proof` checks
all of that, where it is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType

from heterosis.backends.native.codegen.kernel import Machine, Place, Schedule
from heterosis.backends.native.codegen.nest import Buffer, Nest, known
from heterosis.backends.native.loops import kinds as nests
from heterosis.backends.native.schedule import (
    control,  # noqa: F401 - the kernels of choices and loops
    horizontal_fusion,
    overwriting,
    places,
)
from heterosis.backends.native.schedule.arena import plan_memory
from heterosis.backends.native.schedule.bands import join_bands
from heterosis.backends.native.schedule.branches import run_branches_side_by_side
from heterosis.backends.native.schedule.calls import call, writes_to
from heterosis.backends.native.schedule.chains import chain
from heterosis.backends.native.schedule.epilogues import Uses
from heterosis.backends.native.schedule.materialize import Kept, compared_sums, unrearranged
from heterosis.backends.native.schedule.placement import Placement
from heterosis.ir.overlap import are_apart
from heterosis.ir.primitives.families import Assemble, Opaque, Reduction, Scan, Scatter
from heterosis.ir.program import INPUT, NUMBER, Node, Program, Value
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import only_looking
from heterosis.ir.types import TensorType
from heterosis.ir.views import BROADCAST, RESHAPE
from heterosis.runtime.errors import ScheduleError
from heterosis.runtime.settings import settings


def schedule(
    program: Program,
    layouts: Sequence[Strided],
    outputs: Sequence[Strided | None],
    machine: Machine,
    *,
    views: bool,
    in_place: bool = False,
    kept: Kept = MappingProxyType({}),
    side_by_side: bool = False,
    updated: Mapping[int, Sequence[Value]] | None = None,
    written: Mapping[int, int] = MappingProxyType({}),
) -> Schedule:
    """Plan `program` for inputs that lie as `layouts` say.

    `outputs` gives the layout of each result's memory (None: without gaps). With `views`, a result
    that only rearranges an input is reported as a view of it instead of being written. With
    `in_place`, the one result is written where the first input stands. The `kept` values get
    memory even where nests could compute them, each in one nest with the values beside it.
    Branches may run `side_by_side`: code for any size knows no such kernels. The `updated` results
    are written where the inputs of the same positions stand, once the values are computed that
    these are needed for. The `written` results are written to inputs after the run, and are known
    by the positions of these: the schedule says which may stand there from the beginning.
    """
    updated = updated or {}
    needed = any(updated.values())  # before: kernels then stay in the order in which they are made
    scheduler = Scheduler(program, layouts, machine)
    if in_place:
        scheduler.update()
    else:
        scheduler.run(outputs, views, kept, updated)
    if not in_place and not needed:
        join_bands(scheduler.result, machine)
        chain(scheduler.result)
    if side_by_side and not needed:
        run_branches_side_by_side(scheduler.result, machine.workers)
    plan_memory(scheduler.result)
    if written:
        scheduler.result.over = overwriting.overwriting(program, layouts, scheduler.result, written)
    if settings.check:
        _prove(program, layouts, outputs, scheduler.result, {0} if in_place else updated)
        _prove_one_order(program, scheduler.runs)
    return scheduler.result


def _prove(
    program: Program,
    layouts: Sequence[Strided],
    outputs: Sequence[Strided | None],
    made: Schedule,
    updated: Collection[int],
) -> None:
    """Prove a schedule, also with results where arrays stand if some may."""
    from heterosis.backends.native.schedule.proof import prove

    with only_looking():
        prove(program, layouts, outputs, made, updated={i: i for i in updated})
        if made.over:
            there = overwriting.in_place(program, made)
            prove(program, layouts, outputs, there, updated=made.over)


def _prove_one_order(program: Program, runs: Counter[Value]) -> None:
    """Prove that sums which are compared with the largest of them are computed by one nest."""
    for value in compared_sums(program):
        if runs[value] > 1:
            raise ScheduleError(
                f"{program.name}: {runs[value]} nests compute the {value.node.primitive} of "
                f"{value.node.inputs[0].shape} over {value.node.attributes['axes']} that is "
                "compared with its extreme, each rounding in its own order; expected one."
            )


class Scheduler:
    """The schedule in the making: what has been computed, and where it stands."""

    def __init__(self, program: Program, layouts: Sequence[Strided], machine: Machine):
        self.program, self.machine = program, machine
        self.result = Schedule()
        self.uses = Uses(program)
        self.places: dict[Value, Place] = {}
        self.copies: dict[Value, Place] = {}  # of values that stand elsewhere with gaps or turned
        self.numbers: dict[Value, int] = {}
        self.runs: Counter[Value] = Counter()
        self.placement = Placement(self.uses, self.places)
        self.inside: set[Node] = set()  # what kernels do on their results: no value of its own
        self.kept: Kept = {}
        self.inputs = self._take_inputs(layouts)

    def _take_inputs(self, layouts: Sequence[Strided]) -> int:
        """Place the arrays that the program is given; how many there are."""
        buffers = 0
        for value, layout in zip(self.program.inputs, layouts, strict=True):
            if value.node.primitive is NUMBER:
                self.numbers[value] = len(self.numbers)
            else:
                self.places[value] = Place(Buffer("call", buffers), value.dtype, layout)
                buffers += 1
        return buffers

    # -- in what order ------------------------------------------------------------------------

    def run(
        self,
        outputs: Sequence[Strided | None],
        views: bool,
        kept: Kept,
        updated: Mapping[int, Sequence[Value]],
    ) -> None:
        """Write every result, or report it as a view."""
        rooms = self._rooms(outputs, views, updated)
        self.kept = kept
        for values in updated.values():
            for value in values:
                self.place(value)
        self._place_in_order()
        rooms = [(value, room) for value, room in rooms if not self._stands(value, room)]
        for group in horizontal_fusion.groups(rooms, self.places):
            if len(group) > 1:
                nests.map_together(self, group)
            else:
                self.write(*group[0])
            for value, room in group:
                self.places.setdefault(value, room)

    def update(self) -> None:
        """Write the one result over the first input."""
        (value,), (first, *_) = self.program.outputs, self.program.inputs
        self.write(value, self.places[first])

    def _rooms(
        self, outputs: Sequence[Strided | None], views: bool, updated: Collection[int]
    ) -> list[tuple[Value, Place]]:
        """The results that are no views, and where they will stand: behind the inputs, or where
        the input stands that is updated."""
        rooms: list[tuple[Value, Place]] = []
        for i, (value, layout) in enumerate(zip(self.program.outputs, outputs, strict=True)):
            found = self._as_view(value) if views and layout is None else None
            if found:
                self.result.views[i] = found
                continue
            buffer = Buffer("call", self.inputs + len(rooms))
            strided = layout or Strided.contiguous(value.shape)
            own = self.places[self.program.inputs[i]] if i in updated else None
            rooms.append((value, own or Place(buffer, value.dtype, strided)))
            self.placement.settle(*rooms[-1])
        return rooms

    def _as_view(self, value: Value) -> tuple[int, Strided] | None:
        """The input and layout that `value` is a view of, if it is one."""
        if unrearranged(value).node.primitive is not INPUT:
            return None
        place = places.found(value, self.places)
        return (known(place.buffer.index), place.strided) if place else None

    def _place_in_order(self) -> None:
        """Compute whole operands, and what is to be kept, in the order of `uses`: found by need,
        they would lie as deep in the stack as the program is long."""
        for node in reversed(self.uses.order):
            value, joins = node.outputs[0], isinstance(node.primitive, Assemble)
            if value not in self.placement and (joins or self._is_written_as_shown(value)):
                self.placement.settle(value, self.temporary(value.type))
        reduced: list[Value] = []
        for node in self.uses.order:
            kept = [v for v in node.outputs if v in self.kept and node not in self.inside]
            if type(node.primitive) is Reduction:
                reduced += kept
            elif isinstance(node.primitive, Opaque):
                self._place_around(node.inputs, reduced)
                self._place_reduced(reduced)
                if node.outputs[0] not in self.places:
                    call(self, node, {})
            elif kept:
                self._place_around(kept, reduced)
                self._place_reduced(reduced)
                for value in kept:
                    self._place_with(value, self.kept.get(value, ()))
        self._place_reduced(reduced)

    def _is_written_as_shown(self, value: Value) -> bool:
        """Whether it shows an array that nothing else needs so that it would be copied, and a
        kernel can write that array as it is shown: heads of attention, side by side in rows."""
        if value.node.primitive is not RESHAPE:
            return False
        base, strided = places.beneath(value, Strided.contiguous(value.shape))
        if base in self.placement:
            return False
        written = isinstance(base.node.primitive, Opaque) and writes_to(base.node, strided)
        copied = not places.is_shown(value, base, Strided.contiguous(base.shape))
        (before,) = value.node.inputs
        return written and copied and self.placement.serves_one(before, value.node)

    def _place_with(self, value: Value, others: Sequence[Value]) -> None:
        """Place `value`, and with it what one nest computes together."""
        group = [v for v in others if v not in self.places]
        if len(group) < 2:
            self.place(value)
            return
        rooms = [(v, self.room(v)) for v in group]
        nests.map_together(self, rooms)
        self.places.update(rooms)

    def _place_around(self, values: Iterable[Value], reduced: Collection[Value]) -> None:
        """Place those of `values` before the reductions that they need whose nests go over the same
        points: such a nest computes these on its way, and stores them too."""
        for value in values if reduced else ():
            while value.node.primitive is RESHAPE:
                (value,) = value.node.inputs
            alone = not self.kept.get(value)
            if alone and any(one in reduced for one in nests.joining(value, self.places)):
                self.place(value)

    def _place_reduced(self, values: list[Value]) -> None:
        """The last first: its nest may need the others, and stores them too."""
        while values:
            self.place(values.pop())

    def append(self, nest: Nest, kept: Sequence[int]) -> None:
        """Run `nest` next, unless its loops have no points."""
        if prod(kept):
            self.result.kernels.append(nest)

    # -- what stands in memory ----------------------------------------------------------------

    def room(self, value: Value) -> Place:
        """Where a value will stand that has not been computed."""
        return self.placement.get(value) or self.temporary(value.type)

    def temporary(self, type_: TensorType) -> Place:
        """Room for a whole value in the workspace."""
        return Place(self.scratch(type_.nbytes), type_.dtype, Strided.contiguous(type_.shape))

    def scratch(self, nbytes: int) -> Buffer:
        """Room for bytes in the workspace."""
        self.result.temporaries.append(nbytes)
        return Buffer("temporary", len(self.result.temporaries) - 1)

    def place(self, value: Value) -> Place:
        """Where `value` stands in memory; computed into the workspace on first need."""
        if value not in self.places:
            node = value.node
            if isinstance(node.primitive, Opaque):
                call(self, node, {})
            else:
                room = self.room(value)
                self.write(value, room)
                self.places[value] = room
        return self.places[value]

    def whole(self, value: Value) -> Place:
        """Where `value` stands, views of memory left as they are: for kernels with strides."""
        found = places.found(value, self.places)
        if found:
            return found
        base = value
        while base.node.primitive in (RESHAPE, BROADCAST):
            (base,) = base.node.inputs
        if unrearranged(base) in self.places or not 0 < base.size <= value.size:
            return self.place(value)
        self.place(base)
        return places.found(value, self.places) or self.place(value)

    def gapless(self, value: Value) -> Place:
        """Where `value` stands row by row; a copy if it stands otherwise, the same for all."""
        base = unrearranged(value)
        if base in self.places or isinstance(base.node.primitive, Opaque):
            place = self.whole(value)
        else:
            place = self.place(value)
        if place.strided.is_contiguous:
            return place
        if value not in self.copies:
            self.copies[value] = self.temporary(value.type)
            nests.map_value(self, value, self.copies[value])
        return self.copies[value]

    def _stands(self, value: Value, room: Place) -> bool:
        return places.stands(value, room, self.places)

    # -- writing a value ----------------------------------------------------------------------

    def write(self, value: Value, room: Place) -> None:
        """Append the kernels that compute `value` into `room`."""
        turns = [self._written(value, room)]  # a value may be made of as many as writes to an array
        while turns:
            part = next(turns[-1], None)
            if part is None:
                turns.pop()
            else:
                turns.append(self._written(*part))

    def _written(self, value: Value, room: Place) -> Iterator[tuple[Value, Place]]:
        """The same, once each of the parts that it gives is written to its room."""
        if self._stands(value, room):
            return
        value, room = places.in_own_shape(value, room, self.places)
        value, room = places.seen_through(value, room, self.places)
        primitive = None if value in self.places else value.node.primitive
        if isinstance(primitive, Opaque):
            call(self, value.node, {value: room})
        elif isinstance(primitive, Assemble):
            yield from self._assemble(value, room)
        elif isinstance(primitive, Scatter):
            yield from self._scatter(value, room)
        elif isinstance(primitive, Scan):
            nests.scan(self, value, room)
        else:
            nests.map_value(self, value, room)

    def _assemble(self, value: Value, room: Place) -> Iterator[tuple[Value, Place]]:
        if value.node.attributes["filled"]:
            fill = value.node.inputs[0]
            nests.map_value(self, fill, room, (("broadcast", (value.shape,)),))
        rooms = list(places.parts(value, room))
        parts = [part for part, _ in rooms]
        if not are_apart(value.node.attributes["places"], [part.shape for part in parts]):
            groups = [[room] for room in rooms]  # the later one shows
        elif horizontal_fusion.share_work(parts, self.places):
            groups = [rooms]
        else:
            groups = horizontal_fusion.in_pairs(rooms, self.places)
        for group in groups:
            if len(group) > 1:
                nests.map_together(self, group)
            else:
                yield from group
        for gone in self.placement.passing[value.node]:
            self.places.pop(gone, None)

    def _scatter(self, value: Value, room: Place) -> Iterator[tuple[Value, Place]]:
        base, *indices, update = value.node.inputs
        if self.places.get(base) != room:
            before = set(self.places)
            yield base, room
            # What was found to stand there stands there no longer.
            for other in self.places.keys() - before:
                if self.places[other].buffer == room.buffer:
                    del self.places[other]
        nests.scatter(self, value.node, indices, update, room)
