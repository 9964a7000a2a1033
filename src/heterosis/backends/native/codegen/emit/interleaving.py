"""Stores with gaps along the vectors, which others fill: together they store whole vectors.

The channels of an image, say, which become its last dimension: what are neighbours goes to every
third place, which takes a store each. Of three vectors, one a channel, three without gaps are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from heterosis.backends.native.codegen.nest import (
    Apply,
    Counter,
    Load,
    Nest,
    Number,
    Operand,
    Step,
    Store,
    known,
    operands_of,
)
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import ITEMSIZE

_MOST = 4  # vectors that are sorted together
_FEW_STEPS = 8  # that are written out for each of them
_SMALLEST = 4  # bytes of elements of which more than two vectors are: others take too many steps


def interleaved(nest: Nest) -> Nest:
    """`nest` with stores one behind the other that fill each other's gaps; if the turns of one of
    its loops do so, they are written out."""
    if nest.vector != "kept":
        return nest
    nest = _written_out(nest)
    return replace(nest, stores=tuple(_together(nest.stores, len(nest.kept) - 1)))


# -- turns of a loop ------------------------------------------------------------------------------


def _written_out(nest: Nest) -> Nest:
    """With a loop around the vectors written out, each turn of which stores between what the others
    do."""
    loop = _filling_loop(nest)
    if loop == 0:
        return nest
    depends = _depends(nest, loop)
    if sum(depends) > _FEW_STEPS:
        return nest
    steps: list[Step] = []
    stores: list[Store] = []
    for turn in range(known(nest.kept[loop])):
        places = list(range(len(nest.steps)))  # of what is the same in all turns
        for i, step in enumerate(nest.steps):
            if depends[i] or turn == 0:
                places[i] = len(steps)
                steps.append(_in_turn(step, loop, turn, places))
        (store,) = nest.stores
        operand = _moved(store.operand, loop, turn)
        stores.append(replace(store, operand=operand, value=places[store.value]))
    return replace(nest, kept=_without(nest.kept, loop), steps=tuple(steps), stores=tuple(stores))


def _filling_loop(nest: Nest) -> int:
    """The dimension whose turns fill each other's gaps; 0, which threads share, for none."""
    level = len(nest.kept) - 1
    if nest.reduced or len(nest.stores) != 1 or nest.scatters:
        return 0
    operand = nest.stores[0].operand
    count = operand.strides[level]
    if not _is_sorted(operand, count):
        return 0
    turns = zip(nest.kept, operand.strides, strict=True)
    found = [not is_traced(extent) and (extent, stride) == (count, 1) for extent, stride in turns]
    return found.index(True, 1) if any(found[1:]) else 0


def _is_sorted(operand: Operand, apart: Number) -> bool:
    """Whether vectors of elements so far apart are sorted into whole ones."""
    most = _MOST if ITEMSIZE[operand.dtype] >= _SMALLEST else 2
    return not is_traced(apart) and 2 <= known(apart) <= most


def _depends(nest: Nest, loop: int) -> list[bool]:
    """For every step, whether it is another in each turn of a loop."""
    depends: list[bool] = []
    for step in nest.steps:
        strides = () if not isinstance(step, Load | Counter) else _strides(step)
        own = bool(strides) and strides[loop] != 0
        depends.append(own or any(depends[i] for i in operands_of(step)))
    return depends


def _strides(step: Load | Counter) -> tuple[Number, ...]:
    return step.strides if isinstance(step, Counter) else step.operand.strides


def _in_turn(step: Step, loop: int, turn: int, places: list[int]) -> Step:
    """A step as it is in a turn of the loop, on the steps at `places`."""
    match step:
        case Load(operand, indices):
            indices = tuple((places[i], stride) for i, stride in indices)
            return replace(step, operand=_moved(operand, loop, turn), indices=indices)
        case Counter(offset, strides):
            offset = known(offset) + turn * known(strides[loop])
            return replace(step, offset=offset, strides=_without(strides, loop))
        case Apply(_, arguments):
            return replace(step, arguments=tuple(places[i] for i in arguments))
    return step


def _moved(operand: Operand, loop: int, turn: int) -> Operand:
    offset = known(operand.offset) + turn * known(operand.strides[loop])
    return replace(operand, offset=offset, strides=_without(operand.strides, loop))


def _without(numbers: tuple[Number, ...], position: int) -> tuple[Number, ...]:
    return numbers[:position] + numbers[position + 1 :]


# -- stores ---------------------------------------------------------------------------------------


def _together(stores: tuple[Store, ...], level: int) -> Iterator[Store]:
    """The stores, those that fill each other's gaps along dimension `level` in a row."""
    left = list(stores)
    while left:
        group = _filling(left, level)
        for store in group:
            left.remove(store)
        yield replace(group[0], together=len(group))
        yield from group[1:]


def _filling(stores: list[Store], level: int) -> list[Store]:
    """The first one and those that fill its gaps, by their places; it alone, if they do not."""
    first = stores[0]
    operand = first.operand
    apart = operand.strides[level]
    if first.indices or first.running or not _is_sorted(operand, apart):
        return [first]
    alike = [
        other
        for other in stores
        if replace(other.operand, offset=operand.offset) == operand
        and not (other.indices or other.running)
    ]
    for before in range(known(apart)):
        begin = known(operand.offset) - before
        found = [_beginning(begin + place, alike) for place in range(known(apart))]
        if all(found):
            return [store for store in found if store]
    return [first]


def _beginning(offset: int, stores: list[Store]) -> Store | None:
    return next((store for store in stores if store.operand.offset == offset), None)
