"""Where values will stand once they are computed, known before anything is.

A result has its memory from the beginning. What it is a view of, and the parts that it is
assembled of, are then written right where they will stand, and never copied.
"""

from __future__ import annotations

from collections.abc import Iterator

from heterosis.codegen.kernel import Place
from heterosis.ir.program import Assemble, Value, View
from heterosis.passes.apart import is_apart
from heterosis.passes.epilogues import Uses
from heterosis.passes.places import Places, parts, unviewed


class Homes(dict[Value, Place]):
    """The rooms of values that have not been computed."""

    def __init__(self, uses: Uses, places: Places):
        super().__init__()
        self.uses, self.places = uses, places

    def settle(self, value: Value, room: Place) -> None:
        """Let kernels of their own write where `value`, or a part of it, will stand."""
        value, room = unviewed(value, room, self.places)
        self.setdefault(value, room)
        if isinstance(value.node.primitive, Assemble) and not value.node.attributes["filled"]:
            for part, inside in self._lasting_parts(value, room):
                self.settle(part, inside)

    def _lasting_parts(self, value: Value, room: Place) -> Iterator[tuple[Value, Place]]:
        """The parts that nobody else needs once later parts are written over them."""
        places = value.node.attributes["places"]
        rooms = list(parts(value, room))
        for i, (part, inside) in enumerate(rooms):
            behind = zip(places[i + 1 :], rooms[i + 1 :], strict=True)
            if self._serves_one(part) or all(
                is_apart(places[i], part.shape, place, other.shape) for place, (other, _) in behind
            ):
                yield part, inside

    def _serves_one(self, value: Value) -> bool:
        """Whether one node alone uses `value` and what it is a view of."""
        while len(self.uses.of(value)) == 1 and value not in self.uses.outputs:
            if not isinstance(value.node.primitive, View):
                return True
            (value,) = value.node.inputs
        return False
