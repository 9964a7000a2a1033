"""Graphs of named operators, as symbol files hold them: attributes and names are texts."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

_numbers = itertools.count()

VARIABLE = "null"  # the operator of nodes that stand for arrays given from outside


@dataclass(eq=False)
class Node:
    """One call of an operator, or a variable."""

    operator: str
    name: str
    attributes: dict[str, str] = field(default_factory=dict)
    inputs: tuple[Entry, ...] = ()
    outputs: int = 1
    subgraphs: tuple[tuple[Entry, ...], ...] = ()  # of choices and loops: the heads of each
    number: int = field(default_factory=_numbers.__next__)  # the later it was made, the larger

    @property
    def is_variable(self) -> bool:
        return self.operator == VARIABLE

    def parameters(self) -> dict[str, str]:
        """The attributes that the operator computes with."""
        return {k: v for k, v in self.attributes.items() if not k.startswith("__")}


class Entry(NamedTuple):
    """One result of a node."""

    node: Node
    index: int = 0

    @property
    def name(self) -> str:
        """As users see it in `list_outputs`."""
        node = self.node
        if node.is_variable:
            return node.name
        return f"{node.name}_output{self.index if node.outputs > 1 else ''}"


def variable(name: str, attributes: dict[str, str] | None = None) -> Entry:
    """An array given from outside."""
    return Entry(Node(VARIABLE, name, attributes or {}))


def reached(entries: Iterable[Entry]) -> list[Node]:
    """The nodes that the entries need, operands before their users."""
    found: dict[Node, None] = {}
    for entry in entries:
        waiting: list[tuple[Node, Iterator[Entry]]] = [(entry.node, iter(entry.node.inputs))]
        entered = {entry.node}
        while waiting:
            node, inputs = waiting[-1]
            below = next((e.node for e in inputs if not _known(e.node, found, entered)), None)
            if below is None:
                found[node] = None
                waiting.pop()
            else:
                entered.add(below)
                waiting.append((below, iter(below.inputs)))
    return list(found)


def _known(node: Node, found: dict[Node, None], entered: set[Node]) -> bool:
    return node in found or node in entered


def variables(entries: Iterable[Entry]) -> list[Node]:
    """The variables that the entries need, in the order in which they are used."""
    return [node for node in reached(entries) if node.is_variable]


def rebuilt(entries: Iterable[Entry], instead: dict[Node, Entry]) -> list[Entry]:
    """The same graph with other entries in the place of some nodes."""
    entries = list(entries)
    made: dict[Node, Entry] = dict(instead)

    def place(entry: Entry) -> Entry:
        new = made[entry.node]
        return new if entry.node in instead else Entry(new.node, entry.index)

    for node in reached(entries):
        if node in made:
            continue
        inputs = tuple(map(place, node.inputs))
        same = all(a == b for a, b in zip(inputs, node.inputs, strict=True))
        copy = replace(node, attributes=dict(node.attributes), inputs=inputs)
        made[node] = Entry(node if same else copy)
    return [place(entry) for entry in entries]
