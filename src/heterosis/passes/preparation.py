"""What depends on parameters alone is computed once, and again only after they have changed.

The program is split in two. The preparation takes the parameters and gives whatever the rest
needs of them: packed weights, folded normalisations, anything that was computed from them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from heterosis.ir.primitives.families import Elementwise, Leaf, View
from heterosis.ir.program import INPUT, NUMBER, Node, Program, Value, apply, reached, with_inputs
from heterosis.passes.simplify import in_own_memory


@dataclass(frozen=True)
class Split:
    """`preparation` takes the inputs of the program that was split, and its results depend on those
    at the positions `fixed`. `rest` takes the inputs at the positions `own`, which are all that the
    preparation does not spare it, and then these results."""

    preparation: Program
    rest: Program
    fixed: tuple[int, ...]
    own: tuple[int, ...]

    @property
    def prepared(self) -> tuple[Value, ...]:
        """The results of the preparation, as `rest` takes them."""
        return self.rest.inputs[len(self.own) :]


class Fixed:
    """Which values depend on some inputs and on no others."""

    def __init__(self, inputs: Collection[Value]):
        self.inputs = frozenset(inputs)
        self.nodes: dict[Node, bool] = {}

    def __call__(self, value: Value) -> bool:
        return self.is_fixed(value.node)

    def is_fixed(self, node: Node) -> bool:
        """Asked about operands first, it never looks further than one node."""
        if node not in self.nodes:
            changes = node.primitive in (INPUT, NUMBER) and Value(node) not in self.inputs
            self.nodes[node] = not changes and all(self(value) for value in node.inputs)
        return self.nodes[node]


def is_free(value: Value) -> bool:
    """Whether a value costs next to nothing wherever it is used."""
    primitive = value.node.primitive
    return isinstance(primitive, Leaf | View) or (
        isinstance(primitive, Elementwise) and value.size == 1
    )


def split(
    program: Program, fixed: Collection[Value], is_free: Callable[[Value], bool] = is_free
) -> Split | None:
    """What is computed from `fixed` alone, and the rest, which takes it as further inputs.

    What `is_free` is left to the rest: views cost nothing there and would be copied here.
    """
    known = Fixed(fixed)
    moved: dict[Value, Value] = {}
    made: dict[Value, Value] = {}

    def taken(value: Value) -> Value:
        """A value as the rest finds it."""
        if value not in made and is_free(value):
            here = with_inputs(value.node, tuple(map(taken, value.node.inputs)))
            made[value] = Value(here, value.index)
        elif value not in made:
            made[value] = moved[value] = apply(INPUT, (), value.type)
        return made[value]

    for node in program.nodes():
        if not known.is_fixed(node):
            here = with_inputs(node, tuple(map(taken, node.inputs)))
            made.update(zip(node.outputs, here.outputs, strict=True))
    outputs = tuple(in_own_memory(value, taken(value)) for value in program.outputs)
    if not moved:
        return None
    preparation = Program(program.inputs, tuple(moved), f"{program.name} preparation")
    asked = _reached(program.inputs, preparation.outputs)
    needless = asked.difference(_reached(program.inputs, outputs))
    own = tuple(i for i in range(len(program.inputs)) if i not in needless)
    inputs = (*(program.inputs[i] for i in own), *moved.values())
    return Split(preparation, Program(inputs, outputs, program.name), tuple(sorted(asked)), own)


def _reached(inputs: Sequence[Value], outputs: Sequence[Value]) -> set[int]:
    """The positions of the inputs that `outputs` depend on."""
    nodes = set(reached(outputs))
    return {i for i, value in enumerate(inputs) if value.node in nodes}
