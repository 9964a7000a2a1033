"""Guards: what a captured program was made of besides its arrays, and whether it still is so.

Numbers, attributes, items of lists and dictionaries, and the elements of NumPy arrays become
constants of a program. Whatever the captured function can read of this kind is noted as it was when
the capture began, and the core compares it before every run. What the function changed itself
while it was captured differs from then on, so that the next call captures anew: it sees the
change, as an eager call would.
"""

from __future__ import annotations

import reprlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from types import CellType, FunctionType
from typing import Any
from weakref import ReferenceType

import numpy

from heterosis import _core
from heterosis.capture.reach import BUFFERS, Contents, Namespace, Reach
from heterosis.runtime import modes

# What `_core.Guards` takes: a kind, a place, and what was there.
Row = tuple[Any, ...]
_MISSING = object()


class Guards:
    """All that one program depends on."""

    def __init__(self, roots: Iterable[tuple[str, Any]]):
        reach = Reach(roots)
        self._names = frozenset(reach.attributes)
        self.decides = reach.decides  # whether values may decide what users' code does
        self.users = reach.users
        self._outside = reach.outside()  # known until the capture ends
        self._rows: dict[Hashable, tuple[str, Row]] = {}  # with a path that users understand
        self._late: dict[Hashable, Namespace | Contents] = {}  # noted when the capture ends
        self.read_storages: set[int] = set()  # of our arrays whose elements Python has read
        places: list[Namespace | Contents] = [*reach.namespaces, *reach.contents]
        for place in places:
            if place.is_ours:
                self._late[type(place), id(place.place)] = place
            else:
                self._note(place)
        for name, cell in reach.cells:
            self._rows[CellType, id(cell)] = (name, ("cell", cell, *_contents(cell)))
        for path, function in reach.functions:
            parts = (function.__code__, function.__defaults__, function.__kwdefaults__)
            self._rows[FunctionType, id(function)] = (path, ("function", function, parts))
        for path, value in reach.classes:
            row = ("class", _weakly(value), type(value))
            self._rows[type, id(value)] = (f"the class of {path}", row)
        for path, reference in reach.references:
            leads = reference() is not None
            self._rows[ReferenceType, id(reference)] = (path, ("reference", reference, leads))
        for slot in reach.slots.values():
            row = ("slot", slot.place, slot.name, *_in_slot(slot.place, slot.name))
            self._rows[slot.name, id(slot.place)] = (slot.path, row)
        self._native: Any = None

    def _note(self, place: Namespace | Contents) -> None:
        if isinstance(place, Contents):
            row = _contents_row(place.place)
            if isinstance(place.place, OrderedDict):  # whose order is no part of the dictionary
                order = ("sequence", place.place, list(place.place))
                self._rows[OrderedDict, id(place.place)] = (place.path, order)
            if row[0] == "buffer" and row[1] is not place.place:  # a view, which keeps its shape
                self._note_kind(place.path, place.place)
        else:
            pairs = [(name, *place.look_up(name)) for name in place.found]
            names = frozenset() if place.is_global else self._names
            row = ("namespace", place.place, pairs, names)
        self._rows[type(place), place.is_ours, id(place.place)] = (place.path, row)

    def _note_kind(self, path: str, array: Any) -> None:
        for name in ("shape", "dtype"):
            row = ("slot", array, name, getattr(array, name))
            self._rows[name, id(array)] = (f"{path}.{name}", row)

    # -- while the function is captured -----------------------------------------------------------

    def add_outside(self, objects: Iterable[Any]) -> None:
        """Know more objects that were there before the capture."""
        self._outside |= {id(one): one for one in objects}

    def is_outside(self, value: Any) -> bool:
        """Whether an object, or a variable, was there before the capture, as far as is known."""
        return id(value) in self._outside

    def depend_on(self, value: Any, *names: str) -> None:
        """Let the program depend on attributes, as they are when the capture ends."""
        made = Namespace(type(value).__name__, vars(value), is_ours=True, is_global=True)
        namespace = self._late.setdefault((Namespace, id(vars(value))), made)
        assert isinstance(namespace, Namespace)
        namespace.found.update(dict.fromkeys(names, ()))

    def depend_on_all(self, value: Any) -> None:
        """The same for all attributes, if the walk has not come to the object."""
        key = id(vars(value))
        known = (Namespace, False, key) in self._rows or (Namespace, key) in self._late
        if not known:
            self.depend_on(value, *(name for name in vars(value) if not name.startswith("_")))

    def depend_on_place(self, array: Any, source: Any) -> None:
        """Let the program depend on the place of an array in the tape: whether it is a variable,
        and where its gradient goes."""
        row = ("slot", array, "_autograd", source)
        self._rows["_autograd", id(array)] = ("attach_grad of an array", row)

    def read(self, array: Any) -> None:
        """Let the program depend on the elements of one of our arrays."""
        with modes.switched(capturing=False):
            bits = _core.reinterpret(array, "float16") if array.dtype == "bfloat16" else array
            elements = numpy.asarray(memoryview(bits)).tobytes()
        self.read_storages.add(array._storage_id)
        key = (array._storage_id, array._offset, array.shape, array._element_strides)
        self._rows[key] = ("an array's elements", ("array", bits._alias(), elements))

    def finish(self) -> None:
        """Note what capturing changes by itself."""
        for place in self._late.values():
            self._note(place)
        self._native = _core.Guards([row for _, row in self._rows.values()])
        self._outside = {}

    # -- afterwards -------------------------------------------------------------------------------

    @property
    def native(self) -> Any:
        """What the core compares."""
        return self._native

    def holds(self) -> bool:
        """Whether all is as it was."""
        return bool(self._native.holds())

    def changes(self) -> Iterator[str]:
        """What has changed, for people."""
        for path, row in self._rows.values():
            yield from _changes(path, row)


def _contents(cell: CellType) -> list[Any]:
    """What a variable of an enclosing function holds, if it has been set."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _weakly(value: Any) -> Any:
    """A weak reference to an object; itself, if it takes none."""
    try:
        return ReferenceType(value)
    except TypeError:
        return value


def _in_slot(place: Any, name: str) -> list[Any]:
    """What an attribute is, if it has been set."""
    found = getattr(place, name, _MISSING)
    return [] if found is _MISSING else [found]


def _contents_row(place: Any) -> Row:
    if isinstance(place, dict):
        return ("dict", place, list(dict.items(place)))  # in the order of the dictionary itself
    if isinstance(place, list) or not isinstance(place, BUFFERS):
        return ("sequence", place, list(place))
    exported = _exportable(place)
    return ("buffer", exported, memoryview(exported).tobytes())


def _exportable(source: Any) -> Any:
    """`source`, or a view of it whose element type the buffer protocol has a name for."""
    try:
        memoryview(source)
    except (TypeError, ValueError, BufferError):  # dates, and types that extend NumPy
        return source.view(f"u{source.dtype.itemsize}")
    return source


def _changes(path: str, row: Row) -> Iterator[str]:
    """What has changed of one row."""
    kind, place, *was = row
    if kind == "namespace":
        now = Namespace(path, place)
        for name, *before in was[0]:
            yield from _change(f"{path}.{name}" if path else name, before, now.look_up(name))
        missing = now.among(was[1]) - {name for name, *_ in was[0]}
        yield from (f"{path}.{name} (did not exist)" for name in missing)
    elif kind == "dict":
        for key in dict(was[0]) | place:
            before = [dict(was[0])[key]] if key in dict(was[0]) else []
            yield from _change(f"{path}[{key!r}]", before, [place[key]] if key in place else [])
    elif kind == "cell":
        yield from _change(path, was, _contents(place))
    elif kind == "slot":
        yield from _change(path, was[1:], _in_slot(place, was[0]))
    elif kind == "sequence" and len(place) == len(was[0]):
        for i, (before, after) in enumerate(zip(was[0], place, strict=True)):
            yield from _change(f"{path}[{i}]", [before], [after])
    elif not _core.Guards([row]).holds():
        yield f"{path} (its elements)" if kind in ("sequence", "buffer") else path


def _change(path: str, before: Iterable[Any], now: Iterable[Any]) -> Iterator[str]:
    before, now = list(before), list(now)
    same = len(before) == len(now) and all(
        a is b or (type(a) is type(b) and isinstance(a, int | float | str | tuple) and a == b)
        for a, b in zip(before, now, strict=False)
    )
    if not same:
        shown = [reprlib.repr(*values) if values else "nothing" for values in (before, now)]
        yield f"{path} ({shown[0]} before, {shown[1]} now)"
