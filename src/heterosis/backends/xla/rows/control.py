"""Choices and loops. One that has failed within stops as soon as it can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
from jax import lax

from heterosis.backends.xla.tables import CHECKED_ROWS
from heterosis.ir.primitives.control import COND, SCAN, WHILE_LOOP, WHILE_LOOP_BACK

if TYPE_CHECKING:
    from heterosis.backends.xla.evaluation import Status, Turn
    from heterosis.ir.program import Node, Program

Arrays = tuple[Any, ...]

# Turns of a loop that are kept at a time, on the way back through it.
_KEPT = 32


def _part(turn: Turn, program: Program) -> Callable[..., tuple[Status, Arrays]]:
    """`program` as a function of a status and operands, to the status behind it and results."""

    def run(status: Status, operands: Sequence[Any]) -> tuple[Status, Arrays]:
        inner = turn.inner(status)
        found = inner.results(program, operands)
        return inner.status, found

    return run


def _chosen(node: Node, turn: Turn, condition: Any, *operands: Any) -> Arrays:
    then, otherwise = (_part(turn, node.attributes[name]) for name in ("then", "otherwise"))
    found: Arrays
    turn.status, found = lax.cond(condition, then, otherwise, turn.status, operands)
    return found


class _Loop:
    """A loop whose condition and body are programs of what is carried and what is shared."""

    def __init__(self, node: Node, turn: Turn, shared: Arrays):
        self.condition = _part(turn, node.attributes["condition"])
        self.body = _part(turn, node.attributes["body"])
        self.shared = shared

    def _goes_on(self, status: Status, state: Arrays) -> tuple[Any, Status]:
        """Whether there is another turn; the condition may fail, too."""
        status, (holds,) = self.condition(status, (*state, *self.shared))
        return holds & (status[0] == 0), status

    def run(self, status: Status, state: Arrays) -> tuple[Any, Status, Arrays]:
        """How many turns there are, and what is left behind the last one."""

        def turn(carried: Any) -> Any:
            _, count, status, state = carried
            status, state = self.body(status, (*state, *self.shared))
            going, status = self._goes_on(status, state)
            return going, count + 1, status, state

        going, status = self._goes_on(status, state)
        start = going, jnp.asarray(0, "int64"), status, state
        _, count, status, state = lax.while_loop(lambda carried: carried[0], turn, start)
        return count, status, state

    def after(self, status: Status, state: Arrays, turns: Any) -> Arrays:
        """What is carried behind so many turns, none of which fails."""

        def turn(_: Any, state: Arrays) -> Arrays:
            return self.body(status, (*state, *self.shared))[1]

        found: Arrays = lax.fori_loop(jnp.asarray(0, "int64"), turns, turn, state)
        return found


def _repeated(node: Node, turn: Turn, *operands: Any) -> Arrays:
    carried = node.attributes["carried"]
    loop = _Loop(node, turn, operands[carried:])
    _, turn.status, state = loop.run(turn.status, operands[:carried])
    return state


def _repeated_back(node: Node, turn: Turn, *operands: Any) -> Arrays:
    """XLA has no memory for as many states as there may be turns: some of the last are computed
    again and kept, then those before."""
    carried = node.attributes["carried"]
    end = len(operands) - node.attributes["received"]
    start, shared, received = operands[:carried], operands[carried:end], operands[end:]
    loop, back = _Loop(node, turn, shared), _part(turn, node.attributes["back"])
    count, turn.status, _ = loop.run(turn.status, start)
    status = turn.status

    def stretch(left: tuple[Any, Arrays]) -> tuple[Any, Arrays]:
        """The last turns of those that are left."""
        end, received = left
        begin = jnp.maximum(end - _KEPT, 0)
        state = loop.after(status, start, begin)
        kept = tuple(jnp.zeros((_KEPT, *one.shape), one.dtype) for one in state)

        def keep(i: Any, held: tuple[Arrays, Arrays]) -> tuple[Arrays, Arrays]:
            state, kept = held
            kept = tuple(
                lax.dynamic_update_index_in_dim(row, one, i, 0)
                for row, one in zip(kept, state, strict=True)
            )
            return loop.after(status, state, jnp.asarray(1, "int64")), kept

        zero = jnp.asarray(0, "int64")
        _, kept = lax.fori_loop(zero, end - begin, keep, (state, kept))

        def step(i: Any, received: Arrays) -> Arrays:
            at = end - begin - 1 - i
            state = tuple(lax.dynamic_index_in_dim(row, at, 0, keepdims=False) for row in kept)
            return back(status, (*state, *shared, *received))[1]

        return begin, lax.fori_loop(zero, end - begin, step, received)

    found: Arrays
    _, found = lax.while_loop(lambda left: left[0] > 0, stretch, (count, received))
    return found


def _scanned(node: Node, turn: Turn, *operands: Any) -> Arrays:
    carried = node.attributes["carried"]
    first = carried + node.attributes["shared"]
    state, shared, rows = operands[:carried], operands[carried:first], operands[first:]
    body = _part(turn, node.attributes["body"])

    def step(held: tuple[Status, Arrays], row: Arrays) -> tuple[tuple[Status, Arrays], Arrays]:
        status, state = held
        status, found = body(status, (*state, *shared, *row))
        return (status, found[:carried]), found[carried:]

    (turn.status, state), made = lax.scan(
        step, (turn.status, state), rows,
        length=node.attributes["length"], reverse=node.attributes["reverse"],
    )  # fmt: skip
    return (*state, *made)


CHECKED_ROWS[COND] = _chosen
CHECKED_ROWS[WHILE_LOOP] = _repeated
CHECKED_ROWS[WHILE_LOOP_BACK] = _repeated_back
CHECKED_ROWS[SCAN] = _scanned
