"""Which values are computed together, in one loop nest that writes them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.schedule.places import Places
from heterosis.ir.primitives.families import Elementwise, Leaf, Reduction, View
from heterosis.ir.program import Node, Value


def groups(rooms: Sequence[tuple[Value, Place]], places: Places) -> list[list[tuple[Value, Place]]]:
    """Results of one shape that are elementwise share a nest if they load the same.

    What has nothing in common, such as the updates of many parameters, is better apart: nests that
    are alike are compiled once, and memory is read ahead for few arrays at a time.
    """
    loaded = [_loaded(value, places) for value, _ in rooms]
    sharing: dict[tuple[Any, Value], list[int]] = {}
    for i, (value, _) in enumerate(rooms):
        for array in loaded[i]:
            sharing.setdefault((value.shape, array), []).append(i)
    found, grouped = [], set()
    for first in range(len(rooms)):
        group, waiting = [], [first]
        while waiting:
            i = waiting.pop()
            if i not in grouped:
                grouped.add(i)
                group.append(i)
                shape = rooms[i][0].shape
                waiting += [j for v in loaded[i] for j in sharing.pop((shape, v), ())]
        if group:
            found.append([rooms[i] for i in sorted(group)])
    return found


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


def fill_gaps(rooms: Sequence[tuple[Value, Place]], places: Places) -> bool:
    """Whether two values that are made element by element each write every second place of one row
    of memory: one nest can store both without gaps."""
    if len(rooms) != 2 or not all(_is_elementwise(value, places) for value, _ in rooms):
        return False
    (one, first), (other, second) = rooms
    strides = [s for s, n in zip(first.strided.strides, one.shape, strict=True) if n != 1]
    return (
        one.shape == other.shape
        and first.dtype == second.dtype
        and first.strided.strides == second.strided.strides
        and strides[-1:] == [2]
        and abs(second.strided.offset - first.strided.offset) == 1
    )


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
