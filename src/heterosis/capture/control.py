"""Choices and loops in a capture: branches and bodies become programs inside of the captured one.

Each is captured by a trace of its own. An array that it takes from around it is an operand; what it
writes there in place is a result more, which is written behind the choice or the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heterosis import _core, np
from heterosis.capture import trees
from heterosis.capture.captured import ControlStep, Enclosing, Region, Source
from heterosis.capture.memory import Cell
from heterosis.capture.trace import Trace, active, inside, noting, overlap, place
from heterosis.ir import views
from heterosis.ir.calls import needed
from heterosis.ir.program import INPUT, Program, Value, apply, checked, constant
from heterosis.ir.types import TensorType
from heterosis.ops.array.creation import zeros
from heterosis.ops.control.capturing import check_unbounded, set_capture
from heterosis.ops.control.flow import conditional, scan
from heterosis.ops.control.flow import while_loop as repeated
from heterosis.ops.math.cast import assign
from heterosis.ops.record import as_users_call, as_value
from heterosis.ops.rules import cast, result_type
from heterosis.runtime import modes
from heterosis.runtime.errors import CaptureError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray
_assign = as_users_call(assign)


class StateError(CaptureError):
    """A state is of another type behind a turn."""

    def __init__(self, position: int, found: TensorType, message: str):
        super().__init__(message)
        self.position, self.shape, self.dtype = position, found.shape, found.dtype


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
        self.filled: dict[int, list[Any]] = {}  # what a turn appends, by the ids of the lists
        self.result: Any = None
        self.fails = False  # whether nothing comes behind it, since it raises

    def run(self, function: Callable[..., Any], *arguments: Any) -> Inner:
        """Capture what `function` does."""
        self.result = inside(self, function, arguments)
        if self.error is not None:
            raise self.error
        return self

    def explained(self, error: Exception) -> Exception:
        """What the function raised; of one that calls itself for ever, why it does."""
        if isinstance(error, RecursionError) or isinstance(error.__cause__, RecursionError):
            return CaptureError(
                f"{self.name} at {self.line}: a function calls itself in a branch or a loop that "
                "arrays decide, and so does every call: all branches are captured, and there is no "
                "end. Write a while loop, or let a number of Python's say how deep it goes."
            )
        return super().explained(error)

    @property
    def outermost(self) -> Trace:
        """The capture that this one is, in the end, a part of."""
        return self.outer.outermost

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
            found = self.cells[array._storage_id] = self._from_around(array)
            self.held.append(array)
        elif isinstance(found.source, Enclosing) and place(found.source.array) != place(array):
            if found.writes:
                raise overlap(found.value(), array)
            return self._from_around(array)
        return found

    def _from_around(self, array: Any) -> Cell:
        outer = self.outer.cell(array)
        found = self._seen(array, outer)
        self.around[found] = outer
        return found

    def _seen(self, array: Any, outer: Cell) -> Cell:
        if outer.base is None:
            value = self._input(Enclosing(array), outer.value().type)
            return Cell(value, source=self.inputs[-1][1], layout=outer.layout)
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
        sources = (cell.source for cell in self._written())
        return [source.array for source in sources if isinstance(source, Enclosing)]

    def region(self, given: Iterable[Any], result: Iterable[Any]) -> Region:
        """What it does with `given`, to give `result`."""
        cells = tuple(map(self.cell, given))
        return Region(cells, self.around, self.steps, self.controls, _described(self, result))

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


def _without(arrays: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    left_out = {place(array) for array in others}
    return [array for array in _united(arrays) if place(array) not in left_out]


def _united(*groups: Iterable[Any]) -> list[Any]:
    """Arrays of all groups, each once."""
    found = {place(array): array for group in groups for array in group}
    return list(found.values())


# -- what users write ------------------------------------------------------------------------------


class Control:
    """What choices and loops are handed to while a program is captured."""

    def cond(
        self,
        pred: Any,
        then: Callable[[], Any],
        otherwise: Callable[[], Any],
        settle: Callable[[Inner, Inner], None] = lambda first, second: None,
    ) -> Any:
        """What one of two functions gives; `settle` may change their results, which have to have
        one structure."""
        outer = active()
        before = len(outer.steps)
        first, second = branches = (
            Inner(outer, "then").run(then),
            Inner(outer, "otherwise").run(otherwise),
        )
        settle(first, second)
        joined = _Joined(first, second)
        written = _united(*(branch.written() for branch in branches))
        taken = _united(written, *(branch.taken for branch in branches))
        programs = []
        for branch, values in zip(branches, joined.values, strict=True):
            after = [branch.cell(array).value() for array in written]
            programs.append(branch.program(map(branch.input_of, taken), [*values, *after]))
        made = _called(outer, conditional, [as_truth(pred), *taken], len(taken), *programs)
        _write(written, made[len(joined.pairs) :])
        outer.count_drawn(first.drawn if first.drawn == second.drawn else None)
        made = made[: len(joined.pairs)]
        regions = {
            branch.name: branch.region((), leaves)
            for branch, leaves in zip(branches, joined.leaves, strict=True)
        }
        _note_control(outer, "cond", before, {"pred": [pred]}, regions, made)
        for array, pair in zip(made, joined.pairs, strict=True):
            for branch, leaf in zip(branches, pair, strict=True):
                _note_chosen(branch, leaf, array)
        return joined.tree(made)

    def foreach(
        self,
        body: Callable[..., Any],
        rows: Sequence[Any],
        states: Sequence[Any],
        *,
        copies: bool = True,
    ) -> tuple[Any, list[Any]]:
        """What `body(rows, states)` gives besides new states, as rows, and the last states.

        Rows are copies of what each turn gives; unless they are to stand for the arrays themselves.
        """
        return self.scan(body, rows, states, rows[0].shape[0], copies=copies)

    def scan(
        self,
        body: Callable[..., Any],
        rows: Sequence[Any],
        states: Sequence[Any],
        length: int,
        name: str = "foreach",
        *,
        copies: bool = True,
    ) -> tuple[Any, list[Any]]:
        """The same, for so many rows of each."""
        outer = active()
        first = len(outer.steps)
        begun = _States(outer, states)
        turn = Inner(outer, name)
        given = [turn.parameter(_row(outer.cell(array).value().type)) for array in rows]
        before = begun.stand_ins(turn)
        outputs, after = turn.run(body, given, before).result
        begun.check(turn, before, after)
        _check_unwritten(turn, given)
        written = turn.written()
        shared = _without(turn.taken, written)
        leaves = list(trees.leaves(outputs))
        if not copies:
            _check_outputs(turn, [*before, *written], leaves)
        carried = [*turn.inputs_for(before), *map(turn.input_of, written)]
        results = [*_values(turn, after), *_values(turn, written), *_values(turn, leaves)]
        # What was carried into each turn, for the derivative: nobody else asks for it.
        results += carried if modes.is_recording() else []
        inputs = [*carried, *map(turn.input_of, shared), *turn.inputs_for(given)]
        operands = [*begun.arrays, *written, *shared, *rows]
        made = _called(
            outer, scan, operands, len(operands), turn.program(inputs, results),
            len(carried), len(shared), length, False,
        )  # fmt: skip
        _write(written, made[len(before) : len(carried)])
        outer.count_drawn(None if turn.drawn is None else turn.drawn * length)
        rest = made[len(carried) : len(carried) + len(leaves)]
        last = begun.after(turn, before, after, made)
        if length == 0:
            begun.note_untouched(last)
        regions = {"body": turn.region([*given, *before], [*leaves, *after])}
        facts = {"rows": rows, "states": states, "length": [length]}
        _note_control(outer, "scan", first, facts, regions, [*rest, *last])
        waiting = iter(rest)
        return trees.mapped(outputs, lambda leaf: next(waiting)), last

    def while_loop(
        self,
        condition: Callable[..., Any],
        body: Callable[..., Any],
        states: Sequence[Any],
        most: int | None,
        known: Any = None,
    ) -> tuple[Any, list[Any]]:
        """What `body(*states)` gives besides new states, as rows, and the last states; `known` is
        what the condition has said of the first, if it has been asked."""
        if most is None:
            return [], self._repeated(condition, body, states, known)
        return self._bounded(condition, body, states, most)

    def _repeated(
        self,
        condition: Callable[..., Any],
        body: Callable[..., Any],
        states: Sequence[Any],
        known: Any,
    ) -> list[Any]:
        """The last states of a loop that nobody knows the turns of."""
        outer = active()
        first = len(outer.steps)
        begun = _States(outer, states)
        test, turn = Inner(outer, "condition"), Inner(outer, "body")
        asked, before = begun.stand_ins(test), begun.stand_ins(turn)
        holds = _truth(test.run(condition, *asked))
        _check_unwritten(test, asked)
        if test.written():
            return self._asking_within(condition, body, states, known)
        outputs, after = turn.run(body, *before).result
        check_unbounded(None, outputs)
        begun.check(turn, before, after)
        written = turn.written()
        shared = _without([*turn.taken, *test.taken], written)
        around = [*written, *shared]
        programs = [
            trace.program([*trace.inputs_for(given), *map(trace.input_of, around)], results)
            for trace, given, results in (
                (test, asked, [holds]),
                (turn, before, [*_values(turn, after), *_values(turn, written)]),
            )
        ]
        operands = [*begun.arrays, *around]
        many = len(before) + len(written)
        made = _called(outer, repeated, operands, len(operands), *programs, many)
        _write(written, made[len(before) :])
        outer.count_drawn(None if turn.drawn != 0 else 0)
        last = begun.after(turn, before, after, made)
        begun.note_untouched(last)
        regions = {
            "condition": test.region(asked, [test.result]),
            "body": turn.region(before, after),
        }
        _note_control(outer, "while_loop", first, {"states": states}, regions, last)
        return last

    def _asking_within(
        self,
        condition: Callable[..., Any],
        body: Callable[..., Any],
        states: Sequence[Any],
        known: Any,
    ) -> list[Any]:
        """The same where the condition writes to arrays, or draws random numbers: each turn ends
        with it, and hands on what it says."""

        def turn(*before: Any) -> tuple[Any, list[Any]]:
            outputs, after = body(*before[:-1])
            return outputs, [*after, as_truth(condition(*after))]

        first = condition(*map(_as_array, states)) if known is None else known
        states = [*states, as_truth(first)]
        return self._repeated(lambda *given: given[-1], turn, states, None)[:-1]

    def _bounded(
        self,
        condition: Callable[..., Any],
        body: Callable[..., Any],
        states: Sequence[Any],
        most: int,
    ) -> tuple[Any, list[Any]]:
        """The same of a loop that ends after so many turns: those left hand the states on."""

        def turn(_: Any, before: Sequence[Any]) -> tuple[Any, list[Any]]:
            running, *now = before
            outputs: list[Any] = []

            def then() -> Any:
                found, after = body(*now)
                outputs.append(found)
                return found, list(after), as_truth(condition(*after))

            def otherwise() -> Any:
                return trees.mapped(outputs[0], _zeros), now, running

            found, after, again = self.cond(running, then, otherwise)
            return found, [again, *after]

        states = [*map(_as_array, states)]
        first = as_truth(condition(*states))
        outputs, (_, *last) = self.scan(turn, [], [first, *states], most, "while_loop")
        return outputs, last


@dataclass(frozen=True)
class Number:
    """A number that a loop begins with as an array of an element type."""

    number: float
    dtype: str


def _as_array(given: Any) -> Any:
    if isinstance(given, Number):
        return np.array(given.number, dtype=given.dtype)
    return given if isinstance(given, ndarray) else np.array(given)


def as_truth(given: Any) -> Any:
    """Whether something holds, as an array."""
    return _as_array(given).reshape(()).astype("bool")


def _truth(test: Inner) -> Value:
    return cast(views.reshape(test.value_of(test.result), ()), "bool")


def _zeros(leaf: Any) -> Any:
    if not isinstance(leaf, ndarray):
        return type(leaf)(0)
    return as_users_call(zeros)(leaf.shape, leaf.dtype)


def _row(type_: TensorType) -> TensorType:
    return TensorType(type_.shape[1:], type_.dtype)


def _values(trace: Inner, leaves: Iterable[Any]) -> list[Value]:
    return [*map(trace.value_of, leaves)]


def _called(outer: Trace, operation: Any, operands: Sequence[Any], *rest: Any) -> tuple[Any, ...]:
    """The results of an operation of `ops.control` in the capture around: attributes follow the
    number of operands."""
    record = operation.record
    alone = (None,) * (len(record.parameters) - len(rest))
    if not any(_gives(attribute) for attribute in rest):
        return ()
    found = outer.call(record, operands, (*alone, *rest), None)
    return found if isinstance(found, tuple) else (found,)


def _gives(attribute: Any) -> bool:
    return isinstance(attribute, Program) and bool(attribute.outputs)


def _note_control(
    outer: Trace,
    kind: str,
    first: int,
    given: Mapping[str, Iterable[Any]],
    regions: dict[str, Region],
    made: Iterable[Any],
) -> None:
    """Remember what a choice or a loop is, which the steps from `first` on compute."""
    facts = {name: _described(outer, leaves) for name, leaves in given.items()}
    cells = tuple(map(outer.cell, made))
    outer.controls.append(ControlStep(kind, first, len(outer.steps), facts, regions, cells))


def _described(trace: Trace, leaves: Iterable[Any]) -> list[Any]:
    """Leaves with the cells of arrays in place of these."""
    return [trace.cell(leaf) if isinstance(leaf, ndarray) else leaf for leaf in leaves]


def _write(written: Sequence[Any], results: Sequence[Any]) -> None:
    """Write what a choice or a loop has written within."""
    for array, result in zip(written, results, strict=False):
        _assign(result, out=array)


# -- results ---------------------------------------------------------------------------------------


class _Joined:
    """The results of two branches, as values of one type each."""

    def __init__(self, first: Inner, second: Inner):
        self._tree = first.result
        ours, theirs = list(trees.leaves(first.result)), list(trees.leaves(second.result))
        if _structure(first.result) != _structure(second.result):
            raise CaptureError(
                f"the branches of the choice at {first.line} give {_structure(first.result)} and "
                f"{_structure(second.result)}; expected results of one structure from both."
            )
        both = list(zip(ours, theirs, strict=True))
        self._fixed = [_is_fixed(*pair) for pair in both]
        self.pairs = [pair for pair, fixed in zip(both, self._fixed, strict=True) if not fixed]
        self.values: tuple[list[Value], list[Value]] = ([], [])
        for one, other in self.pairs:
            values = _of_one_type(first.line, first.value_of(one), second.value_of(other))
            for found, value in zip(self.values, values, strict=True):
                found.append(value)

    @property
    def leaves(self) -> tuple[list[Any], list[Any]]:
        """What each branch gives, but for what both give alike."""
        return [one for one, _ in self.pairs], [other for _, other in self.pairs]

    def tree(self, arrays: Iterable[Any]) -> Any:
        """What the choice gives, as its branches do."""
        waiting, fixed = iter(arrays), iter(self._fixed)
        return trees.mapped(self._tree, lambda leaf: leaf if next(fixed) else next(waiting))


def _is_fixed(one: Any, other: Any) -> bool:
    """Whether both branches give the same object of Python's."""
    if isinstance(one, ndarray) or isinstance(other, ndarray):
        return False
    return one is other or (type(one) is type(other) and repr(one) == repr(other))


def _of_one_type(line: str, one: Value, other: Value) -> tuple[Value, Value]:
    if one.shape != other.shape:
        raise CaptureError(
            f"the branches of the choice at {line} give arrays of the shapes {one.shape} and "
            f"{other.shape}; expected one shape. np.broadcast_to repeats, np.reshape rearranges."
        )
    dtype = result_type(one, other)
    return cast(one, dtype), cast(other, dtype)


def _structure(tree: Any) -> Any:
    """A tree with words in place of its leaves."""
    return trees.mapped(tree, lambda leaf: "an array" if _is_number(leaf) else type(leaf).__name__)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, ndarray | bool | int | float | Filler)


def _check_unwritten(turn: Inner, given: Iterable[Any]) -> None:
    if any(map(turn.is_written, given)):
        raise CaptureError(
            f"{turn.name} at {turn.line}: a row, or what a condition is given, is written to in "
            "place. What it is a row of would change too: compute a new array instead."
        )


def _check_outputs(turn: Inner, kept: Iterable[Any], outputs: Iterable[Any]) -> None:
    """A row is no array that stays from turn to turn and is written to: in a list that turns append
    to, all rows would be what it holds in the end."""
    cells = map(turn.cell, kept)
    written = {base for cell in cells if (base := cell.base or cell).writes}
    alike = {*written, *(c for pair in turn.chosen if written.intersection(pair) for c in pair)}
    rows = (turn.cell(leaf) for leaf in outputs if isinstance(leaf, ndarray))
    if any((cell.base or cell) in alike for cell in rows):
        raise CaptureError(
            f"{turn.name} at {turn.line}: an output is an array, or a part of one, that turns "
            "write to in place: later turns would change the rows of those before. Give a copy, "
            "np.copy(x)."
        )


class _States:
    """What a loop carries from turn to turn, as it begins."""

    def __init__(self, outer: Trace, given: Sequence[Any]):
        self._outer, self._given = outer, given
        self.arrays = [*map(_as_array, given)]

    def stand_ins(self, turn: Inner) -> list[Any]:
        """What a turn is given."""
        return [turn.parameter(self._outer.cell(array).value().type) for array in self.arrays]

    def check(self, turn: Inner, before: Sequence[Any], after: Sequence[Any]) -> None:
        """A loop carries on what it began with: as many states, of the same types."""
        if len(before) != len(after):
            raise CaptureError(
                f"{turn.name} at {turn.line}: the body gives {len(after)} states; expected "
                f"{len(before)}, as many as it is given."
            )
        written = {array._storage_id for array in turn.written()}
        for i, (state, leaf) in enumerate(zip(self.arrays, after, strict=True)):
            given, found = self._outer.cell(state).value().type, turn.value_of(leaf).type
            if (given.shape, given.dtype) != (found.shape, found.dtype):
                raise StateError(
                    i,
                    found,
                    f"{turn.name} at {turn.line}: state {i} is {given} before a turn and {found} "
                    "behind it; expected one type. Begin with an array of the type that the body "
                    "gives, or convert there with .astype or .reshape.",
                )
            if self._is_array(i) and turn.is_written(before[i]):
                self._check_in_place(turn, i, before[i], leaf)
            elif self._is_array(i) and state._storage_id in written:
                raise CaptureError(
                    f"{turn.name} at {turn.line}: state {i} begins with an array that turns write "
                    "to by another name. Begin with a copy, np.copy(x)."
                )

    def _is_array(self, i: int) -> bool:
        """Whether the state has been an array from the beginning: a number is never written to."""
        return isinstance(self._given[i], ndarray)

    def _check_in_place(self, turn: Inner, i: int, stand_in: Any, leaf: Any) -> None:
        """An array that each turn writes to stays that array, and is known by one name alone."""
        states = [array for j, array in enumerate(self.arrays) if j != i]
        others = {array._storage_id for array in (*turn.taken, *states)}
        if leaf is not stand_in or self.arrays[i]._storage_id in others:
            raise CaptureError(
                f"{turn.name} at {turn.line}: state {i} is written to in place, and is another "
                "array behind the turn, or known there by another name too. Compute a new array "
                "instead, x = x + 1, or write to the same in every turn."
            )

    def after(
        self, turn: Inner, before: Sequence[Any], after: Sequence[Any], made: Sequence[Any]
    ) -> list[Any]:
        """The states behind the loop, of which `made` are the values. Arrays that turns write to
        are there already."""
        found: list[Any] = []
        for i, (stand_in, leaf) in enumerate(zip(before, after, strict=True)):
            if self._is_array(i) and leaf is stand_in and turn.is_written(stand_in):
                _assign(made[i], out=self.arrays[i])
                found.append(self.arrays[i])
                continue
            found.append(made[i])
            _note_chosen(turn, leaf, made[i])
            self._note_handed_on(turn, before, leaf, made[i])
        return found

    def _note_handed_on(self, turn: Inner, before: Sequence[Any], leaf: Any, made: Any) -> None:
        """Remember the states that a result may be, because a turn hands them on."""
        if not isinstance(leaf, ndarray):
            return
        handed_on = turn.may_be(leaf)
        for i, stand_in in enumerate(before):
            if self._is_array(i) and turn.cell(stand_in) in handed_on:
                note_one(self._outer, self.arrays[i], made)

    def note_untouched(self, last: Sequence[Any]) -> None:
        """Remember that the states are behind the loop what they were, if there is no turn."""
        for i, (array, made) in enumerate(zip(self.arrays, last, strict=True)):
            if self._is_array(i) and made is not array:
                note_one(self._outer, array, made)


# -- what may be one array -------------------------------------------------------------------------


def _note_chosen(branch: Inner, leaf: Any, made: Any) -> None:
    """Remember that a result may be the very array from around that a branch hands on."""
    for cell in branch.may_be(leaf) if isinstance(leaf, ndarray) else ():
        if isinstance(cell.source, Enclosing):
            note_one(branch.outer, cell.source.array, made)


def note_one(outer: Trace, one: Any, other: Any) -> None:
    """Remember that two arrays may be one."""
    first, second = outer.cell(one), outer.cell(other)
    outer.chosen.append((first.base or first, second.base or second))


def install() -> None:
    """Let choices and loops be captured."""
    for name in ("cond", "foreach", "while_loop"):
        setattr(Control, name, noting(getattr(Control, name)))
    set_capture(Control())
