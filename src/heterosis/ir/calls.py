"""Calls of operations: what the nodes of a program were made by, as a part of the program.

A node says how something is computed; a call says what was meant. Gradients that an operation has
of its own, saved programs and symbols are found by calls. While operations are traced, their
calls are collected; a program that is rewritten has none any more, and no gradients by them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from heterosis.ir.program import INPUT, NUMBER, Program, Value, reached, substituted


@dataclass(frozen=True)
class Pullback:
    """A gradient that is a program: of values that stand beside the call's, `saved`, and of what
    each result receives. It gives what the operands at the positions `to` receive."""

    program: Program
    saved: tuple[Value, ...]
    to: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Call:
    """One call of an operation, which is known by its name.

    `attributes` stand in the order of the operation's parameters: None for an array, and the number
    of arrays for a sequence of them.
    """

    operation: str
    operands: tuple[Value | None, ...]
    attributes: tuple[Any, ...]
    results: tuple[Value, ...]
    held: tuple[Value, ...] = ()  # other inputs of the program that the results are made of
    scope: str = ""  # the prefix of the block that made the call
    line: str = ""  # of the user's source
    steps: tuple[Call, ...] = ()  # what differentiation takes as one step each, inside of the call
    pullback: Pullback | None = None  # of a function with a gradient of the user's

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The operands that there are."""
        return tuple(v for v in self.operands if v is not None)

    @property
    def values(self) -> Iterator[Value]:
        """Every value that the call speaks of."""
        yield from self.inputs
        yield from self.results
        yield from self.pullback.saved if self.pullback else ()
        for step in self.steps:
            yield from step.values


# -- while operations are traced ------------------------------------------------------------------


class _Collection(threading.local):
    calls: list[Call] | None = None


_collection = _Collection()


@contextmanager
def collected(into: list[Call] | None = None) -> Iterator[list[Call]]:
    """Within the block, calls go into a list."""
    before, found = _collection.calls, [] if into is None else into
    _collection.calls = found
    try:
        yield found
    finally:
        _collection.calls = before


def note(call: Call) -> None:
    """Add a call to those that are collected, if any are."""
    if _collection.calls is not None:
        _collection.calls.append(call)


# -- when programs change -------------------------------------------------------------------------


def needed(
    calls: Sequence[Call], outputs: Sequence[Value], stops: Mapping[Value, Value] | None = None
) -> tuple[Call, ...]:
    """Those of `calls` that have made something of what `outputs` need, but for what only values
    in `stops` are made of."""
    found = {id(node) for node in reached(outputs, stops or ())}

    def is_needed(call: Call) -> bool:
        return any(id(value.node) in found for value in call.results)

    return tuple(part for call in calls for part in _parts(call, is_needed))


def _parts(call: Call, keeps: Callable[[Call], bool]) -> Iterator[Call]:
    """The call, with those of its steps that are kept; these alone, where it is not."""
    steps = tuple(filter(keeps, call.steps))
    if not keeps(call):
        yield from steps
    else:
        yield call if len(steps) == len(call.steps) else replace(call, steps=steps)


def moved(
    outputs: Sequence[Value], calls: Sequence[Call], mapping: Mapping[Value, Value]
) -> tuple[tuple[Value, ...], tuple[Call, ...]]:
    """`outputs` and their calls, once the values in `mapping` are replaced. A call whose result is
    replaced is not made any more."""

    def is_made(call: Call) -> bool:
        return all(value not in mapping for value in call.results)

    found = needed(calls, outputs, mapping)
    kept = [part for call in found for part in _parts(call, is_made)]
    values = list(dict.fromkeys([*outputs, *(v for call in kept for v in call.values)]))
    new = dict(zip(values, substituted(values, mapping), strict=True))
    return tuple(new[v] for v in outputs), tuple(_moved(call, new) for call in kept)


def _moved(call: Call, new: Mapping[Value, Value]) -> Call:
    operands = tuple(None if v is None else new[v] for v in call.operands)
    results = tuple(new[v] for v in call.results)
    pullback = call.pullback
    return replace(
        call,
        operands=operands,
        results=results,
        held=tuple(inputs_besides(results, [v for v in operands if v is not None])),
        steps=tuple(_moved(step, new) for step in call.steps),
        pullback=pullback and replace(pullback, saved=tuple(new[v] for v in pullback.saved)),
    )


def inputs_besides(results: Sequence[Value], operands: Sequence[Value]) -> Iterator[Value]:
    """The inputs of a program that `results` are made of, not by way of `operands`."""
    known = set(operands)
    for node in reached(results, known):
        if node.primitive in (INPUT, NUMBER) and Value(node) not in known:
            yield Value(node)
