"""Branches and loops, whose bodies are graphs.

Where a condition and a number of turns are known ahead, Python takes the branch or turns; a capture
unrolls few turns. Else they become control flow of the captured program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from heterosis import np, npx
from heterosis.models.onnx.format import Graph
from heterosis.models.onnx.operators.table import Run, operator
from heterosis.models.onnx.values import array, is_known, on_host
from heterosis.runtime import modes
from heterosis.runtime.errors import FormatError, UnsupportedError

_FEW_TURNS = 8  # that are written out, for the compiler to join


def _taken(condition: Any, *, then_branch: Graph, else_branch: Graph, _run: Run) -> tuple[Any, ...]:
    return tuple(_run(then_branch if bool(condition) else else_branch))


@operator("If", on_host=_taken)
def _if(condition: Any, *, then_branch: Graph, else_branch: Graph, _run: Run) -> tuple[Any, ...]:
    if not modes.is_capturing():
        return _taken(condition, then_branch=then_branch, else_branch=else_branch, _run=_run)

    def branch(graph: Graph) -> Any:
        return lambda: list(map(array, _run(graph)))

    return tuple(npx.cond(condition, branch(then_branch), branch(else_branch)))


@operator("Loop", keeps=True)
def _loop(turns: Any, condition: Any, *carried: Any, body: Graph, _run: Run) -> tuple[Any, ...]:
    loop = _Loop(body, _run, len(carried))
    count = None if turns is None or not is_known(turns) else int(on_host(turns).item())
    starts = condition is None or is_known(condition)
    if not modes.is_capturing():
        return loop.turned_here(turns, condition, carried)
    if starts and not (condition is None or bool(on_host(condition))):
        return loop.turned_here(0, None, carried)
    if starts and count is not None and loop.never_ends_early:
        if count <= _FEW_TURNS:
            return loop.turned_here(turns, None, carried)
        return loop.counted(count, carried)
    return loop.conditional(turns, condition, carried)


class _Loop:
    """A loop's body: (turn, condition, carried...) -> (condition, carried..., one row each...)."""

    def __init__(self, body: Graph, run: Run, carried: int):
        self.body, self.run, self.carried = body, run, carried
        self.rows = len(body.outputs) - 1 - carried
        if len(body.inputs) != 2 + carried or self.rows < 0:
            raise FormatError(
                f"Loop: its body takes {len(body.inputs)} inputs and gives {len(body.outputs)} "
                f"outputs, for {carried} values that go from turn to turn."
            )

    @property
    def never_ends_early(self) -> bool:
        """Whether what the body says of the next turn is what it was told, or always true."""
        name, makers = self.body.outputs[0], {n.outputs[0]: n for n in self.body.nodes}
        while name in makers and makers[name].operator == "Identity":
            name = makers[name].inputs[0]
        if name == self.body.inputs[1].name:
            return True
        known = self.body.arrays.get(name)
        if name in makers and makers[name].operator == "Constant":
            known = makers[name].attributes.get("value")
        return known is not None and bool(known.all())

    def turned_here(self, turns: Any, condition: Any, carried: Sequence[Any]) -> tuple[Any, ...]:
        """Turn by turn, by Python."""
        last = None if turns is None else int(turns.item() if hasattr(turns, "item") else turns)
        state, rows, done = list(carried), [], 0
        goes_on = condition is None or bool(on_host(condition))
        while goes_on and (last is None or done < last):
            truth, *found = self.run(self.body, numpy.array(done), numpy.array(True), *state)
            state, row = found[: self.carried], found[self.carried :]
            rows.append(row)
            done, goes_on = done + 1, bool(on_host(truth))
        if not rows and self.rows:
            raise UnsupportedError("Loop: without a turn, nothing tells the shape of its rows.")
        return (*state, *(_stacked([row[i] for row in rows]) for i in range(self.rows)))

    def counted(self, count: int, carried: Sequence[Any]) -> tuple[Any, ...]:
        """As many turns as are known, in one loop of the program."""

        def turn(i: Any, state: list[Any]) -> tuple[list[Any], list[Any]]:
            _, *found = self.run(self.body, i, numpy.array(True), *state)
            found = list(map(array, found))
            return found[self.carried :], found[: self.carried]

        rows, state = npx.foreach(turn, np.arange(count, dtype="int64"), list(map(array, carried)))
        return (*state, *rows)

    def conditional(self, turns: Any, condition: Any, carried: Sequence[Any]) -> tuple[Any, ...]:
        """As many turns as a condition asks for, in one loop of the program."""
        if self.rows:
            raise UnsupportedError(
                "Loop: it stacks rows, and how many follows from what is computed; in what is "
                "compiled, the number of turns must be known. Call the network without hybridize()."
            )
        limit = None if turns is None else array(turns)

        def goes_on(i: Any, truth: Any, *_: Any) -> Any:
            return truth if limit is None else np.logical_and(truth, i < limit.reshape(()))

        def turn(i: Any, truth: Any, *state: Any) -> tuple[list[Any], list[Any]]:
            truth, *found = map(array, self.run(self.body, i, truth, *state))
            return [], [i + 1, truth.reshape(()), *found]

        begin = np.array(True) if condition is None else array(condition).reshape(())
        start = [np.array(0, dtype="int64"), begin, *map(array, carried)]
        _, found = npx.while_loop(goes_on, turn, start)
        return tuple(found[2:])


def _stacked(rows: list[Any]) -> Any:
    if all(map(is_known, rows)):
        return numpy.stack(list(map(on_host, rows)))
    return np.stack(list(map(array, rows)))


@operator("Scan", since=9)
def _scan(
    *arrays: Any,
    body: Graph,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] = (),
    scan_input_directions: Sequence[int] = (),
    scan_output_axes: Sequence[int] = (),
    scan_output_directions: Sequence[int] = (),
    _run: Run,
) -> tuple[Any, ...]:
    carried = len(arrays) - num_scan_inputs
    if carried < 0 or len(body.inputs) != len(arrays):
        raise FormatError(f"Scan: {len(arrays)} inputs, for a body of {len(body.inputs)}.")
    lines = [
        _in_rows(line, _at(scan_input_axes, i), _at(scan_input_directions, i))
        for i, line in enumerate(arrays[carried:])
    ]

    def turn(rows: list[Any], state: list[Any]) -> tuple[list[Any], list[Any]]:
        found = list(map(array, _run(body, *state, *rows)))
        return found[carried:], found[:carried]

    rows, state = npx.foreach(turn, lines, list(arrays[:carried]))
    outputs = [
        _out_of_rows(line, _at(scan_output_axes, i), _at(scan_output_directions, i))
        for i, line in enumerate(rows)
    ]
    return (*state, *outputs)


def _at(numbers: Sequence[int], place: int) -> int:
    return numbers[place] if place < len(numbers) else 0


def _in_rows(line: Any, axis: int, backwards: int) -> Any:
    line = np.moveaxis(line, axis, 0)
    return np.flip(line, 0) if backwards else line


def _out_of_rows(line: Any, axis: int, backwards: int) -> Any:
    return np.moveaxis(np.flip(line, 0) if backwards else line, 0, axis)
