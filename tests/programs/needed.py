"""Whether anything follows from an index: in a compiled program, others refuse nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy

from tests.programs.meaning import Call, evaluate, made
from tests.programs.program import Array, Program, Step

_WITHIN = "{0}[numpy.clip({1}, -len({0}), len({0}) - 1)]"


def without_idle_refusals(program: Program, calls: Sequence[Mapping[str, Array]]) -> Program:
    """The program without the indices from which nothing follows in the call that has bad ones."""
    turn = next(i for i, given in enumerate(calls) if _is_bad(program, given))
    idle = [
        id(step)
        for step in program.within()
        if step.kind == "refused" and _is_idle(program.at(turn), calls[turn], step)
    ]
    return _changed(program, lambda step: _clipped(step) if id(step) in idle else step)


def _is_bad(program: Program, given: Mapping[str, Array]) -> bool:
    return any(given.get(name) is array for name, array in program.refused.items())


def _is_idle(program: Program, given: Mapping[str, Array], step: Step) -> bool:
    """Whether the call is the same with other elements there."""

    def seen(*, moved: bool) -> Call:
        def other(inner: Step) -> Step:
            if inner.kind == "printed":  # with its elements
                return replace(inner, meaning="printed({0}.tobytes())")
            return _clipped(inner, moved=moved and inner is step) if _refuses(inner) else inner

        return evaluate(_changed(program, other), given, made(program.outside, numpy))

    try:
        one, other = seen(moved=False), seen(moved=True)
    except (ValueError, IndexError):
        return False
    pairs = zip(one.arrays(), other.arrays(), strict=True)
    same = all(a.tobytes() == b.tobytes() for (_, a), (_, b) in pairs)
    return same and one.printed == other.printed


def _refuses(step: Step) -> bool:
    return step.kind == "refused"


def _clipped(step: Step, *, moved: bool = False) -> Step:
    """The step with an index within bounds, or nothing written; `moved`: with other elements."""
    if step.is_write:
        return replace(step, meaning="{0}[...] = other_elements({0})" if moved else "{0}")
    return replace(step, meaning=f"other_elements({_WITHIN})" if moved else _WITHIN)


def _changed(program: Program, change: Callable[[Step], Step]) -> Program:
    return program.change(steps=tuple(step.each(change) for step in program.steps))
