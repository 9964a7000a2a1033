"""Which values are computed together, in one loop nest that writes them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.schedule.places import Places
from heterosis.ir.primitives.families import Elementwise, Leaf, Reduction, View
from heterosis.ir.program import Node, Value


def groups(rooms: Sequence[tuple[Value, Place]], places: Places) -> list[list[tuple[Value, Place]]]:
    """Results of one shape that are elementwise share a nest, and what they load."""
    found: dict[Any, list[tuple[Value, Place]]] = {}
    for i, (value, room) in enumerate(rooms):
        key = value.shape if _is_elementwise(value, places) else i
        found.setdefault(key, []).append((value, room))
    return list(found.values())


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
