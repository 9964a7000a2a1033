"""What captured arrays hold: values that are replaced where a program writes in place.

Eager arrays share memory: a slice of an array is a window into it, and writing either shows in
the other. A program knows values only, which never change. So every array of a capture has a
`Cell`: the value that it holds now, or the window into another cell that it looks through.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from heterosis.ir import views
from heterosis.ir.primitives.families import View
from heterosis.ir.program import ASSEMBLE, Node, Value, apply
from heterosis.ir.strided import Strided, moved
from heterosis.runtime.errors import CaptureError


@dataclass(eq=False)
class Cell:
    """An array's value. With a `base`, that is the base's, seen through the views of `path`."""

    _value: Value
    base: Cell | None = None
    path: tuple[Node, ...] = ()
    source: Any = None  # what the array was outside of the program, if it was there
    layout: Strided | None = None  # of its elements there; others are contiguous
    writes: int = 0
    _seen: int = field(default=0)  # writes to the base that the value takes account of

    def __post_init__(self) -> None:
        self._seen = self.base.writes if self.base else 0

    def value(self) -> Value:
        """The value now."""
        if self.base is not None and self._seen != self.base.writes:
            value = self.base.value()
            for node in self.path:
                value = views.again(node, value)
            self._value, self._seen = value, self.base.writes
        return self._value

    @property
    def covers_base(self) -> bool:
        """Whether all of the memory is shown, in order."""
        return all(_is_whole(node) for node in self.path)

    def write(self, value: Value) -> None:
        """Replace the value, in all arrays that share the memory."""
        if self.base is None:
            self._value = value
            self.writes += 1
            return
        self.base.write(_put(self.base.value(), self.path, value))
        self._value, self._seen = value, self.base.writes


def _is_whole(view: Node) -> bool:
    if view.primitive is views.SLICE:
        return view.types[0] == view.inputs[0].type and set(view.attributes["steps"]) <= {1}
    return view.primitive is views.RESHAPE


def window(value: Value, cells: dict[Value, Cell]) -> Cell | None:
    """A cell for a result that an eager array would share its memory with an operand for.

    `cells` are those of the operands, by their values.
    """
    path: list[Node] = []
    base = value
    while base not in cells and isinstance(base.node.primitive, View):
        path.insert(0, base.node)
        (base,) = base.node.inputs
    if base not in cells:
        return None
    below = cells[base]
    root, whole = below.base or below, (*below.path, *path)
    return Cell(value, root, whole) if _is_window(root, whole) else None


def _is_window(root: Cell, path: tuple[Node, ...]) -> bool:
    """Whether strides can express the views, so that the memory is shared and not copied."""
    moves = [v.move(node) for node in path if isinstance(v := node.primitive, View)]
    return moved(root.layout or Strided.contiguous(root.value().shape), moves) is not None


def _put(base: Value, path: tuple[Node, ...], value: Value) -> Value:
    """`base` with what the views of `path` show replaced by `value`."""
    if not path:
        return value
    first, *rest = path
    inside = _put(views.again(first, base), tuple(rest), value)
    primitive = first.primitive
    if primitive is views.RESHAPE:
        return views.reshape(inside, base.shape)
    if primitive is views.TRANSPOSE:
        axes = first.attributes["axes"]
        return views.transpose(inside, tuple(axes.index(a) for a in range(len(axes))))
    if primitive is views.SLICE:
        whole = ((0,) * base.ndim, (1,) * base.ndim)
        part = (first.attributes["starts"], first.attributes["steps"])
        parts = (base, inside)
        return apply(ASSEMBLE, parts, base.type, places=(whole, part), filled=False)
    raise CaptureError(
        f"an array is written to through a view made by {primitive.name}, which a program cannot "
        "follow. Write into a copy."
    )
