"""The capture of a branch or a body: a program inside of the captured one.

An array that it takes from around it is an operand; what it writes there in place is a result more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from heterosis import _core
from heterosis.capture.active import active
from heterosis.capture.captured import Enclosing, Outside, Region, Source
from heterosis.capture.memory import Cell
from heterosis.capture.same_views import overlap, place
from heterosis.capture.trace import Trace, inside
from heterosis.capture.tries import caught, handler_of
from heterosis.ir import views
from heterosis.ir.calls import needed
from heterosis.ir.program import INPUT, Program, Value, apply, checked, constant
from heterosis.ir.types import TensorType
from heterosis.ops.record import as_value
from heterosis.ops.rules import cast
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray


# What their text says all of.
PLAIN = (bool, int, float, complex, str, bytes, type(None), slice, range, type, numpy.generic)


@dataclass(frozen=True)
class Filler:
    """Zeros of a type, for a result that nobody will look at."""

    type: TensorType


class Inner(Trace):
    """The capture of a program inside of what `outer` captures."""

    def __init__(self, outer: Trace, name: str):
        super().__init__(name, outer.guards)
        self.outer = outer
        # Around it: what is recorded then is the choice or the loop.
        self.recorded = modes.is_recording()
        self.scope, self.rewriting = outer.scope, outer.rewriting
        self.line = user_line()
        # The inputs that turns are given, by the storages of their stand-ins.
        self.given: dict[int, Value] = {}
        self.around: dict[Cell, Cell] = {}  # cells there, by those here
        self._here: dict[Cell, Cell] = {}  # the other way round: one for all arrays of a memory
        self.filled: dict[int, list[Any]] = {}  # what a turn appends, by the ids of the lists
        self.result: Any = None
        self.fails = False  # whether nothing comes behind it, since it raises

    def run(self, function: Callable[..., Any], *arguments: Any) -> Inner:
        """Capture what `function` does."""
        self.result = inside(self, function, arguments)
        if self.error is not None:
            one = handler_of(self.outer, type(self.error))
            raise self.error if one is None else caught(type(self.error), one)
        return self

    def read(self, array: Any) -> None:
        """The elements of an array are about to be read by Python: those of an array from around
        as they could be there, which may have been computed or written to."""
        if array._storage_id in self.cells:
            super().read(array)
        else:
            self.outer.read(array)

    def explained(self, error: Exception) -> Exception:
        """What the function raised; of one that calls itself for ever, why it does."""
        if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
            return CaptureError(
                f"{self.name} at {self.line}: a function calls itself in a branch or a loop that "
                "arrays decide, and so does every call: all branches are captured, and there is no "
                "end. Write a while loop, or let a number of Python's say how deep it goes."
            )
        found = super().explained(error)
        # Python 3.10 has no notes.
        if found is error and hasattr(error, "add_note") and not hasattr(error, "__notes__"):
            error.add_note(
                f"  Raised while a branch, or a turn, at {self.line} was captured, which arrays "
                "decide: all of them are captured, also those that no call comes to."
            )
        return found

    @property
    def outermost(self) -> Trace:
        """The capture that this one is, in the end, a part of."""
        return self.outer.outermost

    def line_of(self, leaf: Any) -> str:
        """The user's line that has made an array; nothing, for what no operation has made here."""
        trace: Trace = self
        while isinstance(leaf, ndarray):
            cell = trace.cells.get(leaf._storage_id)
            value = cell and cell.value()
            found = next((c.line for c in reversed(trace.calls) if value in c.results), "")
            if found or not isinstance(trace, Inner):
                return found
            trace = trace.outer
        return ""

    def made_alone(self, container: Any) -> bool:
        """Whether a container was made here, and is known by no name but the one that hands it
        on."""
        names = sum(one is container for one in containers_in(self.result))
        return id(container) in self.made_here and names == 1

    def is_written(self, stand_in: Any) -> bool:
        """Whether what a turn is given is written to in place."""
        return self.cells[stand_in._storage_id].writes > 0

    def parameter(self, type_: TensorType) -> Any:
        """A stand-in for what each turn is given."""
        value = apply(INPUT, (), type_)
        made = self.array(Cell(value))
        self.given[made._storage_id] = value
        return made

    def inputs_for(self, stand_ins: Iterable[Any]) -> list[Value]:
        """The inputs that stand-ins began with."""
        return [self.given[array._storage_id] for array in stand_ins]

    # -- what is around -----------------------------------------------------------------------

    def cell(self, array: Any) -> Cell:
        """Where the value of an array is; those from around become inputs."""
        found = self.cells.get(array._storage_id)
        if found is None:
            found = self._from_around(array)
            self._hold(array, found)
        elif isinstance(found.source, Enclosing) and not self._is_shown(array, found):
            if found.writes:
                raise overlap(found.value(), array)
            return self._from_around(array)
        return found

    def _is_shown(self, array: Any, cell: Cell) -> bool:
        """Whether an array from around has the value of a cell: it came from it, or from another
        array that was found to be the same memory."""
        assert isinstance(cell.source, Enclosing)
        source = cell.source.array
        if source._storage_id == array._storage_id:
            return place(source) == place(array)
        return self.outer.cell(array) is self.around[cell]

    def _from_around(self, array: Any) -> Cell:
        outer = self.outer.cell(array)
        if outer not in self._here:
            self._here[outer] = self._seen(array, outer)
            self.around[self._here[outer]] = outer
        return self._here[outer]

    def _seen(self, array: Any, outer: Cell) -> Cell:
        if outer.base is None:
            value = self.input_of(array)
            source = next(source for one, source in self.inputs if one == value)
            return Cell(value, source=source, layout=outer.layout)
        base = self.cell(self.outer.shown(outer.base))
        value = base.value()
        for node in outer.path:
            value = views.again(node, value)
        return Cell(value, base=base, path=outer.path)

    def key(self) -> Value:
        """A random key: the state that it follows from is written to, as any array from around."""
        return self.drawn_key(self.needed_random_state())

    def needed_random_state(self) -> Any:
        """That of the whole capture."""
        return self.outer.needed_random_state()

    def _number(self, dtype: str, source: Source) -> Value:
        raise CaptureError(
            f"{self.name}: numbers that Python supplies for every run, as an optimizer's rate, "
            "cannot be used within a branch or a loop. Let the optimizer step outside of it."
        )

    def supplied(self, make: Callable[[], Sequence[float]], first: Sequence[float]) -> list[Any]:
        """Refuse an optimizer, which has counted an update."""
        self.outermost.has_stepped = True
        return super().supplied(make, first)

    def need_tape(self) -> None:
        """Refuse what asks for gradients: who records is around."""
        raise CaptureError(
            f"{self.name}: gradients are asked for within a branch or a loop that is a part of a "
            "program. Call backward() or autograd.grad() around it."
        )

    def _record(self, *given: Any) -> None:
        raise CaptureError(
            f"{self.name}: operations are recorded within a branch or a loop that is a part of a "
            "program. Record around the choice or the loop instead."
        )

    # -- the program --------------------------------------------------------------------------

    @property
    def taken(self) -> list[Any]:
        """The arrays from around."""
        return [source.array for _, source in self.inputs if isinstance(source, Enclosing)]

    def written(self) -> list[Any]:
        """Those of them that are written to."""
        sources = (cell.source for cell in self.written_cells())
        return [source.array for source in sources if isinstance(source, Enclosing)]

    def region(self, given: Iterable[Any], result: Iterable[Any]) -> Region:
        """What it does with `given`, to give `result`."""
        cells = tuple(map(self.cell, given))
        return Region(cells, self.around, self.steps, self.controls, described(self, result))

    def value_of(self, leaf: Any) -> Value:
        """A result as a value: an array's, or a number."""
        if isinstance(leaf, ndarray):
            return self.cell(leaf).value()
        if isinstance(leaf, Filler):
            return views.broadcast(cast(constant(0, "bool"), leaf.type.dtype), leaf.type.shape)
        value = as_value(self.name, leaf) if isinstance(leaf, bool | int | float) else None
        if value is None:
            raise _no_result(self, leaf)
        return value

    def input_of(self, array: Any) -> Value:
        """The input that holds what an array from around does; a new one, if it is not taken."""
        for value, source in self.inputs:
            if isinstance(source, Enclosing) and place(source.array) == place(array):
                return value
        return self._input(Enclosing(array), self.outer.cell(array).value().type)

    def program(self, inputs: Iterable[Value], outputs: Iterable[Value]) -> Program:
        """The program that gives `outputs`."""
        results = tuple(outputs)
        calls = needed(self.calls, results)
        return checked(Program(tuple(inputs), results, self.name, calls))


def _no_result(trace: Inner, leaf: Any) -> CaptureError:
    return CaptureError(
        f"{trace.name}, {trace.line}: what depends on arrays, which are not known yet, gives an "
        f"object of type {type(leaf).__name__}; expected arrays and numbers alone."
    )


def is_open(value: Any) -> bool:
    """Whether it is an array that has no elements while the function is captured."""
    if not isinstance(value, ndarray) or not modes.is_capturing():
        return False
    trace = active()
    while True:
        cell = trace.cells.get(value._storage_id)
        if cell is not None and not (isinstance(cell.source, Outside) and not cell.writes):
            return True
        if not isinstance(trace, Inner):
            return trace.merged_with(value) is not None
        trace = trace.outer


def without(arrays: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    left_out = {place(array) for array in others}
    return [array for array in united(arrays) if place(array) not in left_out]


def united(*groups: Iterable[Any]) -> list[Any]:
    """Arrays of all groups, each once."""
    found = {place(array): array for group in groups for array in group}
    return list(found.values())


def described(trace: Trace, leaves: Iterable[Any]) -> list[Any]:
    """Leaves with the cells of arrays in place of these."""
    return [trace.cell(leaf) if isinstance(leaf, ndarray) else leaf for leaf in leaves]


# -- what may be one array -------------------------------------------------------------------------


def note_chosen(branch: Inner, leaf: Any, made: Any) -> None:
    """Remember that a result may be the very array from around that a branch hands on."""
    for cell in branch.may_be(leaf) if isinstance(leaf, ndarray) else ():
        if isinstance(cell.source, Enclosing):
            note_one(branch.outer, cell.source.array, made)


def note_shared(branch: Inner, leaves: Iterable[Any], made: Iterable[Any]) -> None:
    """Remember that results may be one array, where a branch or a turn gives one for both."""
    known: list[tuple[set[Cell], Any]] = []
    for leaf, array in zip(leaves, made, strict=True):
        if isinstance(leaf, ndarray) and not branch.stands_for_number(leaf):
            cells = {*branch.may_be(leaf)}
            for others, other in known:
                if cells & others:
                    note_one(branch.outer, array, other)
            known.append((cells, array))


def containers_in(tree: Any) -> Iterator[Any]:
    """Lists and dictionaries, as often as there is a place for them."""
    if isinstance(tree, list | dict):
        yield tree
    if isinstance(tree, dict | list | tuple):
        for item in tree.values() if isinstance(tree, dict) else tree:
            yield from containers_in(item)


def note_one(outer: Trace, one: Any, other: Any) -> None:
    """Remember that two arrays may be one."""
    first, second = outer.cell(one), outer.cell(other)
    outer.chosen.append((first.base or first, second.base or second))
