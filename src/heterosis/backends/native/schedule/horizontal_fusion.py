"""Which values are computed together, in one loop nest that writes them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.schedule.places import Places
from heterosis.ir.primitives.families import Elementwise, Leaf, Reduction, View
from heterosis.ir.program import Node, Value


def groups(rooms: Sequence[tuple[Value, Place]], places: Places) -> list[list[tuple[Value, Place]]]:
    """Results of one shape that are elementwise share a nest if they share what they are made of.

    What has nothing in common, such as the updates of many parameters, is better apart: nests that
    are alike are compiled once, and each reads few places at a time.
    """
    made_of = [_made_of(value, places) for value, _ in rooms]
    sharing: dict[tuple[Any, Value], list[int]] = {}
    for i, (value, _) in enumerate(rooms):
        for other in made_of[i]:
            sharing.setdefault((value.shape, other), []).append(i)
    found, grouped = [], set()
    for first in range(len(rooms)):
        group, waiting = [], [first]
        while waiting:
            i = waiting.pop()
            if i not in grouped:
                grouped.add(i)
                group.append(i)
                shape = rooms[i][0].shape
                waiting += [j for v in made_of[i] for j in sharing.pop((shape, v), ())]
        if group:
            found.append([rooms[i] for i in sorted(group)])
    return found


def _made_of(value: Value, places: Places) -> set[Value]:
    """What a value is made of element by element, down to what has a place, besides single
    numbers; nothing if something else is between."""
    seen: set[Value] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        if value not in places:
            if not isinstance(value.node.primitive, Elementwise | View | Leaf):
                return set()
            stack.extend(value.node.inputs)
    return {value for value in seen if value.size > 1}


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
