"""Choices and loops in a capture: branches and bodies become programs inside of the captured one.

Each is captured by a trace of its own, see `inner`; what it writes in place to an array from around
it is written behind the choice or the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from heterosis import _core
from heterosis.capture import trees
from heterosis.capture.active import active, noting
from heterosis.capture.branches import Joined
from heterosis.capture.captured import ControlStep, Region
from heterosis.capture.compiled import Compiled
from heterosis.capture.inner import (
    Filler,
    Inner,
    described,
    note_chosen,
    note_shared,
    united,
    without,
)
from heterosis.capture.memory import Cell
from heterosis.capture.printing import Prints, kept_turns
from heterosis.capture.states import States, as_array, check_outputs, check_turn, check_unwritten
from heterosis.capture.trace import Trace
from heterosis.ir import views
from heterosis.ir.program import Program, Value
from heterosis.ir.traced_sizes import is_traced
from heterosis.ir.types import TensorType
from heterosis.ops.array.creation import zeros
from heterosis.ops.control.capturing import check_unbounded, set_capture
from heterosis.ops.control.flow import conditional, scan
from heterosis.ops.control.flow import while_loop as repeated
from heterosis.ops.math.cast import assign
from heterosis.ops.record import as_users_call
from heterosis.ops.rules import cast
from heterosis.runtime import modes
from heterosis.runtime.errors import ArgumentError
from heterosis.runtime.lines import user_line

ndarray = _core.ndarray
_assign = as_users_call(assign)


class Control:
    """What choices and loops, and what prints, are handed to while a program is captured."""

    def opened(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A user's function, whose statements are captured too."""
        return active().opened(function)

    def run(self, function: Callable[[], Any]) -> Any:
        """What a function gives, captured although nothing else is."""
        return Compiled(function)()

    def print(self, values: Sequence[Any], ends: dict[str, Any]) -> None:
        """Print values, at every run."""
        active().print(values, ends)

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
        joined = Joined(first, second)
        written = united(*(branch.written() for branch in branches))
        results = []  # which may take more from around
        for branch, values in zip(branches, joined.values, strict=True):
            after = [branch.cell(array).value() for array in written]
            printed = _printed(branch, branches)
            results.append([*values, *printed, *after])
        taken = united(written, *(branch.taken for branch in branches))
        programs = [
            branch.program(map(branch.input_of, taken), values)
            for branch, values in zip(branches, results, strict=True)
        ]
        truth = as_truth(pred)
        found = _called(outer, conditional, [truth, *taken], len(taken), *programs)
        many = len(joined.pairs)
        end = many + len(printed)
        made = found[:many]
        _write(written, found[end:])
        if any(branch.prints for branch in branches):
            prints = [branch.prints for branch in branches]
            holds = outer.cell(truth).value()
            outer.prints.add_choice(holds, prints, _read(outer, found[many:end]))
        outer.count_drawn(first.drawn if first.drawn == second.drawn else None)
        regions = {
            branch.name: branch.region((), leaves)
            for branch, leaves in zip(branches, joined.leaves, strict=True)
        }
        _note_control(outer, "cond", before, {"pred": [pred]}, regions, made)
        _note_joined(outer, branches, joined, made)
        return joined.tree(made)

    def made(self, container: Any) -> Any:
        """A list that is made for a turn, which may change it."""
        active().made_here[id(container)] = container
        return container

    def foreach(
        self,
        body: Callable[..., Any],
        rows: Sequence[Any],
        states: Sequence[Any],
        *,
        copies: bool = True,
        over: Sequence[Any] = (),
    ) -> tuple[Any, list[Any]]:
        """What `body(rows, states)` gives besides new states, as rows, and the last states.

        Rows are copies of what each turn gives; unless they are to stand for the arrays themselves.
        What is gone through may have been made of the arrays `over`.
        """
        return self.scan(body, rows, states, rows[0].shape[0], copies=copies, over=over)

    def scan(
        self,
        body: Callable[..., Any],
        rows: Sequence[Any],
        states: Sequence[Any],
        length: int,
        name: str = "foreach",
        *,
        copies: bool = True,
        over: Sequence[Any] = (),
    ) -> tuple[Any, list[Any]]:
        """The same, for so many rows of each."""
        outer = active()
        first = len(outer.steps)
        begun = States(outer, states)
        turn = Inner(outer, name)
        given = [turn.parameter(_row(outer.cell(array).value().type)) for array in rows]
        before = begun.stand_ins(turn)
        outputs, after = turn.run(body, given, before).result
        begun.check(turn, before, after)
        check_unwritten(turn, given)
        begun.check_rows(turn, before, [*rows, *over])
        written = turn.written()
        leaves = list(trees.leaves(outputs))
        if not copies:
            check_outputs(turn, [*before, *written], leaves)
        # Before anybody asks what is taken from around: a turn may hand on an array from there.
        results = [*_values(turn, after), *_values(turn, written), *_values(turn, leaves)]
        shared = without(turn.taken, written)
        carried = [*turn.inputs_for(before), *map(turn.input_of, written)]
        results += turn.prints.values
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
        end = len(carried) + len(leaves)
        rest = made[len(carried) : end]
        if turn.prints:
            printed = _read(outer, made[end : end + len(turn.prints.values)])
            outer.prints.add_turns(turn.prints, printed, length)
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
        begun = States(outer, states)
        test, turn = Inner(outer, "condition"), Inner(outer, "body")
        asked, before = begun.stand_ins(test), begun.stand_ins(turn)
        holds = _truth(test.run(condition, *asked))
        check_unwritten(test, asked)
        if test.written() or test.prints:
            return self._asking_within(condition, body, states, known)
        outputs, after = turn.run(body, *before).result
        check_unbounded(None, outputs)
        if turn.prints:
            return self._printing(condition, body, states, known, turn.prints.types)
        begun.check(turn, before, after, test.taken)
        written = turn.written()
        begun.check_asked(turn, without(test.taken, written), written)
        results = [*_values(turn, after), *_values(turn, written)]  # may take more from around
        shared = without([*turn.taken, *test.taken], written)
        around = [*written, *shared]
        programs = [
            trace.program([*trace.inputs_for(given), *map(trace.input_of, around)], values)
            for trace, given, values in ((test, asked, [holds]), (turn, before, results))
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

        first = condition(*map(as_array, states)) if known is None else known
        states = [*states, as_truth(first)]
        return self._repeated(lambda *given: given[-1], turn, states, None)[:-1]

    def _printing(
        self,
        condition: Callable[..., Any],
        body: Callable[..., Any],
        states: Sequence[Any],
        known: Any,
        types: Sequence[TensorType],
    ) -> list[Any]:
        """The same where turns print values of these types: arrays with a row for each of the last
        turns are carried along, and the number of turns."""
        most = kept_turns(types)
        found: list[Prints] = []

        def turn(*given: Any) -> tuple[Any, list[Any]]:
            outputs, after = body(*given[: len(states)])
            count, *rows = given[len(states) :]
            trace = active()
            prints, trace.prints = trace.prints, Prints()
            for row, value in zip(rows, prints.values, strict=True):
                row[count % most] = trace.array(Cell(value))
            found[:] = [prints]
            return outputs, [*after, count + 1, *rows]

        def asked(*given: Any) -> Any:
            return condition(*given[: len(states)])

        rows = [as_users_call(zeros)((most, *type_.shape), type_.dtype) for type_ in types]
        first = as_array(0)
        last = self._repeated(asked, turn, [*states, first, *rows], known)
        count, *rows = last[len(states) :]
        outer = active()
        outer.prints.add_turns(found[0], _read(outer, rows), most, outer.cell(count).value())
        return last[: len(states)]

    def _bounded(
        self,
        condition: Callable[..., Any],
        body: Callable[..., Any],
        states: Sequence[Any],
        most: int,
    ) -> tuple[Any, list[Any]]:
        """The same of a loop that ends after so many turns: those left hand the states on."""
        line = user_line()

        def turn(_: Any, before: Sequence[Any]) -> tuple[Any, list[Any]]:
            running, *now = before
            outputs: list[Any] = []

            def then() -> Any:
                found, after = body(*now)
                check_turn("while_loop", line, now, after)
                outputs.append(found)
                return found, list(after), as_truth(condition(*after))

            def otherwise() -> Any:
                return trees.mapped(outputs[0], _zeros), now, running

            found, after, again = self.cond(running, then, otherwise)
            return found, [again, *after]

        states = [*map(as_array, states)]
        first = as_truth(condition(*states))
        outputs, (_, *last) = self.scan(turn, [], [first, *states], most, "while_loop")
        return outputs, last


def as_truth(given: Any) -> Any:
    """Whether something holds, as an array."""
    return as_single(as_array(given)).astype("bool")


def as_single(array: Any) -> Any:
    """An array that is asked whether it holds, with its one element and no dimensions."""
    _check_single(TensorType(array.shape, array._dtype_name))
    return array.reshape(())


def _truth(test: Inner) -> Value:
    value = test.value_of(test.result)
    _check_single(value.type)
    return cast(views.reshape(value, ()), "bool")


def _check_single(type_: TensorType) -> None:
    """Raise unless there is one element, as far as sizes are known: that has a truth."""
    if not any(map(is_traced, type_.shape)) and math.prod(type_.shape) != 1:
        raise ArgumentError(
            f"the truth value of an array needs exactly one element, and this array is {type_}. "
            "Use .any() or .all(), or index a single element."
        )


def _read(trace: Trace, arrays: Iterable[Any]) -> list[Value]:
    return [trace.cell(array).value() for array in arrays]


def _printed(branch: Inner, branches: Sequence[Inner]) -> list[Value]:
    """What branches print, one after the other; zeros in place of what others than `branch` do."""
    return [
        value if one is branch else branch.value_of(Filler(value.type))
        for one in branches
        for value in one.prints.values
    ]


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
    facts = {name: described(outer, leaves) for name, leaves in given.items()}
    cells = tuple(map(outer.cell, made))
    outer.controls.append(ControlStep(kind, first, len(outer.steps), facts, regions, cells))


def _note_joined(
    outer: Trace, branches: Sequence[Inner], joined: Joined, made: Sequence[Any]
) -> None:
    """Note what each array that a choice gives stands for: what its branches do."""
    for array, pair in zip(made, joined.pairs, strict=True):
        if joined.is_number(pair):
            outer.note_number(array)
            continue
        if any(map(outer.stands_for_number, pair)):
            outer.outermost.mixed[array._storage_id] = array
        for branch, leaf in zip(branches, pair, strict=True):
            note_chosen(branch, leaf, array)
    for branch, leaves in zip(branches, joined.leaves, strict=True):
        note_shared(branch, leaves, made)


def _write(written: Sequence[Any], results: Sequence[Any]) -> None:
    """Write what a choice or a loop has written within."""
    for array, result in zip(written, results, strict=False):
        _assign(result, out=array)


def install() -> None:
    """Let choices and loops be captured."""
    for name in ("cond", "foreach", "while_loop", "print"):
        setattr(Control, name, noting(getattr(Control, name)))
    set_capture(Control())
