"""Where values stand in memory, seen through views: questions and answers, nothing is changed.

A *place* is where a value stands, a *room* where one is to be written. A view of what has a place
has a place too, wherever strides can say how.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, TypeAlias

from heterosis.backends.native.codegen.kernel import Place
from heterosis.ir import views
from heterosis.ir.primitives.families import Assemble, Opaque, Scan, Scatter, View
from heterosis.ir.program import Value
from heterosis.ir.strided import Strided, moved
from heterosis.ir.views import RESHAPE

Places: TypeAlias = Mapping[Value, Place]

_WRITES_WHOLE = Opaque | Assemble | Scatter | Scan  # kinds with kernels of their own


def found(value: Value, places: Places) -> Place | None:
    """Where `value` stands if it is a view of what has a place, and strides can say how."""
    base, moves = views.unviewed(value, places)
    place = places.get(base)
    strided = moved(place.strided, moves) if place else None
    return Place(place.buffer, place.dtype, strided) if place and strided else None


def is_shown(value: Value, base: Value, strided: Strided) -> bool:
    """Whether strides can say where `value` stands, a view of `base`, if that lies so."""
    _, moves = views.unviewed(value, (base,))
    return moved(strided, moves) is not None


def stands(value: Value, room: Place, places: Places) -> bool:
    """Whether `value` has been computed into `room`."""
    place = found(value, places)
    return place is not None and _are_same(place, room)


def _are_same(a: Place, b: Place) -> bool:
    """Whether two places of one shape hold the same elements in the same order."""
    x, y = a.strided, b.strided
    apart = zip(x.shape, x.strides, y.strides, strict=True)
    same = all(n == 1 or s == t for n, s, t in apart)
    return (a.buffer, a.dtype, x.offset) == (b.buffer, b.dtype, y.offset) and same


# -- writing a view -------------------------------------------------------------------------------


def in_own_shape(value: Value, room: Place, places: Places) -> tuple[Value, Place]:
    """A reshaped value in the shape that it is computed in, and its room in that shape."""
    while value.node.primitive is RESHAPE and value not in places:
        (base,) = value.node.inputs
        strided = room.strided.reshape(base.shape)
        if strided is None:
            break
        value, room = base, Place(room.buffer, room.dtype, strided)
    return value, room


def seen_through(value: Value, room: Place, places: Places) -> tuple[Value, Place]:
    """What a rearranged value is made of, where a kernel of its own can write that as it will
    stand."""
    base, inside = unviewed(value, room, places)
    if base in places or not isinstance(base.node.primitive, _WRITES_WHOLE):
        return value, room
    return base, inside


def unviewed(value: Value, room: Place, places: Places) -> tuple[Value, Place]:
    """What `value` is a view of, and where that has to stand for `value` to stand in `room`."""
    base, strided = beneath(value, room.strided, places)
    return base, Place(room.buffer, room.dtype, strided)


def beneath(value: Value, strided: Strided, places: Container[Value] = ()) -> tuple[Value, Strided]:
    """What `value` is a view of, and how that has to lie for `value` to lie so."""
    base, own = value, strided
    while isinstance(base.node.primitive, View) and base not in places:
        name, arguments = base.node.primitive.move(base.node)
        base = base.node.inputs[0]
        before = _undone(own, name, arguments, base.shape)
        if before is None:
            return value, strided
        own = before
    return base, own


def _undone(
    strided: Strided, name: str, arguments: tuple[Any, ...], shape: tuple[int, ...]
) -> Strided | None:
    """Where a value of `shape` stands if it stands at `strided` once rearranged."""
    if name == "reshape":
        return strided.reshape(shape)
    if name == "transpose":
        (axes,) = arguments
        return strided.transpose(tuple(axes.index(a) for a in range(len(axes))))
    return None


# -- parts ----------------------------------------------------------------------------------------


def parts(value: Value, room: Place) -> Iterator[tuple[Value, Place]]:
    """The values that an assembled one is made of, and where in `room` they stand."""
    values = value.node.inputs[bool(value.node.attributes["filled"]) :]
    for part, (starts, steps) in zip(values, value.node.attributes["places"], strict=True):
        strided = room.strided.slice(starts, steps, part.shape)
        yield part, Place(room.buffer, room.dtype, strided)
