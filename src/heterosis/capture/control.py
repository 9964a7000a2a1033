"""Choices and loops in a capture: branches and bodies become programs inside of the captured one.

Each is captured by a trace of its own. An array that it takes from around it is an operand; what it
writes there in place is a result more, which is written behind the choice or the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from heterosis import _core, np
from heterosis.capture import trees
from heterosis.capture.captured import Enclosing, Source
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
        self.filled: dict[int, list[Any]] = {}  # what a turn appends, by the ids of the lists
        self.result: Any = None
        self.fails = False  # whether nothing comes behind it, since it raises

    def run(self, function: Callable[..., Any], *arguments: Any) -> Inner:
        """Capture what `function` does."""
        self.result = inside(self, function, arguments)
        if self.error is not None:
            raise self.error
        return self

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
        if outer.base is None:
            value = self._input(Enclosing(array), outer.value().type)
            return Cell(value, source=self.inputs[-1][1], layout=outer.layout)
        base = self.cell(self.outer.shown(outer.base))
        value = base.value()
        for node in outer.path:
            value = views.again(node, value)
        return Cell(value, base=base, path=outer.path)

    def _number(self, dtype: str, source: Source) -> Value:
        raise CaptureError(
            f"{self.name}: random numbers, and numbers that Python supplies for every run, cannot "
            "be made within a branch or a loop yet. Make them before it, all at once."
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
        for array, pair in zip(made, joined.pairs, strict=False):
            for branch, leaf in zip(branches, pair, strict=True):
                _note_chosen(branch, leaf, array)
        return joined.tree(made)

    def foreach(
        self, body: Callable[..., Any], rows: Sequence[Any], states: Sequence[Any]
    ) -> tuple[Any, list[Any]]:
        """What `body(rows, states)` gives besides new states, as rows, and the last states."""
        return self._scanned("foreach", body, rows, states, rows[0].shape[0])

    def _scanned(
        self,
        name: str,
        body: Callable[..., Any],
        rows: Sequence[Any],
        states: Sequence[Any],
        length: int,
    ) -> tuple[Any, list[Any]]:
        outer = active()
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
        rest = iter(made[len(carried) :])
        return trees.mapped(outputs, lambda leaf: next(rest)), begun.after(
            turn, before, after, made
        )

    def while_loop(
        self,
        condition: Callable[..., Any],
        body: Callable[..., Any],
        states: Sequence[Any],
        most: int | None,
    ) -> tuple[Any, list[Any]]:
        """What `body(*states)` gives besides new states, as rows, and the last states."""
        if most is None:
            return [], self._repeated(condition, body, states)
        return self._bounded(condition, body, states, most)

    def _repeated(
        self, condition: Callable[..., Any], body: Callable[..., Any], states: Sequence[Any]
    ) -> list[Any]:
        """The last states of a loop that nobody knows the turns of."""
        outer = active()
        begun = _States(outer, states)
        test, turn = Inner(outer, "condition"), Inner(outer, "body")
        asked, before = begun.stand_ins(test), begun.stand_ins(turn)
        holds = _truth(test.run(condition, *asked))
        outputs, after = turn.run(body, *before).result
        check_unbounded(None, outputs)
        begun.check(turn, before, after)
        _check_unwritten(test, asked)
        if test.written():
            raise CaptureError("while_loop: the condition writes to an array; let the body do so.")
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
        return begun.after(turn, before, after, made)

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
        outputs, (_, *last) = self._scanned("while_loop", turn, [], [first, *states], most)
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

    def _is_array(self, i: int) -> bool:
        """Whether the state has been an array from the beginning: a number is never written to."""
        return isinstance(self._given[i], ndarray)

    def _check_in_place(self, turn: Inner, i: int, stand_in: Any, leaf: Any) -> None:
        """An array that each turn writes to stays that array, and is known by one name alone."""
        others = {array._storage_id for array in turn.taken}
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
            if leaf is stand_in and self._is_array(i):
                note_one(self._outer, self.arrays[i], made[i])
        return found


# -- what may be one array -------------------------------------------------------------------------


def _note_chosen(branch: Inner, leaf: Any, made: Any) -> None:
    """Remember that a result may be the very array from around that a branch hands on."""
    if not isinstance(leaf, ndarray):
        return
    cell = branch.cell(leaf)
    source = (cell.base or cell).source
    if isinstance(source, Enclosing):
        note_one(branch.outer, source.array, made)


def note_one(outer: Trace, one: Any, other: Any) -> None:
    """Remember that two arrays may be one."""
    first, second = outer.cell(one), outer.cell(other)
    outer.chosen.append((first.base or first, second.base or second))


def install() -> None:
    """Let choices and loops be captured."""
    for name in ("cond", "foreach", "while_loop"):
        setattr(Control, name, noting(getattr(Control, name)))
    set_capture(Control())
