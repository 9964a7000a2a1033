"""Which values are computed together, in one loop nest that writes them all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.schedule.places import Places
from heterosis.ir.primitives.families import Elementwise, Leaf, Opaque, Reduction, View
from heterosis.ir.program import Node, Value

Room: TypeAlias = "tuple[Value, Place]"  # a value, and where it will stand


def groups(rooms: Sequence[Room], places: Places) -> list[list[Room]]:
    """Results of one shape that are elementwise share a nest if they load the same.

    What has nothing in common, such as the updates of many parameters, is better apart: nests that
    are alike are compiled once, and memory is read ahead for few arrays at a time.
    """
    shared = [{(value.shape, v) for v in _loaded(value, places)} for value, _ in rooms]
    return [[rooms[i] for i in group] for group in sharing(shared)]


def sharing(things: Sequence[Iterable[Hashable]]) -> Iterator[list[int]]:
    """The positions of those that have one of the things in common, or others in between, in order:
    each position in one group."""
    users: dict[Hashable, list[int]] = {}
    for i, own in enumerate(things):
        for thing in own:
            users.setdefault(thing, []).append(i)
    grouped: set[int] = set()
    for first in range(len(things)):
        group, waiting = [], [first]
        while waiting:
            i = waiting.pop()
            if i not in grouped:
                grouped.add(i)
                group.append(i)
                waiting += [j for thing in things[i] for j in users.pop(thing, ())]
        if group:
            yield sorted(group)


def _loaded(value: Value, places: Places) -> set[Value]:
    """The arrays, and views of arrays, that a value is made of element by element; none if it is
    not. Single numbers do not count."""
    if not _is_elementwise(value, places):
        return set()
    found: set[Value] = set()
    seen: set[Value] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in places or isinstance(value.node.primitive, Leaf | View):
            found.add(value)
        else:
            stack.extend(value.node.inputs)
    return {value for value in found if _base(value).size > 1}


def _base(value: Value) -> Value:
    """What a view is a view of."""
    while isinstance(value.node.primitive, View):
        value = value.node.inputs[0]
    return value


def _is_elementwise(value: Value, places: Places) -> bool:
    """Whether a value is made element by element of what has a place, and of numbers."""
    seen: set[Value] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if value in seen or value in places:
            continue
        seen.add(value)
        if not isinstance(value.node.primitive, Elementwise | View | Leaf):
            return False
        stack.extend(value.node.inputs)
    return True


def in_pairs(rooms: Sequence[Room], places: Places) -> list[list[Room]]:
    """Rooms of values, two together where each is of every second place of one row of memory: one
    nest can store both without gaps."""
    found: list[list[Room]] = []
    alone: dict[Any, list[Room]] = {}
    for value, place in rooms:
        at, alike = place.strided.offset, (value.shape, place.dtype, place.strided.strides)
        gaps = _has_gaps(value, place) and _is_written_by_a_nest(value, places)
        pair = (alone.pop((alike, at + i), None) for i in (-1, 1)) if gaps else ()
        group = next(filter(None, pair), None)
        if group is not None:
            group.append((value, place))
            continue
        found.append([(value, place)])
        if gaps:
            alone[alike, at] = found[-1]
    return found


def _has_gaps(value: Value, place: Place) -> bool:
    """Whether it takes every second place along its rows."""
    strides = zip(place.strided.strides, value.shape, strict=True)
    return [stride for stride, extent in strides if extent != 1][-1:] == [2]


def _is_written_by_a_nest(value: Value, places: Places) -> bool:
    """Whether it takes a nest over all of a value to write it with gaps: other kernels leave none,
    and what they compute is copied there."""
    base = _base(value)
    return base in places or isinstance(base.node.primitive, Elementwise | Leaf | Opaque)


def share_work(values: Sequence[Value], places: Places) -> bool:
    """Whether values of one shape, without reductions, compute something more than once."""
    if len({value.shape for value in values}) > 1:
        return False
    works = [_inlined(value, places) for value in values]
    if any(type(node.primitive) is Reduction for work in works for node in work):
        return False
    computed = [n for work in works for n in work if isinstance(n.primitive, Elementwise)]
    return len(set(computed)) < len(computed)


def _inlined(value: Value, places: Places) -> set[Node]:
    """The nodes that a nest which writes `value` computes, and those that it reads."""
    seen: set[Node] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if value.node not in seen and value not in places:
            seen.add(value.node)
            if isinstance(value.node.primitive, Elementwise | View):
                stack.extend(value.node.inputs)
    return seen
