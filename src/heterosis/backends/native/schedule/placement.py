"""Where values will stand once they are computed, known before anything is.

A result has its memory from the beginning. What it is a view of, and the parts that it is
assembled of, are then written right where they will stand, and never copied.

Parts may overlap: the later one shows. A part is written early only where no earlier part will be
written over it; and if a later one will, only if nothing needs it, or what it is made of, by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from heterosis.backends.native.codegen.kernel import Place
from heterosis.backends.native.schedule.epilogues import Uses
from heterosis.backends.native.schedule.places import Places, parts, unviewed
from heterosis.ir.overlap import meetings
from heterosis.ir.primitives.families import Assemble, View
from heterosis.ir.program import Node, Value


class Placement(dict[Value, Place]):
    """The rooms of values that have not been computed."""

    def __init__(self, uses: Uses, places: Places):
        super().__init__()
        self.uses, self.places = uses, places
        # Who stands where a node's parts overlap, and no longer once these are written.
        self.passing: defaultdict[Node, list[Value]] = defaultdict(list)

    def settle(self, value: Value, room: Place, until: Node | None = None) -> None:
        """Let kernels of their own write where `value`, or a part of it, will stand: for good, or
        `until` a node, that `value` alone is for, has been computed over it."""
        waiting = [(value, room, until)]
        while waiting:
            value, room, until = waiting.pop()
            value, room = unviewed(value, room, self.places)
            if value in self or value in self.places:
                continue
            self[value] = room
            if until:
                self.passing[until].append(value)
            if isinstance(value.node.primitive, Assemble) and not value.node.attributes["filled"]:
                waiting += reversed([*self._early_parts(value, room, until)])

    def _early_parts(
        self, value: Value, room: Place, until: Node | None
    ) -> Iterator[tuple[Value, Place, Node | None]]:
        """The parts that may be written before the others, and until when they stand."""
        places = value.node.attributes["places"]
        rooms = list(parts(value, room))
        met = meetings(places, [part.shape for part, _ in rooms])
        for i, (part, inside) in enumerate(rooms):
            end = value.node if any(j > i for j in met[i]) else until
            first = all(j > i for j in met[i])
            if first and (end is None or self.serves_one(part, value.node)):
                yield part, inside, end

    def serves_one(self, value: Value, node: Node) -> bool:
        """Whether `node` alone uses `value` and what it is a view of, and once."""
        once = node.inputs.count(value) == 1
        while once and len(self.uses.of(value)) == 1 and value not in self.uses.outputs:
            if not isinstance(value.node.primitive, View):
                return True
            (value,) = value.node.inputs
        return False
