"""The kinds of loop nests, each made for the value that it writes."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.codegen.nest import Apply, Load, Operand, Store
from heterosis.backends.native.codegen.tables import reducer
from heterosis.backends.native.loops.inlining import Loops, repeated
from heterosis.backends.native.loops.kept import keep_repeated
from heterosis.backends.native.loops.reduction_fusion import (
    reduced_shape,
    reductions,
    repeated_along,
)
from heterosis.ir.primitives.families import Elementwise, Scan
from heterosis.ir.program import Node, Value
from heterosis.ir.strided import Move, row_major

if TYPE_CHECKING:
    from heterosis.backends.native.loops.surroundings import Surroundings


def map_value(
    scheduler: Surroundings, value: Value, room: Place, moves: tuple[Move, ...] = ()
) -> None:
    """Write `value`, rearranged by `moves`, into `room`: point by point, reductions included."""
    while True:
        loops, order, between = _loops_for(scheduler, value, room.strided.shape, moves)
        step = loops.inline(value, between)
        if not loops.are_overtaken():
            break
    strides = tuple(room.strided.strides[a] for a in order)
    padding = (0,) * (len(loops.kept) + len(loops.reduced) - len(strides))
    operand = Operand(room.buffer, room.dtype, room.strided.offset, strides + padding)
    store = Store(operand, loops.converted(step, room.dtype))
    steps, stores = keep_repeated(len(loops.kept), tuple(loops.steps), (store,))
    loops.steps = list(steps)
    loops.finish([*stores, *_kept_stores(loops, value)])


def _loops_for(
    scheduler: Surroundings, value: Value, shape: tuple[int, ...], moves: tuple[Move, ...]
) -> tuple[Loops, tuple[int, ...], tuple[Move, ...]]:
    """Loops that the first fitting reduction can join, the order in which they go over `shape`,
    and the moves from `value` to them."""
    for reduction, between in reductions(value, moves, scheduler.places):
        along = repeated_along(reduction, between, shape)
        if along is None:
            continue
        order = (*(a for a in range(len(shape)) if a not in along), *along)
        kept = tuple(shape[a] for a in order[: len(shape) - len(along)])
        reduced = reduced_shape(reduction.node)
        moves = (*moves, ("transpose", (order,)))
        if not along:
            moves = (*moves, *repeated(shape, reduced))
        return Loops(scheduler, kept, reduced), order, moves
    return Loops(scheduler, shape), tuple(range(len(shape))), moves


def joining(value: Value, places: Container[Value]) -> Iterator[Value]:
    """The reductions that a nest which writes `value` would go over its points for."""
    if isinstance(value.node.primitive, Elementwise) and value not in places:
        for reduction, between in reductions(value, (), places):
            if repeated_along(reduction, between, value.shape):
                yield reduction


def _kept_stores(loops: Loops, root: Value) -> Iterator[Store]:
    """What keeps reductions that other kernels will need, and that ran on the way to `root`."""
    scheduler = loops.scheduler
    for value, step in loops.joined.items():
        if value in scheduler.kept and value not in scheduler.places and value != root:
            room = scheduler.room(value)
            if not room.strided.is_contiguous:
                room = scheduler.temporary(value.type)
            scheduler.places[value] = room
            strides = row_major(loops.kept) + (0,) * len(loops.reduced)
            yield Store(Operand(room.buffer, room.dtype, room.strided.offset, strides), step)


def map_together(scheduler: Surroundings, group: Sequence[tuple[Value, Place]]) -> None:
    """Write several elementwise values of one shape, each into its room."""
    loops = Loops(scheduler, group[0][1].strided.shape)
    stores = []
    for value, room in group:
        step = loops.converted(loops.inline(value, ()), room.dtype)
        operand = Operand(room.buffer, room.dtype, room.strided.offset, room.strided.strides)
        stores.append(Store(operand, step))
    loops.finish(stores)


def scan(scheduler: Surroundings, value: Value, room: Place) -> None:
    """Write running results along one axis, which becomes the only reduced dimension."""
    (axis,) = value.node.attributes["axes"]
    order = (*(a for a in range(value.ndim) if a != axis), axis)
    shape = tuple(value.shape[a] for a in order)
    loops = Loops(scheduler, shape[:-1], shape[-1:])
    step = loops.reduce(value, (("transpose", (order,)),))
    strides = tuple(room.strided.strides[a] for a in order)
    operand = Operand(room.buffer, room.dtype, room.strided.offset, strides)
    primitive = value.node.primitive
    assert isinstance(primitive, Scan), f"{primitive} has no running results"
    loops.finish([Store(operand, step, running=reducer(primitive))])


def scatter(
    scheduler: Surroundings, node: Node, indices: Sequence[Value], update: Value, room: Place
) -> None:
    """Write or add rows at computed places, in order, so that the last of equals wins."""
    loops = Loops(scheduler, update.shape)
    rank, lead = len(indices), indices[0].shape
    moves = repeated(lead, update.shape[len(lead) :])
    strides = (0,) * len(lead) + room.strided.strides[rank:]
    operand = Operand(room.buffer, room.dtype, room.strided.offset, strides)
    found = [loops.inline(index, moves) for index in indices]
    places = tuple(zip(found, room.strided.strides[:rank], strict=True))
    step = loops.converted(loops.inline(update, ()), room.dtype)
    combine = node.attributes["combine"]
    rows = room.strided.shape[:rank]
    if combine is not None:
        old = loops.add(Load(operand, places, rows))
        step = loops.add(Apply(combine, (old, step), room.dtype, room.dtype))
    loops.finish([Store(operand, step, places, rows=rows)])
