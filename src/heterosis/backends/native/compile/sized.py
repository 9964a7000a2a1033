"""Programs whose extents are open: planned for ranges of sizes, and compiled once for each.

A plan for one size is found with sizes in place of numbers. What the planner decides by them are
the conditions of the range that it holds for; what it hands the compiled function is a table of
numbers, each an expression of the sizes. At a size never seen, the expressions are evaluated: that
is all. Ranges that differ in numbers alone share their machine code. They are kept on disk, so that
a later process plans none of them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from heterosis import _core
from heterosis.backends.native.codegen.kernel import Schedule
from heterosis.backends.native.compile import object_cache, stored
from heterosis.backends.native.compile.plans import (
    PlanFacts,
    address,
    check_room,
    machine,
    plan_facts,
)
from heterosis.backends.native.compile.whole import parts, scheduled
from heterosis.ir.program import Program
from heterosis.ir.resizing import resized, without_gaps
from heterosis.ir.strided import Strided
from heterosis.ir.traced_sizes import Decisions, function_of, is_traced, message, written
from heterosis.runtime.settings import settings

if TYPE_CHECKING:
    from heterosis.backends.native.codegen.emit.program import ProgramCode


_MOST_RANGES = 32  # plans kept, and asked one after the other


class SizedPlans:
    """The plans of a program for ranges of its sizes, the latest first."""

    def __init__(
        self,
        program: Program,
        layouts: Sequence[Strided | None],
        parameters: Collection[int],
    ) -> None:
        self.program, self.layouts, self.parameters = program, layouts, parameters
        # Plans by their preparations, if these have one size: whose arrays serve all ranges.
        self._prepared: dict[Hashable, _core.Plan] = {}
        self._key: bytes | None = None
        self.ranges: list[Range] | None = None

    def at(self, values: Mapping[str, int]) -> _core.Plan:
        """The plan for one size; `UnsupportedError`, if nothing can be planned with sizes in place
        of numbers."""
        if self.ranges is None:
            self.ranges = self._kept(values)
        found = next((one for one in self.ranges if one.holds(**values)[0]), None)
        if found is None:
            found = self._planned(values)
            self.ranges.insert(0, found)
            del self.ranges[_MOST_RANGES:]
            _write(self._key, self.ranges)
        return found.plan(values, self._prepared)

    def _kept(self, names: Iterable[str]) -> list[Range]:
        """The ranges on disk. Plans from there cannot be proved: what they come from is gone."""
        if not settings.check:
            kind = f"ranges of {', '.join(names)}"
            self._key = stored.key(self.program, self.layouts, self.parameters, machine(), kind)
        return _read(self._key)

    def _planned(self, values: Mapping[str, int]) -> Range:
        """The range that these values are in."""
        decisions = Decisions(values)
        program = resized(self.program, decisions.traced, calls=False)
        layouts = without_gaps(program, self.layouts)
        programs, fixed = parts(program, layouts, self.parameters)
        names = tuple(values)
        template, *ahead = (_template(names, *part) for part in programs)
        conditions = tuple(decisions.conditions)
        return Range(names, conditions, template, ahead[0] if ahead else None, fixed)


def _template(names: tuple[str, ...], program: Program, layouts: Sequence[Strided]) -> Template:
    from heterosis.backends.native.codegen.emit.program import function_for_sizes

    planned = scheduled(program, layouts)
    code: ProgramCode = function_for_sizes(planned)
    facts = plan_facts(program, planned, code)
    proved = partial(_prove, program, layouts, planned) if settings.check else None
    texts = [_text(fact) for fact in facts]
    return Template(names, texts, _varies(facts), address(code), stored.entry(code), proved)


def _prove(
    program: Program, layouts: Sequence[Strided], schedule: Schedule, values: Mapping[str, int]
) -> None:
    from heterosis.backends.native.schedule.proof.at_sizes import prove_at

    prove_at(program, layouts, schedule, values)


@dataclass
class Range:
    """Plans for all sizes of which some conditions hold."""

    names: tuple[str, ...]
    conditions: tuple[str, ...]
    template: Template
    preparation: Template | None
    fixed: list[int]

    @cached_property
    def holds(self) -> Callable[..., tuple[Any, ...]]:
        """Whether sizes are in the range."""
        return function_of(self.names, [" and ".join(self.conditions) or "True"])

    def plan(self, values: Mapping[str, int], prepared: dict[Hashable, _core.Plan]) -> _core.Plan:
        """The plan for one size in the range; `prepared` has plans by their preparations."""
        plan = self.template.plan(values)
        ahead = self.preparation
        if ahead is None:
            return plan
        identity = ahead.code, *ahead.texts, *self.fixed
        if not ahead.varies and identity in prepared:
            return _core.sharing_preparation(plan, prepared[identity])
        made = _core.with_preparation(plan, ahead.plan(values), self.fixed)
        if not ahead.varies:
            prepared[identity] = made
        return made


@dataclass
class Template:
    """The facts of a plan, with expressions of sizes in place of numbers; `varies`, unless there
    are none of these. Its machine code is at an address, and on disk in an entry of that name."""

    names: tuple[str, ...]
    texts: Sequence[str]
    varies: bool
    code: int
    entry: str
    prove: Callable[[Mapping[str, int]], None] | None = None

    @cached_property
    def _facts(self) -> Callable[..., tuple[Any, ...]]:
        return function_of(self.names, self.texts)

    def plan(self, values: Mapping[str, int]) -> _core.Plan:
        """The plan for one size; proved, where that is asked for."""
        if self.prove is not None:
            self.prove(values)
        facts = PlanFacts(*self._facts(**values))
        check_room(facts)
        return facts.plan(self.code)


def _varies(facts: Any) -> bool:
    return any(map(_varies, facts)) if type(facts) in _SEQUENCES else is_traced(facts)


def _text(facts: Any) -> str:
    """`facts` as an expression of Python."""
    if isinstance(facts, str):
        return message(facts)
    if type(facts) not in _SEQUENCES:
        return written(facts)
    return f"({''.join(f'{_text(item)}, ' for item in facts)})"


_SEQUENCES = (list, tuple, PlanFacts)


# -- on disk --------------------------------------------------------------------------------------


def _write(key: bytes | None, ranges: Iterable[Range]) -> None:
    """Keep ranges, with those that other processes have kept."""
    if key is None:
        return
    described = [_described(one) for one in ranges]
    known = [found[:2] for found in described]
    described += [found for found in _kept(key) if found[:2] not in known]
    content = json.dumps(described[:_MOST_RANGES]).encode()
    object_cache.default_cache().write(key, content)


def _kept(key: bytes | None) -> list[Any]:
    content = object_cache.default_cache().read(key)
    found: list[Any] = [] if content is None else json.loads(content)
    return found


def _described(one: Range) -> list[Any]:
    templates = [one.template, *([one.preparation] if one.preparation else [])]
    facts = [[t.texts, t.varies, t.entry] for t in templates]
    return [list(one.names), list(one.conditions), facts, one.fixed]


def _read(key: bytes | None) -> list[Range]:
    """The ranges that were kept, as far as their machine code is still there."""
    found = []
    for names, conditions, facts, fixed in _kept(key):
        templates = [_read_template(tuple(names), *fact) for fact in facts]
        template, *ahead = templates
        if template is not None and None not in ahead:
            preparation = ahead[0] if ahead else None
            found.append(Range(tuple(names), tuple(conditions), template, preparation, fixed))
    return found


def _read_template(
    names: tuple[str, ...], texts: Sequence[str], varies: bool, entry: str
) -> Template | None:
    code = stored.entry_address(entry)
    return None if code is None else Template(names, texts, varies, code, entry)
