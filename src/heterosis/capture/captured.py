"""What a capture gives: a program, what it is fed, and what its results are for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from heterosis.capture.guards import Guards
from heterosis.capture.memory import Cell
from heterosis.capture.open_sizes import Conditions
from heterosis.capture.printing import Prints
from heterosis.ir import views
from heterosis.ir.calls import Call
from heterosis.ir.program import INPUT, Node, Program, Value, apply, may_fail
from heterosis.ir.traced_sizes import TracedFloat
from heterosis.ir.types import TensorType
from heterosis.ops.record import REGISTRY, Record
from heterosis.runtime.errors import CaptureError


@dataclass(frozen=True)
class Argument:
    """An array among the arguments, by its position among all arrays there."""

    position: int


@dataclass(frozen=True, eq=False)
class Outside:
    """An array that the function found outside: whatever it holds when the program runs."""

    array: Any


@dataclass(frozen=True, eq=False)
class Enclosing:
    """An array that a program inside of the captured one takes from there."""

    array: Any


@dataclass(frozen=True)
class RandomKey:
    """A number drawn anew for every run."""


@dataclass(frozen=True)
class RandomState:
    """What the random keys of branches and loops, and all behind them, follow from."""


Undo = Callable[[], None]


class Supply:
    """Numbers that Python computes anew before every run: those of all `make()`, one after another.

    Capturing has made them once already; these are for the first run. Who counts updates as it
    makes them says how to take that back: the capture may come to nothing, and a run may fail.
    """

    def __init__(self) -> None:
        self._make: list[Callable[[], Sequence[float]]] = []
        self._counters: list[Callable[[], Undo | None]] = []
        self.first: list[float] = []
        self.undo: list[Undo | None] = []  # of what was counted for the first run; None if nothing

    def add(self, make: Callable[[], Sequence[float]], first: Sequence[float]) -> range:
        """More numbers: their positions."""
        self._make.append(make)
        self.first += first
        return range(len(self.first) - len(first), len(self.first))

    def count_from(self, counter: Callable[[], Undo | None]) -> None:
        """Know of a counter of updates, which has not counted yet."""
        self._counters.append(counter)
        self.undo.append(counter())

    def before_counting(self) -> list[Undo | None]:
        """What takes back what `numbers()` will count."""
        return [counter() for counter in self._counters]

    def __len__(self) -> int:
        return len(self.first)

    def __bool__(self) -> bool:
        return bool(self._make)  # which may change something, and give no number

    def numbers(self) -> list[float]:
        """The numbers for another run."""
        found = [number for make in self._make for number in make()]
        if len(found) != len(self.first):
            raise CaptureError(
                f"the program was captured with {len(self.first)} numbers that Python supplies, "
                f"and now there are {len(found)}: a setting of the optimizer has come or gone "
                "since. Hybridize the training step again."
            )
        return found


def take_back(undo: Sequence[Undo | None]) -> None:
    """Let all that have counted forget it, the last one first."""
    for one in reversed(undo):
        if one is not None:
            one()


@dataclass(frozen=True)
class Supplied:
    """One of the numbers that Python supplies, by position."""

    position: int


@dataclass(frozen=True)
class OfSizes:
    """A float that follows from open extents: computed once for each of their sizes."""

    number: TracedFloat


Source = Argument | Outside | Enclosing | RandomKey | RandomState | Supplied | OfSizes


@dataclass(frozen=True)
class Computed:
    """A result of the program, by position."""

    position: int


@dataclass(frozen=True, eq=False)
class Made:
    """A result that is an object of Python's, which every call makes anew: its callers may change
    what they are given."""

    example: Any
    kept: tuple[Any, ...] = ()  # what it refers to that was there before, and is no part of it

    def again(self, made: dict[int, Any]) -> Any:
        """One more; of what one call has `made`, by the ids of examples, each is made once."""
        if not made:
            made.update((id(one), one) for one in self.kept)
        return copy.deepcopy(self.example, made)


@dataclass(frozen=True)
class GivenContainer:
    """A list or a dictionary among the arguments, by its position among all of these."""

    position: int


@dataclass(frozen=True, eq=False)
class OutsideContainer:
    """A list or a dictionary that the function found outside."""

    container: Any


@dataclass(frozen=True, eq=False)
class Window:
    """A result that shares the memory of `base`, another one or an array from outside: what the
    views of `path` show of it, which is `value` in the program. Of a recorded call, gradients flow
    from it as from a result that is it `alone`."""

    base: Source | Computed
    whole: TensorType  # of the base
    path: tuple[Node, ...]
    value: Value
    alone: Computed | None = None

    def program(self) -> Program:
        """What makes it of its base."""
        shown = whole = apply(INPUT, (), self.whole)
        for node in self.path:
            shown = views.again(node, shown)
        return Program((whole,), (shown,), "view")


@dataclass(frozen=True)
class Step:
    """One call that the function has made, and the arrays that it was made with."""

    call: Call
    cells: tuple[Cell | None, ...]  # the arrays among the operands, as they were handed in
    made: tuple[Cell, ...]  # the arrays of the results
    in_place: bool  # whether these were there before, and written to

    @property
    def record(self) -> Record:
        return REGISTRY[self.call.operation]


@dataclass(frozen=True)
class Region:
    """What a branch, a body or a condition does."""

    given: tuple[Cell, ...]  # what each turn hands it
    around: dict[Cell, Cell]  # what it takes from around, by its own cells
    steps: list[Step]
    controls: list[ControlStep]
    result: list[Any]  # cells of its arrays, numbers and fillers


@dataclass(frozen=True)
class ControlStep:
    """A choice or a loop that the function has made, which `steps` from `first` to `last` are."""

    kind: str
    first: int
    last: int
    given: dict[str, list[Any]]  # cells of arrays, and numbers
    regions: dict[str, Region]
    made: tuple[Cell, ...]  # the arrays of the results


@dataclass(frozen=True)
class Write:
    """A result that goes into an array from outside; `recorded`, so that gradients flow into it."""

    source: Source
    position: int
    recorded: bool


@dataclass(frozen=True)
class Recorded:
    """What a function records by itself: the inputs that gradients from its results go to."""

    goals: dict[int, frozenset[int]]  # by result

    @property
    def inputs(self) -> frozenset[int]:
        """All that gradients go to."""
        return frozenset().union(*self.goals.values())


@dataclass(frozen=True)
class Printed:
    """What a run prints, and the positions of the results that are shown; those from number `alone`
    on are results for that reason alone."""

    prints: Prints
    positions: list[int]
    alone: int

    def __bool__(self) -> bool:
        return bool(self.prints)

    def show(self, results: Sequence[Any]) -> None:
        """Print it."""
        self.prints.show([results[i] for i in self.positions])


@dataclass
class Captured:
    """A program with what it is fed, and what its results are for."""

    program: Program
    sources: list[Source]  # one for each input of the program
    result: Any  # what the function returns, with `Computed` and sources in place of arrays
    shared: Any  # the same, where lists and dictionaries that the caller knows stand for themselves
    writes: list[Write]
    guards: Guards  # what else it was made of
    supply: Supply
    steps: list[Step]
    controls: list[ControlStep]
    entangled: frozenset[int]  # storages of arguments that the function knows from outside too
    returned: Any  # `result` with the arrays' cells
    recorded: Recorded | None  # None if the function records nothing by itself
    drawn: int | Computed  # keys drawn from `RandomState`; or the state behind, where arrays decide
    printed: Printed
    checks: int | None  # the result that there is if all holds that the function asserts of arrays
    conditions: Conditions | None = None  # for which extents it holds, if some stay open

    def position(self, array: Source) -> int:
        """Which input of the program an array is."""
        return self._positions[array]

    @cached_property
    def _positions(self) -> dict[Source, int]:
        arrays = Argument | Outside | Enclosing
        return {one: i for i, one in enumerate(self.sources) if isinstance(one, arrays)}

    @cached_property
    def waits(self) -> bool:
        """Whether a call waits for the run: that may raise, and then the call does what an
        imperative one does before the error."""
        tells = bool(self.writes) or bool(self.printed)
        return self.checks is not None or (tells and may_fail(self.program))

    def leaves_record(self) -> bool:
        """Whether gradients flow from what a run leaves behind though nobody records it."""
        return self.recorded is not None and bool(self.recorded.goals)
