"""The programs of an entry, planned for one kind of processors: for all the sizes that it serves.

A program of open extents is planned as replay plans it, for ranges of sizes. Here there is no later
planning: ranges are looked for ahead, and sizes that are in none of them are refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any

from heterosis import _core
from heterosis.backends import Entry
from heterosis.backends.native.codegen.emit import abi
from heterosis.backends.native.codegen.emit.program import (
    ProgramCode,
    function_for_known_sizes,
    function_for_sizes,
)
from heterosis.backends.native.codegen.kernel import Machine
from heterosis.backends.native.codegen.target import Target
from heterosis.backends.native.compile import object_cache
from heterosis.backends.native.compile.compiler import host_target, usable_targets
from heterosis.backends.native.compile.plans import plan_facts
from heterosis.backends.native.compile.whole import scheduled
from heterosis.backends.native.export.windows import has_sizes, in_windows
from heterosis.backends.native.stages.pipeline import in_parts
from heterosis.ir.program import INPUT, Program, Value, reached
from heterosis.ir.resizing import resized
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import Decisions, function_of
from heterosis.passes.preparation import Split
from heterosis.runtime.settings import settings
from heterosis.runtime.warning import warn_user

MOST = 2**48  # of a size: no array has more elements
_MOST_RANGES = 16  # of one program and kind of processors, with the choices that replay makes
_MORE_RANGES = 16  # with choices as for large sizes, so that each is wider
_SMALL = 600  # sizes that are looked at one by one
_LOOKED_AT = 20_000  # combinations of several sizes


@dataclass(frozen=True)
class Case:
    """A program that runs where some conditions on sizes hold, and the arrays that it holds."""

    entry: Entry  # that it is a program of, or one that is special
    conditions: tuple[str, ...]
    program: Program
    held: Mapping[Value, _core.ndarray]
    given: Mapping[Value, int]  # which of the entry's inputs those of the program are
    workspace: int
    code: ProgramCode


def cases(entry: Entry, machine: Machine) -> list[Case]:
    """The programs of an entry, which are to be asked one after the other."""
    if entry.values:
        found = list(_ranges(entry, machine))
    else:
        found = [replace(_planned(entry, {}, machine), conditions=entry.conditions)]
    for special in entry.special:
        found += cases(special, machine)
    return found


def _ranges(entry: Entry, machine: Machine) -> Iterator[Case]:
    """Plans for all sizes of which the conditions of an entry hold, as far as they are found."""
    names = tuple(entry.values)
    ones = dict.fromkeys(entry.ones, 1)
    admitted = function_of((*names, *ones), [" and ".join(entry.conditions) or "True"])
    known: list[Callable[..., tuple[Any, ...]]] = []
    for values in _combinations(entry.values):
        given = dict(zip(names, values, strict=True))
        if not admitted(**given, **ones)[0] or any(holds(**given)[0] for holds in known):
            continue
        if len(known) == _MOST_RANGES + _MORE_RANGES:
            warn_user(
                f"{entry.name}: the library serves no sizes like {_shown(given)}: it has "
                f"{len(known)} plans for others already, which is as many as it takes. Export it "
                "with fewer open extents, dynamic={'x': (0,)}, or for known sizes."
            )
            return
        case = _planned(entry, given, machine, as_if_large=len(known) >= _MOST_RANGES)
        known.append(function_of(names, [" and ".join(case.conditions) or "True"]))
        yield replace(case, conditions=(*entry.conditions, *case.conditions))


def _shown(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _combinations(values: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """Values to look at, those first that the program was captured for."""
    yield tuple(values.values())
    if len(values) < 2:
        yield from product(_candidates(), repeat=len(values))
        return
    yield from islice(product((8, 2, 3, 4, 5, 6, 7, 64, 1000), repeat=len(values)), _LOOKED_AT)
    chance, candidates = random.Random(0), list(_candidates())
    for _ in range(_LOOKED_AT):
        yield tuple(chance.choice(candidates) for _ in values)


def _candidates() -> Iterable[int]:
    """Sizes of which some are next to all bounds that plans have."""
    powers = [1 << i for i in range(10, 21)]
    return [*range(1, _SMALL), *(power + i for power in powers for i in (-1, 0, 1, 7))]


def _planned(
    entry: Entry, values: Mapping[str, int], machine: Machine, *, as_if_large: bool = False
) -> Case:
    """The program of an entry, for the range of sizes that these are in."""
    decisions = Decisions(values)
    decisions.as_if_large = as_if_large
    program = resized(entry.program, decisions.traced, calls=False) if values else entry.program
    program, held, given = _parts(program, entry, machine)
    layouts = [Strided.contiguous(value.shape) for value in program.inputs]
    planned = scheduled(program, layouts, machine, views=False)
    code = (function_for_sizes if values else function_for_known_sizes)(planned)
    _ = code.key  # what its tables decide is decided now
    conditions = tuple(decisions.conditions)
    return Case(entry, conditions, program, held, given, planned.workspace, code)


# -- parameters -----------------------------------------------------------------------------------


def _parts(
    program: Program, entry: Entry, machine: Machine
) -> tuple[Program, dict[Value, _core.ndarray], dict[Value, int]]:
    """The program that runs, the arrays that it holds, and which inputs of the entry it is given:
    what depends on held arrays alone has been computed, unless sizes have a part in it."""
    found = in_parts(program, _at(program, entry.held), machine)
    if isinstance(found, Split) and has_sizes(found.preparation):
        found = in_parts(program, (), machine)
    if isinstance(found, Split):
        # The rest has fewer inputs: positions are those of the whole.
        whole, program = found.preparation, found.rest
        made = _computed(found.preparation, entry, machine)
        held = {whole.inputs[i]: entry.held[i] for i in found.own if i in entry.held}
        held |= dict(zip(found.prepared, made, strict=True))
    else:
        whole = program = found
        held = dict(zip(_at(found, entry.held), entry.held.values(), strict=True))
    given = {whole.inputs[at]: i for i, (_, _, at) in enumerate(entry.inputs) if at >= 0}
    return (*in_windows(program, held), given)


def _computed(preparation: Program, entry: Entry, machine: Machine) -> list[_core.ndarray]:
    """What a preparation gives for the arrays of an entry, by code that packs as the library's own:
    how parameters are packed depends on the processor."""
    needed = {node for node in reached(preparation.outputs) if node.primitive is INPUT}
    positions = [i for i, value in enumerate(preparation.inputs) if value.node in needed]
    inputs = tuple(preparation.inputs[i] for i in positions)
    program = Program(inputs, preparation.outputs, preparation.name)
    arrays = [entry.held[i] for i in positions]
    layouts = [Strided(a.shape, a._element_strides) for a in arrays]
    target = _packing_here_for(machine.target)
    planned = scheduled(program, layouts, replace(machine, target=target), views=False)
    code = function_for_known_sizes(planned)
    loaded = object_cache.load(code.key, lambda: code.emit(target), target)
    plan = plan_facts(program, planned, code).plan(loaded.function(abi.ENTRY))
    with _threads(machine.workers):  # as many as it has scratch memory for
        return list(_core.run_plan(plan, arrays))


def _packing_here_for(target: Target) -> Target:
    """The target, or one with its tiles and vectors and this processor's instructions."""
    if target in usable_targets():
        return target
    here = host_target()
    return replace(target, triple=here.triple, cpu=here.cpu, features=here.features)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before, settings.threads = settings.threads, count
    try:
        yield
    finally:
        settings.threads = before


def _at(program: Program, positions: Iterable[int]) -> list[Value]:
    return [program.inputs[i] for i in positions]
