"""The proof of a schedule with sizes, where these have values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from heterosis.backends.native.codegen.kernel import Schedule
from heterosis.backends.native.schedule.overwriting import in_place
from heterosis.backends.native.schedule.proof import prove
from heterosis.ir.primitives.families import Primitive
from heterosis.ir.program import Node, Program, Value
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import is_traced, number_at


def prove_at(
    program: Program, layouts: Sequence[Strided], schedule: Schedule, values: Mapping[str, int]
) -> None:
    """Raise `ScheduleError` unless the kernels compute the program at these values."""
    here = _AtSizes(values)
    outputs = [None] * len(program.outputs)
    made = here(program), here(schedule)
    prove(made[0], here(list(layouts)), outputs, made[1])
    if schedule.over:
        there = in_place(*made)
        prove(made[0], here(list(layouts)), outputs, there, updated=schedule.over)


class _AtSizes:
    """What is made of sizes, with numbers in their places; nodes stay as many as they are."""

    def __init__(self, values: Mapping[str, int]):
        self.values = values
        self.nodes: dict[Node, Node] = {}

    def __call__(self, thing: Any) -> Any:
        if is_traced(thing):
            return number_at(thing, self.values)
        match thing:
            case Node():
                return self._node(thing)
            case Value():
                return Value(self._node(thing.node), thing.index)
            case tuple() | list():
                return type(thing)(map(self, thing))
            case dict():
                return {self(key): self(value) for key, value in thing.items()}
        if not is_dataclass(thing) or isinstance(thing, type | Primitive):
            return thing
        parts = {f.name: self(getattr(thing, f.name)) for f in fields(thing) if f.init}
        return replace(thing, **parts)

    def _node(self, node: Node) -> Node:
        for one in [*Program((), node.outputs).nodes(), node]:
            if one not in self.nodes:
                inputs = tuple(Value(self.nodes[v.node], v.index) for v in one.inputs)
                made = Node(one.primitive, inputs, self(one.attributes), self(one.types))
                self.nodes[one] = made
        return self.nodes[node]
